"""Read the logs of runs by inspect_ai, and pair two of them question by question."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import lcm
from pathlib import Path
from typing import Any

import numpy as np
from inspect_ai.log import EvalLog, read_eval_log
from numpy.typing import NDArray

from norm_core.records.episode import Answer
from norm_core.records.json_codec import from_plain
from norm_core.records.record import record
from norm_core.runtime.wording import count_of
from scoring.intervals import interval_of_gain, sign_flip_p
from sim_replays.evals.controls import choices_of_options
from sim_replays.evals.samples import ANSWERS, SampleAnswer, asked_in, targets_in
from sim_replays.evals.scorer import EPOCH, FEWEST_CLUSTERS, mark, scored_questions
from sim_replays.items.target import PredictionFile, Predictions, SuiteError, Target
from sim_replays.suites.report import MODEL_KIND, ROBOT_KIND, Report, report
from sim_replays.suites.suite import Suite, suite_called

Array = NDArray[np.float64]
_FINEST = 420  # steps of a score, at most: scores of sets of up to 7 options are whole numbers of them


@record
class ScoredRun:
    """The questions of a whole run, with their answers."""

    name: str
    kind: str
    suite: str
    asking: Mapping[str, Any]
    identity: tuple[str, ...]  # of the data and the variant that were asked
    targets: tuple[Target, ...]
    predictions: Predictions
    by_options: Mapping[str, Predictions]  # what choices that see the options alone answer
    cautions: tuple[str, ...]
    cached: int


def scored_run(log: EvalLog | Path) -> ScoredRun:
    """Read a run. Raises SuiteError where it is no whole run of a suite: part of the items makes another figure."""
    log = read_eval_log(str(log)) if isinstance(log, Path) else log
    where, metadata = log.location or log.eval.task, log.eval.metadata or {}
    if "suite" not in metadata:
        raise SuiteError(f"{where}: is a run of {log.eval.task}, which is none of the suites; name another log")
    total = log.results.total_samples if log.results else 0
    ended = [sample for sample in log.samples or () if sample.error is None and sample.scores]
    if log.status != "success" or not total or len(ended) < total:
        errors = [sample.error.message for sample in log.samples or () if sample.error]
        state = ": ".join([f"{log.status}, {len(ended)} of {total} samples", *errors[:1]])
        raise SuiteError(f"{where}: is unfinished ({state}); finish it: inspect eval-retry {where}")
    scores = [next(iter(sample.scores.values())) for sample in ended if sample.scores]
    targets, answers = scored_questions(scores)
    solver = log.eval.solver or "tactful/bare"
    arguments = ", ".join(f"{name}={value}" for name, value in (log.eval.solver_args or {}).items() if value)
    who = solver.removeprefix("tactful/") if log.eval.model == "none/none" else log.eval.model
    return ScoredRun(
        name=f"{who}{f' ({arguments})' if arguments else ''}",
        kind=ROBOT_KIND if solver == "tactful/robot" else MODEL_KIND,
        suite=metadata["suite"],
        asking=metadata["asking"],
        identity=(metadata["suite"], metadata["data_sha256"], metadata["config_sha256"]),
        targets=tuple(targets),
        predictions={answer.prediction.key: answer.prediction for answer in answers},
        by_options={
            f"{choose} option": _by_options(choose, [sample.metadata for sample in ended], targets)
            for choose in ("first", "longest")
        },
        cautions=(*metadata["cautions"], *_cautions_of_model(answers)),
        cached=sum(answer.cached for answer in answers),
    )


def _cautions_of_model(answers: Sequence[SampleAnswer]) -> Iterator[str]:
    """Say where a provider named more than one model as the one that answered."""
    names = sorted({answer.details["served_by"] for answer in answers if "served_by" in answer.details})
    if len(names) > 1:
        yield f"more than one model answered, by what the provider says: {', '.join(names)}"


def report_of(run: ScoredRun, control: ScoredRun | None = None) -> tuple[Suite, Report]:
    """Compute a run's figures, and what it adds to its control."""
    suite = suite_called(run.suite)
    if control:
        _check_pair(run, control)
    read = PredictionFile(predictions=dict(run.predictions), unknown=(), unusable=())
    scored = report(suite, run.targets, read, control.predictions if control else None, run.by_options)
    notes = [*scored.notes, *run.cautions]
    few = {name: figure.clusters for name, figure in scored.figures.items() if 0 < figure.clusters < FEWEST_CLUSTERS}
    notes += [f"the interval of {name} is over {count} pictures, videos or talks alone" for name, count in few.items()]
    if run.cached:
        notes.append(f"{count_of(run.cached, 'answer')} of {len(run.targets)} are of an earlier run (--cache)")
    return suite, replace(scored, kind=run.kind, notes=tuple(notes))


