"""A turn of the robot's is weighed as it ends and again with the reaction to it; flags are explained in words."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from norm_core.engines.errors import EngineFailedError
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.engines.talk_reader import LineReading, ReadTalk, TalkReader, TurnReading
from norm_core.records.flag import YES_OR_NO, Attribute, Evidence, FlagState, Polarity, SocialFlag
from norm_core.records.provenance import Provenance
from norm_core.records.speech import Speaker
from norm_core.runtime.time import NS_PER_S, ReplayClock
from norm_monitor.assessment.explanation import SMALLER_FACTS, cited_facts, describe_measurement, explain
from norm_monitor.assessment.fusion import Fusion
from norm_monitor.assessment.fusion_config import FusionConfig
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.assessment.unit import Unit, UnitKind
from norm_monitor.assessment.unit_facts import MEASURES, MeasuredUnit
from norm_monitor.assessment.unit_model import (
    AdditiveScore,
    KindModel,
    OperatingPoint,
    Sensitivity,
    Steps,
    UnitModel,
    shipped_unit_model,
)
from norm_monitor.context.exchange import Exchange, ExchangePrediction
from norm_monitor.context.meaning import Concepts, EncoderMatcher, Match
from norm_monitor.context.turns import Turn
from norm_monitor.monitor import Monitor
from norm_monitor.windows.cutter import Entry
from tests.norm_monitor.encounter_talk import ALONE, Watched, last_of, robot, seconds, user, with_silence

NEWSPAPERS = "Newspapers are one euro fifty."


class Reader:
    """Finds an error in a line of the robot's as it ends, and takes it back where a person is glad of it."""

    has_reader = True

    def __init__(self) -> None:
        self.lines: Sequence[str] = ()
        self.cause_distance = 1

    def match(self, text: str, concept: str) -> Match:
        return Match(sentence="", nearness=-1.0, threshold=1.0)

    def similarity(self, one: str, other: str) -> float:
        return 0.0

    def read(self, exchange: Exchange) -> ExchangePrediction:
        return ExchangePrediction(probability=dict.fromkeys(Polarity, 0.5))

    def read_talk(self, lines: Sequence[str]) -> Sequence[LineReading]:
        self.lines = lines
        return [
            LineReading(
                turns=tuple(self._turn(at - back, at) for back in range(3)),
                cause_distance=self.cause_distance * (NEWSPAPERS in lines[at]),
            )
            for at in range(len(lines))
        ]

    def _turn(self, line: int, known: int) -> TurnReading:
        glad = any("Thanks" in later for later in self.lines[line + 1 : known + 1])
        error = 0.9 if line >= 0 and NEWSPAPERS in self.lines[line] and not glad else 0.1
        polarity = {Polarity.ERROR: error, Polarity.COMPETENCE: 0.01}
        attributes = {one: 0.8 if one is Attribute.CONVERSATIONAL_MECHANICS else 0.1 for one in Attribute}
        return TurnReading(
            ordinary=0.99 - error, polarity=polarity, attributes=attributes, held_against=error, good=0.1
        )

    def prepare(self, text: str) -> None: ...

    def forget(self) -> None: ...

    def sha256(self) -> str:
        return "reader"


def by(fact: str) -> KindModel:
    """Weigh one fact: log odds above 1 make an error nearly sure."""
    score = AdditiveScore(intercept=0.0, facts={fact: Steps(cuts=(1.0,), values=(-4.0, 4.0), missing=-4.0)})
    never = AdditiveScore(intercept=-9.0, facts={})
    about = {one: AdditiveScore(intercept=1.0 if one is Attribute.EMOTIONS else -3.0, facts={}) for one in Attribute}
    return KindModel(
        polarities={Polarity.ERROR: score, Polarity.COMPETENCE: never},
        attributes=dict.fromkeys(Polarity, about),
        named_from=dict.fromkeys(Polarity, 0.5),
        coded=dict.fromkeys(Polarity, (((Attribute.EMOTIONS,), 1),)),
    )


def unit_model(early_bar: float = 0.7) -> UnitModel:
    point = OperatingPoint(error=0.5, competence=1, false_errors_per_hour=0, early={Polarity.ERROR: early_bar})
    return UnitModel.blank().model_copy(
        update={
            "kinds": {UnitKind.ROBOT_TURN: by("reader_error")},
            "early_kinds": {UnitKind.ROBOT_TURN: by("reader_error_at_once")},
            "operating_points": dict.fromkeys(Sensitivity, point),
        }
    )


def flags(entries: Sequence[Entry], early_bar: float = 0.7, reader: Reader | None = None) -> list[SocialFlag]:
    clock = ReplayClock()
    monitor = Monitor(ALONE, ThresholdTable.shipped(), reader or Reader(), clock, unit_model=unit_model(early_bar))
    found: list[SocialFlag] = []
    for at_ns, entry in with_silence(list(entries), 30):
        clock.advance_to(max(at_ns, clock.now_ns()))
        found += monitor.take(entry)
    return [*found, *monitor.end_input()]


def talk(answer: str) -> list[Entry]:
    return [
        *user(0, 2, "Where is the old bridge?"),
        *robot(3, 5, NEWSPAPERS),
        *user(6, 7, answer),
        *robot(8, 9, "Turn left."),
        *user(10, 11, "All right."),
        *user(20, 21, "Bye."),
    ]


