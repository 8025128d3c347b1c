"""Merge the messages of a robot about its speech into starts and stops.

A text alone gives estimated times. If the state of a voice is known too, a text waits for the voice, which gives the
times.
"""

from collections import deque
from dataclasses import replace
from typing import Any

from norm_core.health.health_log import HealthLog
from norm_core.records.record import record
from norm_core.records.speech import RobotSpeech, SpeechEdge
from norm_core.records.status import Health
from norm_core.records.text_limits import MAX_SPEECH_CHARACTERS
from norm_core.runtime.time import NS_PER_S, ns_to_s
from norm_monitor.context.spoken_words import estimate_duration_ns
from norm_monitor.senses.robot_voice.robot_messages import (
    RobotEvent,
    RobotVoiceState,
    SpokenWord,
    TextToSay,
    read_robot_message,
)
from norm_monitor.senses.robot_voice.robot_voice import MAX_SPEECH_NS

# A text fits into the time of a voice if it needs at least this share of its estimated time.
_MIN_TIME_RATIO = 0.8
# The longest pause within one speech, and the longest delay of its text.
_MAX_PAUSE_NS = 1 * NS_PER_S
# How long a text waits for the voice.
_MAX_WAIT_NS = 10 * NS_PER_S
# The number of texts that may wait.
_MAX_WAITING = 8
# A voice that was stated this often, and then no more for this time and this many of its intervals, is lost.
_MIN_REPETITIONS = 3
_MIN_SILENCE_NS = 3 * NS_PER_S
_MIN_SILENT_INTERVALS = 5
# A larger step back in time begins a new session, such as a bag that is played again.
_JUMP_BACK_NS = 10 * NS_PER_S

_NO_VOICE = (
    "robot speech: a text was not followed by the robot's voice, so its times are estimated; "
    "check the topic that states whether the robot speaks"
)


@record
class _Speech:
    """The current speech. `estimated_end_ns` is set if its stop was given already."""

    start: RobotSpeech
    arrived_ns: int  # of the start or the last word, whose stamps may be of another clock
    voice_id: str = ""
    estimated_end_ns: int | None = None
    last_word_ns: int | None = None  # of words that came one by one in the feedback of an action
    words: str = ""

    @property
    def text(self) -> str:
        """The text of the start, or else the words so far."""
        return self.start.text or self.words


@record
class _Statement:
    """The last statement that a voice speaks, the number of its repetitions, and the longest interval between them."""

    stamp_ns: int
    arrived_ns: int
    repetitions: int = 0
    max_interval_ns: int = 0

    def repeat(self, stamp_ns: int, arrived_ns: int) -> "_Statement":
        """Return the next statement of the same voice."""
        return _Statement(
            stamp_ns=stamp_ns,
            arrived_ns=arrived_ns,
            repetitions=self.repetitions + 1,
            max_interval_ns=max(self.max_interval_ns, arrived_ns - self.arrived_ns),
        )

    def is_overdue(self, now_ns: int) -> bool:
        """Whether a voice that was stated regularly is no longer stated."""
        max_wait_ns = max(_MIN_SILENCE_NS, _MIN_SILENT_INTERVALS * self.max_interval_ns)
        return self.repetitions >= _MIN_REPETITIONS and now_ns > self.arrived_ns + max_wait_ns


