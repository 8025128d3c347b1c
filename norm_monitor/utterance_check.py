"""Check an utterance of the robot in the talk so far, before it is said."""

from collections import deque
from dataclasses import replace
from math import exp
from threading import Lock

from norm_core.records.flag import Attribute, Polarity
from norm_core.records.presence import Presence
from norm_core.records.record import record
from norm_core.records.speech import RobotSpeech, Speaker, Utterance
from norm_core.records.window import Window
from norm_core.runtime.errors import TactfulError
from norm_monitor.assessment.explanation import note_of
from norm_monitor.assessment.unit import UnitKind
from norm_monitor.assessment.unit_facts import Facts, MeasuredUnit, measured_units, read_lines
from norm_monitor.assessment.unit_model import Sensitivity, UnitModel, shipped_unit_model
from norm_monitor.context.meaning import TextMatcher
from norm_monitor.context.memory import MemoryConfig, PersonMemory
from norm_monitor.context.scene import HISTORY_NS, Scene
from norm_monitor.context.spoken_words import estimate_duration_ns
from norm_monitor.context.turns import Turn, turns_of

MAX_RECORDS, MAX_CHARACTERS = 10_000, 5_000
_AHEAD, _MAX_ATTRIBUTES = "ahead", 2
# Without a talk reader: the probability by the words alone from which an utterance is advised against, for at most 1.5,
# 6 and 20 false alarms an hour in encounters by writers of whom the exchange classifier read nothing.
_THRESHOLDS = {Sensitivity.QUIET: 0.86, Sensitivity.BALANCED: 0.67, Sensitivity.KEEN: 0.3}


class UtteranceCheckError(TactfulError, ValueError):
    """The text cannot be checked; the message gives the remedy."""


class TalkSoFar:
    """The speech and presence of the last minutes. Any thread may add and read."""

    def __init__(self) -> None:
        self._records: deque[Utterance | RobotSpeech | Presence] = deque(maxlen=MAX_RECORDS)
        self._lock, self.newest_ns = Lock(), 0

    def take(self, taken: object) -> None:
        """Add final speech or a presence; ignore other records."""
        if isinstance(taken, RobotSpeech | Presence) or (isinstance(taken, Utterance) and taken.final):
            with self._lock:
                self.newest_ns = max(self.newest_ns, taken.end_ns if isinstance(taken, Utterance) else taken.stamp_ns)
                self._records.append(taken)

    def forget(self) -> None:
        """Forget everything."""
        with self._lock:
            self._records.clear()

    def speech_since(self, stamp_ns: int) -> list[Utterance | RobotSpeech]:
        """Return what was said since a time, in the order of arrival."""
        with self._lock:
            speech = [entry for entry in self._records if not isinstance(entry, Presence)]
        return [entry for entry in speech if entry.stamp_ns >= stamp_ns]

    def speakers(self, start_ns: int, end_ns: int) -> set[str]:
        """Return the speakers within a time; an empty id is an unknown voice."""
        with self._lock:
            utterances = [
                record
                for record in self._records
                if isinstance(record, Utterance) and record.speaker is not Speaker.ROBOT
            ]
        return {
            utterance.speaker_id
            for utterance in utterances
            if utterance.start_ns <= end_ns and start_ns <= utterance.end_ns
        }

    def until(self, at_ns: int) -> tuple[tuple[Turn, ...], tuple[Presence, ...]]:
        """Return the turns with words that began before a time, and the sightings; none is long ago."""
        with self._lock:
            lately = [record for record in self._records if at_ns - HISTORY_NS <= record.stamp_ns <= at_ns]
        utterances = {record.utterance_id: record for record in lately if isinstance(record, Utterance)}
        turns = turns_of(utterances.values(), (record for record in lately if isinstance(record, RobotSpeech)), at_ns)
        ended = (replace(turn, ongoing=False, end_ns=min(turn.end_ns, at_ns)) for turn in turns)
        seen = sorted(
            (record for record in lately if isinstance(record, Presence)), key=lambda presence: presence.stamp_ns
        )
        return tuple(turn for turn in ended if turn.text.strip() and turn.start_ns < at_ns), tuple(seen)


@record
class CheckedUtterance:
    """How an utterance would read; the attributes are those of the likelier polarity, the likeliest first."""

    advised_against: bool
    error: float  # probability
    competence: float
    advised_against_from: float  # probability of an error
    attributes: dict[Attribute, float]
    reason: str  # quotes the utterance
    correction: str
    read_by: str


