"""A run's folder: settings, raw answers and score; enough to score it again."""

import json
from collections.abc import Generator, Iterable, Mapping
from contextlib import ExitStack, closing
from dataclasses import replace
from math import lcm
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from norm_core.records.episode import Answer
from norm_core.records.outcome import Outcome
from norm_core.records.record import record
from norm_core.runtime.json_lines import (
    ASKED,
    BAG,
    RAW,
    RunError,
    append_lines,
    begin,
    read_config,
    read_lines,
    write_whole,
)
from scoring.intervals import interval_of_gain, sign_flip_p
from sim_replays.items.item_bag import Key, read_key
from sim_replays.items.target import Key as SuiteKey
from sim_replays.items.target import (
    Prediction,
    PredictionFile,
    Predictions,
    Target,
    intersection_over_union,
    picks_target,
)
from sim_replays.runs.asked_model import AskedRequest
from sim_replays.runs.results.grading import best_by_question, read_grades
from sim_replays.runs.transport import TimedAnswer
from sim_replays.suites.report import (
    KINDS,
    MODEL_KIND,
    NO_MODEL,
    RANDOM_MODEL,
    ROBOT_KIND,
    Report,
    report,
    to_plain,
)
from sim_replays.suites.suite import suite_called

ANSWERS, SCORE = "answers.jsonl", "score.json"
__all__ = ["ASKED", "BAG", "RAW", "begin", "write_whole"]
CONTROLS = "controls"
_ALIKE = 1e-6


@record
class Run:
    """The contents of a run's folder."""

    folder: Path
    config: Mapping[str, Any]
    told: Mapping[str, TimedAnswer]
    key: Key

    @property
    def name(self) -> str:
        """The configured name or the folder's, marked where the run is unfinished."""
        name = str(self.config.get("name") or self.folder.name)
        if count := self.read_from_text:
            name += f" ({'all' if count == len(self.told) else f'{count} of {len(self.told)}'} in text)"
        return f"{name} (unfinished)" if self.left else name

    @property
    def kind(self) -> str:
        """The kind of its figures: of the model alone, or of the robot."""
        return MODEL_KIND if self.config.get("asking", {}).get("bare") else ROBOT_KIND

    @property
    def read_from_text(self) -> int:
        """The number of questions whose options were read from replies and not from log-probabilities."""
        return sum(timed.by_text for timed in self.told.values())

    @property
    def left(self) -> int:
        """The number of questions not asked yet."""
        return sum(query_id not in self.told for query_id in self.key.orders)


def read_raw(folder: Path, *, with_decisions: bool = False) -> dict[str, TimedAnswer]:
    """Read the answers so far, by query. The selector's decisions are most of their size."""
    answers = read_lines(folder / RAW, TimedAnswer)
    return {timed.answer.query_id: timed if with_decisions else replace(timed, decision=None) for timed in answers}


def append(folder: Path, answers: Iterable[TimedAnswer]) -> Generator[TimedAnswer, None, None]:
    """Write each answer, and the requests that it took, to disk before yielding it."""
    with ExitStack() as stack:
        if isinstance(answers, Generator):
            stack.enter_context(closing(answers))
        for timed in answers:
            append_lines(folder / ASKED, timed.requests)
            append_lines(folder / RAW, [replace(timed, requests=())])
            yield timed


@record
class Spent:
    """The requests of a run, those that the cache answered, and tokens; `silent` ones were answered without a count."""

    requests: int = 0
    cached: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    silent: int = 0

    def plus(self, requests: Iterable[AskedRequest]) -> "Spent":
        """Add requests."""
        every = list(requests)
        return Spent(
            requests=self.requests + len(every),
            cached=self.cached + sum(request.cached for request in every),
            prompt_tokens=self.prompt_tokens + sum(request.prompt_tokens for request in every),
            completion_tokens=self.completion_tokens + sum(request.completion_tokens for request in every),
            silent=self.silent + sum(request.is_silent for request in every),
        )

    @property
    def tokens(self) -> int:
        """All tokens, read and written."""
        return self.prompt_tokens + self.completion_tokens


