from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from norm_core.records.flag import Attribute, Evidence, FlagState, Polarity, Severity, SocialFlag, Tier
from norm_core.records.outcome import Outcome
from norm_core.records.provenance import Provenance
from norm_core.records.speech import Speaker
from norm_core.runtime.time import s_to_ns
from norm_monitor.assessment.finding import Finding, Reason
from norm_monitor.assessment.fusion import Fusion
from norm_monitor.assessment.fusion_config import FusionConfig
from norm_monitor.assessment.unit import Unit, UnitJudgement, UnitKind
from norm_monitor.assessment.unit_facts import MeasuredUnit
from norm_monitor.assessment.unit_model import AdditiveScore, KindModel, Steps, shipped_unit_model
from norm_monitor.context.exchange import Exchange
from norm_monitor.context.turns import Turn
from tests.node_records import counted
from tests.norm_monitor.encounter_talk import waiting_alone


def unit(onset_s: float = 10, offset_s: float | None = 0) -> Unit:
    """Return a turn of the robot, by default of two seconds."""
    offset_s = onset_s + 2 if offset_s == 0 else offset_s
    return Unit(
        kind=UnitKind.ROBOT_TURN,
        unit_id=f"robot_turn:{onset_s}",
        onset_ns=s_to_ns(onset_s),
        offset_ns=None if offset_s is None else s_to_ns(offset_s),
    )


def finding(about: Unit, cue_id: str = "rude", probability: float = 0.7, **changes: Any) -> Finding:
    end_ns = about.onset_ns + 1
    reason = Reason(
        cue_id=cue_id,
        polarity=Polarity.ERROR,
        attributes=(Attribute.EMOTIONS,),
        severity=Severity.MINOR,
        evidence=(Evidence(measure=cue_id, value=0.7, threshold=0.5, start_ns=about.onset_ns, end_ns=end_ns),),
        rationale=f"{cue_id} in {about.unit_id}.",
        correction="Do better.",
    )
    return Finding(unit=about, reason=replace(reason, **changes), probability=probability)


def competence(about: Unit, cue_id: str = "greets", **changes: Any) -> Finding:
    return finding(about, cue_id, polarity=Polarity.COMPETENCE, correction="", **changes)


def judgement(about: Unit, error: float, competent: float = 0.01, **changes: Any) -> UnitJudgement:
    base = UnitJudgement(
        unit=about,
        outcome=Outcome.ANSWERED,
        probability={Polarity.ERROR: error, Polarity.COMPETENCE: competent},
        attributes=(Attribute.ENGAGEMENT,),
        evidence=(Evidence(measure="probability", value=error, start_ns=about.onset_ns, end_ns=about.onset_ns + 1),),
        rationale="As judged.",
        correction="As advised.",
        provenance=Provenance(model="judge"),
    )
    return replace(base, **changes)


def fusion(**config: object) -> Fusion:
    return Fusion(FusionConfig.model_validate(config), waiting_alone())


def add_evidence(fused: Fusion, evidence: Finding | UnitJudgement) -> SocialFlag | None:
    if isinstance(evidence, UnitJudgement):
        cite = partial(replace, evidence.provenance)
        return next(iter(fused.add_judgement(evidence, cite, evidence.unit.onset_ns)), None)
    return fused.add_finding(
        evidence, partial(Provenance, window_digest=evidence.reason.cue_id), evidence.unit.onset_ns
    )


def collect_flags(fused: Fusion, *evidence: Finding | UnitJudgement) -> list[SocialFlag]:
    """Return all flags that the evidence publishes, and those that are closed at the end."""
    published = [flag for part in evidence if (flag := add_evidence(fused, part))]
    return published + fused.close(None)


def states(flags: Sequence[SocialFlag]) -> list[FlagState]:
    return [flag.state for flag in flags]


