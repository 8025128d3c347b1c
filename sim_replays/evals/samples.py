"""A suite's items as samples of inspect_ai, and what a sample holds."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, TypeVar

from inspect_ai.dataset import MemoryDataset, Sample

from action_selector.request_limits import find_repeat
from norm_core.records.episode import Query
from norm_core.records.json_codec import from_plain, sha256_of, to_plain
from norm_core.records.record import record
from norm_core.runtime.wording import count_of
from norm_monitor.judge.deployment_context import PictureRules
from sim_replays.items.dataset_files import sha256_of_files
from sim_replays.items.run_config import RunConfig, RunItem
from sim_replays.items.target import Prediction, SuiteError, Target
from sim_replays.suites.leaks import leaked_answers
from sim_replays.suites.suite import items_of_suite, suite_called

# In a sample's store: the answers, and the tasks that are not put to a model alone.
ANSWERS, LEFT_OUT = "answers", "left_out"

F = TypeVar("F", bound=Callable[..., Any])


def tactful(function: F) -> F:
    """Leave the name that a decorator of inspect_ai registers as it is, wherever this package is installed."""
    function.__module__ = "tactful"
    return function


@record
class AskedSample:
    """What solvers read of a sample: the robot's item, and the prompts of a model alone. It holds no right answer."""

    asking: RunConfig
    rules: PictureRules
    item: RunItem
    prompts: RunItem | None = None


@record
class SampleAnswer:
    """One answer, in the dataset's own order of options, and where it comes from."""

    prediction: Prediction
    cached: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)


def dataset_of(asking: RunConfig, rules: PictureRules) -> tuple[MemoryDataset, dict[str, Any]]:
    """Read a suite's items as samples, and describe the data."""
    suite = suite_called(asking.suite)
    run_items = items_of_suite(asking.model_copy(update={"bare": False}))
    prompts: dict[str, RunItem] = {}
    if asking.setting in suite.bare_settings:
        prompts = {item.id: item for item in items_of_suite(asking.model_copy(update={"bare": True})).asked}
    targets: dict[tuple[str, str], Target] = {}
    for target in run_items.targets:
        if target.key in targets:
            raise SuiteError(f"{asking.data}: {target.id!r} ({target.task}) appears twice; give each id once")
        targets[target.key] = target
    leaks = leaked_answers(prompts.values() or run_items.asked, targets)
    samples = [
        _sample(AskedSample(asking=asking, rules=rules, item=item, prompts=prompts.get(item.id)), targets)
        for item in run_items.asked
    ]
    if twice := [name for name, count in Counter(sample.id for sample in samples).items() if count > 1]:
        raise SuiteError(f"{asking.data}: the item {twice[0]!r} appears twice; give each id once")
    queries = [query for item in run_items.asked for query in item.queries]
    repeated = [query.query_id for query in queries if any(map(find_repeat, (query.options, query.justifications)))]
    cautions = []
    if repeated:
        cautions.append(f"{count_of(len(repeated), 'question')} with an option that appears twice: {repeated[0]}")
    if leaks:
        cautions.append(f"the right option stands in the prompt of {count_of(len(leaks), 'question')}: {leaks[0]}")
    if oracle := suite.given.get(asking.setting):
        cautions.append(f"text from an oracle: {oracle} of the dataset")
    described = {
        "suite": asking.suite,
        "data_sha256": sha256_of_files(list(run_items.files)),
        "config_sha256": sha256_of(asking.model_dump(mode="json", exclude={"data", "pictures", "only"})),
        "cautions": cautions,
    }
    return MemoryDataset(samples, name=suite.name, location=asking.data), described


def _sample(asked: AskedSample, targets: Mapping[tuple[str, str], Target]) -> Sample:
    item = asked.item
    own = [targets[item.item or item.id, query.task] for query in item.queries]
    return Sample(
        id=item.id,
        input="\n\n".join(query.question for query in asked.prompts.queries)
        if asked.prompts
        else "\n\n".join(map(_in_words, item.queries)),
        target=[_right_words(query, target, item) for query, target in zip(item.queries, own, strict=True)],
        metadata={
            "suite": asked.asking.suite,
            "group": own[0].group,
            **own[0].by,
            "asked": to_plain(asked),
            "targets": [to_plain(target) for target in own],
        },
    )


def _in_words(query: Query) -> str:
    return "\n".join(filter(None, (query.viewpoint.description, query.question, *map(str, query.options))))


def _right_words(query: Query, target: Target, item: RunItem) -> str:
    offered, order = query.justifications or query.options, item.orders.get(query.query_id, ())
    if not target.options or len(offered) != len(order):
        return "; ".join(target.references or [target.words[place] for place in target.right if target.words])
    return "; ".join(offered[order.index(place)] or "None" for place in target.right)


def asked_in(metadata: Mapping[str, Any]) -> AskedSample:
    """Return what a solver may read of a sample."""
    return from_plain(AskedSample, metadata["asked"])


def targets_in(metadata: Mapping[str, Any]) -> list[Target]:
    """Return a sample's right answers, for a scorer."""
    return [from_plain(Target, plain) for plain in metadata["targets"]]


def in_dataset_order(item: RunItem, query_id: str, chosen: Sequence[int]) -> tuple[int, ...]:
    """Map offered places to those of the dataset."""
    return tuple(sorted(item.orders[query_id][place] for place in chosen))
