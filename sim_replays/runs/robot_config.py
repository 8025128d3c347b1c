"""The settings of the robot's nodes for a suite: the selector for actions, the judge for talk."""

import os
import random
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from action_selector.retrieval import NEAREST, Precedent, PrecedentIndex
from action_selector.selector import SelectorFiles
from action_selector.selector_config import WhenUnsure
from action_selector.text_safety.injection_filter import strip_instructions
from norm_core.engines.sentences.sentence_encoder import MODEL, SentenceEncoder
from norm_core.engines.talk_reader import NO_READER
from norm_core.files.data_files import make_cache_folder
from norm_core.records.json_codec import sha256_of
from norm_core.runtime.config import Config
from norm_monitor.judge.deployment_context import DeploymentContext, PictureRules
from sim_replays.items.dataset_files import sha256_of_files
from sim_replays.items.run_config import RunConfig
from sim_replays.items.target import SuiteError
from sim_replays.runs.random_model import RANDOM
from sim_replays.suites import egonormia
from sim_replays.suites.suite import suite_called
from sim_replays.suites.suite_questions import QuestionConfig

ENCODER = "encoder"
WHOLE_S = 3600.0

# Steps that a run can leave out, to measure their contribution (ablation).
STEPS_LESS: Mapping[str, Mapping[str, Any]] = {
    "veto": {"veto_others": False},
    "avoidance": {"avoid_others": False},
    "viewpoint": {"ask_viewpoint": False},
    "precedents": {"precedents": 0},
    "permutation": {"orders": 1},
    "norms": {"ask_norms": False},
}


class JudgeAnswererConfig(Config):
    """The judge's model and how it answers; the encoder answers where no other is named."""

    model: str = Field(default=MODEL, description="name of the model that is asked")
    suite: QuestionConfig = QuestionConfig()
    rules: PictureRules = PictureRules()


AnswererConfig = SelectorFiles | JudgeAnswererConfig


def config_of(
    model: str, asking: RunConfig, rules: PictureRules, without: Sequence[str] = (), precedents_index: str = ""
) -> AnswererConfig:
    """Make the settings of the node that answers a suite, without the steps that are left out."""
    suite = suite_called(asking.suite)
    if suite.answered_by == "judge":
        if without or precedents_index:
            raise SuiteError(f"the judge answers {asking.suite}: `without` and `precedents` are of the selector")
        return judge_config(model, asking, rules)
    if rules.deployment_context is not DeploymentContext.UNSPECIFIED:
        raise SuiteError(f"nothing in {asking.suite} asks about emotions: leave deployment_context out")
    files = selector_files(
        model, precedents_index=precedents_index, without=without, pictures_may_leave=rules.pictures_may_leave
    )
    return with_precedents(files, asking)


def controlled(config: AnswererConfig, selector: str) -> AnswererConfig:
    """Return the settings of a control: the same steps around a model that answers at random, or none."""
    is_judge = isinstance(config, JudgeAnswererConfig)
    at_random = {"model": RANDOM} if is_judge else {"model": RANDOM, "fall_back": False}
    without = {"model": MODEL} if is_judge else {"model": "", "fall_back": True}
    return config.model_copy(update={"random": at_random, "none": without}.get(selector, {}))


def selector_files(
    model: str,
    *,
    precedents_index: str = "",
    without: Sequence[str] = (),
    pictures_may_leave: bool = False,
) -> SelectorFiles:
    """Make the selector's settings for a run, without the ablated steps.

    A failed model gets no similarity fallback: that would be a guess.
    """
    if unknown := [step for step in without if step not in STEPS_LESS]:
        raise SuiteError(f"there is no step {unknown[0]!r} to do without; there are {', '.join(STEPS_LESS)}")
    left_out = {name: value for step in without for name, value in STEPS_LESS[step].items()}
    return SelectorFiles(
        model="" if model == ENCODER else model,
        reader=NO_READER,
        when_unsure=WhenUnsure.BEST_EFFORT,
        precedents_index=precedents_index,
        fall_back=model == ENCODER,
        pictures_may_leave=pictures_may_leave,
        **left_out,
    )


def judge_config(model: str, asking: RunConfig, rules: PictureRules | None = None) -> JudgeAnswererConfig:
    """The judge's settings for a run: the last 15 s of an episode as a robot has it, or all of it as the papers do."""
    name = MODEL if model == ENCODER else model
    suite = QuestionConfig()
    if asking.sampling == "paper":
        suite = QuestionConfig(window_s=WHOLE_S, images=suite_called(asking.suite).paper_frames)
    return JudgeAnswererConfig(model=name, suite=suite, rules=rules or PictureRules())


def with_precedents(files: SelectorFiles, asking: RunConfig) -> SelectorFiles:
    """Add the index that the run asks for: the five nearest at any distance, or five at random."""
    if not asking.precedents:
        return files
    if asking.suite != egonormia.SUITE.name:
        raise SuiteError(f"precedents are drawn for {egonormia.SUITE.name} alone: give an index of your own for others")
    if files.precedents_index:
        raise SuiteError("an index of precedents was given, and precedents of the data's own half were asked for too")
    plain = files.model_dump()
    if asking.precedents == "none":
        return SelectorFiles(**{**plain, "precedents": 0})
    index = _index(asking, at_random=asking.precedents == "random-5")
    return SelectorFiles(**{**plain, "precedents_index": str(index), "precedents": NEAREST, "precedent_threshold": -1})


def _index(asking: RunConfig, *, at_random: bool) -> Path:
    """Cache the index by its contents, so that equal runs share it."""
    data, encoder = Path(asking.data), SentenceEncoder()
    file = egonormia.file_of(data)
    made_of = [sha256_of_files([file]), encoder.weights_sha256, asking.seed, at_random]
    folder = make_cache_folder("precedents") / sha256_of(made_of)[:16]
    if folder.is_dir():
        return folder
    fitted_half, _ = egonormia.halves(*egonormia.read(data, asking.seed), asking.seed)
    index = index_of(egonormia.precedents(*fitted_half), encoder, at_random_by=asking.seed if at_random else None)
    folder.parent.mkdir(parents=True, exist_ok=True)
    built = Path(tempfile.mkdtemp(dir=folder.parent))
    try:
        index.save(built)
        os.replace(built, folder)  # noqa: PTH105
    except OSError:  # another run wrote it first
        shutil.rmtree(built, ignore_errors=True)
        if not folder.is_dir():
            raise
    return folder


def index_of(precedents: Sequence[Precedent], encoder: SentenceEncoder, *, at_random_by: int | None) -> PrecedentIndex:
    """Key precedents by their own scenes or, at random, by those of others, so that distance means nothing."""
    scenes = [strip_instructions(precedent.scene) for precedent in precedents]
    if at_random_by is not None:
        order = random.Random(at_random_by).sample(range(len(scenes)), len(scenes))
        turned = dict(zip(order, [*order[1:], order[0]], strict=True))
        scenes = [scenes[turned[place]] for place in range(len(scenes))]
    return PrecedentIndex(precedents, encoder.encode(scenes), encoder.weights_sha256)