def test_flag_keeps_its_id_from_opening_to_close() -> None:
    flags = collect_flags(
        fusion(),
        finding(unit(offset_s=None)),
        finding(unit(offset_s=None), severity=Severity.SEVERE),
        finding(unit(offset_s=15), severity=Severity.SEVERE),
    )
    assert states(flags) == [FlagState.OPENED, FlagState.UPDATED, FlagState.UPDATED, FlagState.CLOSED]
    assert len({flag.event_id for flag in flags}) == 1
    assert [flag.offset_ns for flag in flags] == [None, None, s_to_ns(15), s_to_ns(15)]
    assert flags[-1].severity is Severity.SEVERE


def test_two_cues_on_a_unit_make_one_flag() -> None:
    first, second = finding(unit()), finding(unit(), "no_apology", attributes=(Attribute.ENGAGEMENT,), probability=0.6)
    flag = collect_flags(fusion(), first, second)[-1]
    assert flag.attributes == (Attribute.EMOTIONS, Attribute.ENGAGEMENT)
    assert flag.probability == pytest.approx(0.88)
    assert (flag.cue_id, flag.rationale) == ("rude", first.reason.rationale)  # of the strongest
    assert flag.evidence[:2] == (*first.reason.evidence, *second.reason.evidence)


def test_stronger_evidence_decides_the_polarity() -> None:
    flags = collect_flags(fusion(), competence(unit(), probability=0.6), finding(unit(), probability=0.8))
    assert [flag.polarity for flag in flags] == [Polarity.COMPETENCE, Polarity.ERROR, Polarity.ERROR]
    assert len({flag.event_id for flag in flags}) == 1
    assert flags[-1].probability == pytest.approx(4 / (1 + 4 + 1.5))


@pytest.mark.parametrize("answer_first", [False, True])
def test_silence_keeps_its_flag_if_the_judge_blames_the_late_answer(answer_first: bool) -> None:
    silence = Unit(kind=UnitKind.SILENCE, unit_id="silence", onset_ns=s_to_ns(2), offset_ns=s_to_ns(8))
    answer = Unit(kind=UnitKind.ROBOT_TURN, unit_id="answer", onset_ns=s_to_ns(8), offset_ns=s_to_ns(9))
    late = finding(silence, "response_delay", probability=0.8)
    charges = [judgement(silence, 0.02), judgement(answer, 0.9)]
    flags = collect_flags(fusion(), late, *(charges[::-1] if answer_first else charges))
    assert {flag.onset_ns for flag in flags if flag.state is FlagState.CLOSED} == {s_to_ns(2), s_to_ns(8)}
    fused = fusion()
    assert add_evidence(fused, judgement(silence, 0.02, 0.9))
    _, withdrawn = fused.add_judgement(judgement(answer, 0.9), Provenance, s_to_ns(9))
    assert withdrawn.rationale == "Withdrawn, as the judge blames the answer that ends it."
    acquitted = collect_flags(fusion(), late, judgement(silence, 0.02), judgement(answer, 0.02))
    assert FlagState.CLOSED not in states(acquitted)


def test_flag_without_its_answer_is_marked_outside_parity() -> None:
    fused = fusion()
    for onset_s in (10, 20):
        add_evidence(fused, finding(unit(onset_s)))
    assert [flag.provenance.window_late for flag in fused.close(None, [unit(20).unit_id])] == [False, True]


def test_judge_most_likely_changes_a_unit_below_the_threshold() -> None:
    fused = Fusion(FusionConfig(min_probability=("error=0.8",)), shipped_unit_model())
    changes = []
    for index, probability in enumerate((0.1, 0.5, 0.79, 0.81, 0.99)):
        about = Unit.of_sighting("leaving", index, index)
        add_evidence(fused, finding(about, probability=probability))
        changes.append(fused.estimate_change_by_judge(about))
    assert sorted(changes) == [changes[index] for index in (4, 0, 3, 1, 2)]
    new = {kind: fused.estimate_change_by_judge(Unit(kind=kind, unit_id="new", onset_ns=1)) for kind in UnitKind}
    assert new[UnitKind.ROBOT_TURN] > new[UnitKind.SILENCE] > new[UnitKind.PERSON_TURN] > 0  # by the fitted weights


