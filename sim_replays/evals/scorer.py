"""The scorer of a suite, and its figures with clustered standard errors as metrics of inspect_ai."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from inspect_ai.model import get_model
from inspect_ai.model._model import model_roles
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Value, metric, scorer
from inspect_ai.scorer import Target as InspectTarget
from inspect_ai.solver import TaskState

from norm_core.records.json_codec import from_plain, to_plain
from norm_core.records.outcome import Outcome
from scoring.intervals import Z_95
from sim_replays.evals.grading import COERCER, GRADER, ask_grades, coerce_answer
from sim_replays.evals.samples import (
    ANSWERS,
    LEFT_OUT,
    SampleAnswer,
    read_asked_sample,
    read_sample_targets,
    register_as_tactful,
)
from sim_replays.items.target import Key, Prediction, Predictions, ReplyReading, Target, compute_iou, find_picks
from sim_replays.suites.suite import Suite, find_suite

MIN_CLUSTERS = 5  # with fewer, an interval says how many
EPOCH_MARK = "#epoch"  # between the id of a question and the number of a further epoch


@metric(name="tactful/figures", scores="unreduced")
@register_as_tactful
def figures(suite: str) -> Metric:
    """Compute the figures of the suite over all samples and epochs; shares are from 0 to 1.

    Beside a figure is its standard error, from its interval over clusters (pictures or videos). Its name says how many
    clusters there are if they are fewer than five. A figure without cases or labels is left out.
    """

    def compute(scores: list[SampleScore]) -> Value:
        targets, sample_answers = read_scored_questions([score.score for score in scores])
        predictions = {answer.prediction.key: answer.prediction for answer in sample_answers}
        return {
            **_convert_figures(find_suite(suite), targets, predictions),
            **_count_outcomes(targets, sample_answers),
        }

    return compute


@scorer(metrics=[])
@register_as_tactful
def answers(suite: str) -> Scorer:
    """Compare the answers of a sample with the right ones. A question without an answer counts as wrong."""

    async def score(state: TaskState, target: InspectTarget) -> Score:
        left_out = state.store.get(LEFT_OUT, [])
        targets = [target for target in read_sample_targets(state.metadata) if target.task not in left_out]
        given_answers = [from_plain(SampleAnswer, fields) for fields in state.store.get(ANSWERS, [])]
        answer_by_key = {answer.prediction.key: answer for answer in given_answers}
        sample_answers = [answer_by_key.get(target.key) or _make_missing_answer(target) for target in targets]
        prompts = read_asked_sample(state.metadata).prompts
        if COERCER in model_roles() and prompts:
            query_by_task = {query.task: query for query in prompts.queries}
            for index, answer in enumerate(sample_answers):
                query = query_by_task[answer.prediction.task]
                order = prompts.orders.get(query.query_id, ())
                sample_answers[index] = await coerce_answer(answer, query, order, get_model(role=COERCER))
        predictions = {answer.prediction.key: answer.prediction for answer in sample_answers}
        if GRADER in model_roles():
            grades = await ask_grades(targets, predictions, get_model(role=GRADER))
            sample_answers = [
                replace(answer, prediction=replace(answer.prediction, grades=grades.get(answer.prediction.task, {})))
                for answer in sample_answers
            ]
        scores = {target.task: score_answer(target, predictions) for target in targets if target.options}
        lines = []
        for prediction in predictions.values():
            reason = f" ({prediction.reason})" if prediction.reason else ""
            lines.append(f"{prediction.task}: {prediction.outcome}{reason}")
        lines += [f"{answer.prediction.task}: from the cache" for answer in sample_answers if answer.cached]
        return Score(
            value=next(iter(scores.values())) if len(scores) == 1 else dict(scores) or float("nan"),
            answer="; ".join(_describe_answer(target, predictions[target.key]) for target in targets),
            explanation="\n".join(lines),
            metadata={
                "targets": [to_plain(target) for target in targets],
                ANSWERS: [to_plain(answer) for answer in sample_answers],
            },
        )

    return score


def score_answer(target: Target, predictions: Predictions) -> float:
    """Return 1 for a right answer and 0 for a wrong one; for sets, the overlap with the right set."""
    picks = find_picks(target, predictions)
    return 0.0 if picks is None else compute_iou(frozenset(picks), frozenset(target.right))


def read_scored_questions(scores: Sequence[Score]) -> tuple[list[Target], list[SampleAnswer]]:
    """Return the questions of scored samples with their answers. Those of further epochs get ids of their own."""
    epoch_counts: Counter[Key] = Counter()
    targets: list[Target] = []
    sample_answers: list[SampleAnswer] = []
    for score in scores:
        metadata = score.metadata or {}
        for plain_target, plain_answer in zip(metadata["targets"], metadata[ANSWERS], strict=True):
            target = from_plain(Target, plain_target)
            answer = from_plain(SampleAnswer, plain_answer)
            earlier_epochs = epoch_counts[target.key]
            epoch_counts[target.key] += 1
            if earlier_epochs:
                epoch_id = f"{target.id}{EPOCH_MARK}{earlier_epochs + 1}"
                target = replace(target, id=epoch_id)
                answer = replace(answer, prediction=replace(answer.prediction, id=epoch_id))
            targets.append(target)
            sample_answers.append(answer)
    return targets, sample_answers


def _convert_figures(suite: Suite, targets: list[Target], predictions: Predictions) -> dict[str, float]:
    """Return the figures with cases and their standard errors, by name; shares are from 0 to 1."""
    values: dict[str, float] = {}
    for name, figure in suite.compute_figures(targets, predictions).items():
        if not figure.count:
            continue
        scale = 100 if figure.unit == "%" else 1
        values[name] = figure.value / scale
        note = f"_of_{figure.clusters}_clusters" if 0 < figure.clusters < MIN_CLUSTERS else ""
        values[f"{name}_stderr{note}"] = (figure.high - figure.low) / (2 * Z_95 * scale)
    return values


def _count_outcomes(targets: Sequence[Target], sample_answers: Sequence[SampleAnswer]) -> dict[str, float]:
    """Count the questions, and compute the share of each kind of reply and each outcome but `answered`."""
    outcomes = Counter(answer.prediction.outcome for answer in sample_answers)
    readings = Counter(answer.prediction.reading for answer in sample_answers)
    counts = {
        **{outcome.value: outcomes[outcome] for outcome in Outcome if outcome is not Outcome.ANSWERED},
        "read_leniently": readings[ReplyReading.LENIENT],
        "read_by_a_model": readings[ReplyReading.COERCED],
        "asked_again": sum(answer.details.get("tries", 1) > 1 for answer in sample_answers),
        "from_cache": sum(answer.cached for answer in sample_answers),
    }
    return {"questions": len(targets), **{name: count / len(targets) for name, count in counts.items() if count}}


def _make_missing_answer(target: Target) -> SampleAnswer:
    """Make the answer to a question of a sample that ended in an error."""
    prediction = Prediction(id=target.id, task=target.task, outcome=Outcome.FAILED, reason="the sample has no answer")
    return SampleAnswer(prediction=prediction)


def _describe_answer(target: Target, prediction: Prediction) -> str:
    if prediction.outcome is not Outcome.ANSWERED:
        return f"({prediction.outcome})"
    words = [target.words[index] if target.words else str(index) for index in prediction.chosen]
    return ", ".join(words) or prediction.text or "none"
