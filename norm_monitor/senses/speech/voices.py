"""The voices of REP-155: the words of each voice, and the person whose voice it is."""

from typing import Any

from norm_core.records.speech import Utterance
from norm_core.records.stamps import join_stamp
from norm_core.runtime.time import NS_PER_S
from norm_monitor.senses.speech.external_recognizer import LATENESS_NS, LiveSpeechAdapter

# The topics below the namespace of humans that state who says what.
VOICE_TOPICS = r"voices/tracked|voices/\w+/(?:speech|is_speaking)|persons/\w+/voice_id|candidate_matches"
# The topic of a voice's texts; {} stands for the id of the voice.
VOICE_TEXTS = "voices/{}/speech"
# PAL's recognizers give everybody's words under this id, so it identifies nobody.
ANONYMOUS_VOICE = "anonymous_speaker"
# How the ids begin that a tracker of persons makes up for the anonymous voice.
ANONYMOUS_PERSONS = "anonymous_"
MAX_VOICES = 64
MAX_MATCHES = 512
# A match must exceed it; hri_person_manager has the same threshold.
MIN_CONFIDENCE = 0.5
# A list that is this much older than the newest is of another timeline.
_JUMP_NS = 60 * NS_PER_S
# Types of ids in IdsMatch.
_PERSON_TYPE = 1
_VOICE_TYPE = 4


class VoiceOwners:
    """The owners of voices: as persons/ID/voice_id states, or else by the likeliest candidate match."""

    def __init__(self) -> None:
        self._voices: dict[str, str] = {}  # by person, the newest statement last
        self._matches: dict[tuple[str, str], float] = {}  # by voice and person

    def set_voice(self, person_id: str, voice_id: str) -> None:
        """Set the voice of a person; an empty one for none."""
        if self._voices.get(person_id, "") == voice_id:
            return
        self._voices.pop(person_id, None)
        if voice_id:
            self._voices[person_id] = voice_id
        _drop_oldest(self._voices, MAX_MATCHES)

    def add_match(self, message: Any) -> None:
        """Add an IdsMatch. One without a voice and a person changes nothing."""
        ids = {int(message.id1_type): str(message.id1), int(message.id2_type): str(message.id2)}
        pair = ids.get(_VOICE_TYPE, ""), ids.get(_PERSON_TYPE, "")
        if all(pair):
            self._matches.pop(pair, None)
            self._matches[pair] = float(message.confidence)
            _drop_oldest(self._matches, MAX_MATCHES)

    def find_person(self, voice_id: str) -> str:
        """Return the id of the person whose voice it is, or an empty one."""
        owners = [person for person, voice in self._voices.items() if voice == voice_id and _can_own(person, voice)]
        if owners:
            return owners[-1]
        likely = {
            person: confidence
            for (voice, person), confidence in self._matches.items()
            if voice == voice_id and confidence > MIN_CONFIDENCE and _can_own(person, voice)
        }
        return max(likely, key=lambda person: (likely[person], person), default="")


class Voices:
    """The words of one recognizer by voice, in order of arrival. A recognizer of one voice gives it the empty id."""

    def __init__(self, topic: str, lateness_ns: int = LATENESS_NS) -> None:
        """Prepare for texts. In their `topic`, {} stands for the id of the voice."""
        self._topic = topic
        self._lateness_ns = lateness_ns
        self.owners = VoiceOwners()
        self._adapters: dict[str, LiveSpeechAdapter] = {}
        self._speakers: dict[str, str] = {}  # by voice, the person who began to speak with it
        self._has_edges = False  # whether is_speaking comes, so that a voice without it is silent
        self._listed_ns = 0

    def quiet_until_ns(self, now_ns: int) -> int:
        """Return the stamp before which no later text of any voice starts, if texts keep to the lateness."""
        adapters = [adapter for adapter in self._adapters.values() if adapter.has_edges or not self._has_edges]
        quiet_ns = [adapter.quiet_until_ns(now_ns) for adapter in adapters]
        return min(quiet_ns, default=now_ns if self._has_edges else now_ns - self._lateness_ns)

    def set_speaking(self, speaking: bool, stamp_ns: int, voice_id: str = "") -> None:
        """Add a start or an end of speech of one voice."""
        self._has_edges = True
        self._get_adapter(voice_id).set_speaking(speaking, stamp_ns)
        self._find_speaker(voice_id, begins=speaking)

    def take_text(self, message: Any, arrival_ns: int, voice_id: str = "") -> Utterance | None:
        """Return the utterance in a text of one voice; None if it is empty. Raises NotSpeechError without a text."""
        return self._get_adapter(voice_id).take_text(message, arrival_ns, self._find_speaker(voice_id))

    def track(self, message: Any, arrival_ns: int) -> bool:
        """Take the list of tracked voices, and end the speech of all others. Return False for an outdated list."""
        stamp_ns = join_stamp(int(message.header.stamp.sec), int(message.header.stamp.nanosec)) or arrival_ns
        if 0 < self._listed_ns - stamp_ns < _JUMP_NS:
            return False
        self._listed_ns = stamp_ns
        for voice_id, adapter in self._adapters.items():
            if voice_id not in message.ids and adapter.has_edges:
                adapter.set_speaking(False, arrival_ns)
        return True

    def _get_adapter(self, voice_id: str) -> LiveSpeechAdapter:
        topic = self._topic.replace("{}", voice_id)
        # Put it to the end, because the least recently used voice is dropped first.
        adapter = self._adapters.pop(voice_id, None) or LiveSpeechAdapter(topic, lateness_ns=self._lateness_ns)
        self._adapters[voice_id] = adapter
        for dropped in _drop_oldest(self._adapters, MAX_VOICES):
            self._speakers.pop(dropped, None)
        return adapter

    def _find_speaker(self, voice_id: str, *, begins: bool = False) -> str:
        """Return who speaks. A person counts until the next speech, as a text may come after the end of a match."""
        earlier = "" if begins else self._speakers.get(voice_id, "")
        speaker = self._speakers[voice_id] = self.owners.find_person(voice_id) or earlier
        return speaker or ("" if voice_id == ANONYMOUS_VOICE else voice_id)


def _can_own(person_id: str, voice_id: str) -> bool:
    """Whether a person may own a voice; nobody real owns the anonymous one."""
    return not (voice_id == ANONYMOUS_VOICE and person_id.startswith(ANONYMOUS_PERSONS))


def _drop_oldest(table: dict[Any, Any], limit: int) -> list[Any]:
    """Drop the first keys beyond a limit, and return them."""
    oldest = list(table)[: max(0, len(table) - limit)]
    for key in oldest:
        del table[key]
    return oldest
