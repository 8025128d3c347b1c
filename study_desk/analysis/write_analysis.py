"""Write the analysis of a study into a folder: tables, data dictionary, report and scripts."""

import csv
import io
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any

from norm_core import __version__
from norm_core.files.atomic_file import write_atomic
from norm_core.files.data_files import shipped_file, shipped_text
from norm_core.records.flag import Attribute, Polarity
from norm_core.records.json_codec import to_plain
from norm_core.records.record import record
from norm_core.runtime.wording import count_of, to_words
from norm_monitor.session_log.labels import fold_lines
from norm_monitor.session_log.study_folder import Study, StudyError
from study_desk.analysis.event_rates import (
    METHOD,
    EventRate,
    estimate_rate,
    estimate_ratio,
    group_rows,
    warn_of_few_units,
)
from study_desk.analysis.study_tables import PLURALS, Row, StudyTables
from study_desk.study.outputs import note_study_output

# The kind of these outputs.
ANALYSIS = "analysis"
_STYLE = shipped_text("study_desk.analysis", "study_report.css")
_SCRIPTS = shipped_file("study_desk.analysis", "scripts")
_NO_BREAK = "\N{NO-BREAK SPACE}"


def render_report(tables: StudyTables) -> str:
    """Render the report."""
    title = escape(f"Study {tables.study}")
    body = [
        f"<h1>{title}</h1>",
        f"<p>{escape(_describe_sessions(tables))}</p>",
        "<h2>Rates by condition</h2>",
        *(f'<p class="warning">{escape(warning)}</p>' for warning in warn_of_few_units(tables)),
        _render_rates(tables),
        _render_ratios(tables),
        "<h2>Rates by attribute</h2>",
        _render_attributes(tables),
        "<h2>Sessions and coders</h2>",
        _render_conditions(tables),
        _render_coders(tables),
        "<h2>How this was computed</h2>",
        f"<p>{escape(_describe_coders(tables))} {escape(METHOD)} A unit is a participant, or a group of participants "
        "who share sessions. Cells without an interval hold events and minutes.</p>",
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


def _group_by_condition(tables: StudyTables) -> dict[str, list[dict[str, Any]]]:
    return group_rows(tables.analysed, lambda row: row["condition"] or "no condition")


def _compute_rates(tables: StudyTables, column: str) -> dict[str, EventRate]:
    rates = {condition: estimate_rate(rows, column) for condition, rows in _group_by_condition(tables).items()}
    return {condition: rate for condition, rate in rates.items() if rate is not None}


def _describe_sessions(tables: StudyTables) -> str:
    sessions = group_rows(tables.sessions, lambda row: row["session"])
    people = {name for row in tables.sessions for name in str(row["participant"]).split()}
    minutes = sum(rows[0]["minutes"] for rows in sessions.values())
    conditions = [name for name in tables.conditions if name]
    suffix = f" in {count_of(len(conditions), 'condition')}: {', '.join(conditions)}" if conditions else ""
    return (
        f"{count_of(len(sessions), 'session')} of {minutes:.1f} minutes with "
        f"{count_of(len(people), 'participant')}{suffix}."
    )


def _describe_coders(tables: StudyTables) -> str:
    by_coder = group_rows(tables.analysed, lambda row: row["coder"])
    counts = ", ".join(f"{coder} in {count_of(len(rows), 'session')}" for coder, rows in by_coder.items())
    return f"Each session counts by the labels of one coder: {counts}." if counts else "No session is coded."


def _render_rates(tables: StudyTables) -> str:
    """Render the rates of errors, competences and the study's own codes by condition."""
    own_codes = [column.name for column in tables.columns if column.name.startswith("code_")]
    rows = [
        (to_words(outcome), condition, *_format_cells(rate))
        for outcome in (*PLURALS.values(), *own_codes)
        for condition, rate in _compute_rates(tables, outcome).items()
    ]
    head = ("event", "condition", "events", "minutes", "units", "per 10 min", "95 % interval", "dispersion")
    return _render_table("Events per ten minutes", head, rows, text=2)


def _render_ratios(tables: StudyTables) -> str:
    """Compare each condition with the first."""
    (reference, *others) = _group_by_condition(tables).items() or [("", [])]
    rows = []
    for plural in PLURALS.values():
        for name, condition_rows in others:
            ratio = estimate_ratio(condition_rows, reference[1], plural)
            interval = _format_interval(ratio.low, ratio.high)
            rows.append((plural, f"{name} / {reference[0]}", _format_number(ratio.ratio), interval))
    head = ("event", "conditions", "rate ratio", "95 % interval")
    return _render_table("Rate ratios", head, rows, text=2)


def _format_number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _format_interval(low: float | None, high: float | None) -> str:
    """Write bounds without a space at which they could wrap."""
    if low is None or high is None:
        return "–"
    return f"{low:.2f}{_NO_BREAK}to{_NO_BREAK}{high:.2f}"


def _render_attributes(tables: StudyTables) -> str:
    """Render the rates of each attribute that occurs, with a column for each condition."""
    conditions = list(_group_by_condition(tables))
    rows = []
    for polarity in Polarity:
        for attribute in Attribute:
            column = f"{polarity.value}_{attribute.value}"
            if any(row[column] for row in tables.analysed):
                rates = _compute_rates(tables, column)
                cells = [_format_with_interval(rates[name]) if name in rates else "" for name in conditions]
                rows.append((f"{polarity.value}: {to_words(attribute.value)}", *cells))
    return _render_table("Events per ten minutes, by attribute", ("attribute", *conditions), rows)


def _render_conditions(tables: StudyTables) -> str:
    rows = []
    for condition, session_rows in group_rows(tables.sessions, lambda row: row["condition"] or "no condition").items():
        sessions = {row["session"]: row["minutes"] for row in session_rows}
        people = {name for row in session_rows for name in str(row["participant"]).split()}
        rows.append((condition, str(len(sessions)), str(len(people)), f"{sum(sessions.values()):.1f}"))
    return _render_table("Sessions", ("condition", "sessions", "participants", "minutes"), rows)


def _render_coders(tables: StudyTables) -> str:
    rows = [
        (
            coder,
            coder_rows[0]["coder_kind"],
            str(len(coder_rows)),
            str(sum(row["analysed"] for row in coder_rows)),
            str(sum(not row["errors"] and not row["competences"] for row in coder_rows)),
            *(
                _format_with_interval(rate) if (rate := estimate_rate(coder_rows, plural)) else ""
                for plural in PLURALS.values()
            ),
        )
        for coder, coder_rows in group_rows(tables.sessions, lambda row: row["coder"]).items()
    ]
    head = ("coder", "kind", "sessions", "analysed", "found nothing in", "errors per 10 min", "competences per 10 min")
    return _render_table("Coders", head, rows, text=2)


def _format_cells(rate: EventRate) -> tuple[str, ...]:
    return (
        str(rate.events),
        f"{rate.minutes:.1f}",
        str(rate.participants),
        "–" if rate.high is None else _format_number(rate.rate),
        _format_interval(rate.low, rate.high),
        "" if rate.dispersion is None else _format_number(rate.dispersion),
    )


def _format_with_interval(rate: EventRate) -> str:
    """Write a rate with its interval, or the count where the participants are few."""
    if rate.high is None:
        return f"{rate.events} in {rate.minutes:.1f} min".replace(" ", _NO_BREAK)
    return f"{_format_number(rate.rate)} ({_format_interval(rate.low, rate.high)})"


def _render_table(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]], text: int = 1) -> str:
    """Render a table whose first `text` columns hold text; nothing without rows."""
    if not rows:
        return ""

    def render_row(tag: str, row: Sequence[str], attribute: str = "") -> str:
        classes = [' class="text"' if index < text else "" for index in range(len(row))]
        cells = zip(classes, row, strict=True)
        return f"<tr>{''.join(f'<{tag}{attribute}{mark}>{escape(cell)}</{tag}>' for mark, cell in cells)}</tr>"

    name = escape(caption)
    header = render_row("th", head, ' scope="col"')
    body = "".join(render_row("td", row) for row in rows)
    return (
        f'<div class="wide" role="region" tabindex="0" aria-label="{name}"><table><caption>{name}</caption>'
        f"<thead>{header}</thead><tbody>{body}</tbody></table></div>"
    )