def read_spent(folder: Path) -> Spent:
    """Count what a run has spent so far, over all its sessions."""
    return Spent().plus(read_lines(folder / ASKED, AskedRequest))


def open_run(folder: Path, *, with_decisions: bool = False) -> Run:
    """Open the folder of an earlier run, as `read_raw` reads it."""
    answers = read_raw(folder, with_decisions=with_decisions)
    return Run(folder=folder, config=read_config(folder), told=answers, key=read_key(folder / BAG))


def predictions(run: Run) -> PredictionFile:
    """Convert the raw answers to predictions in the dataset's own order, with grades."""
    return PredictionFile(
        predictions=_predictions(run.key, run.told, best_by_question(read_grades(run.folder))), unknown=(), unusable=()
    )


def _predictions(
    key: Key, answers: Mapping[str, TimedAnswer], grades: Mapping[SuiteKey, Mapping[str, float]]
) -> dict[SuiteKey, Prediction]:
    by_key = {}
    # In bag order, because shards answer in any order.
    for query_id, order in key.orders.items():
        if query_id not in answers:
            continue
        answer = answers[query_id].answer
        prediction = Prediction(
            id=key.items[query_id],
            task=answer.task,
            outcome=answer.outcome,
            chosen=tuple(sorted(order[place] for place in answer.chosen)),
            text=answer.text,
            grades=grades.get((key.items[query_id], answer.task), {}),
            reason=answer.reason,
            reading=answers[query_id].reading,
        )
        by_key[prediction.key] = prediction
    return by_key


def control_folder(folder: Path, name: str) -> Path:
    """The folder of a control's answers in a run's folder."""
    return folder / CONTROLS / name.replace(" ", "-")


def control_predictions(run: Run) -> Mapping[str, Predictions]:
    """Read the predictions of the controls that answered all that the run answered."""
    by_control: dict[str, Predictions] = {}
    for name in (RANDOM_MODEL, NO_MODEL):
        answers = read_raw(control_folder(run.folder, name))
        if answers and not set(run.told) - set(answers):
            by_control[name] = _predictions(run.key, {query_id: answers[query_id] for query_id in run.told}, {})
    return by_control


