"""Write the analysis of a study into a folder: tables, data dictionary, report, figures and scripts."""

import csv
import io
import math
from collections.abc import Callable, Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any

from norm_core import __version__
from norm_core.records.flag import Attribute, Polarity
from norm_core.records.json_codec import to_plain
from norm_core.records.record import record
from norm_core.runtime.atomic_file import write_atomic
from norm_core.runtime.data_files import shipped_file, shipped_text
from norm_core.runtime.wording import count_of, in_words
from study_desk.analysis.study_tables import (
    METHOD,
    PER_MINUTES,
    PLURALS,
    EventRate,
    Row,
    StudyTables,
    by_cluster,
    few_units,
    grouped,
    rate_of,
)
from study_desk.coding.labels import one_line
from study_desk.study.outputs import note_study_output
from study_desk.study.study_folder import Study, StudyError

_WIDTH, _LEFT, _RIGHT, _ROW, _GAP, _TOP, _FOOT = 760, 190, 24, 22, 10, 8, 46
_EDGE, _SINGLE = 4, 10  # below a rate, those of single units
_INK, _RULE, _FONT = "#000", "#bbb", "Helvetica, Arial, sans-serif"
_LONGEST = 4  # most length of the axis, in highest rates
_GLYPH = 6.4  # widest mean width of a character at 12 pixels


@record
class RateBar:
    """One line of a figure: a rate, its mark, and the rates of single units."""

    label: str
    rate: EventRate
    mark: int = 0
    single: tuple[float, ...] = ()


def rate_figure(title: str, groups: Sequence[tuple[str, Sequence[RateBar]]]) -> str:
    """Draw groups of rates on one axis. An interval that is far longer than the rates ends in an arrow."""
    every = [bar for _, bars in groups for bar in bars]
    shown = max((value for bar in every for value in (bar.rate.rate, *bar.single)), default=0.0)
    highest = max((bar.rate.high for bar in every), default=1.0)
    highest = max(shown, min(highest, _LONGEST * shown)) if shown else highest
    step = _step(highest)
    end = step * math.ceil(highest / step)
    plot = _WIDTH - _LEFT - _RIGHT

    def x(value: float) -> float:
        return round(_LEFT + plot * min(value, end) / end, 2)

    y, rows = _TOP, []
    for name, bars in groups:
        y += _ROW
        rows.append(f'<text x="{_EDGE}" y="{y - 6}" font-weight="bold">{escape(name)}</text>')
        for bar in bars:
            rows += _bar(bar, y + _ROW / 2, x, is_cut=bar.rate.high > end)
            y += _ROW + (_SINGLE if bar.single else 0)
        y += _GAP
    height = y + _FOOT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'font-family="{_FONT}" font-size="12" fill="{_INK}">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>',
    ]
    for number in range(round(end / step) + 1):
        at = x(number * step)
        parts.append(f'<path d="M{at} {_TOP + _ROW}V{y}" stroke="{_RULE}" stroke-width="0.7"/>')
        parts.append(_text(at, y + 16, f"{number * step:g}", anchor="middle"))
    parts.append(f'<path d="M{x(0)} {y}H{x(end)}" stroke="{_INK}"/>')
    parts.append(_text((x(0) + x(end)) / 2, y + 36, f"events per {PER_MINUTES} minutes", anchor="middle"))
    return "\n".join([*parts, *rows, "</svg>", ""])


def _bar(bar: RateBar, y: float, x: Callable[[float], float], *, is_cut: bool) -> Iterable[str]:
    low, high = x(bar.rate.low), x(bar.rate.high)
    yield _text(_LEFT - 12, y + 4, _short(bar.label), anchor="end")
    for value in bar.single:
        yield f'<circle cx="{x(value)}" cy="{y + _SINGLE}" r="2.6" fill="none" stroke="{_INK}" stroke-width="0.7"/>'
    line = f"M{low} {y}H{high}M{low} {y - 4}v8" + (f"M{high - 6} {y - 4}l6 4l-6 4" if is_cut else f"M{high} {y - 4}v8")
    yield f'<path d="{line}" stroke="{_INK}" stroke-width="1.4" fill="none"/>'
    yield _mark(bar.mark, x(bar.rate.rate), y)


