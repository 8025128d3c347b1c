import pickle
from dataclasses import replace
from typing import Any

import pytest

from norm_core.records.flag import Attribute, Evidence, FlagState, Polarity, Severity, SocialFlag, Tier
from norm_core.records.provenance import Provenance
from norm_core.runtime.time import NS_PER_S
from norm_monitor.cues.finding import Finding
from norm_monitor.fusion.fusion import Fusion, FusionConfig


def finding(onset_s: float = 10, cue_id: str = "rude", offset_s: float | None = None, **changes: Any) -> Finding:
    onset_ns = round(onset_s * NS_PER_S)
    base = Finding(
        cue_id=cue_id,
        anchor=f"{cue_id}@{onset_s}",
        polarity=Polarity.ERROR,
        attributes=(Attribute.EMOTIONS,),
        severity=Severity.MINOR,
        probability=0.7,
        onset_ns=onset_ns,
        offset_ns=None if offset_s is None else round(offset_s * NS_PER_S),
        evidence=(Evidence(measure="nearness", value=0.7, threshold=0.5, start_ns=onset_ns, end_ns=onset_ns + 1),),
        rationale=f"{cue_id} at {onset_s}.",
        correction="Do better.",
    )
    return replace(base, **changes)


def fusion(**config: object) -> Fusion:
    return Fusion(FusionConfig.model_validate(config), {"slow": 30})


def take(fused: Fusion, found: Finding, tier: Tier = Tier.CUE) -> SocialFlag | None:
    return fused.take(found, Provenance(), found.onset_ns + 1, tier)


def counted(fused: Fusion) -> dict[str, int]:
    return {counter.name: counter.count for counter in fused.counters}


def test_what_is_seen_again_in_the_next_window_is_said_once() -> None:
    fused = fusion()
    first = take(fused, finding(offset_s=12))
    assert first
    assert first.state is FlagState.CLOSED
    assert take(fused, finding(offset_s=12)) is None


def test_an_event_opens_grows_worse_and_closes_under_one_name() -> None:
    fused = fusion()
    flags = [
        take(fused, finding()),
        take(fused, finding(severity=Severity.SEVERE)),
        take(fused, finding(severity=Severity.SEVERE, offset_s=15)),
    ]
    assert [flag.state for flag in flags if flag] == [FlagState.OPENED, FlagState.UPDATED, FlagState.CLOSED]
    assert len({flag.event_id for flag in flags if flag}) == 1
    assert flags[-1]
    assert flags[-1].severity is Severity.SEVERE


def test_two_cues_of_one_happening_are_one_event() -> None:
    fused = fusion()
    one = take(fused, finding(offset_s=11))
    other = take(fused, finding(10.5, "no_apology", 12, attributes=(Attribute.EMOTIONS, Attribute.ENGAGEMENT)))
    assert one
    assert other
    assert one.event_id == other.event_id
    assert other.attributes == (Attribute.EMOTIONS, Attribute.ENGAGEMENT)
    assert other.probability == pytest.approx(0.91)
    assert len(other.evidence) == 2


def test_an_event_keeps_all_evidence_when_one_cue_ends() -> None:
    fused = fusion()
    first, second = finding(), finding(10.5, "no_apology", 12)
    take(fused, first)
    take(fused, second)
    ended = take(fused, replace(first, offset_ns=15 * NS_PER_S, rationale="rude until 15."))
    assert ended
    assert ended.state is FlagState.CLOSED
    assert ended.rationale == "rude until 15. no_apology at 10.5."
    assert set(ended.evidence) == {*first.evidence, *second.evidence}


def test_what_begins_while_an_event_goes_on_is_part_of_it() -> None:
    """As a late answer that is also off its topic: one behaviour, with all that it bears on."""
    fused = fusion()
    one = take(fused, finding(10, "response_delay", 15))
    other = take(fused, finding(15, "apologised_for", 17, attributes=(Attribute.KNOWLEDGE_STATE,)))
    assert one
    assert other
    assert one.event_id == other.event_id
    assert (other.onset_ns, other.offset_ns) == (one.onset_ns, 17 * NS_PER_S)
    after = take(fused, finding(17.5, "rude", 18))
    assert after
    assert after.event_id != one.event_id


def test_the_judge_and_a_cue_together_are_fused() -> None:
    fused = fusion()
    take(fused, finding(offset_s=11))
    both = take(fused, finding(10.2, "judge", 12), Tier.JUDGE)
    assert both
    assert both.tier is Tier.FUSED


@pytest.mark.parametrize(
    "changes",
    [
        {"polarity": Polarity.COMPETENCE, "correction": ""},
        {"onset_ns": 20 * NS_PER_S, "offset_ns": 21 * NS_PER_S},
    ],
    ids=["polarity", "time"],
)
def test_different_happenings_stay_apart(changes: dict[str, object]) -> None:
    fused = fusion()
    one, other = take(fused, finding(offset_s=11)), take(fused, finding(10.5, "other", 12, **changes))
    assert one
    assert other
    assert one.event_id != other.event_id


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"confidence_floor": 0.8}, "below_confidence_floor"),
        ({"muted": ["rude"]}, "muted"),
        ({"muted": ["emotions"]}, "muted"),
    ],
)
def test_what_is_held_back_is_counted(config: dict[str, object], reason: str) -> None:
    fused = fusion(**config)
    assert take(fused, finding()) is None
    assert counted(fused) == {f"findings_{reason}": 1}


def test_a_cue_cools_down() -> None:
    fused = fusion()
    assert take(fused, finding(10, "slow", 11))
    assert take(fused, finding(20, "slow", 21)) is None
    assert take(fused, finding(45, "slow", 46))
    assert counted(fused)["findings_cooling_down"] == 1


def test_a_flood_of_one_attribute_is_held_back_and_ends() -> None:
    fused = fusion(most_per_attribute=3)
    flags = [take(fused, finding(10 * k, offset_s=10 * k + 1)) for k in range(10)]
    assert sum(flag is not None for flag in flags) == 3
    assert counted(fused)["findings_over_rate_limit"] == 7
    assert take(fused, finding(5_000, offset_s=5_001))


def test_an_hour_of_events_keeps_memory_bounded() -> None:
    fused = fusion(most_per_attribute=1000)
    held_bytes: list[int] = []
    for k in range(3_600):
        take(fused, finding(float(k), offset_s=k + 0.5))
        if k in {1_200, 3_599}:
            held_bytes.append(len(pickle.dumps(fused)))
    assert held_bytes[1] < 1.1 * held_bytes[0]