def test_withdrawal_names_what_changed() -> None:
    by_judge = collect_flags(fusion(), finding(unit()), judgement(unit(), 0.02))[-1]
    assert by_judge.rationale == "Withdrawn, as the judge reads it otherwise."
    assert by_judge.probability < 0.5
    greeting = competence(unit(), probability=0.7)
    by_finding = collect_flags(fusion(), finding(unit(), probability=0.7), greeting)[-1]
    assert by_finding.rationale == "Withdrawn, as the cue greets speaks against it."
    assert by_finding.evidence == greeting.reason.evidence
    by_weaker = collect_flags(fusion(), finding(unit()), finding(unit(), probability=0.1))[-1]
    assert by_weaker.rationale == "Withdrawn, as the cue rude is now less sure of it."


def robot_turn(text: str, **facts: float) -> MeasuredUnit:
    span = (s_to_ns(10), s_to_ns(12))
    turn = Turn(speaker=Speaker.ROBOT, start_ns=span[0], end_ns=span[1], text=text, turn_id="r1", spans=(span,))
    return MeasuredUnit(unit=Unit.of_turn(turn), turn=turn, facts=facts, exchange=None, settled=True)


def test_withdrawal_names_a_measurement_that_comes_after_the_judge() -> None:
    fused = Fusion(FusionConfig(), waiting_alone(words=10))
    measured = robot_turn("One moment.", words=2)
    assert add_evidence(fused, judgement(measured.unit, 0.8))
    withdrawn = fused.add_facts(measured, Provenance, s_to_ns(14))
    assert withdrawn
    assert withdrawn.rationale == "Withdrawn, as a later measurement speaks against it: words of the turn 2 words."


AMISS = {"text_error_log_odds": 6.0, "encounter_model_error": 6.0}
APT = {"text_competence_log_odds": 6.0, "encounter_model_competence": 6.0}
NOT_AMISS, NOT_APT = ({name: -value for name, value in facts.items()} for facts in (AMISS, APT))


def followed(measured: MeasuredUnit, after: str, then: str = "") -> MeasuredUnit:
    """Return a robot's turn as it is known once somebody has spoken after it."""
    return replace(measured, exchange=Exchange(before="", said=measured.turn.text, after=after, then=then))


@pytest.mark.parametrize(
    ("before", "now", "reason"),
    [
        (
            robot_turn("Upstairs.", **AMISS, **NOT_APT),
            robot_turn("Downstairs.", **NOT_AMISS, **NOT_APT),
            "the turn was then heard as “Downstairs.”",
        ),
        (
            robot_turn("Upstairs.", **NOT_AMISS, **APT),
            followed(robot_turn("Upstairs.", **NOT_AMISS, **NOT_APT), after="Perfect, thanks a lot."),
            "the turn reads otherwise after the person's “Perfect, thanks a lot.”",
        ),
        (
            followed(robot_turn("Upstairs.", **NOT_AMISS, **APT, known_after=1.0), after="Well."),
            followed(robot_turn("Upstairs.", **NOT_AMISS, **NOT_APT, known_after=2.0), after="Well.", then="Go up."),
            "the turn reads otherwise after the robot's “Go up.”",
        ),
    ],
)
def test_withdrawal_says_what_came(before: MeasuredUnit, now: MeasuredUnit, reason: str) -> None:
    fused = Fusion(FusionConfig(), shipped_unit_model())
    opened, withdrawn = (fused.add_facts(measured, Provenance, s_to_ns(14)) for measured in (before, now))
    assert opened
    assert withdrawn
    assert withdrawn.state is FlagState.WITHDRAWN
    assert withdrawn.probability < opened.probability
    assert withdrawn.rationale == f"Withdrawn, as {reason}."
    assert [evidence.value for evidence in withdrawn.evidence] == [-6.0]


