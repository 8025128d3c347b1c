"""What inspect_ai offers of Tactful: a task for each suite, the solvers and the scorer."""

from pathlib import Path
from typing import Any

from inspect_ai import Task, task
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.model import GenerateConfig

from norm_core.runtime.config import check_config
from norm_core.runtime.errors import TactfulError
from norm_monitor.judge.deployment_context import PictureRules
from sim_replays.evals.bare import AnswerForm, bare
from sim_replays.evals.controls import control
from sim_replays.evals.robot import robot
from sim_replays.evals.samples import make_dataset, register_as_tactful
from sim_replays.evals.scorer import answers as answers_scorer
from sim_replays.evals.scorer import figures
from sim_replays.items.run_config import RunConfig
from sim_replays.suites.own import check_known_answer
from sim_replays.suites.suite import find_suite

__all__ = ["bare", "control", "egogapbench", "egonormia", "figures", "hsri", "own", "robot", "videonorms"]


def make_suite_task(suite: str, data: str, answers: AnswerForm = "text", **variants: Any) -> Task:
    """Make the task of a suite, which a model alone answers unless another solver is named."""
    try:
        return _make_task(suite, data, answers, variants)
    except TactfulError as error:
        raise PrerequisiteError(str(error)) from error  # inspect_ai prints it without a traceback


def _make_task(suite: str, data: str, answers: AnswerForm, variants: dict[str, Any]) -> Task:
    loaded = find_suite(suite)
    check_known_answer(loaded)
    rules = {name: variants.pop(name) for name in PictureRules.model_fields if name in variants}
    if variants.get("pictures"):
        variants["pictures"] = str(Path(variants["pictures"]).expanduser().resolve())
    fields = {
        "suite": suite if suite == loaded.name else str(Path(suite).resolve()),
        "data": str(Path(data).expanduser().resolve()),
        "setting": next(iter(loaded.bare_settings or loaded.settings)),
        "sampling": "paper",
        "frames": loaded.paper_form,
        **{name: value for name, value in variants.items() if value not in {"", None}},
    }
    run_config = check_config(RunConfig, fields, "task arguments (-T)")
    dataset, metadata = make_dataset(run_config, check_config(PictureRules, rules, "task arguments (-T)"))
    return Task(
        dataset=dataset,
        solver=bare(answers),
        scorer=answers_scorer(run_config.suite),
        metrics=[figures(run_config.suite)],
        config=GenerateConfig(temperature=0.0),
        score_on_error=True,  # Otherwise a question that failed would leave the figures.
        metadata={**metadata, "asking": run_config.model_dump(mode="json")},
    )


@task(name="tactful/egogapbench")
@register_as_tactful
def egogapbench(data: str, answers: AnswerForm = "text", **variants: Any) -> Task:
    """EgoGapBench: `setting`, `style` (default, egoplan, exclusion), `pictures`, `seed`."""
    return make_suite_task("egogapbench", data, answers, **variants)


@task(name="tactful/egonormia")
@register_as_tactful
def egonormia(data: str, answers: AnswerForm = "text", **variants: Any) -> Task:
    """EgoNormia: `setting`, `frames`, `pictures`, `seed`."""
    return make_suite_task("egonormia", data, answers, **variants)


@task(name="tactful/videonorms")
@register_as_tactful
def videonorms(data: str, **variants: Any) -> Task:
    """VideoNorms: `setting`, `sampling`, `pictures`, `deployment_context`."""
    return make_suite_task("videonorms", data, **variants)


@task(name="tactful/hsri")
@register_as_tactful
def hsri(data: str, **variants: Any) -> Task:
    """HSRI: `setting`, `sampling`, `pictures`, `deployment_context`."""
    return make_suite_task("hsri", data, **variants)


@task(name="tactful/own")
@register_as_tactful
def own(suite: str, data: str, answers: AnswerForm = "text", **variants: Any) -> Task:
    """A suite of your own: `suite` is its folder with suite.py."""
    return make_suite_task(suite, data, answers, **variants)
