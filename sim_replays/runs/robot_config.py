"""The settings of the nodes that answer a suite: the selector for actions, the judge for talk."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from action_selector.selector import SelectorFiles
from action_selector.selector_config import WhenUnsure
from norm_core.engines.sentences.sentence_encoder import MODEL
from norm_core.models.reader_folder import NO_READER
from norm_core.runtime.config import Config
from norm_monitor.judge.deployment_context import DeploymentContext, PictureRules
from sim_replays.items.run_config import RunConfig
from sim_replays.items.target import SuiteError
from sim_replays.runs.random_model import RANDOM
from sim_replays.suites.suite import find_suite
from sim_replays.suites.suite_questions import QuestionConfig

ENCODER = "encoder"
_WHOLE_EPISODE_S = 3600.0  # longer than any episode

# By step that a run can leave out (ablation), the parameters without it.
ABLATIONS: Mapping[str, Mapping[str, Any]] = {
    "veto": {"veto_others": False},
    "avoidance": {"avoid_others": False},
    "viewpoint": {"ask_viewpoint": False},
    "precedents": {"precedents": 0},
    "permutation": {"orders": 1},
}


class JudgeAnswererConfig(Config):
    """The model of the judge and how it answers; the sentence encoder is the default."""

    model: str = Field(default=MODEL, description="name of the model that is asked")
    suite: QuestionConfig = QuestionConfig()
    rules: PictureRules = PictureRules()


AnswererConfig = SelectorFiles | JudgeAnswererConfig


def make_answerer_config(
    model: str, run_config: RunConfig, rules: PictureRules, without: Sequence[str] = (), precedents_index: str = ""
) -> AnswererConfig:
    """Make the settings of the node that answers a suite, without the steps that are left out."""
    suite = find_suite(run_config.suite)
    if suite.answered_by == "judge":
        if without or precedents_index:
            raise SuiteError(
                f"the judge answers {run_config.suite}; leave out `without` and `precedents`, which are of the selector"
            )
        return make_judge_config(model, run_config, rules)
    if rules.deployment_context is not DeploymentContext.UNSPECIFIED:
        raise SuiteError(f"nothing in {run_config.suite} asks about emotions; leave deployment_context out")
    return make_selector_files(
        model, precedents_index=precedents_index, without=without, pictures_may_leave=rules.pictures_may_leave
    )


def make_control_config(config: AnswererConfig, selector: str) -> AnswererConfig:
    """Return the settings of a control: the same steps around a model that answers at random, or around none."""
    models = {"random": RANDOM, "none": MODEL if isinstance(config, JudgeAnswererConfig) else ""}
    return config.model_copy(update={"model": models[selector]} if selector in models else {})


def make_selector_files(
    model: str,
    *,
    precedents_index: str = "",
    without: Sequence[str] = (),
    pictures_may_leave: bool = False,
) -> SelectorFiles:
    """Make the settings of the selector for a run, without the steps that are left out."""
    if unknown := [step for step in without if step not in ABLATIONS]:
        raise SuiteError(f"without: there is no step {unknown[0]!r}; name of {', '.join(ABLATIONS)}")
    ablated = {name: value for step in without for name, value in ABLATIONS[step].items()}
    return SelectorFiles(
        model="" if model == ENCODER else model,
        reader=NO_READER,
        when_unsure=WhenUnsure.BEST_EFFORT,
        precedents_index=precedents_index,
        pictures_may_leave=pictures_may_leave,
        **ablated,
    )


def make_judge_config(model: str, run_config: RunConfig, rules: PictureRules | None = None) -> JudgeAnswererConfig:
    """Make the settings of the judge: it sees the last 15 s of an episode as on a robot, or all as in the papers."""
    name = MODEL if model == ENCODER else model
    suite = QuestionConfig()
    if run_config.sampling == "paper":
        suite = QuestionConfig(window_s=_WHOLE_EPISODE_S, images=find_suite(run_config.suite).paper_frames)
    return JudgeAnswererConfig(model=name, suite=suite, rules=rules or PictureRules())
