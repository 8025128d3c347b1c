"""`tactful bench monitor --reference-judge`: what a large language model's recorded answers add to the fusion."""

from collections.abc import Iterable, Mapping

from rich.progress import track

from calibration.reference_judge.evaluation import ALONE, BOTH, JUDGE, PlayedEncounter, ReaderFigures, evaluate
from norm_core.records.flag import Polarity
from norm_core.records.json_codec import to_plain
from norm_core.runtime.wording import count_of, in_words
from norm_monitor.judge.coding import Form
from tactful_cli.bench.monitor_tables import NO_FIGURE, table_of, with_interval
from tactful_cli.console import err, print_json, print_table

_READERS = (ALONE, JUDGE, BOTH)
_SEEN = (
    "The judge saw no label of these encounters; the shipped weights of the fusion have seen them, which flatters it. "
    "docs/results/monitor.md has the rows of writers left out."
)
Figures = Mapping[str, ReaderFigures]


def show_reference_judge(*, as_json: bool) -> None:
    """Print the figures of the fusion, the judge and both, under each ceiling of calls and in each form."""
    rows, by_form = evaluate(track=_followed), evaluate(Form.UNIT, ceilings=(), track=_followed)
    if by_form:
        of_talk = evaluate(Form.TALK, names=by_form[BOTH].encounters, ceilings=(), track=_followed)
        by_form = {f"{name}, a request a unit": one for name, one in by_form.items() if name != ALONE} | {
            f"{name}, a request a minute of talk": one for name, one in of_talk.items()
        }
    if as_json:
        print_json({"readers": to_plain(rows), "by_form": to_plain(by_form)})
        return
    for polarity, title in ((Polarity.ERROR, "errors"), (Polarity.COMPETENCE, "competences")):
        _show(rows, polarity, title)
        _show_groups(rows, polarity, title)
        if by_form:
            _show(by_form, polarity, f"{title}, {count_of(len(by_form[next(iter(by_form))].encounters), 'encounter')}")
    harmless = rows[ALONE].scores.harmless
    talk = f"{count_of(harmless.encounters, 'encounter')}, {harmless.minutes:.0f} minutes"
    print(f"{count_of(len(rows[ALONE].encounters), 'encounter')}; error-free talk: {talk}. {_SEEN}")


def _followed(played: Iterable[PlayedEncounter], count: int) -> Iterable[PlayedEncounter]:
    return track(played, "running the monitor", total=count, console=err)


def _show(rows: Figures, polarity: Polarity, title: str) -> None:
    columns = ["F1 %", "any\nattribute", "precision\n%", "recall\n%", "average\nprecision", "asked\nan hour"]
    if polarity is Polarity.ERROR:
        columns.append("false errors an hour\nof error-free talk")
    table = table_of(title, *columns)
    for name, row in rows.items():
        scores, precision, harmless = row.scores.of(polarity), row.average_precision.get(polarity), row.scores.harmless
        cells = [
            with_interval(scores.f1, scores.f1_interval),
            f"{row.any_attribute[polarity]:.0f}",
            f"{scores.precision:.0f}",
            f"{scores.recall:.0f}",
            NO_FIGURE if precision is None else f"{precision:.2f}",
            f"{row.asked_per_hour:.0f}",
        ]
        if polarity is Polarity.ERROR:
            cells.append(with_interval(harmless.false_errors_per_hour, harmless.false_errors_per_hour_interval))
        table.add_row(name, *cells)
    print_table(table)
    print()


def _show_groups(rows: Figures, polarity: Polarity, title: str) -> None:
    """Print recall by evidence type and F1 by attribute, a column for each reader."""
    table = table_of(f"{title}: recall % by evidence type, F1 % by attribute", "labelled", *_READERS)
    scores = [rows[name].scores.of(polarity) for name in _READERS]
    for basis, count in scores[0].events_by_basis.items():
        table.add_row(basis, str(count), *(f"{one.by_basis[basis]:.0f}" for one in scores))
    for attribute, count in scores[0].events_by_attribute.items():
        table.add_row(in_words(attribute), str(count), *(f"{one.by_attribute.get(attribute, 0):.0f}" for one in scores))
    print_table(table)
    print()
