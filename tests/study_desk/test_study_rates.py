"""Rates and their ratios by hand, and against the script for R."""

import csv
import math
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from norm_core.files.data_files import shipped_file
from study_desk.analysis.event_rates import estimate_rate, estimate_rate_by_unit, estimate_ratio, group_rows
from study_desk.analysis.study_tables import StudyTables
from study_desk.analysis.write_analysis import render_report
from tests.norm_monitor.view.browser import Browser, faults, inaccessible, needs_axe, needs_chromium
from tests.patience import PATIENCE_S

T_975_4 = 2.7764451051977987  # of Student's t with 4 degrees of freedom
COUNTS, MINUTES = [3, 0, 5, 7, 1], [10.0, 12, 9, 15, 11]


def test_a_rate_has_a_cluster_robust_interval() -> None:
    """Variance of a log rate by hand: squared deviations over one less their share of time, over squared events."""
    rate = estimate_rate_by_unit(dict(enumerate(COUNTS)), dict(enumerate(MINUTES)))
    assert rate is not None
    squares = sum((y - 16 * t / 57) ** 2 / (1 - t / 57) for y, t in zip(COUNTS, MINUTES, strict=True))
    reach = math.exp(T_975_4 * math.sqrt(squares) / 16)
    assert rate.rate == pytest.approx(160 / 57, rel=1e-9)
    assert (rate.low, rate.high) == pytest.approx((160 / 57 / reach, 160 / 57 * reach), rel=1e-9)
    assert rate.dispersion == pytest.approx(squares / 16, rel=1e-9)


def test_few_participants_have_counts_and_no_interval() -> None:
    """Two participants of 3 and 0 events had a rate of 0.00 to 36826335.65."""
    few, nothing = (
        estimate_rate_by_unit({1: 3, 2: 0}, {1: 10, 2: 10}),
        estimate_rate_by_unit(dict.fromkeys(range(5), 0), dict.fromkeys(range(5), 8)),
    )
    assert few is not None
    assert nothing is not None
    assert (few.events, few.minutes, few.participants, few.low, few.high) == (3, 20, 2, None, None)
    assert (nothing.rate, nothing.low, nothing.dispersion) == (0, 0, None)
    assert nothing.high == pytest.approx(3.6888794541139363 / 4, rel=1e-9)  # exact (Garwood 1936)
    assert estimate_rate_by_unit({}, {}) is None
    assert estimate_rate_by_unit({1: 0}, {1: 0}) is None


def test_a_ratio_within_participants_removes_their_differences() -> None:
    """Five participants of very different rates, each with twice the events in b: by hand, the Poisson variance."""
    quiet, chatty = {1: 2, 2: 4, 3: 8, 4: 16, 5: 30}, {1: 4, 2: 8, 3: 16, 4: 32, 5: 60}
    rows = [make_row(n, name, y) for name, of in (("a", quiet), ("b", chatty)) for n, y in of.items()]
    within = estimate_ratio(rows[5:], rows[:5], "errors")
    reach = math.exp(T_975_4 * math.sqrt(1 / 60 + 1 / 120))
    assert (within.ratio, within.low, within.high) == pytest.approx((2, 2 / reach, 2 * reach), rel=1e-9)
    apart = estimate_ratio([line | {"cluster": line["cluster"] + 5} for line in rows[5:]], rows[:5], "errors")
    assert (apart.high or 0) > 3 * (within.high or math.inf)
    assert estimate_ratio(rows[5:9], rows[:5], "errors").ratio is None
    assert estimate_ratio([line | {"errors": 0} for line in rows[5:]], rows[:5], "errors").ratio is None


def draw_study(seed: int) -> StudyTables:
    """All 12 people take part in the first two conditions, others in the third and, too few, in the last."""
    rng = np.random.default_rng(seed)
    of = {"a": range(12), "b": range(12), "c": range(20, 27), "d": range(27, 30)}
    people = [(n, name) for name, those in of.items() for n in those]
    own = rng.gamma(2, 0.5, 30)
    sessions = [(n, name, float(rng.uniform(4, 20))) for n, name in [*people, *people[:5], *people[14:16]]]
    sessions.sort(key=lambda session: session[1])
    return make_tables(
        *(make_row(n, name, int(rng.poisson(0.4 * own[n] * minutes)), minutes) for n, name, minutes in sessions)
    )


