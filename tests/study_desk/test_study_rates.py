"""Rates and sample sizes against statsmodels and a closed formula."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from norm_core.runtime.errors import TactfulError
from study_desk.analysis.sample_size import PlanAssumptions, pilot_of, sample_size
from study_desk.analysis.study_tables import StudyTables, event_rate
from study_desk.analysis.write_analysis import study_report
from tests.study_desk.browser import Browser, faults, inaccessible, needs_axe, needs_chromium

COUNTS, MINUTES = [3, 0, 5, 7, 1], [10.0, 12, 9, 15, 11]


def test_a_rate_has_the_interval_of_a_quasi_poisson_model() -> None:
    """Values of statsmodels 0.15 (GLM, Poisson, scale X2, use_t), 2026-11-23; the next test computes them anew."""
    rate = event_rate(COUNTS, MINUTES)
    assert rate is not None
    assert rate.rate == pytest.approx(160 / 57, rel=1e-9)
    assert (rate.low, rate.high) == pytest.approx((0.9873725440196311, 7.98011605574805), rel=1e-9)
    assert rate.dispersion == pytest.approx(2.265861742424242, rel=1e-9)


def test_one_participant_or_no_event_has_an_exact_interval() -> None:
    alone, nothing = event_rate([7], [10]), event_rate([0, 0, 0], [10, 20, 10])
    assert alone is not None
    assert nothing is not None
    assert (alone.low, alone.high) == pytest.approx((2.8143630515198654, 14.422675361702376), rel=1e-9)
    assert (nothing.rate, nothing.low, nothing.dispersion) == (0, 0, None)
    assert nothing.high == pytest.approx(3.6888794541139363 / 4, rel=1e-9)
    assert event_rate([], []) is None
    assert event_rate([0], [0]) is None


def test_the_formula_is_that_of_zhu_and_lakkis() -> None:
    """By hand: (1.959964 + 0.841621)² · (1/2 + 1/1 + 2 · 0.25) / ln(2)² = 32.7."""
    assert sample_size(PlanAssumptions(rate_a=2, rate_b=1, minutes=10, spread=0.5), 0.8) == 33


@pytest.mark.parametrize("wrong", [{"rate_a": 0}, {"rate_b": 3}, {"minutes": float("nan")}, {"spread": -1}])
def test_what_cannot_be_planned_is_refused(wrong: dict[str, float]) -> None:
    values = {"rate_a": 3.0, "rate_b": 1.5, "minutes": 20.0, "spread": 0.5}
    with pytest.raises(TactfulError, match="give"):
        PlanAssumptions(**(values | wrong))


def row(session: int, condition: str, errors: int, minutes: float = 10) -> dict[str, Any]:
    return {
        "session": f"S{session}", "condition": condition, "participant": f"P-{session}", "cluster": session,
        "coder": "C-1", "coder_kind": "human", "analysed": 1, "minutes": minutes, "errors": errors, "competences": 0,
    } | {f"{polarity}_{attribute}": 0 for polarity in ("error", "competence") for attribute in ATTRIBUTES}  # fmt: skip


ATTRIBUTES = (
    "emotions", "engagement", "conversational_mechanics", "knowledge_state", "user_intention",
    "social_context_and_relationships", "social_norms_and_routines",
)  # fmt: skip


def tables(*rows: dict[str, Any], study: str = "kiosk") -> StudyTables:
    conditions = tuple(dict.fromkeys(row["condition"] for row in rows))
    return StudyTables(study=study, conditions=conditions, sessions=rows, events=(), columns=(), remarks=())


def test_a_pilot_gives_the_spread_that_was_simulated() -> None:
    rng = np.random.default_rng(4)
    own = 6 * rng.gamma(0.6**-2, 0.6**2, 4000)
    pilot = pilot_of(tables(*(row(n, "a", int(c)) for n, c in enumerate(rng.poisson(own)))), "errors")
    assert pilot.spread == pytest.approx(0.6, abs=0.03)
    assert pilot.rates["a"] == pytest.approx(6, rel=0.03)
    assert (pilot.units, pilot.minutes) == (4000, 10)


def test_a_pilot_within_participants_gives_their_spread() -> None:
    counts = {1: (2, 1), 2: (12, 9), 3: (30, 22)}
    within = pilot_of(
        tables(*(row(n, c, y) for n, of in counts.items() for c, y in zip("ab", of, strict=True))), "errors"
    )
    assert within.spread == pytest.approx(0.93, abs=0.05)
    assert (within.units, within.is_within) == (3, True)


def test_a_study_without_codings_has_a_report_and_no_pilot() -> None:
    assert "No session is coded." in study_report(tables())
    with pytest.raises(TactfulError, match="no session is coded"):
        pilot_of(tables(), "errors")


@needs_chromium
@needs_axe
def test_the_report_is_accessible_and_prints(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    rows = [row(n, ("quiet", "a very long name of a condition, with reasons")[n % 2], n) for n in range(8)]
    page.write_text(study_report(tables(*rows, study="<script>alert(1)</script>")))
    with Browser(tmp_path / "profile", width=420, height=800) as browser:
        browser.send("Page.navigate", url=page.as_uri())
        browser.until("document.readyState === 'complete' && document.querySelector('svg') !== null")
        assert inaccessible(browser) == []
        assert faults(browser) == []
        assert browser.run("document.documentElement.scrollWidth") <= 420
        assert browser.send("Page.printToPDF")["data"]
