"""Detect clocks that disagree between sources.

Stamps alone show words of the robot that the microphone hears at another time and, in a replay, sources that advance
half a minute or more apart. Live, delays of records after their stamps count in place of the latter. A slow computer
delays records too, but not from the first on, so a source that was ever in time keeps its clock.
"""

from collections import deque
from collections.abc import Iterator

from norm_core.records.frame import Frame
from norm_core.records.presence import Presence
from norm_core.records.record import record
from norm_core.records.speech import RobotSpeech, SpeechEdge, Timing, Utterance
from norm_core.runtime.time import NS_PER_S, ns_to_s
from norm_core.streams.watermarks import FRAMES, PRESENCE, UTTERANCES
from norm_monitor.context.spoken_words import estimate_duration_ns, likeness, normalize

ROBOT_SPEECH = "robot_speech"
REMEDY = (
    "no flag is raised on timing meanwhile; synchronise the clocks of these machines (chrony), or move the stamps "
    "(robot_offset_ms of ears, stamp_offset_ms of the camera)"
)
LATE_SOUND = (
    "timing: sound without stamps came over 0.3 s late, as may all else, so no flag is raised on timing meanwhile; "
    "use a microphone driver that stamps its sound, or relieve this computer"
)
# Sources of a recording that advance further apart than this have clocks apart: transcription never delays one so much.
_MAX_LEAD_NS = 30 * NS_PER_S
# Number of leads of which the smallest counts.
_LEAD_SAMPLES = 3
# Sources whose smallest delays differ by more have clocks apart.
_MAX_DELAY_DIFFERENCE_NS = 3 * NS_PER_S
# Number of records of which the smallest delay counts, so that a slow one matters little.
_DELAY_SAMPLES = 20
# The same for the speech of the robot, which is rarer.
_ROBOT_DELAY_SAMPLES = 4
# Stamps that advance faster or slower than time by this factor come from a replay.
_MAX_PACE = 1.05
# The pace of a source is known after so long.
_MIN_PACED_NS = 10 * NS_PER_S
# A smaller shift of the robot's words says nothing about clocks.
_MIN_SHIFT_NS = NS_PER_S
# The shifts of the latest speeches must agree within this.
_MAX_SHIFT_SPREAD_NS = NS_PER_S // 2
# Number of the latest speeches that must be heard shifted.
_MIN_SHIFTED_SPEECHES = 3
_LATEST_SPEECHES = 4
# Speeches are compared for so long.
_REMEMBERED_NS = 300 * NS_PER_S
# An utterance with fewer words is not compared.
_MIN_WORDS = 4
# From this likeness, the words of an utterance are those of a speech.
_MIN_LIKENESS = 0.7

Stamped = Frame | Presence | Utterance | RobotSpeech


@record
class _Pair:
    """A speech of the robot, and an utterance with its words."""

    said_ns: int
    heard_ns: int
    utterance_id: str
    lasts_ns: int  # estimated length of the speech
    has_first_words: bool  # whether the utterance has those of the speech

    @property
    def shift_ns(self) -> int:
        """How much later the words are heard than said."""
        return self.heard_ns - self.said_ns


