"""What tests share: a ROS domain of one's own, which tests run, and the reasons to skip."""

import importlib.util
import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import settings

from norm_monitor.replay.node_process import claim_domain
from tests.observer import Observer
from tests.shared_data import ABSENT, SHARED_DATA

ROOT = Path(__file__).resolve().parents[1]

# A shell starts what stands before & with SIGINT ignored, and so would each child of a test.
signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes is the machine's affair; what hangs, the time limit of each test ends.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


os.environ["TACTFUL_READER"] = "none"  # a reader that is set up here changes flags
T = TypeVar("T")
_LEFT = pytest.StashKey[int]()  # how many tests were left for --all
ACCEPTANCE = (ROOT / "tests/acceptance", ROOT / "tests/goldens")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="also run the tests marked thorough")
    parser.addoption("--part", metavar="K/N", default="", help="also run the K-th of N parts of those marked thorough")


@pytest.hookimpl(tryfirst=True)  # before -m chooses by these markers
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark each test with its stage, and skip what needs something that is not here, saying what."""
    for item in items:
        item.add_marker(_stage(item))
        if item.get_closest_marker("ros") and not _importable("rclpy", "norm_interfaces"):
            item.add_marker(
                pytest.mark.skip(reason="rclpy or the built norm_interfaces is missing: run ./tactful test")
            )
        if item.get_closest_marker("torch") and not _importable("torch", "transformers"):
            item.add_marker(
                pytest.mark.skip(reason="torch is not in this environment: ./tactful test runs it in one that has it")
            )
        if item.get_closest_marker("launch") and not _importable("launch", "launch_ros"):
            item.add_marker(pytest.mark.skip(reason="launch is not among the wheels: needs a ROS installation"))
    left = _left_for_all(config, items)
    items[:] = [item for item in items if item not in left]
    config.stash[_LEFT] = len(left)


def _left_for_all(config: pytest.Config, items: list[pytest.Item]) -> set[pytest.Item]:
    """List the tests marked thorough that nobody asked for, by --all, by --part or by the name of their file."""
    if config.getoption("all"):
        return set()
    named = {Path(config.invocation_params.dir, argument.partition("::")[0]) for argument in config.args}
    thorough = [item for item in items if item.get_closest_marker("thorough") and item.path not in named]
    asked = part_of(thorough, config.getoption("part"))
    return set(thorough) - set(asked)


def part_of(items: Sequence[T], part: str) -> Sequence[T]:
    """Take the K-th of N parts, in one piece, as neighbours share what is slow to make; of no part, take nothing."""
    try:
        number, parts = (int(digits) for digits in (part or "0/1").split("/"))
    except ValueError as error:
        raise pytest.UsageError(f"--part {part}: is no K/N; give 1/12 to 12/12") from error
    return items[max(0, number - 1) * len(items) // parts : number * len(items) // parts]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tell the process that shares the tests among workers how many were left."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left"] = session.config.stash.get(_LEFT, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over from a worker of pytest-xdist how many tests were left."""
    node.config.stash[_LEFT] = getattr(node, "workeroutput", {}).get("left", 0)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if left := config.stash.get(_LEFT, 0):
        terminalreporter.write_line(f"{left} tests marked thorough were left out: run ./tactful test --all")


def _stage(item: pytest.Item) -> str:
    if any(folder in item.path.parents for folder in ACCEPTANCE):
        return "acceptance"
    return "graph" if item.get_closest_marker("ros") else "unit"


@pytest.fixture
def domain_id(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A ROS domain that no other test on this machine uses meanwhile, also set for subprocesses."""
    with claim_domain() as domain:
        monkeypatch.setenv("ROS_DOMAIN_ID", str(domain))
        yield domain


@pytest.fixture
def observer(domain_id: int) -> Iterator[Observer]:
    observer = Observer(domain_id)
    yield observer
    observer.close()


@pytest.fixture
def own_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a user's own models, which all verbs and nodes read."""
    monkeypatch.setenv("TACTFUL_MODELS", str(tmp_path))
    return tmp_path


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real benchmark items and speech beside the project, where it is there."""
    if not SHARED_DATA.is_dir():
        pytest.skip(ABSENT)
    return SHARED_DATA


def _importable(*names: str) -> bool:
    return all(importlib.util.find_spec(name) for name in names)
