"""Which prompts a judge asks, by where the robot works and where the model runs."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from norm_core.engines.engine import Engine
from norm_core.engines.prompt import Question
from norm_core.engines.reply import ModelInfo
from norm_core.engines.request_context import RequestContext
from norm_core.prompts import judge as prompts
from norm_core.records.flag import Attribute
from norm_core.runtime.time import WallClock
from norm_monitor.judge.deployment_context import DeploymentContext
from norm_monitor.judge.judge import Judge, JudgeConfig, images_for
from norm_monitor.judge.prompt_plan import plan
from tests.norm_core.engines.scripted import ScriptedBackend
from tests.norm_monitor.judge.test_judge import FRAME, window

SEEN = replace(window(), frames=(FRAME,))


@pytest.mark.parametrize("context", DeploymentContext)
def test_the_emotion_question_has_no_picture_unless_allowed(context: DeploymentContext) -> None:
    planned = plan(SEEN, 4, context)
    emotions = prompts.questions()[1 + list(Attribute).index(Attribute.EMOTIONS)]
    (asked_with,) = [batch.prompt for batch in planned.batches if emotions in batch.questions]
    assert bool(asked_with.images) == (context in {"home", "public", "health"})
    assert planned.prompt.images
    assert sum(len(batch.questions) for batch in planned.batches) == len(prompts.questions())


def test_without_pictures_there_is_one_prompt_in_every_context() -> None:
    plans = {plan(window(), 4, context).prompt.digest for context in DeploymentContext}
    assert len(plans) == 1
    assert plan(SEEN, 0, DeploymentContext.WORKPLACE).prompt.digest in plans


def test_answers_stand_in_their_places_however_they_were_asked() -> None:
    first, *rest = prompts.questions()
    yes = {Attribute.EMOTIONS, Attribute.USER_INTENTION}
    names = dict(zip([question.parts for question in rest[: len(Attribute)]], Attribute, strict=True))

    def answer(question: Question, call: RequestContext) -> Sequence[float]:
        if question.parts == first.parts:
            return [4.0, 0.0, 0.0]
        if question.parts in names:
            return [2.0, 0.0] if names[question.parts] in yes else [0.0, 2.0]
        return [0.0] * (len(question.options) - 1) + [4.0]

    judged = Judge(Engine(ScriptedBackend(answer, "{}"), WallClock())).judge(SEEN)
    assert judged.finding
    assert set(judged.finding.attributes) == yes


def test_a_model_elsewhere_is_shown_pictures_only_where_they_may_leave() -> None:
    far = ModelInfo(model="far", engine="openai", on_this_machine=False)
    assert images_for(far, JudgeConfig(images=3)) == 0
    assert images_for(far, JudgeConfig(images=3, pictures_may_leave=True)) == 3
    assert images_for(replace(far, on_this_machine=True, max_images=2), JudgeConfig(images=3)) == 2
