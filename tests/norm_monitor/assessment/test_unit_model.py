"""The weights of units' facts: their file, their sums, what the shipped ones say, and how evidence adds up."""

import re
from math import exp, log
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from norm_core.records.flag import Attribute, FlagState, Polarity, SocialFlag
from norm_core.records.presence import Presence
from norm_core.runtime.config import ConfigError
from norm_monitor.assessment import rejection
from norm_monitor.assessment.finding import Finding
from norm_monitor.assessment.fusion_config import FusionConfig
from norm_monitor.assessment.unit import UnitJudgement, UnitKind
from norm_monitor.assessment.unit_facts import MEASURES, PresenceFacts
from norm_monitor.assessment.unit_model import (
    KIND,
    SHIPPED,
    Sensitivity,
    Steps,
    UnitModel,
    rank_attributes,
    shipped_unit_model,
)
from norm_monitor.context.meaning import EncoderMatcher
from tests.norm_monitor.assessment.test_fusion import collect_flags, competence, finding, fusion, judgement, unit
from tests.norm_monitor.encounter_talk import Watched, at, robot, scene_of, seen, user

# Log odds that change a probability by at most a tenth.
_SLIGHT = 0.4


def test_a_step_holds_from_its_cut_on() -> None:
    steps = Steps(cuts=(1.0, 2.0), values=(-1.0, 0.0, 3.0), missing=0.5)
    assert [steps.at(value) for value in (0.9, 1.0, 1.9, 2.0, None)] == [-1.0, 0.0, 0.0, 3.0, 0.5]


@pytest.mark.parametrize("wrong", [{"cuts": (1.0,), "values": (0.0,)}, {"cuts": (2.0, 1.0), "values": (0.0, 1.0, 2.0)}])
def test_steps_that_do_not_fit_their_cuts_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="one value more"):
        Steps(**wrong)


def test_the_attributes_that_a_flag_names_cover_what_coders_name_apart() -> None:
    """Engagement is named more often than knowledge state, but never without emotions; facts turn that."""
    emotions, engagement, knowledge = Attribute.EMOTIONS, Attribute.ENGAGEMENT, Attribute.KNOWLEDGE_STATE
    coded = (((emotions, engagement), 6), ((knowledge,), 4))
    even = dict.fromkeys(Attribute, 0.0)
    ranked = rank_attributes(coded, even)
    assert [one for one, _ in ranked[:2]] == [emotions, knowledge]
    assert [adds for _, adds in ranked] == pytest.approx([0.6, 0.4, 0])
    assert rank_attributes(coded, {**even, knowledge: log(3)})[0][0] is knowledge


def test_each_sensitivity_flags_more_than_the_one_before() -> None:
    points = [shipped_unit_model().operating_points[one] for one in Sensitivity]
    assert [point.error for point in points] == sorted((point.error for point in points), reverse=True)
    assert [point.competence for point in points] == sorted((point.competence for point in points), reverse=True)
    assert [point.false_errors_per_hour for point in points] == sorted(point.false_errors_per_hour for point in points)


def test_every_shipped_weight_is_of_a_fact_that_is_measured() -> None:
    model = shipped_unit_model()
    weighed = {name for kind in model.kinds.values() for one in kind.polarities.values() for name in one.facts}
    assert weighed <= MEASURES.keys()
    assert {f"{source}_{one}" for source in ("text", "encounter_model") for one in Polarity} <= {
        name.removesuffix("_log_odds") for name in weighed
    }


@pytest.mark.parametrize("has_reader", [False, True])
def test_what_no_camera_saw_is_not_weighed(has_reader: bool) -> None:
    """Weights that took the want of a camera for harmless talk hid half of the errors of robots without one."""
    model = shipped_unit_model(has_reader=has_reader)
    presences = (entry for entry in seen(0, 3) if isinstance(entry, Presence))
    by_sight = PresenceFacts(presences).around(scene_of(robot(1, 2, "Hello.")).robot_turns[0]).keys()
    added = [
        sum(score.facts[name].missing for name in by_sight & score.facts.keys())
        for weights in (*model.kinds.values(), *model.early_kinds.values())
        for score in weights.polarities.values()
    ]
    assert max(map(abs, added)) < _SLIGHT


def test_a_silence_after_a_question_is_an_error_whatever_else_holds() -> None:
    reading = shipped_unit_model(has_reader=True).read(UnitKind.SILENCE, {"owed_silence_s": 5.0})
    assert reading is not None
    assert reading.odds[Polarity.ERROR] > 2


