"""What inspect_ai finds of Tactful: a task for each suite, the solvers and the scorer."""

from pathlib import Path
from typing import Any

from inspect_ai import Task, task
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.model import GenerateConfig

from norm_core.runtime.config import check_config
from norm_core.runtime.errors import TactfulError
from norm_monitor.judge.deployment_context import PictureRules
from sim_replays.evals.bare import ReplyForm, bare
from sim_replays.evals.controls import control
from sim_replays.evals.robot import robot
from sim_replays.evals.samples import dataset_of, tactful
from sim_replays.evals.scorer import answers as answers_scorer
from sim_replays.evals.scorer import figures
from sim_replays.items.run_config import RunConfig
from sim_replays.suites.own import check_known_answer
from sim_replays.suites.suite import suite_called

__all__ = ["bare", "control", "egogapbench", "egonormia", "figures", "hsri", "own", "robot", "videonorms"]


def suite_task(suite: str, data: str, answers: ReplyForm = "text", **variants: Any) -> Task:
    """Make the task of a suite: a model alone answers, unless another solver is named."""
    try:
        return _task(suite, data, answers, variants)
    except TactfulError as error:
        raise PrerequisiteError(str(error)) from error  # which inspect_ai prints without a traceback


def _task(suite: str, data: str, answers: ReplyForm, variants: dict[str, Any]) -> Task:
    named = suite_called(suite)
    check_known_answer(named)
    rules = {name: variants.pop(name) for name in PictureRules.model_fields if name in variants}
    for name in ("pictures", "only"):
        if variants.get(name):
            variants[name] = str(Path(variants[name]).expanduser().resolve())
    plain = {
        "suite": suite if suite == named.name else str(Path(suite).resolve()),
        "data": str(Path(data).expanduser().resolve()),
        "setting": next(iter(named.bare_settings or named.settings)),
        "sampling": "paper",
        "frames": named.paper_form,
        **{name: value for name, value in variants.items() if value not in {"", None}},
    }
    asking = check_config(RunConfig, plain, "task arguments (-T)")
    dataset, described = dataset_of(asking, check_config(PictureRules, rules, "task arguments (-T)"))
    return Task(
        dataset=dataset,
        solver=bare(answers),
        scorer=answers_scorer(asking.suite),
        metrics=[figures(asking.suite)],
        config=GenerateConfig(temperature=0.0),
        score_on_error=True,  # else a question that failed would leave the figures
        metadata={**described, "asking": asking.model_dump(mode="json")},
    )


@task(name="tactful/egogapbench")
@tactful
def egogapbench(data: str, answers: ReplyForm = "text", **variants: Any) -> Task:
    """EgoGapBench: `setting`, `style` (default, egoplan, exclusion), `pictures`, `seed`, `only`."""
    return suite_task("egogapbench", data, answers, **variants)


@task(name="tactful/egonormia")
@tactful
def egonormia(data: str, answers: ReplyForm = "text", **variants: Any) -> Task:
    """EgoNormia: `setting`, `frames`, `pictures`, `precedents`, `seed`, `only`."""
    return suite_task("egonormia", data, answers, **variants)


@task(name="tactful/videonorms")
@tactful
def videonorms(data: str, **variants: Any) -> Task:
    """VideoNorms: `setting`, `sampling`, `pictures`, `whisper`, `deployment_context`, `only`."""
    return suite_task("videonorms", data, **variants)


@task(name="tactful/hsri")
@tactful
def hsri(data: str, **variants: Any) -> Task:
    """HSRI: `setting`, `sampling`, `pictures`, `deployment_context`, `only`."""
    return suite_task("hsri", data, **variants)


@task(name="tactful/own")
@tactful
def own(suite: str, data: str, answers: ReplyForm = "text", **variants: Any) -> Task:
    """A suite of one's own: `suite` is its folder with suite.py, or the name of an installed one."""
    return suite_task(suite, data, answers, **variants)
