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
from norm_monitor.judge.excerpt import Excerpt
from norm_monitor.judge.judge import Judge, JudgeConfig, images_for, plan
from norm_monitor.units.unit import UnitKind
from tests.norm_core.engines.scripted import ScriptedBackend
from tests.norm_monitor.encounter_talk import at, robot, user
from tests.norm_monitor.judge.unit_views import FRAME, views_of

TALK = [*user(1, 3, "Nobody listens to me."), *robot(4, 6, "Great!")]
SEEN = views_of(TALK, frames=[FRAME])[UnitKind.ROBOT_TURN, 4]
EXCERPT = Excerpt.of_unit(SEEN)


@pytest.mark.parametrize("context", DeploymentContext)
def test_the_emotion_question_has_no_picture_unless_allowed(context: DeploymentContext) -> None:
    planned = plan(EXCERPT, 4, context)
    emotions = prompts.attributes()[list(Attribute).index(Attribute.EMOTIONS)]
    (asked_with,) = [batch.prompt for batch in planned.attributes if emotions in batch.questions]
    allowed = context in {"home", "public", "health"}
    assert bool(asked_with.images) == allowed
    assert planned.prompt.images
    assert ("do not infer emotions" in planned.prompt.as_text()) != allowed
    assert sorted(place for batch in planned.attributes for place in batch.places) == list(range(len(Attribute)))


def test_without_pictures_there_is_one_prompt_in_every_context() -> None:
    plans = {plan(EXCERPT, 0, context).prompt.digest for context in DeploymentContext}
    assert len(plans) == 1
    (batch,) = plan(EXCERPT, 0, DeploymentContext.WORKPLACE).attributes
    assert {batch.prompt.digest} == plans


def test_answers_stand_in_their_places_however_they_were_asked() -> None:
    yes = {Attribute.EMOTIONS, Attribute.USER_INTENTION}
    names = dict(zip([question.parts for question in prompts.attributes()], Attribute, strict=True))

    def answer(question: Question, call: RequestContext) -> Sequence[float]:
        if question.parts == prompts.detection().parts:
            return [4.0, 0.0, 0.0]
        return [2.0, 0.0] if names[question.parts] in yes else [0.0, 2.0]

    judged = Judge(Engine(ScriptedBackend(answer, "{}"), WallClock())).judge(SEEN)
    assert set(judged.attributes) == yes


def test_the_frames_around_the_unit_are_shown() -> None:
    frames = [replace(FRAME, stamp_ns=at(second)) for second in range(30)]
    talk = [*robot(12, 13, "Hello."), *user(1, 2, "Hello?")]
    view = views_of(talk, 30, frames)[UnitKind.ROBOT_TURN, 12]
    shown = [(frame.stamp_ns - at(0)) / 1e9 for frame in Excerpt.of_unit(view).frames]
    assert (shown[0], shown[-1]) == (7, 17)


def test_a_model_elsewhere_is_shown_pictures_only_where_they_may_leave() -> None:
    far = ModelInfo(model="far", engine="openai", on_this_machine=False)
    assert images_for(far, JudgeConfig(images=3)) == 0
    assert images_for(far, JudgeConfig(images=3, pictures_may_leave=True)) == 3
    assert images_for(replace(far, on_this_machine=True, max_images=2), JudgeConfig(images=3)) == 2