def test_an_error_is_flagged_before_anybody_answers_and_stays() -> None:
    found = [flag for flag in flags(talk("What?")) if seconds(flag.onset_ns) == 3]
    opened = found[0]
    assert opened.state is FlagState.OPENED
    assert "reads at once, before any answer," in opened.rationale
    assert opened.rationale.endswith("given “Where is the old bridge?”.")
    assert any("as the turn ended" in one.measure for one in opened.evidence)
    assert found[-1].state is FlagState.CLOSED
    assert "at once" not in found[-1].rationale


def test_what_the_reaction_speaks_against_is_withdrawn_and_says_why() -> None:
    found = [flag for flag in flags(talk("Thanks, just what I wanted.")) if seconds(flag.onset_ns) == 3]
    assert [flag.state for flag in found] == [FlagState.OPENED, FlagState.WITHDRAWN]
    assert found[-1].rationale == "Withdrawn, as the person accepts it: “Thanks, just what I wanted.”."


def test_a_reading_that_drifts_withdraws_no_error() -> None:
    found = [flag for flag in flags(talk("Thanks to you I am late.")) if seconds(flag.onset_ns) == 3]
    assert (found[0].state, found[-1].state) == (FlagState.OPENED, FlagState.CLOSED)
    assert found[-1].polarity is Polarity.ERROR


def test_below_the_early_bar_a_flag_waits_for_the_reaction() -> None:
    found = [flag for flag in flags(talk("What?"), early_bar=1.0) if seconds(flag.onset_ns) == 3]
    assert found[0].state is FlagState.OPENED
    assert "at once" not in found[0].rationale
    assert seconds(found[0].decision_ns) > 5


def test_lines_are_those_of_finished_turns_in_order() -> None:
    reader = Reader()
    reader.cause_distance = 5  # a line that the history no longer has
    assert not any("given" in flag.rationale for flag in flags(talk("What?"), reader=reader))
    assert reader.lines[:3] == (
        "Person: Where is the old bridge?\n",
        f"Robot: {NEWSPAPERS}\n",
        "Person: What?\n",
    )


def test_a_reader_that_fails_leaves_the_rest_to_sentences(caplog: pytest.LogCaptureFixture) -> None:
    class Failing(TalkReader):
        sha256 = "failing"

        def __init__(self) -> None: ...

        def start(self) -> ReadTalk:
            raise EngineFailedError("no memory")

    matcher = EncoderMatcher(SentenceEncoder(), Concepts.shipped(), Failing())
    assert matcher.read_talk(["Robot: Hi.\n"]) == ()
    assert matcher.reader_failure == "no memory"
    assert "talk is read by sentences alone" in caplog.text


def test_an_explanation_says_what_was_measured_against_what(meaning: EncoderMatcher) -> None:
    flags = Watched(meaning).watch(
        user(0, 2, "Where can I buy a ticket?"), robot(6.5, 9, "At the counter, over there.")
    )
    text = explain(last_of(flags)["response_delay"])
    assert text.startswith("Major social error (conversational mechanics)")
    assert "4.5 s against a threshold of 2 s, in “Where can I buy a ticket?”" in text
    assert "Instead: Answer within two seconds" in text
    assert "from measured facts, without a judge (response_delay)" in text


@pytest.mark.parametrize(
    ("value", "said"), [(1.0, "the turn asks: yes, weight +0.50"), (0.0, "the turn asks: no, weight +0.50")]
)
def test_a_fact_that_holds_or_not_is_told_in_words(value: float, said: str) -> None:
    asks = Evidence(measure="the turn asks", value=value, weight=0.5, unit=YES_OR_NO, start_ns=0, end_ns=1)
    assert describe_measurement(asks) == said


SPAN = NS_PER_S, 2 * NS_PER_S
TURN = Turn(speaker=Speaker.ROBOT, start_ns=SPAN[0], end_ns=SPAN[1], text="Here you are.", turn_id="r1", spans=(SPAN,))
KINDS = st.sampled_from([UnitKind.ROBOT_TURN, UnitKind.SILENCE, UnitKind.PERSON_TURN])
FACTS = st.dictionaries(st.sampled_from(sorted(MEASURES)), st.floats(-5, 100, allow_nan=False), min_size=1)


@given(facts=FACTS, kind=KINDS, polarity=st.sampled_from(Polarity))
def test_a_flag_cites_what_was_measured_and_weighs_most(
    facts: dict[str, float], kind: UnitKind, polarity: Polarity
) -> None:
    score = shipped_unit_model().kinds[kind].polarities[polarity]
    measured = MeasuredUnit(unit=Unit.of_turn(TURN), turn=TURN, facts=facts, exchange=None, settled=True)
    evidence = cited_facts(measured, score)
    added = score.parts(facts)
    cited = [one for one in evidence if one.measure != SMALLER_FACTS]
    weights = [one.weight or 0.0 for one in cited]
    assert {one.measure for one in cited} <= {MEASURES[name][0] for name in facts}
    assert max(map(abs, weights)) == round(max(abs(added.get(name, 0.0)) for name in facts), 2)
    assert weights == sorted(weights, reverse=True)
    assert score.intercept + sum(one.weight or 0.0 for one in evidence) == pytest.approx(score.of(facts), abs=0.01)


def test_a_turn_is_weighed_anew_once_it_is_settled_though_its_facts_stay() -> None:
    fused = Fusion(FusionConfig(), unit_model())
    facts = {"reader_error": 2.0, "reader_error_at_once": 0.0}
    early = MeasuredUnit(unit=Unit.of_turn(TURN), turn=TURN, facts=facts, exchange=None, settled=False)
    assert fused.add_facts(early, Provenance, 3 * NS_PER_S) is None
    assert fused.add_facts(replace(early, settled=True), Provenance, 4 * NS_PER_S)
