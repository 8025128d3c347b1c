"""The items of a suite as samples of inspect_ai, and what a sample holds."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, TypeVar

from inspect_ai.dataset import MemoryDataset, Sample

from action_selector.request_limits import find_repeat
from norm_core.records.episode import Query
from norm_core.records.json_codec import from_plain, sha256_of, to_plain
from norm_core.records.record import record
from norm_core.runtime.wording import count_of
from norm_monitor.judge.deployment_context import PictureRules
from sim_replays.items.dataset_files import hash_files
from sim_replays.items.run_config import RunConfig, RunItem
from sim_replays.items.target import Key, Prediction, SuiteError, Target
from sim_replays.suites.leaks import find_leaks
from sim_replays.suites.suite import find_suite, make_suite_items

# Keys in the store of a sample.
ANSWERS = "answers"
LEFT_OUT = "left_out"  # tasks that a model alone is not asked

F = TypeVar("F", bound=Callable[..., Any])


def register_as_tactful(function: F) -> F:
    """Let a decorator of inspect_ai register this name as it is, wherever the package is installed."""
    function.__module__ = "tactful"
    return function


@record
class AskedSample:
    """What solvers read of a sample: the item of the robot, and the prompts of a model alone, without right answers."""

    asking: RunConfig
    rules: PictureRules
    item: RunItem
    prompts: RunItem | None = None


@record
class SampleAnswer:
    """One answer, in the dataset's own order of options, and its origin."""

    prediction: Prediction
    cached: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)


def make_dataset(run_config: RunConfig, rules: PictureRules) -> tuple[MemoryDataset, dict[str, Any]]:
    """Read the items of a suite as samples, and describe the data."""
    suite = find_suite(run_config.suite)
    run_items = make_suite_items(run_config.model_copy(update={"bare": False}))
    episodes = run_items.episodes
    prompts: dict[str, RunItem] = {}
    if run_config.setting in suite.bare_settings:
        bare_items = make_suite_items(run_config.model_copy(update={"bare": True}))
        prompts = {item.id: item for item in bare_items.episodes}
    targets: dict[Key, Target] = {}
    for target in run_items.targets:
        if target.key in targets:
            raise SuiteError(f"{run_config.data}: {target.id!r} ({target.task}) appears twice; give each id once")
        targets[target.key] = target
    leaks = find_leaks(prompts.values() or episodes, targets)
    samples = [
        _make_sample(AskedSample(asking=run_config, rules=rules, item=item, prompts=prompts.get(item.id)), targets)
        for item in episodes
    ]
    counts = Counter(sample.id for sample in samples)
    if repeated_ids := [sample_id for sample_id, count in counts.items() if count > 1]:
        raise SuiteError(f"{run_config.data}: the item {repeated_ids[0]!r} appears twice; give each id once")
    queries = [query for item in episodes for query in item.queries]
    ambiguous = [query.query_id for query in queries if any(map(find_repeat, (query.options, query.justifications)))]
    cautions = []
    if ambiguous:
        cautions.append(f"{count_of(len(ambiguous), 'question')} with an option that appears twice: {ambiguous[0]}")
    if leaks:
        cautions.append(f"the right option stands in the prompt of {count_of(len(leaks), 'question')}: {leaks[0]}")
    if oracle := suite.oracle_texts.get(run_config.setting):
        cautions.append(f"text from an oracle: {oracle} of the dataset")
    metadata = {
        "suite": run_config.suite,
        "data_sha256": hash_files(list(run_items.files)),
        "pictures_sha256": _hash_pictures(episodes),
        "config_sha256": sha256_of(run_config.model_dump(mode="json", exclude={"data", "pictures"})),
        "cautions": cautions,
    }
    return MemoryDataset(samples, name=suite.name, location=run_config.data), metadata


def _hash_pictures(items: Iterable[RunItem]) -> str:
    """Hash the names and sizes of the pictures of each item, because their bytes may be many gigabytes."""
    paths = {shot.path for item in items for shot in item.shots}
    size_by_path = {path: path.stat().st_size for path in paths}
    return sha256_of([[(shot.path.name, size_by_path[shot.path]) for shot in item.shots] for item in items])


def _make_sample(asked: AskedSample, targets: Mapping[Key, Target]) -> Sample:
    item = asked.item
    item_targets = [targets[item.item or item.id, query.task] for query in item.queries]
    shown = [query.question for query in asked.prompts.queries] if asked.prompts else map(_describe_query, item.queries)
    return Sample(
        id=item.id,
        input="\n\n".join(shown),
        target=[_describe_right(query, target, item) for query, target in zip(item.queries, item_targets, strict=True)],
        metadata={
            "suite": asked.asking.suite,
            "group": item_targets[0].group,
            **item_targets[0].by,
            "asked": to_plain(asked),
            "targets": [to_plain(target) for target in item_targets],
        },
    )


def _describe_query(query: Query) -> str:
    return "\n".join(filter(None, (query.viewpoint.description, query.question, *map(str, query.options))))


def _describe_right(query: Query, target: Target, item: RunItem) -> str:
    """Return the right answer in words: its options, other names of them, or references."""
    options = query.justifications or query.options
    order = item.orders.get(query.query_id, ())
    if not target.options or len(options) != len(order):
        return "; ".join(target.references or [target.words[index] for index in target.right if target.words])
    return "; ".join(options[order.index(index)] or "None" for index in target.right)


def read_asked_sample(metadata: Mapping[str, Any]) -> AskedSample:
    """Read what a solver may know of a sample from its metadata."""
    return from_plain(AskedSample, metadata["asked"])


def read_sample_targets(metadata: Mapping[str, Any]) -> list[Target]:
    """Read the right answers of a sample from its metadata, for a scorer."""
    return [from_plain(Target, plain) for plain in metadata["targets"]]


def map_to_dataset(item: RunItem, query_id: str, chosen: Sequence[int]) -> tuple[int, ...]:
    """Map indices of offered options to those of the dataset."""
    return tuple(sorted(item.orders[query_id][index] for index in chosen))