def read_figures(line: dict[str, str], *more: str) -> list[float | None]:
    return [None if line[key] == "NA" else float(line[key]) for key in ("estimate", "low", "high", *more)]


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not installed (apt install r-base-core)")
@pytest.mark.parametrize("seed", [1, 2])
def test_the_r_script_and_the_report_agree(tmp_path: Path, seed: int) -> None:
    study = draw_study(seed)
    names = ["session", "condition", "cluster", "coder", "analysed", "minutes", "errors", "competences"]
    with (tmp_path / "sessions.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, names, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(study.sessions)
    script = shipped_file("study_desk.analysis", "scripts") / "analysis.R"
    subprocess.run(["Rscript", script], cwd=tmp_path, check=True, capture_output=True, timeout=PATIENCE_S)
    with (tmp_path / "estimates_r.csv").open(newline="") as file:
        by_r = {(line["outcome"], line["term"]): line for line in csv.DictReader(file)}
    by_condition = group_rows(study.sessions, lambda session: session["condition"])
    for outcome in ("errors", "competences"):
        for name, of in by_condition.items():
            rate = estimate_rate(of, outcome)
            assert rate is not None
            line = by_r[outcome, name]
            assert (int(line["events"]), int(line["units"])) == (rate.events, rate.participants)
            assert read_figures(line, "dispersion") == pytest.approx([rate.rate, rate.low, rate.high, rate.dispersion])
        for name in ("b", "c", "d"):
            ratio = estimate_ratio(by_condition[name], by_condition["a"], outcome)
            assert read_figures(by_r[outcome, f"{name} / a"]) == pytest.approx([ratio.ratio, ratio.low, ratio.high])


def make_row(session: int, condition: str, errors: int, minutes: float = 10) -> dict[str, Any]:
    return {
        "session": f"S{session}", "condition": condition, "participant": f"P-{session}", "cluster": session,
        "coder": "C-1", "coder_kind": "human", "analysed": 1, "minutes": minutes, "errors": errors, "competences": 0,
    } | {f"{polarity}_{attribute}": 0 for polarity in ("error", "competence") for attribute in ATTRIBUTES}  # fmt: skip


ATTRIBUTES = (
    "emotions", "engagement", "conversational_mechanics", "knowledge_state", "user_intention",
    "social_context_and_relationships", "social_norms_and_routines",
)  # fmt: skip


def make_tables(*rows: dict[str, Any], study: str = "kiosk") -> StudyTables:
    conditions = tuple(dict.fromkeys(row["condition"] for row in rows))
    return StudyTables(study=study, conditions=conditions, sessions=rows, events=(), columns=(), remarks=())


def test_the_report_gives_ratios_and_counts_of_few() -> None:
    counts = [(1, 2), (0, 4), (3, 5), (2, 3), (4, 6)]
    rows = [make_row(n, name, of[k]) for k, name in enumerate("ab") for n, of in enumerate(counts)]
    page = render_report(make_tables(*rows, make_row(9, "c", 3), make_row(8, "c", 0)))
    ratio = estimate_ratio(rows[5:], rows[:5], "errors")
    assert f"<td>2.00</td><td>{ratio.low:.2f}\xa0to\xa0{ratio.high:.2f}</td>" in page
    assert '<td class="text">c</td><td>3</td><td>20.0</td><td>2</td><td>–</td><td>–</td>' in page
    assert '<td class="text">c / a</td><td>–</td><td>–</td>' in page
    assert "No session is coded." in render_report(make_tables())


@needs_chromium
@needs_axe
def test_the_report_is_accessible_and_prints(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    rows = [make_row(n, ("quiet", "a very long name of a condition, with reasons")[n % 2], n) for n in range(12)]
    page.write_text(render_report(make_tables(*rows, study="<script>alert(1)</script>")))
    with Browser(tmp_path / "profile", width=420, height=800) as browser:
        browser.send("Page.navigate", url=page.as_uri())
        browser.until("document.readyState === 'complete' && document.querySelector('table') !== null")
        assert inaccessible(browser) == []
        assert faults(browser) == []
        assert browser.run("document.documentElement.scrollWidth") <= 420
        assert browser.send("Page.printToPDF")["data"]
