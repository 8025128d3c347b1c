"""The methods paragraph of a paper, from what was computed."""

import json
import platform
from collections.abc import Iterator

import numpy as np

from norm_core import __version__
from norm_core.runtime.data_files import shipped_text
from norm_core.runtime.wording import count_of
from study_desk.coding.agreement import Agreement
from study_desk.coding.labels import ALL
from study_desk.coding.reliability import ANY_TWO, SEVERITY, AgreementRow
from study_desk.log.schema import MONITOR

REFERENCES: dict[str, str] = json.loads(shipped_text("study_desk.coding", "references.json"))


def methods_text(agreement: Agreement) -> str:
    """Write a paragraph on coding and agreement, and the references that it cites."""
    text = " ".join([*_coding(agreement), *_measures(agreement), *_results(agreement)])
    return "\n".join([text, "", *(reference for citation, reference in REFERENCES.items() if citation in text)])


def _coding(agreement: Agreement) -> Iterator[str]:
    humans = [coder for coder in agreement.coders if coder != MONITOR]
    conditions = [f"{name or 'no condition'}: {number}" for name, number in agreement.conditions.items()]
    by_condition = f"; sessions by condition: {', '.join(conditions)}" if len(conditions) > 1 else ""
    yield (
        f"{count_of(len(humans), 'coder')} ({', '.join(humans)}) coded {count_of(agreement.sessions, 'session')} "
        f"({agreement.minutes:.1f} minutes in total{by_condition}) for social errors and competences in the seven "
        "attributes of HSRI."
    )
    pairs = [pair for pair in agreement.shared if MONITOR not in pair.coders]
    if pairs:
        shared = [f"{' and '.join(p.coders)} {p.sessions} ({p.minutes:.1f} min)" for p in pairs]
        yield f"Sessions that two coders both coded: {'; '.join(shared)}."
    if MONITOR in agreement.coders:
        yield ("The automatic monitor (Tactful) was compared with each coder and never pooled with the human coders.")


def _measures(agreement: Agreement) -> Iterator[str]:
    settings, used = agreement.settings, {row.measure for row in agreement.rows}
    tolerances = ", ".join(f"{tolerance:g}" for tolerance in settings.tolerances_s)
    kappa_s = f"{settings.kappa_tolerance_s:g} s"
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}"
    yield f"Agreement was computed with Tactful {__version__} ({versions})."
    yield (
        "Two events were matched one to one if they had the same polarity and attribute and if their onsets differed "
        f"by at most a tolerance; event F1 used tolerances of {tolerances} s."
    )
    yield (
        f"Cohen's kappa (Cohen, 1960) of events used events matched within {kappa_s}, first those with the same label, "
        "then the rest; an event without a match counted as a category of its own."
    )
    yield (
        f"For frame-level coefficients, sessions were cut into frames of {settings.frame_s:g} s; a coder marked a "
        "frame if one of their events touched it."
    )
    fleiss = "Fleiss' kappa (Fleiss, 1971) over all human coders, " if "frame-level Fleiss' kappa" in used else ""
    yield (
        f"We report Cohen's kappa for two coders, {fleiss}nominal Krippendorff's alpha (Krippendorff, 2004) and "
        "Gwet's AC1 (Gwet, 2008)."
    )
    if ANY_TWO in used:
        yield (
            "Because not every coder coded every session, alpha and AC1 over all coders treat an uncoded session as "
            "missing and use all sessions that at least two coded."
        )
    yield (
        "Agreement on where events begin and end was measured with Krippendorff's unitizing alpha "
        "(Krippendorff, 1995), in milliseconds, over sessions joined end to end; overlapping events of one coder and "
        "label were joined."
    )
    yield (
        "Agreement on the number of events in a session was measured with the intraclass correlation for absolute "
        "agreement (Shrout & Fleiss, 1979): ICC(2,1) for two coders"
        + (", and ICC(1,1) over all coders." if ANY_TWO in used else ".")
    )
    if SEVERITY in used:
        yield (
            f"Severity (info, minor, major, severe) was compared on events matched within {kappa_s}, with linearly "
            "weighted kappa (Cohen, 1968)."
        )
    if agreement.sessions > 1:
        yield (
            f"Intervals are 95 % percentile intervals of {settings.resamples} bootstrap samples of whole sessions "
            f"(seed {settings.seed})."
        )


def _results(agreement: Agreement) -> Iterator[str]:
    """State the overall figure, or that of the only pair, over all sessions and by condition."""
    overall = [row for row in agreement.rows if row.attribute == ALL and row.measure == ANY_TWO]
    humans = [coder for coder in agreement.coders if coder != MONITOR]
    if not overall and len(humans) == 2:
        overall = [
            row
            for row in agreement.rows
            if row.attribute == ALL and row.measure == "event-matched Cohen's kappa" and {*row.coders} == {*humans}
        ]
    stated = [
        f"{row.estimate.value:.3f}{_interval(row)} {f'in condition {row.condition}' if row.condition else 'overall'}"
        for row in overall
        if row.estimate.value is not None
    ]
    if stated:
        name = (
            "Krippendorff's alpha over all human coders (frames with any event)"
            if overall[0].measure == ANY_TWO
            else "Cohen's kappa of matched events"
        )
        yield f"{name} was {', '.join(stated)}."


def _interval(row: AgreementRow) -> str:
    low, high = row.estimate.low, row.estimate.high
    return "" if low is None or high is None else f" (95 % interval {low:.3f} to {high:.3f})"
