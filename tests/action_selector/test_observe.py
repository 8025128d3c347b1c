"""Who is there and what each does, as it comes in while a robot lives: by its own recognizers and by a model."""

import json
from dataclasses import replace
from typing import Any

import pytest

from action_selector.decider import Decider
from action_selector.selector import Selector
from action_selector.selector_config import SelectorConfig, WhenUnsure
from norm_core.engines.direct_engine import DirectEngine
from norm_core.engines.errors import EngineFailedError
from norm_core.engines.prompt import Prompt, Question, Quoted
from norm_core.engines.request_context import RequestContext
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.health.health_log import HealthLog
from norm_core.records.decision import Decision, Veto
from norm_core.records.episode import Episode, EpisodeEdge, Query
from norm_core.records.outcome import Outcome
from norm_core.records.presence import Engagement, Person, Presence, PresenceState
from norm_core.runtime.time import NS_PER_S, ReplayClock
from norm_core.streams.recent_records import MAX_RECORDS, RecentRecords
from tests.action_selector.questions import BEST_EFFORT, NOW_NS, list_vetoes, window
from tests.action_selector.test_models import jpeg, yes_to_all
from tests.norm_core.engines.scripted import ScriptedBackend

COOK = {"role": "cook", "appearance": "the man in white", "doing": "stirring the soup", "duplicable": "no"}
SEEN = json.dumps({"viewpoint": "behind the counter", "place": "kitchen", "role": "helper", "others": [COOK]})
OPTIONS = ("Stir the pot of soup.", "Lay the table.")
GUEST = Person(person_id="p7", distance_m=1.5, engagement=Engagement.ENGAGED)


def presence(age_s: float, *persons: Person) -> Presence:
    stamp_ns = NOW_NS - round(age_s * NS_PER_S)
    return Presence(
        stamp_ns=stamp_ns, source_topic="/humans/persons/tracked", state=PresenceState.PRESENT, persons=persons
    )


class Eye(ScriptedBackend):
    """Writes a fixed text, and stores the prompts that ask it to observe."""

    def __init__(self, text: str = SEEN) -> None:
        super().__init__(lambda question, call: yes_to_all(question) or [0.0] * len(question.options), text)
        self.asked: list[Prompt] = []

    def generate(self, prompt: Prompt, call: RequestContext, **how: Any) -> str:
        self.asked.append(prompt)
        if not self.text:
            raise EngineFailedError("the eye is shut")
        return super().generate(prompt, call, **how)


def decide_live(
    sentences: SentenceEncoder, *records: Any, eye: Eye | None = None, config: SelectorConfig = BEST_EFFORT
) -> Decision:
    """What is decided on a question that comes now, after these records, when nobody says who is there."""
    clock = ReplayClock(NOW_NS)
    selector = Selector(Decider(sentences, config, engine=DirectEngine(eye, clock) if eye else None), clock)
    for record in records:
        assert selector.take(record) == []
    (due,) = selector.take(Query(stamp_ns=NOW_NS, query_id="q", episode_id="", task="action", options=OPTIONS))
    return selector.decide(due).decision


FRAME = window(jpeg=jpeg()).frames[0]


def test_model_observes_what_tracked_people_do(sentences: SentenceEncoder) -> None:
    eye = Eye()
    decision = decide_live(sentences, FRAME, presence(0.2, GUEST), eye=eye)
    assert list_vetoes(decision) == [Veto.SINGLETON, Veto.NONE]
    assert decision.chosen == "Lay the table."
    assert "the man in white is doing that already" in decision.explanation
    (asked,) = eye.asked
    assert len(asked.images) == 1
    (people,) = (part.text for part in asked.parts if isinstance(part, Quoted) and part.label == "people")
    assert people == "the person 1.5 m away, busy with the robot"


def test_activity_of_tracked_people_is_unknown_without_a_model(sentences: SentenceEncoder) -> None:
    for records in ((presence(0.2, GUEST),), (FRAME, presence(0.2, GUEST))):
        decision = decide_live(sentences, *records)
        assert decision.outcome is Outcome.ANSWERED
        assert decision.explanation.startswith("Without knowing what the others do: ")
        assert set(list_vetoes(decision)) == {Veto.NONE}