@record
class WrittenAnalysis:
    """The files of an analysis. `edited` are scripts that were changed since, so were not replaced."""

    files: tuple[Path, ...]
    edited: tuple[Path, ...]


def write_analysis(study: Study, tables: StudyTables, folder: Path) -> WrittenAnalysis:
    """Write every file, readable by its owner alone, and note them as outputs of the study."""
    _check_free(folder)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
    contents = {
        "sessions.csv": _format_csv(_list_columns(tables, "sessions"), tables.sessions),
        "events.csv": _format_csv(_list_columns(tables, "events"), tables.events),
        "dictionary.csv": _format_csv(
            ("table", "name", "unit", "levels", "description"),
            [to_plain(column) | {"levels": "; ".join(column.levels)} for column in tables.columns],
        ),
        "report.html": render_report(tables),
    }
    edited = []
    for script in sorted(_SCRIPTS.glob("analysis.*")):
        text = script.read_text(encoding="utf-8")
        target = folder / script.name
        if target.is_file() and target.read_text(encoding="utf-8", errors="replace") != text:
            edited.append(target)
        else:
            contents[script.name] = text
    for name, text in contents.items():
        write_atomic(folder / name, text.encode("utf-8", "replace"), mode=0o600)
        note_study_output(study, folder / name, ANALYSIS)
    return WrittenAnalysis(files=tuple(folder / name for name in contents), edited=tuple(edited))


def _check_free(folder: Path) -> None:
    """Refuse a folder that holds something else than an analysis."""
    is_analysis = all((folder / name).is_file() for name in ("sessions.csv", "dictionary.csv"))
    if folder.exists() and not (folder.is_dir() and (is_analysis or not any(folder.iterdir()))):
        raise StudyError(
            f"{folder}: exists, and is not an analysis: name a new folder, an empty one or an earlier analysis"
        )


def _format_csv(columns: Sequence[str], rows: Iterable[Row]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {key: fold_lines(cell) if isinstance(cell, str) else cell for key, cell in row.items()} for row in rows
    )
    return text.getvalue()


def _list_columns(tables: StudyTables, table: str) -> list[str]:
    return [column.name for column in tables.columns if column.table == table]
