"""`tactful bench run` and the grades of `bench score`: write a suite's items to a bag and play it to the selector."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from norm_core.engines.sentences.sentence_encoder import MODEL as ENCODER_MODEL
from norm_core.records.outcome import Outcome
from norm_core.runtime.time import WallClock
from norm_core.runtime.wording import count_of, in_words
from sim_replays.items.run_config import RunConfig
from sim_replays.items.target import SuiteError
from sim_replays.runs import execute
from sim_replays.runs.asked_model import ModelOptions, open_asked_models
from sim_replays.runs.random_model import RANDOM
from sim_replays.runs.results.grading import Grade, grade_answers, keys_graded, pairs, read_grades
from sim_replays.runs.results.run_folder import Spent, open_run, predictions, read_spent
from sim_replays.runs.shards import DDS, DIRECT, RayShards, Shards, transport
from sim_replays.runs.transport import AnswererConfig, Transport, TransportError
from sim_replays.suites.report import Report
from sim_replays.suites.suite import suite_called
from sim_replays.verbs.comparison import show_report
from tactful_cli.bag import progress
from tactful_cli.console import err

_TOLD_EVERY_S = 10.0
# Outcomes of a model that does not answer, whatever it is asked.
_BROKEN = {Outcome.FAILED, Outcome.TIMED_OUT, Outcome.REFUSED}
_DIRECT_ONLY = {"timeout_s", "cache", "concurrency"}
_MAX_UNGRADED = 20  # in a row, as where the server is down


class How(StrEnum):
    """How a run reaches the node: over DDS, or directly in this process."""

    DDS = DDS
    DIRECT = DIRECT


@dataclass(frozen=True, kw_only=True)
class CourseOptions:
    """How a run goes on: by what transport, in how many processes, and when it stops or asks again."""

    transport: Annotated[
        How | None,
        typer.Option(help="dds: the robot's node in its own process (default); direct: in this process (with --bare)."),
    ] = None
    shards: Annotated[int, typer.Option(min=1, max=256, help="Number of processes that share the episodes.")] = 1
    ray: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Ray cluster for the processes; local: start one here.")
    ] = ""
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Ask again what failed, timed out or was refused.")
    ] = False
    max_failures: Annotated[
        int, typer.Option(min=0, help="Number of failures in a row that stop the run, with exit code 1; 0: none.")
    ] = 20
    max_tokens: Annotated[int, typer.Option(min=0, help="Tokens after which the run stops; 0: no limit.")] = 0

    @property
    def limits(self) -> execute.RunLimits:
        """What is asked again, and what stops the run."""
        return execute.RunLimits(
            retry=execute.ASKED_AGAIN if self.retry_failed else frozenset(),
            max_failures=self.max_failures,
            max_tokens=self.max_tokens,
        )

    def how(self, *, bare: bool) -> How:
        """By what the episodes are played."""
        return self.transport or (How.DIRECT if bare else How.DDS)


def run(  # noqa: PLR0917
    out: Path, asking: RunConfig, files: AnswererConfig, course: CourseOptions, options: ModelOptions, as_json: bool
) -> None:
    """Run the open items, and print the score. Exit with 1 if nothing was answered, or nothing of one task."""
    how = course.how(bare=asking.bare)
    began_s = time.monotonic()
    with _progress() as tell:
        played = _transport(how, files, course, options)
        try:
            report, scored = execute.run(
                out,
                asking,
                files,
                played,
                how=how.value,
                progress=tell,
                shards=f"{course.shards} on Ray at {course.ray}" if course.ray else str(course.shards),
                limits=course.limits,
            )
        except execute.RunStoppedError as error:
            raise execute.RunStoppedError(
                f"{error}\nwhat was answered is in {out}{_requests_of(read_spent(out))}"
            ) from error
        except TransportError as error:
            raise TransportError(f"{error}\nwhat was answered is in {out}, and the same command goes on") from error
        except KeyboardInterrupt:
            err.print(f"interrupted: what was answered is in {out}, and the same command goes on", soft_wrap=True)
            raise
    show_report(suite_called(report.key.suite), scored, as_json)
    seconds = f"{time.monotonic() - began_s:.1f} s"
    err.print(
        f"{count_of(len(report.told), 'answer')} in {out}, {seconds}{_requests_of(read_spent(out))}", soft_wrap=True
    )
    if silent := _unanswered(scored):
        err.print(f"{out}: {silent}; {_remedy(scored)}", soft_wrap=True)
        raise typer.Exit(1)


def _unanswered(scored: Report) -> str:
    """Name the tasks of which no question was answered; empty if there are none."""
    silent = []
    for task, outcomes in scored.outcomes_by_task.items():
        failed = {name: count for name, count in outcomes.items() if count and name in _BROKEN}
        if failed and sum(failed.values()) == sum(outcomes.values()):
            counts = ", ".join(f"{count} {in_words(name)}" for name, count in failed.items())
            silent.append(f"no question of the task {task} was answered ({counts})")
    if not scored.outcomes[Outcome.ANSWERED] and not scored.outcomes[Outcome.ABSTAINED]:
        silent = silent or ["no question was answered"]
    return "; ".join(silent)


def _remedy(scored: Report) -> str:
    if {name for name, count in scored.outcomes.items() if count} <= {Outcome.UNPARSED}:
        return "look at the replies in raw.jsonl, and ask a model that keeps to the form"
    return "correct the cause, then give the same command with --retry-failed"


def _requests_of(spent: Spent) -> str:
    """State how many requests and tokens a run took, for the line with its folder."""
    if not spent.requests:
        return ""
    cached = f" ({spent.cached} from the cache)" if spent.cached else ""
    return f", {count_of(spent.requests, 'request')}{cached}, {spent.tokens} tokens"


def grade(folder: Path, judge: str) -> None:
    """Let a model grade the written answers that have no grade yet."""
    finished = open_run(folder)
    targets, read = list(finished.key.targets), predictions(finished).predictions
    wanted = len(pairs(targets, read))
    if not wanted:
        raise SuiteError(f"{folder}: holds no written answer that is graded (of evidence, where the label was right)")
    [grader] = open_asked_models(ENCODER_MODEL if judge == execute.ENCODER else judge, WallClock(), ModelOptions())
    limits = execute.RunLimits(max_failures=_MAX_UNGRADED)
    with _progress() as tell:
        done = len(keys_graded(read_grades(folder)))
        tell(done, wanted)
        spent, failures = Spent(), list[Grade]()
        for number, graded in enumerate(grade_answers(folder, targets, read, grader), done + 1):
            tell(number, wanted)
            spent = spent.plus(grader.end_question(graded.id))
            failures = [] if graded.grade else [*failures, graded]
            limits.check(spent, failures)
    err.print(f"graded in {folder}{_requests_of(spent)}", soft_wrap=True)
    if not any(graded.grade for graded in read_grades(folder)):
        raise execute.RunStoppedError(f"{folder}: no grade was given; give the same command again")


def _transport(how: How, files: AnswererConfig, course: CourseOptions, options: ModelOptions) -> Transport:
    if how is How.DDS and files.model == RANDOM:
        raise SuiteError(f"{RANDOM}: no node asks a model that answers at random; add --transport direct")
    if how is How.DDS and options.model_dump(include=_DIRECT_ONLY, exclude_defaults=True):
        raise SuiteError("--timeout-s, --no-cache, --concurrency: add --transport direct")
    if how is How.DDS and course.max_tokens:
        raise SuiteError("--max-tokens: a node counts no tokens; add --transport direct")
    if how is How.DDS and (find_spec("rclpy") is None or find_spec("norm_nodes") is None):
        raise SuiteError(
            "rclpy: it is not installed with norm_nodes; run ./tactful bench in a checkout, or add --transport direct"
        )
    if course.ray:
        return RayShards(files, course.ray, course.shards, how.value, options)
    if course.shards > 1:
        return Shards(files, course.shards, how.value, options)
    return transport(files, how.value, options)


@contextmanager
def _progress() -> Iterator[execute.Progress]:
    """Show a progress bar on a terminal, otherwise lines with rate and remaining time."""
    if not err.is_terminal:
        yield _Lines().tell
        return
    with progress("questions") as tell:
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
        err.print(f"{done} of {count_of(total, 'question')}, {rate:.1f}/s{left}")