def _mark(mark: int, x: float, y: float) -> str:
    shapes = (
        f'<circle cx="{x}" cy="{y}" r="4.5"',
        f'<rect x="{x - 4.2}" y="{y - 4.2}" width="8.4" height="8.4"',
        f'<path d="M{x} {y - 5.5}l5.2 9h-10.4z"',
        f'<path d="M{x} {y - 5.6}l5.6 5.6l-5.6 5.6l-5.6 -5.6z"',
    )
    fill = "#fff" if (mark // len(shapes) + mark) % 2 else _INK  # shapes come filled and hollow in turn
    return f'{shapes[mark % len(shapes)]} fill="{fill}" stroke="{_INK}" stroke-width="1.4"/>'


def _text(x: float, y: float, text: str, *, anchor: str) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>'


def _short(text: str) -> str:
    most = int((_LEFT - 24) / _GLYPH)
    return text if len(text) <= most else text[: most - 1] + "…"


def _step(highest: float) -> float:
    """Choose a round step that gives about five ticks."""
    power = 10 ** math.floor(math.log10(highest / 5)) if highest > 0 else 1
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor * 6 >= highest)


_STYLE = shipped_text("study_desk.analysis", "study_report.css")


def study_report(tables: StudyTables) -> str:
    """Render the report. Its figures are those of study_figures."""
    figures = study_figures(tables)
    title = escape(f"Study {tables.study}")
    body = [
        f"<h1>{title}</h1>",
        f"<p>{escape(_overview(tables))}</p>",
        "<h2>Rates by condition</h2>",
        _figure(
            figures.get("rates"),
            "Rates with 95 % intervals; an arrow: longer. Small circles: single units, each a participant or a "
            "group of participants who share sessions.",
        ),
        *(f'<p class="warning">{escape(warning)}</p>' for warning in few_units(tables)),
        _rate_table(tables),
        "<h2>Rates by attribute</h2>",
        *(
            _figure(figures.get(plural), f"{plural.capitalize()} by attribute. An event may have several attributes.")
            for plural in PLURALS.values()
        ),
        _attribute_table(tables),
        "<h2>Sessions and coders</h2>",
        _condition_table(tables),
        _coder_table(tables),
        "<h2>How this was computed</h2>",
        f"<p>{escape(_chosen(tables))} {escape(METHOD)} A unit is a participant, or a group of participants who share "
        "sessions.</p>",
        f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in tables.remarks)}</ul>" if tables.remarks else "",
        f"<footer>Made by Tactful {escape(__version__)} from sessions.csv, which lies beside this file.</footer>",
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(filter(None, body))
        + "\n</main>\n</body>\n</html>\n"
    )


def study_figures(tables: StudyTables) -> dict[str, str]:
    """Draw the figures by name, as SVG. None without a coded session."""
    if not tables.analysed:
        return {}
    figures = {
        "rates": rate_figure(
            "Rates by condition", [(name, _bars(tables, name, single=True)) for name in PLURALS.values()]
        )
    }
    for polarity, plural in PLURALS.items():
        columns = {in_words(attribute.value): f"{polarity.value}_{attribute.value}" for attribute in Attribute}
        used = {name: column for name, column in columns.items() if any(row[column] for row in tables.analysed)}
        if used:
            groups = [(name, _bars(tables, column)) for name, column in used.items()]
            figures[plural] = rate_figure(f"{plural.capitalize()} by attribute", groups)
    return figures


def _by_condition(tables: StudyTables) -> dict[str, list[dict[str, Any]]]:
    return grouped(tables.analysed, lambda row: row["condition"] or "no condition")


