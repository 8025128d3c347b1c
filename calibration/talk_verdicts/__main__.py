"""Score how the monitor reads machine turns that people judged: python -m calibration.talk_verdicts FILE.jsonl..."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.progress import track
from rich.table import Table

from calibration.command import run_command
from calibration.talk_verdicts.readings import Figures, lay_out, read_corpora, score_corpus
from calibration.talk_verdicts.rejection_fit import fit_rejection
from calibration.talk_verdicts.talk_file import TalkError, read_answers, read_talks
from norm_core.runtime.artefact import write_artefact
from norm_core.runtime.wording import count_of
from norm_monitor.assessment.rejection import SHIPPED
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.assessment.unit_model import Sensitivity
from norm_monitor.context.meaning import EncoderMatcher

_NUMBERS = (
    "turns", "faults\n%", "AUC", "AUC\nat once", "average\nprecision", "half of the\nannotators AUC",
    "length\nAUC", "rejection\nAUC", "rejection\nat once AUC",
)  # fmt: skip
_WIDTH = 200


def talk_verdicts(  # noqa: PLR0917
    files: Annotated[list[Path], typer.Argument(metavar="FILE.jsonl", help="Files with a talk a line.")],
    answers: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.jsonl",
            help="A judge's answers in place of the monitor, one {talk, n, fault, good} a line.",
        ),
    ] = None,
    pace: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=0,
            max=60,
            help="Give talks without times this gap between turns, so that the whole monitor runs.",
        ),
    ] = None,
    refit: Annotated[
        bool,
        typer.Option("--refit", help="Measure rejections by weights that are fitted without a tenth of the people."),
    ] = False,
    write: Annotated[bool, typer.Option("--write", help="Ship weights of rejections fitted on all the talks.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure how the monitor reads machine turns, on people's verdicts about them."""
    talks = read_talks(files)
    if not talks:
        raise TalkError(f"{', '.join(map(str, files))}: holds no talks; name a file with one a line")
    if pace is not None:
        talks = [lay_out(talk, pace) for talk in talks]
    verdicts = read_answers(answers) if answers else None
    table, matcher = ThresholdTable.shipped(), EncoderMatcher.shipped(remembered=50_000)
    readings = read_corpora(
        talks, matcher, table, verdicts, lambda part, name: track(part, name, console=Console(stderr=True))
    )
    if not readings:
        if verdicts is not None and any(turn.faults for talk in talks for turn in talk.turns):
            example = "".join(f", such as {name!r} (turn {number})" for name, number in list(verdicts)[:1])
            count = count_of(len(verdicts), "turn")
            raise TalkError(
                f"no answer is about a judged turn of these talks; {count} answered{example}; check the answers"
            )
        raise TalkError("no machine turn has a verdict of people; add votes or rating to the talks' turns")
    measured = [turn for reading in readings for turn in reading.measured]
    if (refit or write) and len({turn.judged.group for turn in measured}) <= 1:
        raise TalkError("--refit, --write: need judged turns with times, of several people; name more talks")
    scores = [score_corpus(reading, refits=refit) for reading in readings]
    if write:
        write_artefact(fit_rejection(measured), SHIPPED)
    for score in scores:
        if score["unanswered"]:
            count = count_of(score["unanswered"], "judged turn")
            print(f"{score['name']}: {count} without an answer, left out", file=sys.stderr)
    if as_json:
        print(json.dumps({"corpora": scores}, indent=2, ensure_ascii=False))
    else:
        _show(scores)


def _show(scores: Sequence[Figures]) -> None:
    table = Table(title="people's verdicts on machine turns", title_justify="left", box=SIMPLE)
    for name in ("corpus", "read by"):
        table.add_column(name, overflow="fold")
    for name in _NUMBERS:
        table.add_column(name, justify="right")
    for score in scores:
        table.add_row(
            score["name"],
            score["read_by"],
            str(score["turns"]),
            f"{100 * score['fault_share']:.0f}",
            *(_figure(score, name) for name in ("auc", "auc_at_once", "average_precision")),
            _figure(score["annotators"], "auc_of_half"),
            *(_figure(score[name], "auc") for name in ("length", "rejection")),
            _figure(score["rejection"], "auc_at_once"),
        )
    Console(highlight=False, width=_WIDTH).print(table)
    print(
        "AUC: how often a faulty turn ranks above one that is not; 0.5 by chance, less is the wrong way. "
        "Half of a turn's annotators are ranked against the others. "
        "Intervals: 95 %, over talks."
    )
    for score in scores:
        if ordinary := score["ordinary"]:
            flags = ", ".join(
                f"{_figure(ordinary[name], 'flags_per_100')} ({name}; of faults "
                f"{_figure(ordinary[name], 'flags_per_100_of_faults')})"
                for name in Sensitivity
            )
            print(f"{score['name']}, error flags per 100 of {ordinary['turns']} ordinary turns: {flags}")


def _figure(figures: Figures | None, name: str) -> str:
    if figures is None or figures[name] is None:
        return "-"
    low, high = figures[f"{name}_interval"]
    return f"{figures[name]:.2f} [{low:.2f}, {high:.2f}]"


if __name__ == "__main__":
    run_command(talk_verdicts)