def test_tracked_people_remain_if_the_model_fails(sentences: SentenceEncoder) -> None:
    decision = decide_live(sentences, FRAME, presence(0.2, GUEST), eye=Eye(text=""))
    assert decision.explanation.startswith("Without knowing what the others do (the eye is shut): ")
    alone = decide_live(sentences, FRAME, eye=Eye(text=""))
    assert (alone.outcome, alone.explanation) == (Outcome.FAILED, "nobody was seen: the eye is shut")


def test_model_is_not_asked_to_observe_without_a_picture(sentences: SentenceEncoder) -> None:
    eye = Eye()
    assert decide_live(sentences, presence(0.2, GUEST), eye=eye).explanation.startswith(
        "Without knowing what the others do"
    )
    assert eye.asked == []


@pytest.mark.parametrize("presence", [presence(4.0, GUEST), presence(0.2), replace(presence(0.2, GUEST), persons=())])
def test_old_or_empty_presence_is_not_an_observation(sentences: SentenceEncoder, presence: Presence) -> None:
    decision = decide_live(sentences, presence)
    assert (decision.outcome, "no frame yet" in decision.explanation) == (Outcome.INVALID, True)


def test_robot_without_a_camera_decides_by_words(sentences: SentenceEncoder) -> None:
    blind = SelectorConfig(when_unsure=WhenUnsure.BEST_EFFORT, has_camera=False)
    decision = decide_live(sentences, config=blind)
    assert decision.outcome is Outcome.ANSWERED
    assert decision.explanation.startswith("Nothing was seen, as no camera is set up: ")
    seen = decide_live(sentences, presence(0.2, GUEST), config=blind)
    assert seen.explanation.startswith("Without knowing what the others do: ")


def test_episode_edge_clears_people_and_memory_is_bounded(sentences: SentenceEncoder) -> None:
    edge = Episode(
        stamp_ns=NOW_NS, episode_id="e", state=EpisodeEdge.BEGIN, suite="s", setting="s", start_ns=1, end_ns=2
    )
    assert decide_live(sentences, presence(0.2, GUEST), edge).outcome is Outcome.INVALID
    recent = RecentRecords(600.0)
    for number in range(2 * MAX_RECORDS):
        recent.add(presence(number / 1000, GUEST))
    retained = recent.window(NOW_NS, NOW_NS)
    assert retained is not None
    assert len(retained.presences) == MAX_RECORDS


@pytest.mark.parametrize("may_leave", [False, True])
def test_pictures_leave_the_machine_only_if_allowed(sentences: SentenceEncoder, may_leave: bool) -> None:
    eye, health_log, clock = Eye(), HealthLog(), ReplayClock(NOW_NS)
    eye.model_info = replace(eye.model_info, model="far", on_this_machine=False)
    shown: list[int] = []

    def act(question: Question, call: RequestContext) -> list[float]:
        return yes_to_all(question) or [0.0] * len(question.options)

    class Counting(DirectEngine):
        def ask_many(self, prefix: Prompt, questions: Any, deadline: Any = None) -> Any:
            shown.append(len(prefix.images))
            return super().ask_many(prefix, questions, deadline)

    eye.act = act
    config = BEST_EFFORT.model_copy(update={"pictures_may_leave": may_leave})
    selector = Selector(Decider(sentences, config, engine=Counting(eye, clock)), clock, health_log=health_log)
    selector.take(FRAME)
    selector.take(presence(0.2, GUEST))
    (due,) = selector.take(Query(stamp_ns=NOW_NS, query_id="q", episode_id="", task="action", options=OPTIONS))
    recommendation = selector.decide(due)
    assert recommendation.answer
    assert recommendation.answer.outcome is Outcome.ANSWERED
    assert set(shown) == {int(may_leave)}
    assert [len(prompt.images) for prompt in eye.asked] == [1] * may_leave
    reason = "without its pictures, as the model far does not run on this machine"
    assert recommendation.answer.reason == ("" if may_leave else reason)
    assert (reason in recommendation.decision.explanation.lower()) is not may_leave
    counted = {counter.name: counter.count for counter in health_log.counters}
    assert counted.get("decisions_without_pictures", 0) == (not may_leave)
    assert any("set pictures_may_leave to true" in reason for reason in health_log.reasons) is not may_leave
