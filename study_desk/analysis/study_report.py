"""The report over a study: one HTML file without scripts, for a screen and for print."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from norm_core import __version__
from norm_core.records.flag import Attribute, Polarity
from norm_core.runtime.wording import count_of, in_words
from study_desk.analysis.event_rates import METHOD, PER_MINUTES, EventRate, by_cluster, grouped, rate_of
from study_desk.analysis.few_units import few_units
from study_desk.analysis.rate_figures import RateBar, rate_figure
from study_desk.analysis.study_tables import PLURALS, StudyTables

_STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 Helvetica, Arial, sans-serif; color: #111; background: #fff; max-width: 50rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: 0; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
p, li { max-width: 42rem; }
table { border-collapse: collapse; margin: 0.8rem 0; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: bold; padding-bottom: 0.3rem; }
th, td { padding: 0.2rem 0.9rem 0.2rem 0; text-align: right; vertical-align: top; }
th:first-child, td:first-child, .text { text-align: left; }
thead th { border-top: 1.5px solid #111; border-bottom: 1px solid #111; }
tbody { border-bottom: 1.5px solid #111; } tbody th { font-weight: normal; }
.wide { overflow-x: auto; }
figure { margin: 1rem 0; } figure svg { width: 100%; height: auto; display: block; }
.warning { border-left: 4px solid #111; padding-left: 0.8rem; }
figcaption, footer { font-size: 0.9rem; color: #333; }
@page { size: A4; margin: 18mm; }
@media print {
  body { font-size: 10pt; margin: 0; padding: 0; max-width: none; }
  figure, table, h2 { break-inside: avoid; } h2, caption { break-after: avoid; } .wide { overflow: visible; }
}
"""


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
        _list(tables.remarks),
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
    found = {"rates": rate_figure("Rates by condition", [_group(tables, polarity) for polarity in Polarity])}
    for polarity, plural in PLURALS.items():
        columns = {in_words(attribute.value): f"{polarity.value}_{attribute.value}" for attribute in Attribute}
        used = {name: column for name, column in columns.items() if any(row[column] for row in tables.analysed)}
        if used:
            groups = [(name, _bars(tables, column)) for name, column in used.items()]
            found[plural] = rate_figure(f"{plural.capitalize()} by attribute", groups)
    return found


def _by_condition(tables: StudyTables) -> dict[str, list[dict[str, Any]]]:
    return grouped(tables.analysed, lambda row: row["condition"] or "no condition")


def _bars(tables: StudyTables, column: str, *, single: bool = False) -> list[RateBar]:
    bars = []
    for mark, (condition, rows) in enumerate(_by_condition(tables).items()):
        rate = rate_of(rows, column)
        if rate is None:
            continue
        counts, minutes = by_cluster(rows, column), by_cluster(rows, "minutes")
        each = tuple(PER_MINUTES * counts[c] / minutes[c] for c in counts if minutes[c]) if single else ()
        bars.append(RateBar(label=condition, rate=rate, mark=mark, single=each))
    return bars


def _group(tables: StudyTables, polarity: Polarity) -> tuple[str, list[RateBar]]:
    return PLURALS[polarity], _bars(tables, PLURALS[polarity], single=True)


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
                cells = [_short(rates[name]) if name in rates else "" for name in conditions]
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
            *(_short(rate) if (rate := rate_of(found, plural)) else "" for plural in PLURALS.values()),
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


def _short(rate: EventRate) -> str:
    bounds = f"({rate.low:.2f} to {rate.high:.2f})".replace(" ", "\N{NO-BREAK SPACE}")  # so that it wraps before them
    return f"{rate.rate:.2f} {bounds}"


def _figure(svg: str | None, caption: str) -> str:
    return f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>" if svg else ""


def _list(lines: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>" if lines else ""


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
