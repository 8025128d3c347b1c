"""The judge's answers to a suite's questions, by a scripted model."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from norm_core.engines.direct_engine import DirectEngine
from norm_core.engines.prompt import Prompt, Question
from norm_core.engines.request_context import Deadline, RequestContext
from norm_core.records.episode import Answer, Episode, EpisodeEdge, Query
from norm_core.records.flag import Attribute
from norm_core.records.frame import Frame
from norm_core.records.outcome import Outcome
from norm_core.records.speech import Speaker, Timing, Utterance
from norm_core.records.window import window_digest
from norm_core.runtime.time import NS_PER_S, ReplayClock, WallClock
from norm_core.streams.recent_records import RecentRecords
from norm_monitor.assessment.unit import units_of
from norm_monitor.context.scene import History
from norm_monitor.judge.deployment_context import DeploymentContext, PictureRules
from norm_monitor.judge.excerpt import unit_view
from norm_monitor.judge.judge import Judge, JudgeConfig
from sim_replays.suites.suite_questions import QuestionConfig, SuiteAnswerer
from tests.action_selector.questions import window
from tests.norm_core.engines.scripted import ScriptedBackend

START_NS = 100 * NS_PER_S


class Writing(ScriptedBackend):
    """Keeps what it was asked and shown, and writes one text a seed."""

    def __init__(self, act: Callable[[Question, RequestContext], Sequence[float]], *texts: str) -> None:
        super().__init__(act)
        self.texts, self.asked, self.seeds = texts, list[str](), list[int]()
        self.images = list[int]()

    def score(self, prefix: Prompt, question: Question, call: RequestContext) -> Sequence[float]:
        self.asked.append(question.after(prefix).as_text())
        self.images.append(len(prefix.images))
        return super().score(prefix, question, call)

    def generate(
        self, prompt: Prompt, call: RequestContext, *, schema: dict[str, Any] | None, max_tokens: int, seed: int
    ) -> str:
        self.asked.append(prompt.as_text())
        self.images.append(len(prompt.images))
        self.seeds.append(seed)
        return self.texts[min(seed, len(self.texts) - 1)]


def first(question: Question, call: RequestContext) -> list[float]:
    return [3.0] + [0.0] * (len(question.options) - 1)


def said(text: str, timing: Timing = Timing.SOURCE) -> Utterance:
    return Utterance(
        stamp_ns=START_NS,
        utterance_id="u",
        speaker=Speaker.USER,
        text=text,
        start_ns=START_NS,
        end_ns=START_NS + NS_PER_S,
        timing=timing,
    )


def query(task: str, **given: Any) -> Query:
    return Query(stamp_ns=START_NS + 2 * NS_PER_S, query_id="q", episode_id="e", task=task, **given)


def answer(
    backend: ScriptedBackend,
    asked: Query,
    *given: Utterance | Frame,
    rules: PictureRules | None = None,
    **config: Any,
) -> Answer:
    recent = RecentRecords(15)
    edge = Episode(
        stamp_ns=START_NS, episode_id="e", state=EpisodeEdge.BEGIN, suite="hsri", start_ns=START_NS, end_ns=START_NS
    )
    recent.add(edge)
    for record in given:
        recent.add(record)
    questioner = SuiteAnswerer(DirectEngine(backend, WallClock()), QuestionConfig(**config), rules)
    return questioner.answer(asked, *questioner.find_window(asked, recent, WallClock()))


def test_detection_is_the_live_judge_s_own_question() -> None:
    backend = Writing(first)
    found = answer(backend, query("error3"), said("You are not listening."))
    assert (found.outcome, found.chosen, found.stamp_ns) == (Outcome.ANSWERED, (0,), query("error3").stamp_ns)
    recent = RecentRecords(15)
    recent.add(said("You are not listening."))
    window = replace(recent.gather_episode(query("error3").stamp_ns), start_ns=START_NS)
    scene = History().scene(window)
    (unit,) = units_of(scene, window.start_ns)
    judge = Judge(DirectEngine(Writing(first), WallClock()), JudgeConfig(note_tokens=0))
    live = judge.judge(unit_view(unit, scene))
    assert (found.provenance.prompt_digest, found.provenance.window_digest) == (
        live.provenance.prompt_digest,
        window_digest(window),
    )


def test_attributes_are_a_set_and_never_empty() -> None:
    def two(question: Question, call: RequestContext) -> list[float]:
        return [1.0, 0.0] if "feels" in str(question.parts) or "flow of talk" in str(question.parts) else [0.0, 3.0]

    both = answer(Writing(two), query("attributes", question="error", several=True), said("Oh."))
    assert [list(Attribute)[place] for place in both.chosen] == [Attribute.EMOTIONS, Attribute.CONVERSATIONAL_MECHANICS]

    def none(question: Question, call: RequestContext) -> list[float]:
        return [0.0, 1.0 if "feels" in str(question.parts) else 3.0]

    assert answer(Writing(none), query("attributes", question="error", several=True), said("Oh.")).chosen == (0,)


def test_what_was_marked_is_told_for_attributes_alone() -> None:
    backend = Writing(first)
    for task, told in (("error3", ""), ("error2", ""), ("multi", "competence"), ("attributes", "competence")):
        backend.asked.clear()
        answer(backend, query(task, question=told), said("Oh."))
        assert ("was marked as a social competence" in backend.asked[0]) == bool(told)


def test_evidence_has_a_label_and_both_texts() -> None:
    backend = Writing(
        first, '{"verbal": "Hello", "nonverbal": ""}', "Well,", '{"verbal": "Hi", "nonverbal": "a smile"}'
    )
    found = answer(backend, query("evidence", question="greeting: Say hello.", style="us"), said("Hello."))
    assert (found.outcome, found.chosen) == (Outcome.ANSWERED, (0,))
    assert found.text == '{"verbal":"Hi","nonverbal":"a smile"}'
    assert (backend.seeds, found.provenance.seed) == ([0, 1, 2], 2)  # asked again until it had its form
    assert "it keeps to it" in backend.asked[-1]


def test_a_text_that_never_has_its_form_is_unparsed_and_chooses_nothing() -> None:
    backend = Writing(first, "Once upon a time")
    found = answer(backend, query("evidence", question="greeting: Say hello.", style="us"), tries=2)
    assert (found.outcome, found.chosen, backend.seeds) == (Outcome.UNPARSED, (), [0, 1])


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (query("eas"), "the judge has no task"),
        (query("attributes", question="none"), "error, competence"),
        (query("adherence", question="Say hello.", style="fr"), "one of us, cn"),
        (query("norm", question=" ", style="us"), "should name a norm"),
        (query("rationale", options=("one",)), "fewer than two"),
    ],
)
def test_a_query_that_cannot_be_answered_says_why(asked: Query, why: str) -> None:
    found = answer(Writing(first), asked)
    assert found.outcome is Outcome.INVALID
    assert why in found.reason


def test_a_deadline_that_passed_and_a_model_that_fails_are_told_apart() -> None:
    def dies(question: Question, call: RequestContext) -> list[float]:
        raise MemoryError

    assert answer(Writing(dies), query("error2")).outcome is Outcome.FAILED
    questioner = SuiteAnswerer(DirectEngine(Writing(first), WallClock()), QuestionConfig())
    late = query("error2", deadline_ns=START_NS)
    window, limit = questioner.find_window(late, RecentRecords(15), ReplayClock(START_NS + 1))
    assert isinstance(limit, Deadline)
    assert questioner.answer(late, window, limit).outcome is Outcome.TIMED_OUT


FRAME = replace(window(jpeg=b"a picture").frames[0], stamp_ns=START_NS + 1)
GUARDED = (DeploymentContext.UNSPECIFIED, DeploymentContext.WORKPLACE, DeploymentContext.EDUCATION)
ASIDE = "do not infer emotions from them"


@pytest.mark.parametrize("context", GUARDED)
def test_emotion_questions_have_no_pictures_unless_allowed(context: DeploymentContext) -> None:
    """Feelings are named in the first of the attributes' questions, and in the one that lists them all."""
    rules = PictureRules(deployment_context=context)
    backend = Writing(first)
    asked = query("attributes", question="error", several=True)
    found = answer(backend, asked, said("Oh."), FRAME, rules=rules)
    about = [
        ("what someone feels" in text, ASIDE in text, seen)
        for text, seen in zip(backend.asked, backend.images, strict=True)
    ]
    assert sorted(about) == [*[(False, True, 1)] * 6, (True, False, 0)]
    assert (found.outcome, found.chosen) == (Outcome.ANSWERED, tuple(range(7)))
    assert found.reason == f"about emotions without pictures, as the deployment context {context} does not allow it"
    backend = Writing(first)
    found = answer(backend, query("multi", question="error"), said("Oh."), FRAME, rules=rules)
    assert (backend.images, ASIDE in backend.asked[0], bool(found.reason)) == ([0], False, True)
    for task, told in (("error3", ""), ("error2", ""), ("adherence", "us")):
        backend = Writing(first)
        found = answer(backend, query(task, question="greeting: Say hello.", style=told), FRAME, rules=rules)
        assert (backend.images, ASIDE in backend.asked[0], found.reason) == ([1], True, "")