class RobotSpeechAdapter:
    """A converter of messages, in order of arrival, to starts and stops. A RobotSpeech message passes unchanged."""

    def __init__(self, health_log: HealthLog, speaker_ids: tuple[str, ...] = ()) -> None:
        """Without `speaker_ids`, captions of all speakers are the robot's."""
        self._health_log = health_log
        self._speaker_ids = speaker_ids
        self._newest_ns = 0
        self._reset()

    def _reset(self) -> None:
        self.gives_words = False  # whether any text came
        self._has_voice = False  # whether a voice's state is known, so that texts wait for it
        self._is_voice_broken = False  # whether a text came and the voice did not rise
        self._speech: _Speech | None = None
        self._wordless: tuple[RobotSpeech, int] | None = None  # the last start without words, and its stop
        self._speaking: dict[str, _Statement] = {}  # by voice
        self._waiting: deque[TextToSay] = deque()
        self._waits_since_ns = 0

    def feed(self, message: Any, arrival_ns: int, topic: str = "") -> list[RobotSpeech]:
        """Return the starts and stops in a message. The stamp of an estimated stop may be in the future.

        Raises NotRobotSpeechError for a type that carries no speech.
        """
        edges = self.advance(arrival_ns)
        if isinstance(message, RobotSpeech):
            return [*edges, message]
        events = read_robot_message(message, arrival_ns, topic, self._speaker_ids)
        return [*edges, *(edge for event in events for edge in self.take_event(event))]

    def take_event(self, event: RobotEvent) -> list[RobotSpeech]:
        """Return the starts and stops that an event causes."""
        match event:
            case TextToSay():
                self._health_log.note_cut_texts(event.is_cut)
                return self._take_text(event)
            case SpokenWord():
                self._health_log.note_cut_texts(len(event.text) > MAX_SPEECH_CHARACTERS)
                return self._take_word(event)
            case RobotVoiceState():
                return self._raise_voice(event) if event.speaking else self._lower_voice(event)

    def advance(self, now_ns: int) -> list[RobotSpeech]:
        """Return the stops that are due because time passed: of words, and of voices that never stop."""
        if now_ns < self._newest_ns - _JUMP_BACK_NS:
            self._reset()
        self._newest_ns = now_ns
        edges = [
            edge
            for voice, stated in list(self._speaking.items())
            if stated.is_overdue(now_ns)
            for edge in self._lose_voices({voice}, stated.stamp_ns)
        ]
        speech = self._speech
        if speech and speech.estimated_end_ns is None:
            if speech.voice_id not in self._speaking and now_ns > speech.arrived_ns + _MAX_PAUSE_NS:
                last_ns = speech.last_word_ns or speech.start.stamp_ns
                edges += self._stop(last_ns + estimate_duration_ns(""), estimated=True)
            elif now_ns > speech.arrived_ns + MAX_SPEECH_NS:
                edges += self._stop_early(speech, speech.start.stamp_ns + MAX_SPEECH_NS)
                self._has_voice = False
                self._report_endless_voice()
        elif speech and not speech.voice_id and now_ns > (speech.estimated_end_ns or 0):
            self._speech = None
        if self._waiting and not self._speech and now_ns > self._waits_since_ns + _MAX_WAIT_NS:
            self._has_voice = False
            self._is_voice_broken = True
            self._health_log.raise_issue("robot voice", Health.DEGRADED, _NO_VOICE)
            while self._waiting:
                self._health_log.count("robot_texts_without_voice")
                edges += self._estimate(self._waiting.popleft())
        return edges

    def end_input(self) -> list[RobotSpeech]:
        """Return the texts that still wait for the voice, with estimated times."""
        texts = list(self._waiting)
        self._waiting.clear()
        return [edge for text in texts for edge in self._estimate(text)]

    def lose_topic(self, topic: str, now_ns: int) -> list[RobotSpeech]:
        """Return the stop of the speech whose voice a topic gave, because nobody publishes the topic any more.

        A killed publisher seems present for some 20 s. If it stated the voice repeatedly, its last statement counts.
        """
        is_action = "/_action/" in topic
        voices = {voice for voice in self._speaking if voice == topic or (is_action and not voice.startswith("/"))}
        stated_ns = [self._speaking[voice].stamp_ns for voice in voices if self._speaking[voice].repetitions]
        return self._lose_voices(voices, max(stated_ns, default=now_ns)) if voices else []

    def _lose_voices(self, voices: set[str], latest_ns: int) -> list[RobotSpeech]:
        """Return the stop of the current speech, if its voice is one of these, which nobody states any more."""
        for voice in voices:
            del self._speaking[voice]
        self._has_voice = False
        speech = self._speech
        if speech is None or speech.voice_id not in voices:
            return []
        self._health_log.count("robot_voices_lost")
        if speech.estimated_end_ns is not None and speech.estimated_end_ns <= latest_ns:
            self._speech = None  # its stop was given already
            return []
        return self._stop_early(speech, latest_ns)

    def _stop_early(self, speech: _Speech, latest_ns: int) -> list[RobotSpeech]:
        """Stop a speech whose voice gave no stop: at the estimated end of its words, or earlier at `latest_ns`."""
        words_end_ns = speech.start.stamp_ns + estimate_duration_ns(speech.text)
        return self._stop(min(words_end_ns, latest_ns) if speech.text else latest_ns, estimated=True)

    def _report_endless_voice(self) -> None:
        self._health_log.count("robot_voices_endless")
        why = (
            f"robot speech: the robot is said to speak for over {ns_to_s(MAX_SPEECH_NS):g} s, so the stop is "
            "estimated; check the topic that states whether it speaks"
        )
        self._health_log.raise_issue("robot voice", Health.DEGRADED, why)

    def _take_text(self, text: TextToSay) -> list[RobotSpeech]:
        """Say a text now by estimate, give it to the current or last speech, or let it wait for the voice."""
        self.gives_words = True
        speech = self._speech
        if not text.text:
            return self._interrupt(text.stamp_ns)
        if self._is_repeated(text):
            self._health_log.count("robot_texts_repeated")
            return []
        if not self._has_voice:
            return [*self._interrupt(text.stamp_ns), *self._estimate(text)]
        if speech and speech.estimated_end_ns is None and not speech.start.text:
            self._speech = replace(speech, start=_add_words(speech.start, text))
            return [self._speech.start]
        if self._wordless and not speech and 0 <= text.stamp_ns - self._wordless[1] < _MAX_PAUSE_NS:
            start, _ = self._wordless
            self._wordless = None
            return [_add_words(start, text)]
        self._waiting.append(text)
        self._waits_since_ns = self._newest_ns
        if len(self._waiting) > _MAX_WAITING:
            self._health_log.count("robot_texts_without_voice")
            self._waiting.popleft()
        return []

    def _is_repeated(self, text: TextToSay) -> bool:
        """Whether the same text waits or is being said: two topics often carry the same words."""
        current_texts = [waiting.text for waiting in self._waiting]
        speech = self._speech
        if speech and (speech.estimated_end_ns is None or text.stamp_ns < speech.estimated_end_ns):
            current_texts.append(speech.start.text)
        return text.text.casefold() in (current_text.casefold() for current_text in current_texts)

    def _take_word(self, word: SpokenWord) -> list[RobotSpeech]:
        """Add a word to the current speech, or begin one."""
        speech = self._speech
        edges: list[RobotSpeech] = []
        if speech is None:
            speech = self._begin(word)
            edges.append(speech.start)
        if speech.voice_id == word.voice_id:
            speech = replace(
                speech,
                words=f"{speech.words} {word.text}".strip()[:MAX_SPEECH_CHARACTERS],
                last_word_ns=word.stamp_ns,
                arrived_ns=speech.arrived_ns if word.voice_id in self._speaking else self._newest_ns,
            )
        self._speech = speech
        return edges

    def _raise_voice(self, voice: RobotVoiceState) -> list[RobotSpeech]:
        """Begin a speech with a voice that speaks now, unless its speech goes on."""
        edges: list[RobotSpeech] = []
        if statement := self._speaking.get(voice.voice_id):
            self._speaking[voice.voice_id] = statement.repeat(voice.stamp_ns, self._newest_ns)
            if not self._begins_anew(statement):
                return []
            edges = self._lose_voices({voice.voice_id}, voice.stamp_ns)
        self._speaking[voice.voice_id] = _Statement(stamp_ns=voice.stamp_ns, arrived_ns=self._newest_ns)
        self._has_voice = True
        self._is_voice_broken = False
        speech = self._speech
        if speech and (speech.voice_id or voice.stamp_ns < (speech.estimated_end_ns or 0)):
            self._speech = replace(speech, voice_id=speech.voice_id or voice.voice_id)
            return []
        self._speech = self._begin(voice)
        return [*edges, self._speech.start]

    def _begin(self, voice: SpokenWord | RobotVoiceState) -> _Speech:
        """Return the speech that a voice begins, with the texts that waited for it."""
        start = RobotSpeech(stamp_ns=voice.stamp_ns, speech_id=f"voice-{voice.stamp_ns}", state=SpeechEdge.START)
        if self._waiting:
            start = _add_words(start, *self._waiting)
            self._waiting.clear()
        return _Speech(start=start, arrived_ns=self._newest_ns, voice_id=voice.voice_id)

    def _begins_anew(self, statement: _Statement) -> bool:
        """Whether a repeated statement begins a new speech: texts wait, and the last statement was long ago."""
        is_old = self._newest_ns > statement.arrived_ns + _MAX_WAIT_NS
        return bool(self._waiting) and not statement.repetitions and is_old

    def _lower_voice(self, voice: RobotVoiceState) -> list[RobotSpeech]:
        """Stop the speech of a voice that speaks no more."""
        if voice.voice_id not in self._speaking:
            self._has_voice = not self._is_voice_broken
            return []
        self._has_voice = True
        del self._speaking[voice.voice_id]
        self._health_log.clear_issue("robot voice")
        speech = self._speech
        if speech is None or speech.voice_id != voice.voice_id:
            return []
        if speech.estimated_end_ns is None:
            return [*self._claim_texts(speech, voice.stamp_ns), *self._stop(voice.stamp_ns)]
        if voice.stamp_ns <= speech.estimated_end_ns:
            return self._stop(voice.stamp_ns)
        # The estimated stop was too early, so the speech continues in a second part.
        part = replace(speech.start, stamp_ns=speech.estimated_end_ns, speech_id=f"voice-{voice.stamp_ns}", text="")
        self._speech = _Speech(start=part, arrived_ns=self._newest_ns)
        return [part, *self._stop(voice.stamp_ns)]

    def _claim_texts(self, speech: _Speech, stop_ns: int) -> list[RobotSpeech]:
        """Return the start again, with the texts that came while the voice spoke, as far as they fit into its time."""
        start = speech.start
        while self._waiting and self._waiting[0].stamp_ns > start.stamp_ns:
            longer = _add_words(start, self._waiting[0])
            if estimate_duration_ns(longer.text) * _MIN_TIME_RATIO > stop_ns - start.stamp_ns:
                break
            start = longer
            self._waiting.popleft()
        self._speech = replace(speech, start=start)
        return [] if start is speech.start else [start]

    def _estimate(self, text: TextToSay) -> list[RobotSpeech]:
        """Return the start and the estimated stop of a text."""
        end_ns = text.stamp_ns + estimate_duration_ns(text.text)
        start = RobotSpeech(
            stamp_ns=text.stamp_ns,
            speech_id=f"said-{text.stamp_ns}",
            state=SpeechEdge.START,
            text=text.text,
            locale=text.locale,
            estimated=True,
        )
        self._speech = _Speech(start=start, arrived_ns=self._newest_ns, estimated_end_ns=end_ns)
        return [start, replace(start, stamp_ns=end_ns, state=SpeechEdge.STOP)]

    def _interrupt(self, stamp_ns: int) -> list[RobotSpeech]:
        """Stop an estimated speech early. A speech with a voice goes on, because the voice states its stop."""
        speech = self._speech
        if speech is None or speech.estimated_end_ns is None or speech.voice_id:
            return []
        self._speech = None
        if speech.estimated_end_ns <= stamp_ns:
            return []
        return [RobotSpeech(stamp_ns=stamp_ns, speech_id=speech.start.speech_id, state=SpeechEdge.STOP, estimated=True)]

    def _stop(self, stamp_ns: int, *, estimated: bool = False) -> list[RobotSpeech]:
        """Stop the current speech."""
        speech, self._speech = self._speech, None
        if speech is None:
            return []
        stop = replace(speech.start, stamp_ns=stamp_ns, state=SpeechEdge.STOP, text=speech.text, estimated=estimated)
        self._wordless = None if stop.text else (speech.start, stamp_ns)
        return [stop]


def _add_words(start: RobotSpeech, *texts: TextToSay) -> RobotSpeech:
    """Return a start with the words of these texts too."""
    words = " ".join(filter(None, [start.text, *(text.text for text in texts)]))
    return replace(start, text=words, locale=start.locale or texts[0].locale)
