"""The settings of the selector for a run."""

from collections.abc import Mapping, Sequence
from typing import Any

from action_selector.selector import SelectorFiles
from action_selector.selector_config import WhenUnsure
from norm_core.engines.talk_reader import NO_READER
from norm_monitor.judge.deployment_context import DeploymentContext, PictureRules
from sim_replays.items.run_config import RunConfig
from sim_replays.items.target import SuiteError
from sim_replays.runs.random_model import RANDOM
from sim_replays.suites.suite import find_suite

ENCODER = "encoder"

# By step that a run can leave out (ablation), the parameters without it.
ABLATIONS: Mapping[str, Mapping[str, Any]] = {
    "veto": {"veto_others": False},
    "avoidance": {"avoid_others": False},
    "viewpoint": {"ask_viewpoint": False},
    "precedents": {"precedents": 0},
    "permutation": {"orders": 1},
    "norms": {"ask_norms": False},
}


def make_answerer_config(
    model: str, run_config: RunConfig, rules: PictureRules, without: Sequence[str] = (), precedents_index: str = ""
) -> SelectorFiles:
    """Make the settings of the selector, which answers a suite, without the steps that are left out.

    Raises SuiteError if no node answers the suite, or a setting is not of the selector.
    """
    if find_suite(run_config.suite).is_about_talk:
        raise SuiteError(f"{run_config.suite}: no node of the robot decides such questions; ask a model alone")
    if rules.deployment_context is not DeploymentContext.UNSPECIFIED:
        raise SuiteError(f"nothing in {run_config.suite} asks about emotions; leave deployment_context out")
    return make_selector_files(
        model, precedents_index=precedents_index, without=without, pictures_may_leave=rules.pictures_may_leave
    )


def make_control_config(config: SelectorFiles, selector: str) -> SelectorFiles:
    """Return the settings of a control: the same steps around a model that answers at random, or around none."""
    changes: dict[str, dict[str, Any]] = {
        "random": {"model": RANDOM, "fall_back": False},
        "none": {"model": "", "fall_back": True},
    }
    return config.model_copy(update=changes.get(selector, {}))


def make_selector_files(
    model: str,
    *,
    precedents_index: str = "",
    without: Sequence[str] = (),
    pictures_may_leave: bool = False,
) -> SelectorFiles:
    """Make the settings of the selector for a run, without the steps that are left out.

    A model that fails has no answer by similarity in its place, because that would be a guess.

    Raises SuiteError if a step is unknown.
    """
    if unknown := [step for step in without if step not in ABLATIONS]:
        raise SuiteError(f"without: there is no step {unknown[0]!r}; name of {', '.join(ABLATIONS)}")
    ablated = {name: value for step in without for name, value in ABLATIONS[step].items()}
    return SelectorFiles(
        model="" if model == ENCODER else model,
        reader=NO_READER,
        when_unsure=WhenUnsure.BEST_EFFORT,
        precedents_index=precedents_index,
        fall_back=model == ENCODER,
        pictures_may_leave=pictures_may_leave,
        **ablated,
    )