def _by_options(choose: str, samples: Sequence[Mapping[str, Any]], targets: Sequence[Target]) -> Predictions:
    """Return what a choice of options answers, also to the questions of further epochs."""
    predictions = {p.key: p for metadata in samples for p in choices_of_options(choose, metadata)}
    answers = ((target, predictions.get((target.id.partition(EPOCH)[0], target.task))) for target in targets)
    return {target.key: replace(prediction, id=target.id) for target, prediction in answers if prediction}


@record
class RobotQuestion:
    """A question with one right option, what the selector answered, and the places of the options in the dataset."""

    target: Target
    answer: Answer
    order: tuple[int, ...]
    by_text: bool  # whether an option was read from a reply's words


@record
class RobotRun:
    """A whole run by the robot, with what decided its answers."""

    name: str
    path: Path
    asking: Mapping[str, Any]
    node_settings: Mapping[str, Any]
    encoder_sha256: str
    data_sha256: str
    questions: tuple[RobotQuestion, ...]


def robot_run(path: Path) -> RobotRun:
    """Read a run by the robot. Raises SuiteError for another or an unfinished one."""
    log = read_eval_log(str(path))
    run = scored_run(log)
    if run.kind != ROBOT_KIND or not log.samples:
        raise SuiteError(f"{path}: is no run of the robot; name a log of bench run or of --solver tactful/robot")
    questions = []
    for sample in log.samples:
        item, targets = asked_in(sample.metadata).item, {t.task: t for t in targets_in(sample.metadata)}
        for plain in sample.store[ANSWERS]:
            details = from_plain(SampleAnswer, plain).details
            answer = from_plain(Answer, details["answer"])
            questions.append(
                RobotQuestion(
                    target=targets[answer.task],
                    answer=answer,
                    order=item.orders.get(answer.query_id, ()),
                    by_text=any(request["options"] and request["reply"] for request in details.get("requests", ())),
                )
            )
    first, metadata = log.samples[0].store, log.eval.metadata or {}
    return RobotRun(
        name=f"{run.name} {path.stem}",
        path=path,
        asking=metadata["asking"],
        node_settings=first["node_settings"],
        encoder_sha256=first["encoder_sha256"],
        data_sha256=metadata["data_sha256"],
        questions=tuple(questions),
    )


@record
class Difference:
    """One task in two runs. `difference` is second minus first in points, with its 95 % interval over groups.

    `p` is of the sign-flip test over groups: the exact McNemar test where each group has one question.
    """

    task: str
    count: int
    first: float
    second: float
    difference: float
    low: float
    high: float
    only_first_right: int
    only_second_right: int
    p: float


def compare(first: ScoredRun, second: ScoredRun) -> list[Difference]:
    """Compare each task with options, and each joint figure. Unanswered questions count as wrong."""
    _check_pair(first, second)
    answers = [run.predictions for run in (first, second)]
    by_task: dict[str, dict[str, Target]] = {}
    for target in first.targets:
        if target.options:
            by_task.setdefault(target.task, {})[target.id] = target
    rows = [
        _difference(task, list(targets.values()), [_marks(targets.values(), answer) for answer in answers])
        for task, targets in by_task.items()
    ]
    for name, tasks in suite_called(first.suite).joint.items():
        parts = [by_task.get(task, {}) for task in tasks]
        ids = [item for item in parts[0] if all(item in part for part in parts)]
        marks = [
            np.prod([_marks([part[item] for item in ids], answer) == 1 for part in parts], axis=0, dtype=float)
            for answer in answers
        ]
        rows += [_difference(name, [parts[0][item] for item in ids], marks)] if ids else []
    return rows


def _check_pair(first: ScoredRun, second: ScoredRun) -> None:
    if first.identity != second.identity:
        raise SuiteError(f"not paired: {first.name} and {second.name} asked other data or another variant (-T)")
    keys, others = ({target.key for target in run.targets} for run in (first, second))
    if keys != others:
        raise SuiteError(f"not paired: {first.name} and {second.name} are not of the same questions; ask both the same")


def _difference(task: str, targets: list[Target], marks: list[Array]) -> Difference:
    groups = [target.group for target in targets]
    gains = list(marks[1] - marks[0])
    low, high = interval_of_gain(gains, groups)
    steps = min(_FINEST, lcm(*(size + 1 for target in targets if target.several for size in range(target.options))))
    return Difference(
        task=task,
        count=len(targets),
        first=100 * float(marks[0].mean()),
        second=100 * float(marks[1].mean()),
        difference=100 * float(np.mean(gains)),
        low=100 * low,
        high=100 * high,
        only_first_right=int(((marks[0] == 1) & (marks[1] < 1)).sum()),
        only_second_right=int(((marks[1] == 1) & (marks[0] < 1)).sum()),
        p=sign_flip_p(gains, groups, steps),
    )


def _marks(targets: Iterable[Target], answers: Predictions) -> Array:
    return np.array([mark(target, answers) for target in targets])
