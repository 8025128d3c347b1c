"""Score a suite's answers, and its figures with clustered standard errors as metrics of inspect_ai."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from inspect_ai.model import get_model
from inspect_ai.model._model import model_roles
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, Value, metric, scorer
from inspect_ai.solver import TaskState

from norm_core.records.json_codec import from_plain, to_plain
from norm_core.records.outcome import Outcome
from scoring.intervals import Z_95
from sim_replays.evals.grading import COERCER, GRADER, coerced, grades_of
from sim_replays.evals.samples import ANSWERS, LEFT_OUT, SampleAnswer, asked_in, tactful, targets_in
from sim_replays.items import target as suites
from sim_replays.items.target import Prediction, ReplyReading, intersection_over_union, picks_target
from sim_replays.suites.suite import Suite, suite_called

FEWEST_CLUSTERS = 5
EPOCH = "#epoch"  # between the id of a question and the number of a further epoch


@metric(name="tactful/figures", scores="unreduced")
@tactful
def figures(suite: str) -> Metric:
    """Compute the suite's own figures over all samples and epochs; shares run from 0 to 1.

    A figure has its standard error, from its interval over clusters (pictures or videos), beside it; the name says so
    where there are fewer than five. A figure without cases or labels is left out.
    """

    def compute(scores: list[SampleScore]) -> Value:
        targets, answers = scored_questions([score.score for score in scores])
        return {
            **_values(suite_called(suite), targets, {answer.prediction.key: answer.prediction for answer in answers}),
            **_counts(targets, answers),
        }

    return compute


@scorer(metrics=[])
@tactful
def answers(suite: str) -> Scorer:
    """Compare a sample's answers with its right ones; what was not answered is wrong."""

    async def score(state: TaskState, target: Target) -> Score:
        own = [t for t in targets_in(state.metadata) if t.task not in state.store.get(LEFT_OUT, [])]
        by_key = {
            answer.prediction.key: answer
            for plain in state.store.get(ANSWERS, [])
            if (answer := from_plain(SampleAnswer, plain))
        }
        sample_answers = [by_key.get(t.key) or _missing(t) for t in own]
        asked = asked_in(state.metadata).prompts
        if COERCER in model_roles() and asked:
            queries = {query.task: query for query in asked.queries}
            sample_answers = [
                await coerced(answer, query, asked.orders.get(query.query_id, ()), get_model(role=COERCER))
                for answer in sample_answers
                if (query := queries[answer.prediction.task])
            ]
        predictions = {answer.prediction.key: answer.prediction for answer in sample_answers}
        if GRADER in model_roles():
            grades = await grades_of(own, predictions, get_model(role=GRADER))
            sample_answers = [
                replace(answer, prediction=replace(answer.prediction, grades=grades.get(answer.prediction.task, {})))
                for answer in sample_answers
            ]
        graded = {t.task: mark(t, predictions) for t in own if t.options}
        lines = [f"{p.task}: {p.outcome}{f' ({p.reason})' if p.reason else ''}" for p in predictions.values()]
        lines += [f"{answer.prediction.task}: from the cache" for answer in sample_answers if answer.cached]
        return Score(
            value=next(iter(graded.values())) if len(graded) == 1 else dict(graded) or float("nan"),
            answer="; ".join(_in_words(t, predictions[t.key]) for t in own),
            explanation="\n".join(lines),
            metadata={
                "targets": [to_plain(t) for t in own],
                ANSWERS: [to_plain(answer) for answer in sample_answers],
            },
        )

    return score


def mark(target: suites.Target, predictions: suites.Predictions) -> float:
    """Score 1 for right and 0 for wrong; for sets, the overlap with the right set."""
    places = picks_target(target, predictions)
    return 0.0 if places is None else intersection_over_union(frozenset(places), frozenset(target.right))


def scored_questions(scores: Sequence[Score]) -> tuple[list[suites.Target], list[SampleAnswer]]:
    """Return the questions of scored samples with their answers; those of further epochs get ids of their own."""
    seen: Counter[suites.Key] = Counter()
    targets: list[suites.Target] = []
    sample_answers: list[SampleAnswer] = []
    for score in scores:
        metadata = score.metadata or {}
        for plain_target, plain_answer in zip(metadata["targets"], metadata[ANSWERS], strict=True):
            target, answer = from_plain(suites.Target, plain_target), from_plain(SampleAnswer, plain_answer)
            epoch = seen[target.key]
            seen[target.key] += 1
            if epoch:
                name = f"{target.id}{EPOCH}{epoch + 1}"
                target = replace(target, id=name)
                answer = replace(answer, prediction=replace(answer.prediction, id=name))
            targets.append(target)
            sample_answers.append(answer)
    return targets, sample_answers


def _values(suite: Suite, targets: list[suites.Target], predictions: suites.Predictions) -> dict[str, float]:
    values: dict[str, float] = {}
    for name, figure in suite.figures(targets, predictions).items():
        if not figure.count:
            continue
        scale = 100 if figure.unit == "%" else 1
        values[name] = figure.value / scale
        few = f"_of_{figure.clusters}_clusters" if 0 < figure.clusters < FEWEST_CLUSTERS else ""
        values[f"{name}_stderr{few}"] = (figure.high - figure.low) / (2 * Z_95 * scale)
    return values


def _counts(targets: Sequence[suites.Target], sample_answers: Sequence[SampleAnswer]) -> dict[str, float]:
    """Count the questions, and the share of each outcome but `answered` and of each kind of reply that occurs."""
    outcomes = Counter(answer.prediction.outcome for answer in sample_answers)
    readings = Counter(answer.prediction.reading for answer in sample_answers)
    shares = {
        **{outcome.value: outcomes[outcome] for outcome in Outcome if outcome is not Outcome.ANSWERED},
        "read_leniently": readings[ReplyReading.LENIENT],
        "read_by_a_model": readings[ReplyReading.COERCED],
        "asked_again": sum(answer.details.get("tries", 1) > 1 for answer in sample_answers),
        "from_cache": sum(answer.cached for answer in sample_answers),
    }
    return {"questions": len(targets), **{name: count / len(targets) for name, count in shares.items() if count}}


def _missing(target: suites.Target) -> SampleAnswer:
    """A question of a sample that ended in an error."""
    prediction = Prediction(id=target.id, task=target.task, outcome=Outcome.FAILED, reason="the sample has no answer")
    return SampleAnswer(prediction=prediction)


def _in_words(target: suites.Target, prediction: Prediction) -> str:
    if prediction.outcome is not Outcome.ANSWERED:
        return f"({prediction.outcome})"
    words = [target.words[place] if target.words else str(place) for place in prediction.chosen]
    return ", ".join(words) or prediction.text or "none"
