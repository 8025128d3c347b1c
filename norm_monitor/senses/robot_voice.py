"""When the robot spoke and what it said, and which of the words heard were its own."""

from collections import OrderedDict
from threading import Lock

from pydantic import Field

from norm_core.config import Config
from norm_core.record import record
from norm_core.speech import RobotSpeech, SpeechEdge
from norm_core.time import NS_PER_MS, NS_PER_S


class RobotVoiceConfig(Config):
    tail_ms: int = Field(default=350, ge=0, le=5000, description="how long the robot's voice rings on after it stopped")
    same_words: float = Field(
        default=0.6, gt=0, le=1, description="share of heard words in the robot's text that makes them its own"
    )
    longest_s: float = Field(default=60.0, gt=0, description="a start without a stop is taken to last at most so long")


@record
class RobotTurn:
    """One speech of the robot; end_ns is None while it goes on."""

    speech_id: str
    start_ns: int
    end_ns: int | None
    text: str
    estimated: bool


class RobotVoice:
    """What is known of the robot's speech, by stamps; keeps the last turns alone. Safe between threads."""

    def __init__(self, config: RobotVoiceConfig, kept: int = 200) -> None:
        self._config, self._kept = config, kept
        self._lock = Lock()
        self._turns: OrderedDict[str, RobotTurn] = OrderedDict()
        self.was_heard_of = False

    def feed(self, edge: RobotSpeech) -> None:
        """Takes a start or a stop; a stop without its start is a speech of no length."""
        with self._lock:
            self._feed(edge)

    def _feed(self, edge: RobotSpeech) -> None:
        self.was_heard_of = True
        known = self._turns.get(edge.speech_id)
        starts = edge.state is SpeechEdge.START
        self._turns[edge.speech_id] = RobotTurn(
            speech_id=edge.speech_id,
            start_ns=edge.stamp_ns if starts or known is None else known.start_ns,
            end_ns=(known.end_ns if known else None) if starts else edge.stamp_ns,
            text=edge.text or (known.text if known else ""),
            estimated=edge.estimated or (known.estimated if known else False),
        )
        while len(self._turns) > self._kept:
            self._turns.popitem(last=False)

    def turns(self, start_ns: int, end_ns: int, tail: bool) -> list[tuple[int, int, RobotTurn]]:
        """The turns that touch a stretch, each with its bounds, a tail after them where asked for."""
        after_ns = self._config.tail_ms * NS_PER_MS if tail else 0
        found = []
        with self._lock:
            turns = list(self._turns.values())
        for turn in turns:
            longest_ns = turn.start_ns + round(self._config.longest_s * NS_PER_S)
            stop_ns = (longest_ns if turn.end_ns is None else turn.end_ns) + after_ns
            if turn.start_ns < end_ns and stop_ns > start_ns:
                found.append((turn.start_ns, stop_ns, turn))
        return sorted(found, key=lambda entry: entry[:2])

    def overlap_ns(self, start_ns: int, end_ns: int) -> int:
        """How long the robot spoke within a stretch; nothing is counted twice."""
        total_ns, reached_ns = 0, start_ns
        for turn_start_ns, turn_end_ns, _ in self.turns(start_ns, end_ns, tail=False):
            from_ns, to_ns = max(turn_start_ns, reached_ns), min(turn_end_ns, end_ns)
            if to_ns > from_ns:
                total_ns, reached_ns = total_ns + to_ns - from_ns, to_ns
        return total_ns
