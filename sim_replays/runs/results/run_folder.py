"""A run's folder: settings, raw answers and score; enough to score it again."""

import json
from collections.abc import Generator, Iterable, Mapping
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from norm_core.engines.openai.batch_server import NO_ANSWER
from norm_core.models.manifest import Prices
from norm_core.records.episode import Answer
from norm_core.records.outcome import Outcome
from norm_core.records.record import record
from sim_replays.runs.asked_model import AskedRequest
from sim_replays.runs.items.item_bag import Key, read_key
from sim_replays.runs.results.grading import best_by_question, read_grades
from sim_replays.runs.results.json_lines import (
    ASKED,
    BAG,
    RAW,
    append_lines,
    begin,
    read_config,
    read_lines,
    write_whole,
)
from sim_replays.runs.transport import TimedAnswer
from sim_replays.suites.report import (
    MODEL_KIND,
    NO_MODEL,
    RANDOM_MODEL,
    ROBOT_KIND,
    Report,
    report,
    to_plain,
)
from sim_replays.suites.suite import suite_called
from sim_replays.suites.target import Key as SuiteKey
from sim_replays.suites.target import Prediction, PredictionFile, Predictions

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


def read_raw(folder: Path) -> dict[str, TimedAnswer]:
    """Read the answers so far, by query."""
    return {timed.answer.query_id: timed for timed in read_lines(folder / RAW, TimedAnswer)}


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

    def cost(self, prices: Prices) -> float:
        """The cost, in the currency of the prices."""
        return (self.prompt_tokens * prices.prompt + self.completion_tokens * prices.completion) / 1e6


def read_spent(folder: Path) -> Spent:
    """Count what a run has spent so far, over all its sessions."""
    return Spent().plus(read_lines(folder / ASKED, AskedRequest))


def open_run(folder: Path) -> Run:
    """Open the folder of an earlier run."""
    return Run(folder=folder, config=read_config(folder), told=read_raw(folder), key=read_key(folder / BAG))


def predictions(run: Run) -> PredictionFile:
    """Convert the raw answers to predictions in the dataset's own order, with grades."""
    return PredictionFile(
        predictions=_predictions(run.key, run.told, best_by_question(read_grades(run.folder))), unknown=(), unusable=()
    )


def _predictions(
    key: Key, told: Mapping[str, TimedAnswer], grades: Mapping[SuiteKey, Mapping[str, float]]
) -> dict[SuiteKey, Prediction]:
    by_key = {}
    # In bag order, because shards answer in any order.
    for query_id, order in key.orders.items():
        if query_id not in told:
            continue
        answer = told[query_id].answer
        prediction = Prediction(
            id=key.items[query_id],
            task=answer.task,
            outcome=answer.outcome,
            chosen=tuple(sorted(order[place] for place in answer.chosen)),
            text=answer.text,
            grades=grades.get((key.items[query_id], answer.task), {}),
            reason=answer.reason,
        )
        by_key[prediction.key] = prediction
    return by_key


def control_folder(folder: Path, name: str) -> Path:
    """The folder of a control's answers in a run's folder."""
    return folder / CONTROLS / name.replace(" ", "-")


def control_predictions(run: Run) -> Mapping[str, Predictions]:
    """Read the predictions of the controls that answered all that the run answered."""
    found: dict[str, Predictions] = {}
    for name in (RANDOM_MODEL, NO_MODEL):
        told = read_raw(control_folder(run.folder, name))
        if told and not set(run.told) - set(told):
            found[name] = _predictions(run.key, {query_id: told[query_id] for query_id in run.told}, {})
    return found


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
    if run.config.get("options", {}).get("answered_later"):
        missing = sum(NO_ANSWER in timed.answer.reason for timed in run.told.values())
        notes.append(f"answered later, by a batch; it holds no answer to {missing} of {len(run.told)} questions")
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
        notes.append("a text that was refused, not given or not graded counts as the lowest grade, 1")
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