def test_a_context_that_allows_it_asks_all_with_pictures() -> None:
    rules = PictureRules(deployment_context=DeploymentContext.PUBLIC)
    for task, count in (("attributes", 7), ("multi", 1), ("error3", 1)):
        backend = Writing(first)
        asked = query(task, question="error")
        found = answer(backend, asked, FRAME, rules=rules)
        assert (backend.images, found.reason) == ([1] * count, "")
        assert not any(ASIDE in text for text in backend.asked)
    guarded = answer(Writing(first), query("error3"), FRAME)
    assert guarded.provenance.config_sha256 != found.provenance.config_sha256


def test_a_model_elsewhere_gets_pictures_only_where_they_may_leave() -> None:
    for task, text in (("error3", ""), ("norm", '{"norm": "Greet."}')):
        for may_leave in (False, True):
            backend = Writing(first, text)
            backend.model_info = replace(backend.model_info, model="far", on_this_machine=False)
            rules = PictureRules(pictures_may_leave=may_leave)
            found = answer(backend, query(task, question="greeting", style="us"), FRAME, rules=rules)
            assert (found.outcome, backend.images) == (Outcome.ANSWERED, [int(may_leave)])
            told = "without its pictures, as the model far does not run on this machine"
            assert found.reason == ("" if may_leave else told)