def silence(owed_s: float, end_s: float | None) -> MeasuredUnit:
    span = (s_to_ns(10), s_to_ns(12))
    turn = Turn(speaker=Speaker.USER, start_ns=span[0], end_ns=span[1], text="Hello?", turn_id="p1", spans=(span,))
    waited = Unit.of_silence(turn, None if end_s is None else s_to_ns(end_s))
    return MeasuredUnit(unit=waited, turn=turn, facts={"silence_s": owed_s}, exchange=None, settled=True)


def fusion_of_silences(competent: float = 6.0) -> Fusion:
    """A fusion for which a silence is an error from 5 s, and from 8 s a competence by some weight."""
    error = AdditiveScore(intercept=-3, facts={"silence_s": Steps(cuts=(5.0, 8.0), values=(0.0, 5.0, 3.0))})
    competence_ = AdditiveScore(intercept=-3, facts={"silence_s": Steps(cuts=(8.0,), values=(0.0, competent))})
    named = {polarity: dict.fromkeys(Attribute, AdditiveScore(intercept=0, facts={})) for polarity in Polarity}
    kind = KindModel(
        polarities={Polarity.ERROR: error, Polarity.COMPETENCE: competence_},
        attributes=named,
        coded=dict.fromkeys(Polarity, (((Attribute.ENGAGEMENT,), 1),)),
        named_from=dict.fromkeys(Polarity, 0.5),
    )
    return Fusion(FusionConfig(), shipped_unit_model().model_copy(update={"kinds": {UnitKind.SILENCE: kind}}))


@pytest.mark.parametrize(
    ("weight", "last"),
    [(6.0, (Polarity.COMPETENCE, FlagState.CLOSED)), (3.0, (Polarity.ERROR, FlagState.WITHDRAWN))],
)
def test_close_decides_about_an_endless_silence(weight: float, last: tuple[Polarity, FlagState]) -> None:
    fused = fusion_of_silences(weight)
    flags = [fused.add_facts(silence(owed_s, None), Provenance, s_to_ns(20)) for owed_s in (6.0, 9.0)]
    assert flags[0]
    assert [(flag.event_id, flag.polarity, flag.state) for flag in fused.close(None)] == [(flags[0].event_id, *last)]


def test_tier_names_the_judge_with_and_without_a_cue() -> None:
    both = collect_flags(fusion(), finding(unit()), judgement(unit(), 0.9))[-1]
    alone = collect_flags(fusion(), judgement(unit(), 0.9))[-1]
    assert (both.tier, alone.tier) == (Tier.FUSED, Tier.JUDGE)
    assert (both.rationale, both.correction) == ("As judged.", "As advised.")
    assert (both.provenance.model, alone.cue_id) == ("judge", "")
    assert alone.probability == pytest.approx(0.9)
    assert both.probability > alone.probability


@pytest.mark.parametrize(("sensitivity", "is_flagged"), [("balanced", False), ("quiet", True)])
def test_judged_thresholds_hold_for_judged_units_alone(sensitivity: str, is_flagged: bool) -> None:
    config = {"min_probability_judged": ("error=0.9",), "sensitivity": sensitivity}
    assert bool(collect_flags(fusion(**config), judgement(unit(), 0.6))) is is_flagged
    assert collect_flags(fusion(**config), finding(unit(), probability=0.6))
    assert collect_flags(fusion(**config, min_probability=("error=0.5",)), judgement(unit(), 0.6))


EVIDENCE = (
    finding(unit(), probability=0.55),
    finding(unit(), "talks_over", probability=0.65, severity=Severity.MAJOR),
    finding(unit(offset_s=14), "no_apology", probability=0.8, attributes=(Attribute.ENGAGEMENT,)),
    competence(unit(), probability=0.75),
    competence(unit(), "thanks_user", probability=0.6),
    judgement(unit(), 0.6, 0.2),
)


@given(st.permutations(EVIDENCE), st.integers(1, len(EVIDENCE)))
def test_closed_flag_is_independent_of_the_order_of_evidence(order: list[Finding | UnitJudgement], size: int) -> None:
    chosen = [part for part in EVIDENCE if part in order[:size]]
    shuffled = [part for part in order if part in chosen]
    closed = [
        [flag for flag in collect_flags(fusion(), *evidence) if flag.state is FlagState.CLOSED]
        for evidence in (chosen, shuffled)
    ]
    assert closed[0] == closed[1]


