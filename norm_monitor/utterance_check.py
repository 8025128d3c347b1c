"""Read what the robot is about to say in the talk so far, before it is said."""

from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from math import exp
from threading import Lock

from norm_core.records.flag import Attribute, Polarity
from norm_core.records.presence import Presence
from norm_core.records.record import record
from norm_core.records.speech import RobotSpeech, Speaker, Utterance
from norm_core.records.window import Window
from norm_core.runtime.errors import TactfulError
from norm_monitor.context.meaning import TextMatcher
from norm_monitor.context.memory import MemoryConfig, PersonMemory
from norm_monitor.context.scene import HISTORY_NS, Scene
from norm_monitor.context.turns import Turn, turns_of
from norm_monitor.fusion.explanation import note_of
from norm_monitor.fusion.unit_model import OperatingPoint, Sensitivity, UnitModel, shipped_unit_model
from norm_monitor.senses.robot_voice.robot_speech_adapter import estimate_duration_ns
from norm_monitor.units.unit import UnitKind
from norm_monitor.units.unit_facts import Facts, MeasuredUnit, measured_units, read_lines

MOST_RECORDS = 2_000
LONGEST_CHARACTERS = 5_000
_AHEAD = "ahead"
_MOST_ATTRIBUTES = 2
# Without a talk reader, the probability of an error by the words alone from which an utterance is advised against.
_BARS = {Sensitivity.QUIET: 0.8, Sensitivity.BALANCED: 0.65, Sensitivity.KEEN: 0.4}


class UtteranceCheckError(TactfulError, ValueError):
    """What cannot be read; the message says what to send instead."""


class TalkSoFar:
    """What was said and seen in the last minutes. Any thread may add and read."""

    def __init__(self) -> None:
        self._records: deque[Utterance | RobotSpeech | Presence] = deque(maxlen=MOST_RECORDS)
        self._lock, self._newest_ns = Lock(), 0

    @property
    def newest_ns(self) -> int:
        """The latest stamp."""
        return self._newest_ns

    def take(self, record: object) -> None:
        """Add speech or a presence; ignore other records, and speech that is not final."""
        if isinstance(record, RobotSpeech | Presence) or (isinstance(record, Utterance) and record.final):
            with self._lock:
                end_ns = record.end_ns if isinstance(record, Utterance) else record.stamp_ns
                self._newest_ns = max(self._newest_ns, end_ns)
                self._records.append(record)

    def forget(self) -> None:
        """Forget everything."""
        with self._lock:
            self._records.clear()

    def turns(self, at_ns: int, within_ns: int = HISTORY_NS) -> tuple[Turn, ...]:
        """Return the turns that began before a time, and ended not long before it."""
        with self._lock:
            lately = [one for one in self._records if at_ns - within_ns <= one.stamp_ns <= at_ns]
        utterances = {one.utterance_id: one for one in lately if isinstance(one, Utterance)}
        return turns_of(utterances.values(), (one for one in lately if isinstance(one, RobotSpeech)), at_ns)

    def presences(self, at_ns: int) -> tuple[Presence, ...]:
        """Return the sightings up to a time."""
        with self._lock:
            seen = [one for one in self._records if isinstance(one, Presence) and one.stamp_ns <= at_ns]
        return tuple(sorted(seen, key=lambda one: one.stamp_ns))


@record
class CheckedUtterance:
    """How an utterance would read; the attributes are those of the likelier polarity, the likeliest first."""

    probability: dict[Polarity, float]
    attributes: dict[Attribute, float]
    least_probability: float  # of an error, from which it is advised against
    reason: str = ""  # quotes the utterance
    correction: str = ""
    read_by: str

    @property
    def is_advised_against(self) -> bool:
        """Whether it probably reads as an error."""
        return self.probability[Polarity.ERROR] >= self.least_probability


