"""Print agreement: a summary, and one table per pair of coders with one column per measure."""

from collections.abc import Iterator

from rich.box import SIMPLE
from rich.table import Table

from study_desk.coding.agreement import Agreement
from study_desk.coding.reliability import AC1, ANY_TWO, ICC_ANY, ICC_PAIR, SEVERITY, UNITIZING, AgreementRow, Estimate

LEGEND = (
    "F1: onsets matched within the seconds named. Kappa, events: Cohen's, of matched events. Kappa and alpha, frames: "
    "Cohen's, Fleiss' and Krippendorff's. Alpha, any two: over all coders, also with sessions missing. AC1: Gwet's. "
    "Alpha, units: Krippendorff's for cutting time into units. Kappa, severity: linear weights, of events that both "
    "labelled alike. n: events that either marked; two with onsets within the "
    "seconds named count once. Below each figure its 95 % interval; – where it is undefined."
)
SUMMARY_LEGEND = (
    "n: events that either marked; two with onsets within the seconds named count once. F1: of the same matches. "
    "Kappa: Cohen's. Alpha, any two: Krippendorff's over all coders. AC1: Gwet's. –: undefined. --all adds intervals, "
    "conditions and all other measures."
)
_SHORT = {
    "event-matched Cohen's kappa": "kappa\nevents",
    "frame-level Cohen's kappa": "kappa\nframes",
    "frame-level Fleiss' kappa": "Fleiss\nframes",
    "frame-level Krippendorff's alpha": "alpha\nframes",
    ANY_TWO: "alpha\nany two",
    AC1: "AC1\nframes",
    UNITIZING: "alpha\nunits",
    SEVERITY: "kappa\nseverity",
    ICC_PAIR: "ICC(2,1)\ncounts",
    ICC_ANY: "ICC(1,1)\ncounts",
}


_SUMMARY = ("kappa\nevents", "kappa\nframes", "alpha\nany two", "AC1\nframes")


def summary(found: Agreement) -> Iterator[Table]:
    """Make the tables to read first: who shares sessions, and one line per coders and label that somebody used."""
    yield _shared(found)
    settings = found.settings
    tolerance_s = next((t for t in settings.tolerances_s if t == settings.kappa_tolerance_s), settings.tolerances_s[0])
    matched = f"F1\n{tolerance_s:g} s"
    lines: dict[tuple[tuple[str, ...], str], dict[str, AgreementRow]] = {}
    for row in found.rows:
        if not row.condition and _measure(row) in {matched, *_SUMMARY}:
            lines.setdefault((row.coders, _label(row)), {})[_measure(row)] = row
    measures = [name for name in (matched, *_SUMMARY) if any(name in by_measure for by_measure in lines.values())]
    shown = Table(title="agreement over all sessions", title_justify="left", box=SIMPLE, padding=(0, 1, 0, 0))
    for name in ("coders", "label"):
        shown.add_column(name)
    for name in (f"n\n{tolerance_s:g} s", *measures):
        shown.add_column(name, justify="right")
    named = ""
    for (coders, label), by_measure in lines.items():
        of = ", ".join(coders)
        count = str(by_measure[matched].units) if matched in by_measure else ""
        figures = [_figure(by_measure[name].estimate) if name in by_measure else "" for name in measures]
        shown.add_row("" if of == named else of, label, count, *figures)
        named = of
    yield shown


def every_table(found: Agreement) -> Iterator[Table]:
    """Make the tables: pairs of humans first, then the monitor with each human."""
    yield _shared(found)
    groups: dict[tuple[str, str, tuple[str, ...]], list[AgreementRow]] = {}
    for row in found.rows:
        groups.setdefault((row.condition, row.comparison, row.coders), []).append(row)
    for (condition, comparison, coders), rows in groups.items():
        where = f", condition {condition}" if condition else ""
        yield _table(f"{comparison}: {', '.join(coders)}{where}", rows)


def _shared(found: Agreement) -> Table:
    shown = Table(title="sessions coded by both", title_justify="left", box=SIMPLE, padding=(0, 1, 0, 0))
    for name in ("coders", "sessions", "minutes"):
        shown.add_column(name, justify="left" if name == "coders" else "right")
    for pair in found.shared:
        shown.add_row(", ".join(pair.coders), str(pair.sessions), f"{pair.minutes:.1f}")
    return shown


def _table(title: str, rows: list[AgreementRow]) -> Table:
    measures = list(dict.fromkeys(_measure(row) for row in rows))
    labels: dict[str, dict[str, AgreementRow]] = {}
    for row in rows:
        labels.setdefault(_label(row), {})[_measure(row)] = row
    counted = next((row for row in rows if row.measure == "event F1"), None)
    shown = Table(title=title, title_justify="left", box=SIMPLE, padding=(0, 1, 0, 0))
    shown.add_column("label", overflow="fold")
    for name in (*([f"n\n{counted.tolerance_s:g} s"] if counted else []), *measures):
        shown.add_column(name, justify="right", overflow="fold")
    for label, by_measure in labels.items():
        events = [str(by_measure[_measure(counted)].units)] if counted else []
        cells = (_cell(by_measure[name].estimate) if name in by_measure else "" for name in measures)
        shown.add_row(label, *events, *cells)
    return shown


def _label(row: AgreementRow) -> str:
    return "all" if row.attribute == "all" else f"{row.polarity} {row.attribute.replace('_', ' ')}"


def _measure(row: AgreementRow) -> str:
    return f"F1\n{row.tolerance_s:g} s" if row.measure == "event F1" else _SHORT.get(row.measure, row.measure)


def _figure(estimate: Estimate) -> str:
    return "–" if estimate.value is None else _short(estimate.value)


def _cell(estimate: Estimate) -> str:
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return _figure(estimate)
    return f"{_short(estimate.value)}\n{_short(estimate.low)}–{_short(estimate.high)}"


def _short(value: float) -> str:
    """Format without the leading zero, as is usual for values of at most 1."""
    return f"{value:.2f}".replace("0.", ".", 1)
