"""Runs in the logs of inspect_ai, and the comparison of two of them, question by question."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import lcm
from pathlib import Path
from typing import Any

import numpy as np
from inspect_ai.event import ModelEvent
from inspect_ai.log import EvalLog, EvalSample, read_eval_log
from numpy.typing import NDArray

from norm_core.records.record import record
from norm_core.runtime.wording import count_of
from scoring.intervals import interval_of_gain, sign_flip_p
from sim_replays.evals.controls import choose_by_options
from sim_replays.evals.samples import SampleAnswer
from sim_replays.evals.scorer import EPOCH_MARK, MIN_CLUSTERS, read_scored_questions, score_answer
from sim_replays.evals.scorer import answers as answers_scorer
from sim_replays.items.target import Key, Prediction, PredictionFile, Predictions, SuiteError, Target
from sim_replays.suites.report import MODEL_KIND, ROBOT_KIND, Report, make_report
from sim_replays.suites.suite import Suite, find_suite

Array = NDArray[np.float64]
SCORER = answers_scorer.__name__  # as inspect_ai names the scores of a sample
# Scores of sets of up to seven options are whole numbers of such steps.
_MAX_SCORE_STEPS = 420


@record
class ScoredRun:
    """The questions of a whole run, with their answers."""

    name: str
    kind: str
    suite: str
    asking: Mapping[str, Any]
    identity: tuple[str, ...]  # of the data, the pictures and the variant
    targets: tuple[Target, ...]
    predictions: Predictions
    option_choices: Mapping[str, Predictions]  # by name, the answers of choices that see the options alone
    models: Mapping[str, str]  # by the name that was asked, the models that answered
    cautions: tuple[str, ...]
    cached_count: int


def read_run(log: EvalLog | Path) -> ScoredRun:
    """Read a whole run of a suite; a part of the items would make another figure."""
    log = read_eval_log(str(log)) if isinstance(log, Path) else log
    where = log.location or log.eval.task
    metadata = log.eval.metadata or {}
    if "suite" not in metadata:
        raise SuiteError(f"{where}: is a run of {log.eval.task}, which is not a suite; name another log")
    total = log.results.total_samples if log.results else 0
    scored_samples = [
        sample for sample in log.samples or () if sample.error is None and SCORER in (sample.scores or {})
    ]
    if log.status != "success" or not total or len(scored_samples) < total:
        errors = [sample.error.message for sample in log.samples or () if sample.error]
        state = ": ".join([f"{log.status}, {len(scored_samples)} of {total} samples", *errors[:1]])
        raise SuiteError(f"{where}: is unfinished ({state}); finish it with: inspect eval-retry {where}")
    scores = [sample.scores[SCORER] for sample in scored_samples if sample.scores]
    targets, answers = read_scored_questions(scores)
    models = _list_models(scored_samples, answers)
    solver = log.eval.solver or "tactful/bare"
    arguments = ", ".join(f"{name}={value}" for name, value in (log.eval.solver_args or {}).items() if value)
    answerer = solver.removeprefix("tactful/") if log.eval.model == "none/none" else log.eval.model
    return ScoredRun(
        name=f"{answerer}{f' ({arguments})' if arguments else ''}",
        kind=ROBOT_KIND if solver == "tactful/robot" else MODEL_KIND,
        suite=metadata["suite"],
        asking=metadata["asking"],
        identity=tuple(metadata[name] for name in ("suite", "data_sha256", "pictures_sha256", "config_sha256")),
        targets=tuple(targets),
        predictions={answer.prediction.key: answer.prediction for answer in answers},
        option_choices={
            f"{choose} option": _predict_by_options(choose, [sample.metadata for sample in scored_samples], targets)
            for choose in ("first", "longest")
        },
        models=models,
        cautions=(
            *metadata["cautions"],
            *(
                f"the provider names more than one model that answered for {name}: {answered}"
                for name, answered in models.items()
                if ", " in answered
            ),
        ),
        cached_count=sum(answer.cached for answer in answers),
    )


def _list_models(samples: Iterable[EvalSample], answers: Iterable[SampleAnswer]) -> dict[str, str]:
    """Return the models that answered, by the name that was asked: what providers name, or the weights of the robot."""
    answered: dict[str, set[str]] = {}
    for sample in samples:
        for event in sample.events:
            if isinstance(event, ModelEvent) and event.output.model:
                answered.setdefault(event.model, set()).add(event.output.model)
    for answer in answers:
        provenance = answer.details.get("answer", {}).get("provenance", {})
        if provenance.get("weights_sha256"):
            answered.setdefault(provenance["model"], set()).add(provenance["weights_sha256"][:12])
    return {name: ", ".join(sorted(models)) for name, models in answered.items()}


def list_model_changes(first: ScoredRun, second: ScoredRun) -> list[str]:
    """Return a caution for each name behind which two runs had different models."""
    return [
        f"another model behind {name}: {models} in the first run and {second.models[name]} in the second"
        for name, models in first.models.items()
        if second.models.get(name, models) != models
    ]


def make_run_report(run: ScoredRun, control: ScoredRun | None = None) -> tuple[Suite, Report]:
    """Compute the figures of a run, and its gain over its control."""
    suite = find_suite(run.suite)
    if control:
        _check_pair(run, control)
    prediction_file = PredictionFile(predictions=dict(run.predictions), unknown=(), unusable=())
    report = make_report(
        suite, run.targets, prediction_file, control.predictions if control else None, run.option_choices
    )
    notes = [*report.notes, *run.cautions]
    if control:
        notes += list_model_changes(run, control)
    notes += [
        f"the interval of {name} is over {figure.clusters} pictures, videos or talks alone"
        for name, figure in report.figures.items()
        if 0 < figure.clusters < MIN_CLUSTERS
    ]
    if run.cached_count:
        notes.append(f"{count_of(run.cached_count, 'answer')} of {len(run.targets)} are of an earlier run (--cache)")
    return suite, replace(report, kind=run.kind, notes=tuple(notes))


def _predict_by_options(choose: str, samples: Sequence[Mapping[str, Any]], targets: Sequence[Target]) -> Predictions:
    """Return the answers of a choice among the options, also to the questions of further epochs."""
    predictions: dict[Key, Prediction] = {}
    for metadata in samples:
        predictions |= {prediction.key: prediction for prediction in choose_by_options(choose, metadata)}
    answers: dict[Key, Prediction] = {}
    for target in targets:
        prediction = predictions.get((target.id.partition(EPOCH_MARK)[0], target.task))
        if prediction:
            answers[target.key] = replace(prediction, id=target.id)
    return answers


@record
class Difference:
    """One task in two runs; `difference` is the second minus the first in points, with its interval over groups.

    `p` is of the sign-flip test over groups, which is the exact McNemar test if each group has one question.
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


