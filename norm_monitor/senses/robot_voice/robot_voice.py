"""The robot's turns and their words, by stamps alone: the order of arrival has no effect."""

from collections import Counter
from collections.abc import Iterable

from norm_core.records.record import record
from norm_core.records.speech import RobotSpeech, SpeechEdge
from norm_core.runtime.time import NS_PER_MS, NS_PER_S

# The largest offset between stamps of the robot's voice and of its sound in the microphone.
LEAD_NS = 200 * NS_PER_MS

# The relative error of an estimated end.
_END_ERROR_RATIO = 0.3


# How long the echo of the robot lasts after its speech.
_ECHO_TAIL_NS = 350 * NS_PER_MS
# The assumed end of speech after a start without a stop.
MAX_SPEECH_NS = 60 * NS_PER_S


@record
class RobotTurn:
    """One turn of the robot, as far as it is known. Its echo ends at `rings_until_ns`."""

    speech_id: str
    start_ns: int
    end_ns: int
    rings_until_ns: int
    text: str
    has_ended: bool


@record
class RobotContext:
    """The turns of the robot around a stretch of speech, and whether any robot speech is known."""

    turns: tuple[RobotTurn, ...] = ()
    is_known: bool = False
    late: bool = False  # a late message would have changed the turns

    def overlap_ns(self, start_ns: int, end_ns: int) -> int:
        """Return how long the robot spoke within a stretch. Its turns do not overlap."""
        return sum(max(0, min(turn.end_ns, end_ns) - max(turn.start_ns, start_ns)) for turn in self.turns)

    def turn_at(self, stamp_ns: int) -> RobotTurn | None:
        """Return the turn that may be audible at an instant."""
        return next((t for t in self.turns if t.start_ns - LEAD_NS <= stamp_ns <= t.rings_until_ns), None)


class RobotVoice:
    """The latest starts and stops of robot speech, in any order of arrival."""

    def __init__(self, lateness_ms: int = 300, max_edges: int = 400) -> None:
        """Wait this long for starts and stops; of more edges than `max_edges`, the oldest are dropped."""
        self._max_edges = max_edges
        self._lateness_ns = lateness_ms * NS_PER_MS
        self._edges: dict[RobotSpeech, bool] = {}  # whether each came too late
        self._first_ns: int | None = None
        self.counts: Counter[str] = Counter()

    @property
    def waits_ns(self) -> int:
        """How far the sound must pass a stretch's end before its context is complete."""
        return LEAD_NS + self._lateness_ns

    def allow_lateness(self, lateness_ns: int) -> None:
        """Wait at least this long for starts and stops from now on."""
        self._lateness_ns = max(self._lateness_ns, lateness_ns)

    def feed(self, edge: RobotSpeech, sound_until_ns: int | None) -> None:
        """Add a start or stop that arrived when the sound had reached a stamp; None before any sound."""
        is_late = sound_until_ns is not None and sound_until_ns > edge.stamp_ns + self._lateness_ns
        if is_late and self._is_repeated(edge):
            return  # its words alone are late
        if is_late:
            self.counts["robot_speech_late"] += 1
        elif self._first_ns is None or edge.stamp_ns < self._first_ns:
            self._first_ns = edge.stamp_ns
        self._edges.setdefault(edge, is_late)
        if len(self._edges) > self._max_edges:
            del self._edges[min(self._edges, key=_sort_key)]

    def _is_repeated(self, edge: RobotSpeech) -> bool:
        """Whether this edge is stored already, perhaps with other words."""
        identity = (edge.speech_id, edge.stamp_ns, edge.state)
        return any((other.speech_id, other.stamp_ns, other.state) == identity for other in self._edges)

    def find_context(self, start_ns: int, end_ns: int) -> RobotContext:
        """Return the context of a stretch. Edges that are stamped more than LEAD_NS after its end have no effect."""
        horizon_ns = end_ns + LEAD_NS
        edges = sorted((edge for edge in self._edges if edge.stamp_ns <= horizon_ns), key=_sort_key)
        in_time = self._build_turns((edge for edge in edges if not self._edges[edge]), start_ns, horizon_ns)
        all_turns = self._build_turns(edges, start_ns, horizon_ns)
        is_known = self._first_ns is not None and self._first_ns <= horizon_ns
        return RobotContext(turns=in_time, is_known=is_known, late=in_time != all_turns)

    def _build_turns(self, edges: Iterable[RobotSpeech], start_ns: int, horizon_ns: int) -> tuple[RobotTurn, ...]:
        """Build turns. A start ends any earlier speech, because a robot has one voice."""
        turns: list[RobotTurn] = []
        start: RobotSpeech | None = None
        text = ""
        for edge in edges:
            is_same_speech = start is not None and start.speech_id == edge.speech_id
            if (
                start
                and is_same_speech
                and edge.state is SpeechEdge.START
                and edge.stamp_ns <= start.stamp_ns + MAX_SPEECH_NS
            ):
                text = edge.text or text  # repeated, with more text
            elif edge.state is SpeechEdge.START:
                if start:
                    turns.append(self._build_turn(start, text, edge.stamp_ns, has_ended=True))
                start, text = edge, edge.text
            elif start and is_same_speech:
                turns.append(self._build_turn(start, edge.text or text, edge.stamp_ns, True, edge.estimated))
                start = None
        if start:
            turns.append(self._build_turn(start, text, horizon_ns, has_ended=False))
        return tuple(turn for turn in turns if turn.rings_until_ns > start_ns - LEAD_NS)

    def _build_turn(
        self, start: RobotSpeech, text: str, end_ns: int, has_ended: bool, is_estimated: bool = False
    ) -> RobotTurn:
        max_end_ns = start.stamp_ns + MAX_SPEECH_NS
        rings_ns = _ECHO_TAIL_NS
        if is_estimated:
            rings_ns = max(rings_ns, round(_END_ERROR_RATIO * (end_ns - start.stamp_ns)))
        return RobotTurn(
            speech_id=start.speech_id,
            start_ns=start.stamp_ns,
            end_ns=min(end_ns, max_end_ns),
            rings_until_ns=min(end_ns, max_end_ns) + rings_ns,
            text=text,
            has_ended=has_ended or end_ns > max_end_ns,
        )


def _sort_key(edge: RobotSpeech) -> tuple[int, bool, str, str]:
    """Return the key of the order of edges: a stop precedes a start with the same stamp."""
    return edge.stamp_ns, edge.state is SpeechEdge.START, edge.speech_id, edge.text
