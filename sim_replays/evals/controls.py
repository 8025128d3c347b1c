"""Controls as solvers: choices that see only the options of an item."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

from inspect_ai.model import ChatMessageUser, get_model
from inspect_ai.solver import Generate, Solver, TaskState, solver

from norm_core.engines.options import OPTION_LETTERS, format_options, read_option
from norm_core.records.episode import Query
from norm_core.records.json_codec import to_plain
from norm_core.records.outcome import Outcome
from sim_replays.evals.samples import ANSWERS, SampleAnswer, map_to_dataset, read_asked_sample, register_as_tactful
from sim_replays.items.target import Prediction, SuiteError

CHOICES = ("random", "first", "longest", "options")
# By name, the index that a choice takes among options.
_CHOOSE_BY_NAME: Mapping[str, Callable[[Sequence[str]], int]] = {
    "first": lambda options: 0,
    "longest": lambda options: max(range(len(options)), key=lambda index: len(options[index])),
}


@solver(name="tactful/control")
@register_as_tactful
def control(choose: Literal["random", "first", "longest", "options"] = "random", seed: int = 0) -> Solver:
    """Choose an option at random, the first or the longest; `options` shows the model the options alone.

    A question that asks for a text counts as abstained.
    """
    if choose not in CHOICES:
        raise SuiteError(f"choose={choose}: is unknown; name one of {', '.join(CHOICES)}")

    async def choose_index(query: Query, options: tuple[str, ...], epoch: int) -> int | None:
        """Return the index of an offered option; None if the model names none."""
        if choose == "random":
            return random.Random(f"{seed}:{epoch}:{query.query_id}").randrange(len(options))
        if choose == "options":
            output = await get_model().generate([ChatMessageUser(content=format_options(options))])
            return None if output.stop_reason == "max_tokens" else read_option(output.completion, options)
        return _CHOOSE_BY_NAME[choose](options)

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        item = read_asked_sample(state.metadata).item
        answers = []
        for query in item.queries:
            options = _list_options(state.metadata, query)
            outcome = Outcome.ABSTAINED
            chosen: tuple[int, ...] = ()
            if options and query.query_id in item.orders:
                index = await choose_index(query, options, state.epoch)
                outcome = Outcome.UNPARSED if index is None else Outcome.ANSWERED
                chosen = () if index is None else map_to_dataset(item, query.query_id, [index])
            prediction = Prediction(id=item.item or item.id, task=query.task, outcome=outcome, chosen=chosen)
            answers.append(SampleAnswer(prediction=prediction))
        state.store.set(ANSWERS, [to_plain(answer) for answer in answers])
        return state

    return solve


def choose_by_options(choose: str, metadata: Mapping[str, Any]) -> Iterator[Prediction]:
    """Yield the answers about a sample of always choosing the first or the longest option."""
    item = read_asked_sample(metadata).item
    for query in item.queries:
        options = _list_options(metadata, query)
        if options and query.query_id in item.orders:
            chosen = map_to_dataset(item, query.query_id, [_CHOOSE_BY_NAME[choose](options)])
            yield Prediction(id=item.item or item.id, task=query.task, outcome=Outcome.ANSWERED, chosen=chosen)


def _list_options(metadata: Mapping[str, Any], query: Query) -> tuple[str, ...]:
    """Return the options of a query, or letters if its prompt names them, such as error and competence."""
    count_by_task = {target["task"]: target["options"] for target in metadata["targets"]}
    return query.justifications or query.options or tuple(OPTION_LETTERS[: count_by_task.get(query.task, 0)])