def finish(run: Run) -> Report:
    """Score the answers so far, and write answers and score."""
    read = predictions(run)
    scored = report(suite_called(run.key.suite), run.key.targets, read, control_predictions(run))
    scored = replace(scored, kind=run.kind, notes=(*scored.notes, *_told_of(run)))
    several = {target.key for target in run.key.targets if target.several}
    lines = [_line(prediction, prediction.key in several) for prediction in read.predictions.values()]
    write_whole(run.folder / ANSWERS, "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines))
    write_whole(run.folder / SCORE, f"{json.dumps(to_plain(scored), indent=2, ensure_ascii=False)}\n")
    return scored


def _told_of(run: Run) -> list[str]:
    """List notes on a run's texts: who graded them, and how many were asked for again."""
    notes = []
    if run.left:
        notes.append(
            f"unfinished: {run.left} of {len(run.key.orders)} questions were never asked; run it again to go on"
        )
    if run.read_from_text:
        notes.append(
            f"options of {run.read_from_text} of {len(run.told)} questions were read from text: such an answer has no "
            "probability, and stands apart from answers by log-probabilities"
        )
    if drawn := sum(_is_drawn(timed.answer) for timed in run.told.values()):
        notes.append(f"{drawn} of {len(run.told)} answers are draws among options that were all alike to the model")
    if grades := read_grades(run.folder):
        graded = {(*grade.of, grade.reference): grade.grade for grade in grades}  # the last line counts
        without = sum(not grade for grade in graded.values())
        judged_by = f"graded by {grades[0].judge}: grades of another judge, as the papers' rows, are not comparable"
        notes.append(f"{judged_by}; {without} of {len(graded)} grades were not given" if without else judged_by)
    written = [timed.answer for timed in run.told.values() if timed.answer.provenance.seed]
    if written:
        again = sum(answer.provenance.seed for answer in written)
        notes.append(f"{again} texts were asked for again, as what came had not its form ({len(written)} questions)")
    return notes


def _is_drawn(answer: Answer) -> bool:
    likely = answer.probabilities
    answered = answer.outcome is Outcome.ANSWERED and len(likely) > 1
    return answered and max(likely) - min(likely) < _ALIKE


def _line(prediction: Prediction, several: bool) -> dict[str, Any]:
    answered = prediction.outcome is Outcome.ANSWERED
    answer: Any = None
    if answered:
        answer = list(prediction.chosen) if several else prediction.chosen[0] if prediction.chosen else prediction.text
    line: dict[str, Any] = {
        "id": prediction.id,
        "task": prediction.task,
        "answer": answer,
        "outcome": prediction.outcome.value,
    }
    return {**line, **prediction.grades} if answered else {**line, "reason": prediction.reason}


Array = NDArray[np.float64]
_FINEST = 420  # steps of a score, at most: scores of sets of up to 7 options are whole numbers of them


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


def why_not_paired(first: Run, second: Run) -> str:
    """State why two runs cannot be compared item by item; empty if they can."""
    if first.kind != second.kind:
        kinds = f"{first.name} is of {KINDS[first.kind]}, {second.name} of {KINDS[second.kind]}"
        return f"not paired: {kinds}; prompts and steps differ, not the model alone"
    if {target.key for target in first.key.targets} != {target.key for target in second.key.targets}:
        return f"not paired: {first.name} and {second.name} are not of the same questions; ask both the same"
    return ""


def compare(first: Run, second: Run) -> list[Difference]:
    """Compare each task with options, and each joint figure. Unanswered questions count as wrong.

    Raises RunError where the runs cannot be paired.
    """
    if why := why_not_paired(first, second):
        raise RunError(why)
    answers = [predictions(run).predictions for run in (first, second)]
    by_task: dict[str, dict[str, Target]] = {}
    for target in first.key.targets:
        if target.options:
            by_task.setdefault(target.task, {})[target.id] = target
    rows = [
        _difference(task, list(targets.values()), [_marks(targets.values(), answer) for answer in answers])
        for task, targets in by_task.items()
    ]
    for name, tasks in suite_called(first.key.suite).joint.items():
        parts = [by_task.get(task, {}) for task in tasks]
        ids = [item for item in parts[0] if all(item in part for part in parts)]
        marks = [
            np.prod([_marks([part[item] for item in ids], answer) == 1 for part in parts], axis=0, dtype=float)
            for answer in answers
        ]
        rows += [_difference(name, [parts[0][item] for item in ids], marks)] if ids else []
    return rows


def first_differing_question(first: Run, second: Run) -> dict[str, Any] | None:
    """Find the first question, in bag order, that differs in more than duration. None means parity."""
    for query_id in first.key.orders | second.key.orders:
        ours, theirs = _plain(first.told, query_id), _plain(second.told, query_id)
        if ours != theirs:
            differing = sorted(name for name in ours | theirs if ours.get(name) != theirs.get(name))
            return {
                "query_id": query_id,
                "differs_in": differing,
                "first": {name: ours.get(name) for name in differing},
                "second": {name: theirs.get(name) for name in differing},
            }
    return None


def _plain(answers: Mapping[str, TimedAnswer], query_id: str) -> dict[str, Any]:
    if query_id not in answers:
        return {"answer": "missing"}
    answer = answers[query_id].answer
    provenance = answer.provenance
    return {
        "outcome": answer.outcome.value,
        "chosen": answer.chosen,
        "probabilities": answer.probabilities,
        "text": answer.text,
        "reason": answer.reason,
        "window_digest": provenance.window_digest,
        "prompt_digest": provenance.prompt_digest,
        "model": provenance.model,
        "weights_sha256": provenance.weights_sha256,
        "config_sha256": provenance.config_sha256,
    }


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


def mark(target: Target, answers: Predictions) -> float:
    """Score 1 for right and 0 for wrong; for sets, the overlap with the right set."""
    places = picks_target(target, answers)
    return 0.0 if places is None else intersection_over_union(frozenset(places), frozenset(target.right))