class UtteranceCheck:
    """Read utterances ahead, by the monitor's own facts and weights of a turn before any reaction.

    `matcher` is for this alone, as a talk reader goes back to where the talk stands after each utterance.
    """

    def __init__(
        self, matcher: TextMatcher, model: UnitModel | None = None, sensitivity: Sensitivity = Sensitivity.BALANCED
    ) -> None:
        self._matcher, self._lock = matcher, Lock()
        self._model = model or shipped_unit_model(has_reader=matcher.has_reader)
        self._sensitivity = sensitivity

    @property
    def read_by(self) -> str:
        """What reads: the talk reader, or sentences alone."""
        is_weighed = self._model.kind_model(UnitKind.ROBOT_TURN, is_early=True) is not None
        return "talk reader" if self._matcher.has_reader and is_weighed else "sentences"

    def forget(self) -> None:
        """Forget what was read."""
        with self._lock:
            self._matcher.forget()

    def follow(self, talk: TalkSoFar, at_ns: int) -> None:
        """Read what was said since, so that the next check reads one line."""
        with self._lock:
            self._matcher.read_talk(read_lines(_ended(talk.turns(at_ns), at_ns)))

    def check(self, text: str, talk: TalkSoFar, at_ns: int) -> CheckedUtterance:
        """Read a text as the robot's next turn. Raises UtteranceCheckError if it has no words that are read."""
        if not text.strip():
            raise UtteranceCheckError("the utterance is empty; give what the robot is about to say")
        if len(text) > LONGEST_CHARACTERS:
            raise UtteranceCheckError(f"the utterance has more than {LONGEST_CHARACTERS} characters; shorten it")
        with self._lock:
            measured = self._measured(text, talk.turns(at_ns), talk.presences(at_ns), at_ns)
        reading = self._model.read(UnitKind.ROBOT_TURN, measured.facts, is_early=True)
        point = self._model.operating_points[self._sensitivity]
        if reading:
            odds = {polarity: reading.odds.get(polarity, 0.0) for polarity in Polarity}
            probability = {polarity: odds[polarity] / (1 + sum(odds.values())) for polarity in Polarity}
        else:
            names = {polarity: f"text_{polarity}_log_odds_without_reaction" for polarity in Polarity}
            probability = {polarity: _sigmoid(measured.facts[name]) for polarity, name in names.items()}
        likelier = max(Polarity, key=lambda one: probability[one])
        attributes = _attributes(measured.facts, likelier, reading.attributes[likelier] if reading else ())
        note = note_of(measured, likelier, tuple(attributes))
        return CheckedUtterance(
            probability={polarity: round(value, 3) for polarity, value in probability.items()},
            attributes=attributes,
            least_probability=self._bar(point, weighed=reading is not None),
            reason=note.rationale.replace("The robot said", "The robot would say", 1),
            correction=note.correction,
            read_by=self.read_by,
        )

    def _bar(self, point: OperatingPoint, *, weighed: bool) -> float:
        return point.bar(Polarity.ERROR, is_early=True) if weighed else _BARS[self._sensitivity]

    def _measured(self, text: str, turns: Iterable[Turn], presences: tuple[Presence, ...], at_ns: int) -> MeasuredUnit:
        end_ns = at_ns + estimate_duration_ns(text)
        ahead = Turn(
            speaker=Speaker.ROBOT, start_ns=at_ns, end_ns=end_ns, text=text, turn_id=_AHEAD, spans=((at_ns, end_ns),)
        )
        window = Window(start_ns=at_ns, end_ns=end_ns + 1)
        memory = PersonMemory(MemoryConfig())
        scene = Scene(window, window.end_ns, (*_ended(turns, at_ns), ahead), presences, memory)
        measured = next(
            one for one in measured_units(scene, self._matcher, at_ns) if one.unit.of_id == _AHEAD and one.turn.is_robot
        )
        if measured.exchange is None:
            raise UtteranceCheckError("the talk is in a language whose wording is not read; English and Chinese are")
        return measured


def _ended(turns: Iterable[Turn], at_ns: int) -> list[Turn]:
    return [
        replace(turn, ongoing=False, end_ns=min(turn.end_ns, at_ns))
        for turn in turns
        if turn.text.strip() and turn.start_ns < at_ns
    ]


def _attributes(facts: Facts, polarity: Polarity, named: tuple[Attribute, ...]) -> dict[Attribute, float]:
    """Return attributes with how likely each is: those that the weights name, else the highest scores."""
    by_reader = {one: _sigmoid(facts[f"reader_{one}"]) for one in Attribute if f"reader_{one}" in facts}
    likely = by_reader or {one: min(max(facts.get(f"text_{polarity}_{one}", 0.0), 0.0), 1.0) for one in Attribute}
    chosen = named or sorted(likely, key=lambda one: -likely[one])[:_MOST_ATTRIBUTES]
    return {one: round(likely[one], 3) for one in chosen}


def _sigmoid(log_odds: float) -> float:
    return 1 / (1 + exp(-log_odds))