class UtteranceCheck:
    """Check utterances by the monitor's own facts and weights of a turn before any reaction.

    `matcher` is for this alone, as a talk reader goes back to where the talk stands after each utterance.
    """

    def __init__(
        self, matcher: TextMatcher, model: UnitModel | None = None, sensitivity: Sensitivity = Sensitivity.BALANCED
    ) -> None:
        self._matcher, self._lock, self._sensitivity = matcher, Lock(), sensitivity
        self._model = model or shipped_unit_model(has_reader=matcher.has_reader)
        is_weighed = self._model.kind_model(UnitKind.ROBOT_TURN, {}, is_early=True) is not None
        self.read_by = "talk reader" if matcher.has_reader and is_weighed else "sentences"

    def forget(self) -> None:
        """Clear the state of the talk reader."""
        with self._lock:
            self._matcher.forget()

    def follow(self, talk: TalkSoFar, at_ns: int) -> None:
        """Read the talk up to a time, so that the next check reads only one line."""
        with self._lock:
            self._matcher.read_talk(read_lines(talk.until(at_ns)[0]))

    def check(self, text: str, talk: TalkSoFar, at_ns: int) -> CheckedUtterance:
        """Read a text as the robot's next turn. Raises UtteranceCheckError if it has no words that are read."""
        if not text.strip() or len(text) > MAX_CHARACTERS:
            raise UtteranceCheckError(f"give what the robot is about to say, in 1 to {MAX_CHARACTERS} characters")
        with self._lock:
            measured = self._measure(text, talk, at_ns)
        facts = measured.facts
        if reading := self._model.read(UnitKind.ROBOT_TURN, facts, is_early=True):
            total = 1 + sum(reading.odds.values())
            likely = {polarity: reading.odds.get(polarity, 0.0) / total for polarity in Polarity}
            threshold = self._model.operating_points[self._sensitivity].threshold(Polarity.ERROR, is_early=True)
        else:
            likely = {polarity: _sigmoid(facts[f"text_{polarity}_log_odds_without_reaction"]) for polarity in Polarity}
            threshold = _THRESHOLDS[self._sensitivity]
        likelier = max(Polarity, key=lambda polarity: likely[polarity])
        attributes = _attributes(facts, likelier, reading.attributes[likelier] if reading else ())
        note = note_of(measured, likelier, tuple(attributes))
        return CheckedUtterance(
            advised_against=likely[Polarity.ERROR] >= threshold,
            error=round(likely[Polarity.ERROR], 3),
            competence=round(likely[Polarity.COMPETENCE], 3),
            advised_against_from=threshold,
            attributes=attributes,
            reason=note.rationale.replace("The robot said", "The robot would say", 1),
            correction=note.correction,
            read_by=self.read_by,
        )

    def _measure(self, text: str, talk: TalkSoFar, at_ns: int) -> MeasuredUnit:
        turns, presences = talk.until(at_ns)
        end_ns = at_ns + estimate_duration_ns(text)
        ahead = Turn(
            speaker=Speaker.ROBOT, start_ns=at_ns, end_ns=end_ns, text=text, turn_id=_AHEAD, spans=((at_ns, end_ns),)
        )
        window = Window(start_ns=at_ns, end_ns=end_ns + 1)
        scene = Scene(window, window.end_ns, (*turns, ahead), presences, PersonMemory(MemoryConfig()))
        units = measured_units(scene, self._matcher, at_ns)
        measured = next(unit for unit in units if unit.turn is ahead)
        if measured.exchange is None:
            raise UtteranceCheckError("the talk is in a language whose wording is not read; English and Chinese are")
        return measured


def _attributes(facts: Facts, polarity: Polarity, named: tuple[Attribute, ...]) -> dict[Attribute, float]:
    """Return attributes with how likely each is: those that the weights name, else the highest scores."""
    likely = {
        attribute: _sigmoid(facts[f"reader_{attribute}"]) for attribute in Attribute if f"reader_{attribute}" in facts
    }
    likely = likely or {
        attribute: min(max(facts.get(f"text_{polarity}_{attribute}", 0.0), 0.0), 1.0) for attribute in Attribute
    }
    chosen = named or sorted(likely, key=lambda attribute: -likely[attribute])[:_MAX_ATTRIBUTES]
    return {attribute: round(likely[attribute], 3) for attribute in chosen}


def _sigmoid(log_odds: float) -> float:
    return 1 / (1 + exp(-log_odds))