def _bars(tables: StudyTables, column: str, *, single: bool = False) -> list[RateBar]:
    bars = []
    for mark, (condition, rows) in enumerate(_by_condition(tables).items()):
        rate = rate_of(rows, column)
        if rate is None:
            continue
        counts, minutes = by_cluster(rows, column), by_cluster(rows, "minutes")
        units = tuple(PER_MINUTES * counts[c] / minutes[c] for c in counts if minutes[c]) if single else ()
        bars.append(RateBar(label=condition, rate=rate, mark=mark, single=units))
    return bars


def _overview(tables: StudyTables) -> str:
    sessions = grouped(tables.sessions, lambda row: row["session"])
    people = {name for row in tables.sessions for name in str(row["participant"]).split()}
    minutes = sum(rows[0]["minutes"] for rows in sessions.values())
    conditions = [name for name in tables.conditions if name]
    by = f" in {count_of(len(conditions), 'condition')}: {', '.join(conditions)}" if conditions else ""
    return (
        f"{count_of(len(sessions), 'session')} of {minutes:.1f} minutes with "
        f"{count_of(len(people), 'participant')}{by}."
    )


def _chosen(tables: StudyTables) -> str:
    counts = grouped(tables.analysed, lambda row: row["coder"])
    named = ", ".join(f"{coder} in {count_of(len(rows), 'session')}" for coder, rows in counts.items())
    return f"Each session counts by the labels of one coder: {named}." if named else "No session is coded."


def _rate_table(tables: StudyTables) -> str:
    rows = [(plural, bar.label, *_cells(bar.rate)) for plural in PLURALS.values() for bar in _bars(tables, plural)]
    head = ("event", "condition", "events", "minutes", "units", "per 10 min", "95 % interval", "dispersion")
    return _table("Events per ten minutes", head, rows, text=2)


def _attribute_table(tables: StudyTables) -> str:
    conditions = list(_by_condition(tables))
    rows = []
    for polarity in Polarity:
        for attribute in Attribute:
            column = f"{polarity.value}_{attribute.value}"
            if any(row[column] for row in tables.analysed):
                rates = {bar.label: bar.rate for bar in _bars(tables, column)}
                cells = [_with_interval(rates[name]) if name in rates else "" for name in conditions]
                rows.append((f"{polarity.value}: {in_words(attribute.value)}", *cells))
    return _table("Events per ten minutes, by attribute", ("attribute", *conditions), rows)


def _condition_table(tables: StudyTables) -> str:
    rows = []
    for condition, found in grouped(tables.sessions, lambda row: row["condition"] or "no condition").items():
        sessions = {row["session"]: row["minutes"] for row in found}
        people = {name for row in found for name in str(row["participant"]).split()}
        rows.append((condition, str(len(sessions)), str(len(people)), f"{sum(sessions.values()):.1f}"))
    return _table("Sessions", ("condition", "sessions", "participants", "minutes"), rows)


def _coder_table(tables: StudyTables) -> str:
    rows = [
        (
            coder,
            found[0]["coder_kind"],
            str(len(found)),
            str(sum(row["analysed"] for row in found)),
            str(sum(not row["errors"] and not row["competences"] for row in found)),
            *(_with_interval(rate) if (rate := rate_of(found, plural)) else "" for plural in PLURALS.values()),
        )
        for coder, found in grouped(tables.sessions, lambda row: row["coder"]).items()
    ]
    head = ("coder", "kind", "sessions", "analysed", "found nothing in", "errors per 10 min", "competences per 10 min")
    return _table("Coders", head, rows, text=2)


def _cells(rate: EventRate) -> tuple[str, ...]:
    return (
        str(rate.events),
        f"{rate.minutes:.1f}",
        str(rate.participants),
        f"{rate.rate:.2f}",
        f"{rate.low:.2f}\N{NO-BREAK SPACE}to\N{NO-BREAK SPACE}{rate.high:.2f}",
        "" if rate.dispersion is None else f"{rate.dispersion:.2f}",
    )