@pytest.mark.parametrize("has_reader", [False, True])
def test_no_fact_decides_alone_about_a_slow_robot(has_reader: bool) -> None:
    slow_kinds = shipped_unit_model(has_reader=has_reader).slow_kinds
    assert slow_kinds
    assert not any(score.least for weights in slow_kinds.values() for score in weights.polarities.values())


@pytest.mark.parametrize(
    ("competence", "pace_s", "is_praised"), [(4.5, 0.5, True), (3.0, 0.5, False), (-2.0, 0.5, False), (-2.0, 5.0, True)]
)
def test_what_the_reader_does_not_clearly_prefer_is_not_praised(
    competence: float, pace_s: float, is_praised: bool
) -> None:
    facts = {
        "reader_error": 1.0, "reader_competence": competence, "pace_s": pace_s, "answers_so_far": 3.0, "words": 8.0,
        "text_competence_log_odds": 0.0,
    }  # fmt: skip
    reading = shipped_unit_model(has_reader=True).read(UnitKind.ROBOT_TURN, facts)
    assert reading
    assert bool(reading.attributes[Polarity.COMPETENCE]) is is_praised


@pytest.mark.parametrize(
    ("kind", "facts", "slow"),
    [
        # Words are read unless the robot is slower than a language model.
        (UnitKind.SILENCE, {"pace_s": 1.9, "answers_so_far": 3.0}, False),
        (UnitKind.SILENCE, {"pace_s": 2.0, "answers_so_far": 1.0}, True),
        (UnitKind.ROBOT_TURN, {"pace_s": 3.9, "answers_so_far": 3.0}, False),
        (UnitKind.ROBOT_TURN, {"pace_s": 4.0, "answers_so_far": 1.0}, False),
        (UnitKind.ROBOT_TURN, {"pace_s": 4.0, "answers_so_far": 2.0}, True),
        # Of a robot that reports its work, short reports and silences are not read.
        (UnitKind.ROBOT_TURN, {"signs_of_work": 0.25, "words": 1.0}, True),
        (UnitKind.ROBOT_TURN, {"signs_of_work": 0.25, "words": 4.0}, False),
        (UnitKind.ROBOT_TURN, {"signs_of_work": 0.2, "words": 1.0}, False),
        (UnitKind.SILENCE, {"signs_of_work": 0.25, "words": 4.0}, True),
        (UnitKind.SILENCE, {"signs_of_work": 0.2, "words": 4.0}, False),
        # A question that any other slow robot leaves for four seconds counts as with a quick one.
        (UnitKind.SILENCE, {"pace_s": 3.0, "owed_silence_s": 3.9, "silence_s": 3.9, "signs_of_work": 0.0}, True),
        (UnitKind.SILENCE, {"pace_s": 3.0, "owed_silence_s": 4.0, "silence_s": 4.0, "signs_of_work": 0.0}, False),
        (UnitKind.SILENCE, {"pace_s": 3.0, "owed_silence_s": 4.0, "silence_s": 4.0, "signs_of_work": 0.25}, True),
    ],
)
def test_a_slow_or_reporting_robot_has_weights_of_its_own(kind: UnitKind, facts: dict[str, float], slow: bool) -> None:
    model = shipped_unit_model(has_reader=True)
    assert model.kind_model(kind, facts) is (model.slow_kinds if slow else model.kinds)[kind]


@pytest.mark.parametrize("fact", ["text_error_log_odds", "encounter_model_error"])
def test_a_turn_that_reads_worse_is_no_less_likely_an_error(fact: str) -> None:
    score = shipped_unit_model().kinds[UnitKind.ROBOT_TURN].polarities[Polarity.ERROR].facts[fact]
    assert list(score.values) == sorted(score.values)


WEIGHTS = SHIPPED.read_text(encoding="utf-8")
REJECTIONS = rejection.SHIPPED.read_text(encoding="utf-8")


