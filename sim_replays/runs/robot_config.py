"""The settings of the nodes that answer a suite: the selector for actions, the judge for talk."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import Field

from action_selector.retrieval import NEAREST, Precedent, write_precedents
from action_selector.selector import SelectorFiles
from action_selector.selector_config import WhenUnsure
from norm_core.engines.sentences.sentence_encoder import MODEL
from norm_core.engines.talk_reader import NO_READER
from norm_core.files.data_files import make_cache_folder
from norm_core.records.json_codec import sha256_of
from norm_core.runtime.config import Config
from norm_monitor.judge.deployment_context import DeploymentContext, PictureRules
from sim_replays.items.dataset_files import hash_files
from sim_replays.items.run_config import RunConfig
from sim_replays.items.target import SuiteError
from sim_replays.runs.random_model import RANDOM
from sim_replays.suites import egonormia
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
    "norms": {"ask_norms": False},
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
    """Make the settings of the node that answers a suite, without the steps that are left out.

    Raises SuiteError if a setting is not of the node.
    """
    suite = find_suite(run_config.suite)
    if suite.answered_by == "judge":
        if without or precedents_index:
            raise SuiteError(
                f"the judge answers {run_config.suite}; leave out `without` and `precedents`, which are of the selector"
            )
        return make_judge_config(model, run_config, rules)
    if rules.deployment_context is not DeploymentContext.UNSPECIFIED:
        raise SuiteError(f"nothing in {run_config.suite} asks about emotions; leave deployment_context out")
    files = make_selector_files(
        model, precedents_index=precedents_index, without=without, pictures_may_leave=rules.pictures_may_leave
    )
    return add_precedents(files, run_config)


def make_control_config(config: AnswererConfig, selector: str) -> AnswererConfig:
    """Return the settings of a control: the same steps around a model that answers at random, or around none."""
    changes: dict[str, dict[str, Any]]
    if isinstance(config, JudgeAnswererConfig):
        changes = {"random": {"model": RANDOM}, "none": {"model": MODEL}}
    else:
        changes = {"random": {"model": RANDOM, "fall_back": False}, "none": {"model": "", "fall_back": True}}
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


def make_judge_config(model: str, run_config: RunConfig, rules: PictureRules | None = None) -> JudgeAnswererConfig:
    """Make the settings of the judge: it sees the last 15 s of an episode as on a robot, or all as in the papers."""
    name = MODEL if model == ENCODER else model
    suite = QuestionConfig()
    if run_config.sampling == "paper":
        suite = QuestionConfig(window_s=_WHOLE_EPISODE_S, images=find_suite(run_config.suite).paper_frames)
    return JudgeAnswererConfig(model=name, suite=suite, rules=rules or PictureRules())


def add_precedents(files: SelectorFiles, run_config: RunConfig) -> SelectorFiles:
    """Add the precedents that the run asks for: the five nearest at any distance, or five at random.

    Raises SuiteError if the suite has no precedents, or two sources are named.
    """
    if not run_config.precedents:
        return files
    if run_config.suite != egonormia.SUITE.name:
        raise SuiteError(f"precedents are drawn for {egonormia.SUITE.name} alone; name a file of your own for others")
    if files.precedents_index:
        raise SuiteError("-T precedents and -S precedents: name two sources of precedents; leave one out")
    fields = files.model_dump()
    if run_config.precedents == "none":
        return SelectorFiles(**{**fields, "precedents": 0})
    path = _cache_precedents(run_config, at_random=run_config.precedents == "random-5")
    return SelectorFiles(**{**fields, "precedents_index": str(path), "precedents": NEAREST, "precedent_threshold": -1})


def _cache_precedents(run_config: RunConfig, *, at_random: bool) -> Path:
    """Return the file of the precedents, which equal runs share by its contents."""
    data = Path(run_config.data)
    sources = [hash_files([egonormia.find_file(data)]), run_config.seed, at_random]
    path = make_cache_folder("precedents") / f"{sha256_of(sources)[:16]}.jsonl"
    if not path.is_file():
        fitted_half, _ = egonormia.split_halves(*egonormia.read(data, run_config.seed), run_config.seed)
        precedents = list(egonormia.make_precedents(*fitted_half))
        if at_random:
            precedents = _shuffle_scenes(precedents, run_config.seed)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_precedents(path, precedents)
    return path


def _shuffle_scenes(precedents: Sequence[Precedent], seed: int) -> list[Precedent]:
    """Give each precedent the scene of another, so that distance means nothing."""
    order = random.Random(seed).sample(range(len(precedents)), len(precedents))
    other_index = dict(zip(order, [*order[1:], order[0]], strict=True))
    return [replace(precedent, scene=precedents[other_index[i]].scene) for i, precedent in enumerate(precedents)]
