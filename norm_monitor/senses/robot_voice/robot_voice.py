"""When the robot spoke and what it said, as a function of stamps: the order in which word of it comes tells nothing."""

from collections import Counter
from collections.abc import Iterable

from pydantic import Field

from norm_core.records.record import record
from norm_core.records.speech import RobotSpeech, SpeechEdge
from norm_core.runtime.config import Config
from norm_core.runtime.time import NS_PER_MS, s_to_ns

# Stamps of the robot's voice and of its sound in the microphone may differ by this.
LEAD_NS = 200 * NS_PER_MS

# A reckoned end may be wrong by this share of the speech.
_RECKONED = 0.3


class RobotVoiceConfig(Config):
    tail_ms: int = Field(default=350, ge=0, le=5000, description="how long the robot's voice rings on after it stopped")
    longest_s: float = Field(default=60.0, gt=0, description="a start without a stop is taken to last at most so long")
    lateness_ms: int = Field(
        default=300, ge=0, le=10_000, description="how far word of the robot's speech may lag behind the sound"
    )
    louder_db: float = Field(default=6.0, gt=0, description="so much louder than the robot's echo is no echo")


@record
class RobotTurn:
    """One speech of the robot as far as it is known; rings_until_ns is when its echo has died away."""

    speech_id: str
    start_ns: int
    end_ns: int
    rings_until_ns: int
    text: str
    has_ended: bool


@record
class RobotContext:
    """What bears on one stretch of speech: the robot's turns about it, and whether anything is known of its speech."""

    turns: tuple[RobotTurn, ...] = ()
    is_known: bool = False
    late: bool = False  # what came too late would have changed the turns

    def overlap_ns(self, start_ns: int, end_ns: int) -> int:
        """How long the robot spoke within a stretch; its turns do not overlap one another."""
        return sum(max(0, min(turn.end_ns, end_ns) - max(turn.start_ns, start_ns)) for turn in self.turns)

    def turn_at(self, stamp_ns: int) -> RobotTurn | None:
        """The turn whose sound may be in the microphone at an instant."""
        return next((t for t in self.turns if t.start_ns - LEAD_NS <= stamp_ns <= t.rings_until_ns), None)


class RobotVoice:
    """Feed it starts and stops in any order; keeps the last ones alone."""

    def __init__(self, config: RobotVoiceConfig, kept: int = 400) -> None:
        self._config, self._kept = config, kept
        self._longest_ns = s_to_ns(config.longest_s)
        self._edges: dict[RobotSpeech, bool] = {}  # whether each came too late
        self._first_ns: int | None = None
        self.counts: Counter[str] = Counter()

    @property
    def waits_ns(self) -> int:
        """How far the sound must have gone past a stretch's end for all that bears on the stretch to be known."""
        return LEAD_NS + self._config.lateness_ms * NS_PER_MS

    def feed(self, edge: RobotSpeech, sound_until_ns: int | None) -> None:
        """Takes a start or a stop that came when the sound had been heard up to a stamp, None before any."""
        late = sound_until_ns is not None and sound_until_ns > edge.stamp_ns + self._config.lateness_ms * NS_PER_MS
        if late:
            self.counts["robot_speech_late"] += 1
        elif self._first_ns is None or edge.stamp_ns < self._first_ns:
            self._first_ns = edge.stamp_ns
        self._edges.setdefault(edge, late)
        if len(self._edges) > self._kept:
            del self._edges[min(self._edges, key=_in_order)]

    def about(self, start_ns: int, end_ns: int) -> RobotContext:
        """What is known of a stretch; nothing of it depends on edges stamped later than LEAD_NS after its end."""
        horizon_ns = end_ns + LEAD_NS
        known = sorted((edge for edge in self._edges if edge.stamp_ns <= horizon_ns), key=_in_order)
        in_time = self._turns((edge for edge in known if not self._edges[edge]), start_ns, horizon_ns)
        of_all = self._turns(known, start_ns, horizon_ns)
        is_known = self._first_ns is not None and self._first_ns <= horizon_ns
        return RobotContext(turns=in_time, is_known=is_known, late=in_time != of_all)

    def _turns(self, edges: Iterable[RobotSpeech], start_ns: int, horizon_ns: int) -> tuple[RobotTurn, ...]:
        """A robot has one mouth: a start ends whatever it said before."""
        turns: list[RobotTurn] = []
        start: RobotSpeech | None = None
        text = ""
        for edge in edges:
            same = start is not None and start.speech_id == edge.speech_id
            if start and same and edge.state is SpeechEdge.START and edge.stamp_ns <= start.stamp_ns + self._longest_ns:
                text = edge.text or text  # said again, with more of its text
            elif edge.state is SpeechEdge.START:
                if start:
                    turns.append(self._turn(start, text, edge.stamp_ns, has_ended=True))
                start, text = edge, edge.text
            elif start and same:
                turns.append(self._turn(start, edge.text or text, edge.stamp_ns, True, edge.estimated))
                start = None
        if start:
            turns.append(self._turn(start, text, horizon_ns, has_ended=False))
        return tuple(turn for turn in turns if turn.rings_until_ns > start_ns - LEAD_NS)

    def _turn(self, start: RobotSpeech, text: str, end_ns: int, has_ended: bool, reckoned: bool = False) -> RobotTurn:
        longest_ns = start.stamp_ns + self._longest_ns
        rings_ns = self._config.tail_ms * NS_PER_MS
        if reckoned:
            rings_ns = max(rings_ns, round(_RECKONED * (end_ns - start.stamp_ns)))
        return RobotTurn(
            speech_id=start.speech_id,
            start_ns=start.stamp_ns,
            end_ns=min(end_ns, longest_ns),
            rings_until_ns=min(end_ns, longest_ns) + rings_ns,
            text=text,
            has_ended=has_ended or end_ns > longest_ns,
        )


def _in_order(edge: RobotSpeech) -> tuple[int, bool, str, str]:
    """At one instant a stop goes before a start."""
    return edge.stamp_ns, edge.state is SpeechEdge.START, edge.speech_id, edge.text
