"""`tactful bench talk`: score how the monitor reads machine turns that people judged."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from rich.progress import track

from norm_core.engines.engine_factory import open_engine_by_name
from norm_core.engines.openai.batch import BatchWriter
from norm_core.models.manifest import Prices
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import WallClock
from norm_core.runtime.wording import count_of
from norm_monitor.cues.threshold_table import ThresholdTable
from norm_monitor.fusion.unit_model import Sensitivity
from sim_replays.monitor_bench.judge_stand_in import outcome_lines
from sim_replays.talks.corpora import CORPORA, import_corpus
from sim_replays.talks.judge import TalkVerdicts, ask, request_about
from sim_replays.talks.readings import CONTROLS, Figures, read_corpora, score_corpus
from sim_replays.talks.talk_file import Talk, TalkError, TalkForm, machine_turns, read_talk_files, write_talks
from tactful_cli.bench.monitor_bench import NO_FIGURE, load_meaning
from tactful_cli.console import err, print_json, print_table, remark, titled_table
from tactful_cli.flags import JUDGE, finish_batch

_NUMBERS = (
    "turns", "faults\n%", "AUC", "AUC\nat once", "average\nprecision", "Spearman", "half of the\nannotators AUC",
    "length\nAUC", "turn alone\nAUC", "next words\nalone AUC",
)  # fmt: skip


def load_talks(files: Sequence[Path], form: TalkForm, corpus: str, folder: Path | None, limit: int) -> list[Talk]:
    """Read the talks of files and of a public corpus's folder, and of each corpus the first few."""
    if bool(corpus) != bool(folder):
        raise TactfulError("--corpus and --folder: belong together; give both, or files of talks")
    if not files and not folder:
        raise TactfulError(f"no talks are named: give files, or --corpus (one of {', '.join(CORPORA)}) and --folder")
    talks = read_talk_files(files, form) + (import_corpus(corpus, folder) if folder else [])
    if not talks:
        raise TalkError(f"{', '.join(map(str, files)) or folder}: holds no talks; name a file with one a line")
    if not limit:
        return talks
    by_corpus = groupby(sorted(talks, key=lambda talk: talk.corpus), key=lambda talk: talk.corpus)
    return [talk for _, every in by_corpus for talk in list(every)[:limit]]


def write_out(path: Path, talks: Sequence[Talk]) -> None:
    """Write the talks, and say how many."""
    write_talks(path, talks)
    remark(f"{path}: {count_of(len(talks), 'talk')}")


def write_questions(talks: Sequence[Talk], folder: Path, model: str, prices: Prices | None) -> None:
    """Write a judge's question about each talk in which a machine speaks."""
    writer = BatchWriter(folder, model or JUDGE)
    for talk in talks:
        if machine_turns(talk):
            writer.add(request_about(talk))
    finish_batch(writer, prices)


def ask_judge(talks: Sequence[Talk], model: str) -> TalkVerdicts:
    """Ask a model about each talk with a turn that people judged."""
    engine = open_engine_by_name(model, WallClock())
    verdicts = TalkVerdicts(models={engine.model_info.model})
    judged = [talk for talk in talks if any(turn.faults for turn in machine_turns(talk))]
    try:
        for talk in track(judged, f"asking {model}", console=err):
            verdicts.add(talk, ask(engine, talk))
    finally:
        engine.close()
    return verdicts


def evaluate(talks: Sequence[Talk], verdicts: TalkVerdicts | None, seed: int, as_json: bool) -> None:
    """Print the scores of each corpus, as the monitor or a judge reads it."""
    if verdicts and verdicts.outcomes:
        count = count_of(verdicts.outcomes.total(), "judged turn")
        for line in outcome_lines(count, verdicts.outcomes, verdicts.reasons):
            remark(line)
    readings = read_corpora(
        talks,
        load_meaning(),
        ThresholdTable.shipped(),
        verdicts.by_turn if verdicts else None,
        lambda part, name: track(part, name, console=err),
    )
    if not readings:
        if verdicts and any(turn.faults for talk in talks for turn in talk.turns):
            named = "".join(f", such as {name!r} (turn {n})" for name, n in list(verdicts.by_turn)[:1])
            count = count_of(len(verdicts.by_turn), "turn")
            raise TalkError(
                f"no answer is about a judged turn of these talks; {count} answered{named}; check the answers"
            )
        raise TalkError("no machine turn has a verdict of people; add votes or rating to the talks' turns")
    scores = [score_corpus(reading, seed) for reading in readings]
    for one in scores:
        if one["unanswered"]:
            remark(f"{one['name']}: {count_of(one['unanswered'], 'judged turn')} without an answer, left out")
    if not as_json:
        _show(scores)
        return
    judge: Figures = {}
    if verdicts and verdicts.outcomes:
        names = ", ".join(sorted(verdicts.models))
        reasons = dict(verdicts.reasons.most_common(3))
        judge = {"judge": {"model": names, "outcomes": {**verdicts.outcomes}, "reasons": reasons}}
    print_json({"seed": seed, **judge, "corpora": scores})


def _show(scores: Sequence[Figures]) -> None:
    table = titled_table("people's verdicts on machine turns", "corpus", "read by", numbers=_NUMBERS)
    for one in scores:
        table.add_row(
            one["name"],
            one["read_by"],
            str(one["turns"]),
            f"{100 * one['fault_share']:.0f}",
            *(_figure(one, name) for name in ("auc", "auc_at_once", "average_precision", "spearman")),
            _figure(one["annotators"], "auc_of_half"),
            *(_figure(one["controls"].get(name), "auc") for name in CONTROLS),
        )
    print_table(table)
    print(
        "AUC: how often a faulty turn ranks above one that is not; 0.5 by chance, less is the wrong way. "
        "Half of a turn's annotators are ranked against the others. "
        "Intervals: 95 %, over talks."
    )
    for one in scores:
        if ordinary := one["ordinary"]:
            flags = ", ".join(
                f"{_figure(ordinary[name], 'flags_per_100')} ({name}; of faults "
                f"{_figure(ordinary[name], 'flags_per_100_of_faults')})"
                for name in Sensitivity
            )
            print(f"{one['name']}, error flags per 100 of {ordinary['turns']} ordinary turns: {flags}")
        if breakdown := one["breakdown"]:
            print(
                f"{one['name']}, by the measures of the breakdown challenges (in brackets with mean votes): "
                f"F1 of breakdown {_figure(breakdown, 'f1')}; "
                f"Jensen-Shannon divergence {_figure(breakdown, 'js_divergence')} "
                f"({breakdown['mean_votes']['js_divergence']:.2f}); "
                f"mean squared error {_figure(breakdown, 'mean_squared_error')} "
                f"({breakdown['mean_votes']['mean_squared_error']:.2f})"
            )


def _figure(figures: Figures | None, name: str) -> str:
    if figures is None or figures[name] is None:
        return NO_FIGURE
    low, high = figures[f"{name}_interval"]
    return f"{figures[name]:.2f} [{low:.2f}, {high:.2f}]"
