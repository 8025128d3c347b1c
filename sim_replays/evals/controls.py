"""Controls as solvers: choices that saw nothing of an item but its options."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

from inspect_ai.model import ChatMessageUser, get_model
from inspect_ai.solver import Generate, Solver, TaskState, solver

from norm_core.engines.options import OPTION_LETTERS, format_options, read_option
from norm_core.records.episode import Query
from norm_core.records.json_codec import to_plain
from norm_core.records.outcome import Outcome
from sim_replays.evals.samples import ANSWERS, SampleAnswer, asked_in, in_dataset_order, tactful
from sim_replays.items.target import Prediction, SuiteError

CHOICES = ("random", "first", "longest", "options")
_OF_OPTIONS: Mapping[str, Callable[[Sequence[str]], int]] = {
    "first": lambda offered: 0,
    "longest": lambda offered: max(range(len(offered)), key=lambda at: len(offered[at])),
}


@solver(name="tactful/control")
@tactful
def control(choose: Literal["random", "first", "longest", "options"] = "random", seed: int = 0) -> Solver:
    """Choose at random, the first or the longest option; `options` shows the model the options and nothing else.

    Texts cannot be chosen: they count as abstained.
    """
    if choose not in CHOICES:
        raise SuiteError(f"choose={choose}: name one of {', '.join(CHOICES)}")

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        asked, answers = asked_in(state.metadata), []
        for query in asked.item.queries:
            blank = Prediction(id=asked.item.item or asked.item.id, task=query.task, outcome=Outcome.ABSTAINED)
            offered = _offered(state.metadata, query)
            place: int | None
            if not offered or query.query_id not in asked.item.orders:
                answers.append(SampleAnswer(prediction=blank))
                continue
            if choose == "random":
                place = random.Random(f"{seed}:{state.epoch}:{query.query_id}").randrange(len(offered))
            elif choose == "options":
                output = await get_model().generate([ChatMessageUser(content=format_options(offered))])
                place = None if output.stop_reason == "max_tokens" else read_option(output.completion, offered)
            else:
                place = _OF_OPTIONS[choose](offered)
            chosen = () if place is None else in_dataset_order(asked.item, query.query_id, [place])
            outcome = Outcome.ANSWERED if chosen else Outcome.UNPARSED
            prediction = Prediction(id=blank.id, task=query.task, outcome=outcome, chosen=chosen)
            answers.append(SampleAnswer(prediction=prediction))
        state.store.set(ANSWERS, [to_plain(answer) for answer in answers])
        return state

    return solve


def choices_of_options(choose: str, metadata: Mapping[str, Any]) -> Iterator[Prediction]:
    """Yield what always choosing the first or the longest option answers about a sample."""
    item = asked_in(metadata).item
    for query in item.queries:
        offered = _offered(metadata, query)
        if offered and query.query_id in item.orders:
            chosen = in_dataset_order(item, query.query_id, [_OF_OPTIONS[choose](offered)])
            yield Prediction(id=item.item or item.id, task=query.task, outcome=Outcome.ANSWERED, chosen=chosen)


def _offered(metadata: Mapping[str, Any], query: Query) -> tuple[str, ...]:
    """Return the options of a query, or letters where its prompt names them, such as error and competence."""
    counts = {plain["task"]: plain["options"] for plain in metadata["targets"]}
    return query.justifications or query.options or tuple(OPTION_LETTERS[: counts.get(query.task, 0)])
