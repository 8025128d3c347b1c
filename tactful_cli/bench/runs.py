"""`tactful bench run` and `grade`: write a suite's items to a bag and play it to the selector."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from norm_core.engines.engine_factory import open_engine_by_name
from norm_core.engines.sentences.sentence_encoder import MODEL as ENCODER_MODEL
from norm_core.records.record import record
from norm_core.runtime.time import WallClock
from norm_core.runtime.wording import count_of
from sim_replays.runs import execute
from sim_replays.runs.asked_model import ModelOptions
from sim_replays.runs.random_model import RANDOM
from sim_replays.runs.results.grading import grade_answers, pairs, read_grades
from sim_replays.runs.results.run_folder import finish, open_run, predictions
from sim_replays.runs.run_config import RunConfig
from sim_replays.runs.shards import DDS, DIRECT, RayShards, Shards, transport
from sim_replays.runs.transport import AnswererConfig, Transport, TransportError
from sim_replays.suites.catalogue import suite_called
from sim_replays.suites.target import SuiteError
from tactful_cli.bench.comparison import show_report
from tactful_cli.console import err

_TOLD_EVERY_S = 10.0


class How(StrEnum):
    """How a run reaches the node: over DDS, or directly in this process."""

    DDS = DDS
    DIRECT = DIRECT


@record
class Spread:
    """The number of processes of a run, and their Ray cluster. An empty address means this machine."""

    shards: int = 1
    ray: str = ""

    def __str__(self) -> str:
        """Format as the number of processes, with the cluster's address if there is one."""
        return f"{self.shards}{f' on Ray at {self.ray}' if self.ray else ''}"


def run(
    out: Path,
    asking: RunConfig,
    files: AnswererConfig,
    spread: Spread,
    *,
    how: How,
    rate: float,
    as_json: bool,
) -> None:
    """Run the open items, and print the score."""
    began_s = time.monotonic()
    with _progress() as progress:
        played = _transport(how, files, rate, spread, ModelOptions(seed=asking.seed))
        named = how.value if not rate else f"{how.value} at {rate:g} times its pace"
        try:
            found, scored = execute.run(out, asking, files, played, how=named, progress=progress, shards=str(spread))
        except TransportError as error:
            raise TransportError(f"{error}\nwhat was answered is in {out}, and the same command goes on") from error
        except KeyboardInterrupt:
            err.print(f"interrupted: what was answered is in {out}, and the same command goes on", soft_wrap=True)
            raise
    show_report(suite_called(found.key.suite), scored, as_json)
    err.print(f"{count_of(len(found.told), 'answer')} in {out}, {time.monotonic() - began_s:.1f} s", soft_wrap=True)


def grade(folder: Path, judge: str, as_json: bool) -> None:
    """Grade the ungraded answers, and print the score with the grades."""
    found = open_run(folder)
    targets, read = list(found.key.targets), predictions(found).predictions
    wanted = len(pairs(targets, read))
    if not wanted:
        raise SuiteError(f"{folder}: holds no written answer that is graded (of evidence, where the label was right)")
    engine = open_engine_by_name(ENCODER_MODEL if judge == execute.ENCODER else judge, WallClock())
    with _progress() as progress:
        before = len(read_grades(folder))
        progress(before, wanted)
        for done, _ in enumerate(grade_answers(folder, targets, read, engine), before + 1):
            progress(done, wanted)
    show_report(suite_called(found.key.suite), finish(open_run(folder)), as_json)


def _transport(how: How, files: AnswererConfig, rate: float, spread: Spread, options: ModelOptions) -> Transport:
    if how is How.DDS and files.model == RANDOM:
        raise SuiteError(f"{RANDOM}: no node asks a model that answers at random; add --transport direct")
    if how is How.DDS and (find_spec("rclpy") is None or find_spec("norm_nodes") is None):
        raise SuiteError(
            "rclpy: it is not installed with norm_nodes; run ./tactful bench in a checkout, or add --transport direct"
        )
    if spread.ray:
        return RayShards(files, spread.ray, spread.shards, how.value, options)
    if spread.shards > 1:
        return Shards(files, spread.shards, how.value, rate, options)
    return transport(files, how.value, rate, options)


@contextmanager
def _progress() -> Iterator[execute.Progress]:
    """Show a progress bar on a terminal, otherwise lines; both with rate and remaining time."""
    if not sys.stderr.isatty():
        yield _Lines().tell
        return
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"), TimeRemainingColumn())
    with Progress(*columns, console=err) as bar:
        task = bar.add_task("answers", total=None, rate="")
        began_s = time.monotonic()
        before: int | None = None

        def tell(done: int, total: int) -> None:
            nonlocal before
            before = done if before is None else before
            rate = (done - before) / max(time.monotonic() - began_s, 1e-3)
            bar.update(task, completed=done, total=total, rate=f"{rate:.1f}/s")

        yield tell


class _Lines:
    def __init__(self) -> None:
        self._began_s = self._told_s = time.monotonic()
        self._before: int | None = None

    def tell(self, done: int, total: int) -> None:
        now_s = time.monotonic()
        self._before = done if self._before is None else self._before
        if now_s - self._told_s < _TOLD_EVERY_S and done < total:
            return
        self._told_s = now_s
        rate = (done - self._before) / max(now_s - self._began_s, 1e-3)
        left = f", {(total - done) / rate:.0f} s left" if rate and done < total else ""
        err.print(f"{done} of {count_of(total, 'answer')}, {rate:.1f}/s{left}")
