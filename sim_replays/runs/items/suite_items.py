"""Make the questions of a suite for a bag, without any label."""

from dataclasses import replace
from pathlib import Path

from sim_replays.runs.run_config import RunConfig, RunItems, ids_in, is_named
from sim_replays.suites.predictions import prediction_by_name
from sim_replays.suites.suite import suite_called
from sim_replays.suites.target import SuiteError


def items_of_suite(asking: RunConfig) -> RunItems:
    """Make the items: the named ones if any are named, and of them the first `limit` if it is above 0."""
    suite = suite_called(asking.suite)
    if asking.setting not in suite.settings:
        raise SuiteError(f"there is no setting {asking.setting!r}; the settings are {', '.join(suite.settings)}")
    made = suite.items(asking)
    asked = made.asked
    if asking.only:
        wanted = ids_in(Path(asking.only))
        ids = {item.item or item.id for item in asked}
        if unknown := sorted(wanted - ids - {name.partition("#")[0] for name in ids}):
            raise SuiteError(f"{asking.only}: names ids that are not in {asking.data}: {prediction_by_name(unknown)}")
        asked = tuple(item for item in asked if is_named(item.item or item.id, wanted))
    if asking.limit:
        first = list(dict.fromkeys(item.item or item.id for item in asked))[: asking.limit]
        asked = tuple(item for item in asked if (item.item or item.id) in first)
    made = made if asked == made.asked else made.of(asked)
    files = [*made.files, *filter(None, (suite.source, Path(asking.only) if asking.only else None))]
    return replace(made, files=tuple(files))