def test_rejections_are_weighed_by_facts_that_are_measured_without_a_talk_reader() -> None:
    model = rejection.shipped_rejection_model()
    weighed = {*model.at_once.facts, *model.with_reaction.facts}
    assert weighed <= {name for name in MEASURES if not name.startswith("reader_")}
    assert not {"person_says_again", "words_after"} & model.at_once.facts.keys()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (WEIGHTS, "is not a rejection weights artefact"),
        (re.sub(r'"facts": "\d+"', '"facts": "0"', REJECTIONS, count=1), "in facts; fit it anew"),
        (REJECTIONS.replace('"at_once"', '"at_last"', 1), "is not a rejection weights artefact; fit it anew"),
        (REJECTIONS.replace('"cuts": [', '"cuts": [9e9,', 1), "is not a rejection weights artefact; fit it anew"),
    ],
)
def test_weights_of_rejections_that_do_not_fit_are_refused(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "weights.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=problem):
        rejection.RejectionModel.load(path)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (WEIGHTS.replace(f'"kind": "{KIND}"', '"kind": "judge"', 1), "is not a unit weights artefact of format"),
        (re.sub(r'"facts": "\d+"', '"facts": "0"', WEIGHTS, count=1), "in facts; fit it anew"),
        (WEIGHTS[:500], "is not a unit weights artefact; fit it anew"),
        (None, "cannot be read"),
    ],
)
def test_weights_that_do_not_fit_are_refused_with_the_remedy(tmp_path: Path, text: str | None, problem: str) -> None:
    path = tmp_path / "weights.json"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=problem):
        UnitModel.load(path)


LIKELY = st.floats(0.3, 1.0)


def summed(flag: SocialFlag) -> float:
    """Add up what the flag states, as a reader does."""
    assert flag.base_log_odds is not None
    return 1 / (1 + exp(-flag.base_log_odds - sum(one.weight or 0.0 for one in flag.evidence)))


@given(
    errors=st.lists(LIKELY, max_size=3),
    competences=st.lists(LIKELY, max_size=2),
    judged=st.none() | st.floats(0, 0.95),
    judge_weight=st.floats(0, 2),
)
def test_cues_and_a_judge_add_up_to_the_probability(
    errors: list[float], competences: list[float], judged: float | None, judge_weight: float
) -> None:
    evidence: list[Finding | UnitJudgement] = [
        *(finding(unit(), f"error_{n}", probability=likely) for n, likely in enumerate(errors)),
        *(competence(unit(), f"good_{n}", probability=likely) for n, likely in enumerate(competences)),
    ]
    evidence += [] if judged is None else [judgement(unit(), judged)]
    taken_flags = collect_flags(fusion(judge_weight=judge_weight, sensitivity="keen"), *evidence)
    # A withdrawn flag names what changed instead.
    flags = [flag for flag in taken_flags if flag.state is not FlagState.WITHDRAWN]
    assume(flags)  # evidence that falls short of each threshold shows nothing
    assert [summed(flag) for flag in flags] == [pytest.approx(flag.probability, abs=0.01) for flag in flags]


def test_the_facts_of_a_talk_add_up_to_the_probability(meaning: EncoderMatcher) -> None:
    flags = Watched(meaning, weighed=True).watch(
        user(0, 2, "Where can I buy a ticket?"),
        robot(6.5, 9, "At the counter, over there."),
        user(9.5, 11, "That is not what I asked!"),
        robot(12, 14, "I'm sorry. Let me show you the way to it."),
    )
    assert {flag.polarity for flag in flags} == set(Polarity)
    assert all(any(one.measure == "smaller facts, together" for one in flag.evidence) for flag in flags)
    assert [summed(flag) for flag in flags] == [pytest.approx(flag.probability, abs=0.01) for flag in flags]


@pytest.mark.parametrize(("limit_s", "count"), [(4.0, 1), (0.0, 0)])
def test_a_wait_beyond_the_limit_is_an_error_without_a_question(
    meaning: EncoderMatcher, limit_s: float, count: int
) -> None:
    watched = Watched(meaning, fusion=FusionConfig(answer_within_s=limit_s), weighed=True)
    flags = watched.watch(
        robot(0, 2, "Welcome to the pool."),
        user(2.5, 4, "We can't get in."),
        robot(8.5, 10, "You need your bracelet for the gate."),
        user(10.5, 11.5, "All right."),
        robot(14, 15, "Have a good swim."),  # within the limit
    )
    closed = [flag for flag in flags if flag.state is FlagState.CLOSED and flag.onset_ns in {at(4), at(11.5)}]
    assert [flag.polarity for flag in closed] == [Polarity.ERROR] * count
    assert [summed(flag) for flag in closed] == [pytest.approx(flag.probability, abs=0.01) for flag in closed]


def test_a_flag_tells_from_which_probability_it_is_raised() -> None:
    (flag, _) = collect_flags(fusion(min_probability=("error=0.5", "emotions=0.6")), finding(unit(), probability=0.7))
    assert flag.threshold == 0.6
    (flag, _) = collect_flags(fusion(min_probability=("error=0.5",)), finding(unit(), probability=0.7))
    assert flag.threshold == 0.5
