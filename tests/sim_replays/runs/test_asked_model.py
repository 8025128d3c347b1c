"""The model that a run asks: its requests are noted and cached, and one that answers at random is at chance."""

from collections import Counter
from pathlib import Path

import pytest
from pydantic import BaseModel, Field

from action_selector.candidates import Proposals
from action_selector.observation import SceneObservation
from norm_core.engines.direct_engine import DirectEngine
from norm_core.engines.prompt import Prompt, Question, Text
from norm_core.engines.request_context import RequestContext
from norm_core.records.outcome import Outcome
from norm_core.runtime.time import WallClock
from sim_replays.items.target import SuiteError
from sim_replays.runs.asked_model import AnswerCache, AskedModel
from sim_replays.runs.random_model import RandomBackend
from sim_replays.suites.suite_questions import NormEvidence
from tests.norm_core.engines.scripted import ScriptedBackend

PROMPT = Prompt(version="select_action-1", parts=(Text(text="It rains."),))
OPTIONS = ("Stay.", "Go.", "Ask.")


class Form(BaseModel):
    label: str = Field(min_length=1)
    grade: int = Field(ge=1, le=5)


def question(number: int) -> Question:
    return Question(parts=(Text(text=f"Number {number}?"),), options=OPTIONS)


def test_a_random_model_is_at_chance_and_equal_each_time() -> None:
    questions = [question(number) for number in range(3000)]
    scores = DirectEngine(RandomBackend(1), WallClock()).ask_many(PROMPT, questions)
    counts = Counter(one.best for one in scores)
    assert all(900 < counts[place] < 1100 for place in range(3))
    again, other = DirectEngine(RandomBackend(1), WallClock()), DirectEngine(RandomBackend(2), WallClock())
    assert [one.best for one in again.ask_many(PROMPT, questions)] == [one.best for one in scores]
    assert [one.best for one in other.ask_many(PROMPT, questions)] != [one.best for one in scores]


@pytest.mark.parametrize("schema", [Proposals, SceneObservation, NormEvidence])
def test_a_random_text_has_the_form_of_a_schema(schema: type[BaseModel]) -> None:
    for number in range(20):
        prompt = Prompt(version="x-1", parts=(Text(text=f"Look at {number}"),))
        assert DirectEngine(RandomBackend(0), WallClock()).generate(prompt, schema).outcome is Outcome.ANSWERED


def test_a_damaged_cache_says_how_to_go_on(tmp_path: Path) -> None:
    (tmp_path / "replies").write_text("no database, but long enough to be read as the head of one" * 40)
    with pytest.raises(SuiteError, match="add --no-cache"):
        AnswerCache(tmp_path / "replies")


def test_texts_are_cached_with_their_values(tmp_path: Path) -> None:
    backend = ScriptedBackend(lambda question, call: [], text='{"label": "x", "grade": 3}')
    cache = AnswerCache(tmp_path / "replies")
    before = AskedModel(DirectEngine(backend, WallClock()), cache=cache).generate(PROMPT, Form)
    backend.text = "{}"
    asked = AskedModel(DirectEngine(backend, WallClock()), cache=cache)
    assert asked.generate(PROMPT, Form).value == before.value == Form(label="x", grade=3)
    assert asked.generate(PROMPT, Form, seed=1).outcome is Outcome.UNPARSED
    assert [one.cached for one in asked.end_question("q")] == [True, False]


def test_a_question_has_a_time_for_all_its_requests() -> None:
    now = [0.0]

    def act(question: Question, call: RequestContext) -> list[float]:
        now[0] += 4.0
        call.check()
        return [1.0, 0.0, 0.0]

    model = AskedModel(DirectEngine(ScriptedBackend(act), WallClock()), timeout_s=10.0, now_s=lambda: now[0])
    outcomes = [model.ask_many(PROMPT, [question(number)])[0].outcome for number in range(3)]
    assert outcomes == [Outcome.ANSWERED, Outcome.ANSWERED, Outcome.TIMED_OUT]
    model.end_question("q1")
    assert model.ask_many(PROMPT, [question(9)])[0].outcome is Outcome.ANSWERED