@pytest.mark.parametrize(("offset_s", "closes_s", "end_s"), [(12, 42, 12), (None, 340, 310)])
def test_unit_closes_after_its_end_or_its_longest_time(offset_s: float | None, closes_s: float, end_s: float) -> None:
    fused = fusion(open_s=30)
    add_evidence(fused, finding(unit(10, offset_s)))
    assert fused.close(s_to_ns(closes_s)) == []
    (closed,) = fused.close(s_to_ns(closes_s + 0.1))
    assert (closed.state, closed.decision_ns, closed.offset_ns) == (FlagState.CLOSED, s_to_ns(10), s_to_ns(end_s))


def test_evidence_after_the_close_is_only_counted() -> None:
    fused = fusion()
    add_evidence(fused, finding(unit()))
    fused.close(s_to_ns(100))
    assert add_evidence(fused, finding(unit(), "no_apology")) is None
    assert add_evidence(fused, judgement(unit(), 0.9)) is None
    assert counted(fused) == {"events_opened": 1, "findings_after_close": 1, "judgements_after_close": 1}


def test_scene_ends_an_open_unit() -> None:
    fused = fusion()
    add_evidence(fused, finding(unit(offset_s=None)))
    assert fused.oldest_open_ns == s_to_ns(10)
    (flag,) = fused.track_ends([unit(offset_s=25)], 0)
    assert (flag.state, flag.offset_ns) == (FlagState.UPDATED, s_to_ns(25))
    assert fused.oldest_open_ns is None


@pytest.mark.parametrize("threshold", ["error", "anger=0.5", "error=2", "error=much", "=0.5"])
def test_threshold_with_an_unknown_name_or_value_is_refused(threshold: str) -> None:
    with pytest.raises(ValidationError, match="NAME=PROBABILITY"):
        FusionConfig(min_probability=(threshold,))


def test_flag_leaves_out_a_muted_attribute() -> None:
    both = finding(unit(), attributes=(Attribute.EMOTIONS, Attribute.ENGAGEMENT))
    assert collect_flags(fusion(muted=["emotions"]), both)[-1].attributes == (Attribute.ENGAGEMENT,)


def reconfigured(fused: Fusion, **config: object) -> list[SocialFlag]:
    return fused.reconfigure(FusionConfig.model_validate(config), s_to_ns(100))


@pytest.mark.parametrize("config", [{"muted": ["rude"]}, {"muted": ["emotions"]}, {"min_probability": ["error=0.9"]}])
def test_new_settings_withdraw_flags_that_they_rule_out(config: dict[str, Any]) -> None:
    fused = fusion()
    opened = add_evidence(fused, finding(unit()))
    assert opened
    (withdrawn,) = reconfigured(fused, **config)
    assert (withdrawn.state, withdrawn.event_id) == (FlagState.WITHDRAWN, opened.event_id)
    assert withdrawn.decision_ns == s_to_ns(100)
    assert withdrawn.rationale == "Withdrawn, as the settings now rule it out."
    assert fused.close(None) == []


def test_new_settings_open_flags_that_they_admit() -> None:
    fused = fusion(muted=["rude"])
    assert add_evidence(fused, finding(unit())) is None
    (opened,) = reconfigured(fused)
    assert (opened.state, opened.provenance.window_digest) == (FlagState.OPENED, "rude")
    assert states(fused.close(None)) == [FlagState.CLOSED]


def test_flags_of_an_attribute_are_limited_for_a_time() -> None:
    fused = fusion(max_per_attribute=3)
    flags = [add_evidence(fused, finding(unit(10 * k, 10 * k + 1))) for k in range(10)]
    assert sum(flag is not None for flag in flags) == 3
    assert counted(fused)["events_over_rate_limit"] == 7
    assert add_evidence(fused, finding(unit(5_000, 5_001)))