class ClockSkew:
    """Compare the clocks of sources by their records, in order of arrival."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all records, as a new timeline begins."""
        self._newest_ns: dict[str, int] = {}
        self._sampled_at_ns: dict[str, int] = {}  # the microphone's newest stamp at a source's latest sample
        self._ahead_ns: dict[str, deque[int]] = {}  # of the microphone, by source
        self._received: dict[str, deque[tuple[int, int]]] = {}  # receive times and stamps
        self._first_received: dict[str, tuple[int, int]] = {}
        self._smallest_delays_ns: dict[str, int] = {}  # since the timeline began
        self._is_stamped_on_arrival = False
        self._reported: deque[RobotSpeech] = deque(maxlen=16)
        self._heard: deque[Utterance] = deque(maxlen=32)
        self._late_spans: deque[tuple[int, int]] = deque(maxlen=64)  # in which sound came late
        self._pairs: deque[_Pair] = deque(maxlen=64)

    def add(self, entry: Stamped, received_ns: int | None = None) -> None:
        """Add a record; only a live one has a receive time."""
        source, stamp_ns = _source_of(entry)
        self._pair_words(entry)
        if not source:
            return
        if isinstance(entry, Utterance) and entry.timing is Timing.ABSENT:
            self._add_late_span(self._newest_ns.get(source, 0), stamp_ns)
        self._newest_ns[source] = stamp_ns
        heard_ns = self._newest_ns.get(UTTERANCES)
        if source != UTTERANCES and heard_ns is not None and self._sampled_at_ns.get(source) != heard_ns:
            self._sampled_at_ns[source] = heard_ns
            self._ahead_ns.setdefault(source, deque(maxlen=_LEAD_SAMPLES)).append(stamp_ns - heard_ns)
        if received_ns is not None:
            max_delays = _ROBOT_DELAY_SAMPLES if source == ROBOT_SPEECH else _DELAY_SAMPLES
            self._received.setdefault(source, deque(maxlen=max_delays)).append((received_ns, stamp_ns))
            self._first_received.setdefault(source, (received_ns, stamp_ns))
            delay_ns = received_ns - stamp_ns
            self._smallest_delays_ns[source] = min(delay_ns, self._smallest_delays_ns.get(source, delay_ns))

    def describe_skew(self, until_ns: int | None = None) -> str:
        """Describe which clocks lie apart and what to do, by words heard before `until_ns`; empty if none do."""
        newest_ns = self._newest_ns.get(UTTERANCES, 0) if until_ns is None else until_ns
        if any(from_ns < newest_ns <= late_until_ns for from_ns, late_until_ns in self._late_spans):
            return LATE_SOUND
        reasons = list(self._compare_order()) or list(self._compare_delays()) or list(self._compare_words(until_ns))
        return f"clocks: {'; '.join(reasons)}: {REMEDY}" if reasons else ""

    def find_echoes(self, until_ns: int) -> frozenset[str]:
        """Find the utterances that are words of the robot, heard at another time than they were said."""
        shift_ns = self._find_shift_ns(until_ns)
        if shift_ns is None:
            return frozenset()
        return frozenset(
            pair.utterance_id
            for pair in self._pairs
            if -_MIN_SHIFT_NS <= pair.shift_ns - shift_ns <= 2 * pair.lasts_ns + _MIN_SHIFT_NS
        )

    def _add_late_span(self, from_ns: int, until_ns: int) -> None:
        """Note a time in which sound came late, as one with a span that ends where it begins."""
        if self._late_spans and self._late_spans[-1][1] == from_ns:
            from_ns = self._late_spans.pop()[0]
        self._late_spans.append((from_ns, until_ns))

    def _compare_order(self) -> Iterator[str]:
        """Yield the sources whose stamps are always far from those of the microphone; live, one may only be late."""
        if self._received:
            return
        for source, ahead_ns in sorted(self._ahead_ns.items()):
            smallest_ns = min(ahead_ns, key=abs)
            if len(ahead_ns) == _LEAD_SAMPLES and abs(smallest_ns) > _MAX_LEAD_NS:
                yield _describe_skew(source, smallest_ns)

    def _compare_delays(self) -> Iterator[str]:
        """Yield the sources whose smallest delay differs from that of the microphone, or else of the first source.

        The smallest of the latest must differ, and the smallest of all: lateness begins after the first records.
        """
        if not self._is_live():
            return
        delays_ns = {
            source: min(received_ns - stamp_ns for received_ns, stamp_ns in times)
            for source, times in sorted(self._received.items())
            if times[-1][0] - self._first_received[source][0] >= _MIN_PACED_NS
        }
        smallest_ns = dict(self._smallest_delays_ns)
        if self._is_stamped_on_arrival:
            delays_ns[UTTERANCES] = smallest_ns[UTTERANCES] = 0
        reference = UTTERANCES if UTTERANCES in delays_ns else min(delays_ns)
        for source, delay_ns in delays_ns.items():
            ahead_ns = delays_ns[reference] - delay_ns
            ever_ahead_ns = smallest_ns[reference] - smallest_ns[source]
            if min(ahead_ns, ever_ahead_ns) > _MAX_DELAY_DIFFERENCE_NS or (
                max(ahead_ns, ever_ahead_ns) < -_MAX_DELAY_DIFFERENCE_NS
            ):
                agrees = min((source, reference), key=lambda name: abs(delays_ns[name]))
                yield f"{_describe_skew(source, ahead_ns, reference)} (this machine's clock agrees with {agrees})"

    def _compare_words(self, until_ns: int | None) -> Iterator[str]:
        """Yield the shift of the robot's words, if they are heard at another time."""
        shift_ns = self._find_shift_ns(until_ns)
        if shift_ns is not None:
            yield f"{_describe_skew(ROBOT_SPEECH, -shift_ns)}, as its words are heard then"

    def _is_live(self) -> bool:
        """Whether stamps advance as time does; a replay at another pace shows nothing about clocks."""
        return any(map(self._has_pace_of_time, self._first_received.keys() - {ROBOT_SPEECH}))

    def _has_pace_of_time(self, source: str) -> bool:
        """Whether the stamps of a source advanced as time did, for long enough."""
        (first_ns, stamp_ns), (last_ns, last_stamp_ns) = self._first_received[source], self._received[source][-1]
        elapsed_ns, stamped_ns = last_ns - first_ns, last_stamp_ns - stamp_ns
        return (
            elapsed_ns >= _MIN_PACED_NS and elapsed_ns < _MAX_PACE * stamped_ns and stamped_ns < _MAX_PACE * elapsed_ns
        )

    def _pair_words(self, entry: Stamped) -> None:
        """Pair the robot's words with the utterances that contain them, in either order of arrival."""
        if isinstance(entry, RobotSpeech) and entry.state is SpeechEdge.START and entry.text:
            self._reported.append(entry)
            for heard in self._heard:
                self._add_pair(entry, heard)
        elif isinstance(entry, Utterance) and entry.final and entry.text:
            self._is_stamped_on_arrival = entry.timing is not Timing.SOURCE
            self._heard.append(entry)
            for speech in self._reported:
                self._add_pair(speech, entry)

    def _add_pair(self, robot_speech: RobotSpeech, heard: Utterance) -> None:
        """Note an utterance whose words are those of a speech of the robot."""
        words, spoken = normalize(heard.text), normalize(robot_speech.text)
        if heard.timing is Timing.ABSENT or len(words) < _MIN_WORDS or len(set(words) & set(spoken)) < 2:
            return
        if sum(likeness(words, spoken)) < _MIN_LIKENESS * len(words):
            return
        has_first_words = sum(likeness(words, spoken[: len(words) + 1])) >= _MIN_LIKENESS * len(words)
        self._pairs.append(
            _Pair(
                said_ns=robot_speech.stamp_ns,
                heard_ns=heard.start_ns,
                utterance_id=heard.utterance_id,
                lasts_ns=estimate_duration_ns(robot_speech.text),
                has_first_words=has_first_words,
            )
        )

    def _find_shift_ns(self, until_ns: int | None) -> int | None:
        """Return how much later the latest speeches are heard than said, if they agree; None if the clocks agree."""
        newest_ns = self._newest_ns.get(UTTERANCES, 0) if until_ns is None else until_ns
        by_speech: dict[int, list[_Pair]] = {}
        for pair in self._pairs:
            is_known = until_ns is None or max(pair.said_ns, pair.heard_ns) < until_ns
            if is_known and pair.heard_ns > newest_ns - _REMEMBERED_NS:
                by_speech.setdefault(pair.said_ns, []).append(pair)
        shifts = [_measure_shift(by_speech[said_ns]) for said_ns in sorted(by_speech)]
        latest = [shift_ns for shift_ns in shifts if shift_ns is not None][-_LATEST_SPEECHES:]
        agrees = len(latest) >= _MIN_SHIFTED_SPEECHES and max(latest) - min(latest) <= _MAX_SHIFT_SPREAD_NS
        return sorted(latest)[len(latest) // 2] if agrees and min(map(abs, latest)) >= _MIN_SHIFT_NS else None


def _measure_shift(pairs: list[_Pair]) -> int | None:
    """Return the shift of a speech by its first words, or 0 where others of its words are heard in their place."""
    shifts_ns = [pair.shift_ns for pair in pairs if pair.has_first_words]
    shifts_ns += [
        0 for pair in pairs if not shifts_ns and -_MIN_SHIFT_NS < pair.shift_ns < pair.lasts_ns + _MIN_SHIFT_NS
    ]
    return min(shifts_ns, key=abs, default=None)


def _source_of(entry: Stamped) -> tuple[str, int]:
    """Return the source and the stamp of a record; no source if records of this kind arrive long after their stamps."""
    match entry:
        case Frame():
            return FRAMES, entry.stamp_ns
        case Presence():
            return PRESENCE, entry.stamp_ns
        case Utterance():  # only marks, as words wait for transcription
            return ("" if entry.text else UTTERANCES), entry.start_ns
        case RobotSpeech():
            return (ROBOT_SPEECH if entry.state is SpeechEdge.START else ""), entry.stamp_ns


def _describe_skew(source: str, ahead_ns: int, reference: str = UTTERANCES) -> str:
    """Say how far the stamps of a source are from those of another."""
    way = "ahead of" if ahead_ns > 0 else "behind"
    return f"{source} is stamped {_format_duration(abs(ahead_ns))} {way} {reference}"


def _format_duration(ns: int) -> str:
    """Return a duration in seconds, minutes or hours."""
    seconds = ns_to_s(ns)
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