def _with_interval(rate: EventRate) -> str:
    bounds = f"({rate.low:.2f} to {rate.high:.2f})".replace(" ", "\N{NO-BREAK SPACE}")  # so that it wraps before them
    return f"{rate.rate:.2f} {bounds}"


def _figure(svg: str | None, caption: str) -> str:
    return f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>" if svg else ""


def _table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]], *, text: int = 1) -> str:
    def cells(row: Sequence[str]) -> str:
        inner = [
            f'<td class="text">{escape(c)}</td>' if n < text else f"<td>{escape(c)}</td>" for n, c in enumerate(row)
        ]
        return f"<tr>{''.join(inner)}</tr>"

    rows = list(rows)
    if not rows:
        return ""
    named = "".join(f'<th scope="col"{" class=text" if n < text else ""}>{escape(c)}</th>' for n, c in enumerate(head))
    name = escape(caption)
    return (
        f'<div class="wide" role="region" tabindex="0" aria-label="{name}"><table><caption>{name}</caption>'
        f"<thead><tr>{named}</tr></thead><tbody>{''.join(map(cells, rows))}</tbody></table></div>"
    )


ANALYSIS = "analysis"
_SCRIPTS = shipped_file("study_desk.analysis", "scripts")


@record
class WrittenAnalysis:
    """The files of an analysis. `kept` are scripts that were changed since, so were not replaced."""

    files: tuple[Path, ...]
    kept: tuple[Path, ...]


def write_analysis(study: Study, tables: StudyTables, folder: Path) -> WrittenAnalysis:
    """Write every file, readable by its owner alone, and note them as outputs of the study.

    Raises StudyError for a folder that holds something else than an analysis.
    """
    _check_free(folder)
    private_folder(folder)
    private_folder(folder / "figures")
    contents = {
        "sessions.csv": _csv(_columns(tables, "sessions"), tables.sessions),
        "events.csv": _csv(_columns(tables, "events"), tables.events),
        "dictionary.csv": _csv(
            ("table", "name", "unit", "levels", "description"),
            [to_plain(column) | {"levels": "; ".join(column.levels)} for column in tables.columns],
        ),
        "report.html": study_report(tables),
    }
    contents |= {f"figures/{name}.svg": svg for name, svg in study_figures(tables).items()}
    kept = []
    for script in sorted(_SCRIPTS.glob("analysis.*")):
        text, there = script.read_text(encoding="utf-8"), folder / script.name
        if there.is_file() and there.read_text(encoding="utf-8", errors="replace") != text:
            kept.append(there)
        else:
            contents[script.name] = text
    for name, text in contents.items():
        write_private(folder / name, text)
        note_study_output(study, folder / name, ANALYSIS)
    return WrittenAnalysis(files=tuple(folder / name for name in contents), kept=tuple(kept))


def _check_free(folder: Path) -> None:
    is_analysis = all((folder / name).is_file() for name in ("sessions.csv", "dictionary.csv"))
    if folder.exists() and not (folder.is_dir() and (is_analysis or not any(folder.iterdir()))):
        raise StudyError(
            f"{folder}: is there, and is no analysis: name a new folder, an empty one or an earlier analysis"
        )


def private_folder(folder: Path) -> None:
    """Make a folder that its owner alone can enter."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)


def write_private(path: Path, text: str) -> None:
    """Write a text that its owner alone can read."""
    write_atomic(path, text.encode("utf-8", "replace"), mode=0o600)


def _csv(columns: Sequence[str], rows: Iterable[Row]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {key: one_line(cell) if isinstance(cell, str) else cell for key, cell in row.items()} for row in rows
    )
    return text.getvalue()


def _columns(tables: StudyTables, table: str) -> list[str]:
    return [column.name for column in tables.columns if column.table == table]
