"""Turns: utterances of one speaker joined over short gaps, and the robot's own speech reports."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from norm_core.records.record import record
from norm_core.records.speech import RobotSpeech, Speaker, SpeechEdge, Timing, Utterance
from norm_core.runtime.time import NS_PER_S
from norm_monitor.context.spoken_words import estimate_duration_ns, likeness, normalize
from norm_monitor.context.wording import word_count

# Utterances with a shorter gap are one turn, as recognizers split a sentence at pauses of half a second.
MAX_GAP_NS = 1 * NS_PER_S
# Speech without a stop ends after this time, as nobody speaks longer without a pause.
MAX_SPEECH_NS = 120 * NS_PER_S
# Where times are uncertain, more than this share of heard words must be in the reported ones.
_MIN_REPORTED_SHARE = 0.5


@record
class Turn:
    """A turn of one speaker; `ongoing` if the robot had not stopped when the window closed."""

    speaker: Speaker
    speaker_id: str = ""
    start_ns: int
    end_ns: int
    text: str
    turn_id: str
    source_topic: str = ""
    spans: tuple[tuple[int, int], ...]  # stretches of voice activity, in order
    timed: bool = True
    locale: str = ""  # as stated
    ongoing: bool = False
    finished_parts: str = ""  # of an ongoing turn, the words that are over
    addressee_id: str = ""  # the one person whom the robot's turn answers

    @property
    def is_robot(self) -> bool:
        """Whether the robot speaks, not a person."""
        return self.speaker is Speaker.ROBOT

    @property
    def finished_text(self) -> str:
        """The words that are over."""
        return self.finished_parts if self.ongoing else self.text

    @property
    def word_count(self) -> int:
        """The number of words; two Chinese characters count as one."""
        return word_count(self.text)

    def active_ns(self, start_ns: int, end_ns: int) -> int:
        """Return how long the voice was active within the bounds, in nanoseconds."""
        return sum(max(0, min(end, end_ns) - max(start, start_ns)) for start, end in self.spans)

    def overlap_ns(self, other: "Turn") -> int:
        """Return how long both voices were active at once, in nanoseconds."""
        return sum(self.active_ns(start, end) for start, end in other.spans)


def turns_of(utterances: Iterable[Utterance], robot_speech: Iterable[RobotSpeech], until_ns: int) -> tuple[Turn, ...]:
    """Return all turns by onset; reports of the robot replace its speech as the microphone heard it."""
    reported = _pair_robot_speech(robot_speech, until_ns)
    heard = [_make_turn(utterance) for utterance in utterances]
    unreported = [turn for turn in heard if not (turn.is_robot and _is_reported(turn, reported))]
    return tuple(
        _address(_join_turns(sorted([*reported, *unreported], key=lambda turn: (turn.start_ns, turn.turn_id))))
    )


def _make_turn(utterance: Utterance) -> Turn:
    """Return an utterance as a turn."""
    return Turn(
        speaker=utterance.speaker,
        speaker_id=utterance.speaker_id,
        start_ns=utterance.start_ns,
        end_ns=max(utterance.end_ns, utterance.start_ns),
        text=utterance.text,
        turn_id=utterance.utterance_id,
        source_topic=utterance.source_topic,
        spans=((utterance.start_ns, max(utterance.end_ns, utterance.start_ns)),),
        timed=utterance.timing is not Timing.ABSENT,
        locale=utterance.locale,
    )


def _pair_robot_speech(robot_speech: Iterable[RobotSpeech], until_ns: int) -> list[Turn]:
    """Return the turns between reported starts and stops; a start without a stop is limited."""
    open_starts: dict[str, RobotSpeech] = {}
    turns: list[Turn] = []
    edges = sorted(robot_speech, key=lambda edge: (edge.stamp_ns, edge.state is SpeechEdge.STOP))
    for edge in edges:
        if edge.state is SpeechEdge.START:
            open_starts[edge.speech_id] = edge
        elif start := open_starts.pop(edge.speech_id, None):
            turns.append(_make_robot_turn(start, edge.stamp_ns, start.text or edge.text))
    starts = [edge for edge in edges if edge.state is SpeechEdge.START]
    for start in open_starts.values():
        limit_ns = start.stamp_ns + MAX_SPEECH_NS
        following = next((later for later in starts if later.stamp_ns > start.stamp_ns), None)
        if following:  # a robot has one voice, so the stop is lost
            words_end_ns = start.stamp_ns + estimate_duration_ns(start.text)
            limit_ns = min(following.stamp_ns, words_end_ns if start.text else limit_ns)
        ongoing = until_ns <= limit_ns and not following
        turns.append(_make_robot_turn(start, min(until_ns, limit_ns), start.text, ongoing=ongoing))
    return turns


def _make_robot_turn(start: RobotSpeech, end_ns: int, text: str, *, ongoing: bool = False) -> Turn:
    """Return the turn of the robot from a reported start to its end."""
    end_ns = max(end_ns, start.stamp_ns)
    return Turn(
        speaker=Speaker.ROBOT,
        start_ns=start.stamp_ns,
        end_ns=end_ns,
        text=text,
        turn_id=start.speech_id,
        source_topic="robot_speech",
        spans=((start.stamp_ns, end_ns),),
        locale=start.locale,
        ongoing=ongoing,
    )


def _is_reported(turn: Turn, reported: Sequence[Turn]) -> bool:
    """Whether an utterance is reported speech of the robot, as heard by the microphone.

    Reported times may be estimated, so matching words right before or after them count as reported.
    """
    heard_ns = sum(max(0, min(turn.end_ns, _voice_end_ns(t)) - max(turn.start_ns, t.start_ns)) for t in reported)
    if 2 * heard_ns > turn.end_ns - turn.start_ns:
        return True
    texts_around = [
        t.text for t in reported if turn.start_ns - t.end_ns < MAX_GAP_NS and t.start_ns - turn.end_ns < MAX_GAP_NS
    ]
    alike = likeness(normalize(turn.text), normalize(" ".join(texts_around)))
    return sum(alike) > _MIN_REPORTED_SHARE * len(alike)


def _voice_end_ns(turn: Turn) -> int:
    """Return until when the robot may be heard; unfinished speech continues after the window."""
    return turn.start_ns + MAX_SPEECH_NS if turn.ongoing else turn.end_ns


def _join_turns(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    """Join successive turns of one speaker over short gaps."""
    joined: list[Turn] = []
    for turn in turns:
        before = joined[-1] if joined else None
        if before and _is_same_turn(before, turn):
            joined[-1] = _join(before, turn)
        else:
            joined.append(turn)
    return tuple(joined)


def _address(turns: Iterable[Turn]) -> Iterator[Turn]:
    """Address each turn of the robot to the person who spoke before it, if only one did."""
    speakers: set[str] = set()
    is_answered = False
    for turn in turns:
        if not turn.is_robot:
            speakers = {turn.speaker_id} if is_answered else speakers | {turn.speaker_id}
        is_answered = turn.is_robot
        yield replace(turn, addressee_id=min(speakers)) if turn.is_robot and len(speakers) == 1 else turn


def _is_same_turn(before: Turn, turn: Turn) -> bool:
    """Whether one speaker goes on after a short gap."""
    return (
        before.speaker is turn.speaker
        and before.timed is turn.timed
        and (before.speaker_id == turn.speaker_id or not (before.speaker_id and turn.speaker_id))
        and turn.start_ns - before.end_ns < MAX_GAP_NS
    )


def _join(before: Turn, turn: Turn) -> Turn:
    """Return two turns of one speaker as one."""
    return Turn(
        speaker=before.speaker,
        speaker_id=before.speaker_id or turn.speaker_id,
        start_ns=before.start_ns,
        end_ns=max(before.end_ns, turn.end_ns),
        text=f"{before.text} {turn.text}".strip(),
        turn_id=before.turn_id,
        source_topic=before.source_topic,
        spans=(*before.spans, *turn.spans),
        timed=before.timed,
        locale=before.locale or turn.locale,
        ongoing=before.ongoing or turn.ongoing,
        finished_parts=f"{before.finished_text} {turn.finished_text}".strip(),
    )