def compare_runs(first: ScoredRun, second: ScoredRun) -> list[Difference]:
    """Compare two runs in each task with options, and in each joint figure."""
    _check_pair(first, second)
    targets_by_task: dict[str, dict[str, Target]] = {}
    for target in first.targets:
        if target.options:
            targets_by_task.setdefault(target.task, {})[target.id] = target
    rows = []
    for task, targets in targets_by_task.items():
        scores = [_score_answers(targets.values(), run.predictions) for run in (first, second)]
        rows.append(_compare_task(task, list(targets.values()), *scores))
    for name, tasks in find_suite(first.suite).joint_tasks.items():
        parts = [targets_by_task.get(task, {}) for task in tasks]
        ids = [item for item in parts[0] if all(item in part for part in parts)]
        if ids:
            answers = [[part[item] for item in ids] for part in parts]
            scores = [  # 1 for each item that is right in every task
                np.min([_score_answers(targets, run.predictions) == 1 for targets in answers], axis=0).astype(float)
                for run in (first, second)
            ]
            rows.append(_compare_task(name, [parts[0][item] for item in ids], *scores))
    return rows


def _check_pair(first: ScoredRun, second: ScoredRun) -> None:
    """Raise SuiteError if two runs are not of the same questions."""
    names = f"{first.name} and {second.name}"
    if first.identity != second.identity:
        raise SuiteError(f"not paired: {names} asked other data, pictures or another variant (-T); ask both the same")
    if {target.key for target in first.targets} != {target.key for target in second.targets}:
        raise SuiteError(f"not paired: {names} are not of the same questions; ask both the same")


def _compare_task(task: str, targets: Sequence[Target], first: Array, second: Array) -> Difference:
    """Compare the scores of two runs in a task."""
    groups = [target.group for target in targets]
    gains = list(second - first)
    low, high = interval_of_gain(gains, groups)
    set_sizes = [size + 1 for target in targets if target.several for size in range(target.options)]
    steps = min(_MAX_SCORE_STEPS, lcm(*set_sizes))
    return Difference(
        task=task,
        count=len(targets),
        first=100 * float(first.mean()),
        second=100 * float(second.mean()),
        difference=100 * float(np.mean(gains)),
        low=100 * low,
        high=100 * high,
        only_first_right=int(((first == 1) & (second < 1)).sum()),
        only_second_right=int(((second == 1) & (first < 1)).sum()),
        p=sign_flip_p(gains, groups, steps),
    )


def _score_answers(targets: Iterable[Target], predictions: Predictions) -> Array:
    return np.array([score_answer(target, predictions) for target in targets])
