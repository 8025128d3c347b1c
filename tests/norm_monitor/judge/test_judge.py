"""What the judge asks a model of a unit, and what it makes of the answers."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import pytest

from norm_core.engines.direct_engine import DirectEngine
from norm_core.engines.errors import EngineFailedError
from norm_core.engines.prompt import Prompt, Question
from norm_core.engines.reply import ModelInfo
from norm_core.engines.request_context import Deadline, RequestContext
from norm_core.records.flag import Attribute, Polarity
from norm_core.records.outcome import Outcome
from norm_core.records.window import window_digest
from norm_core.runtime.time import NS_PER_S, ReplayClock, WallClock
from norm_monitor.assessment.unit import UnitJudgement, UnitKind
from norm_monitor.context.wording import is_chinese, word_count
from norm_monitor.judge import questions as prompts
from norm_monitor.judge.deployment_context import DeploymentContext
from norm_monitor.judge.excerpt import Excerpt, UnitView
from norm_monitor.judge.judge import MAX_NOTE_WORDS, Judge, JudgeConfig, NoteRequest, count_images, plan, read_note
from tests.norm_core.engines.scripted import ScriptedBackend
from tests.norm_monitor.encounter_talk import at, robot, user
from tests.norm_monitor.judge.unit_views import FRAME, views_of

NOTE = '{"rationale": "The robot mocks the person.", "quote": "too slow", "correction": "Say it kindly."}'


def robot_turn(asked: str = "Could you repeat that?") -> UnitView:
    talk = [*user(1, 3, asked), *robot(4, 6, "You are too slow for me.")]
    return views_of(talk)[UnitKind.ROBOT_TURN, 4]


def answering(
    polarity: Sequence[float], yes: Collection[Attribute] = (), text: str = NOTE, locale: str = "en"
) -> ScriptedBackend:
    """A model that answers so."""
    about = dict(zip([question.parts for question in prompts.ask_attributes(locale)], Attribute, strict=True))

    def answer(question: Question, call: RequestContext) -> Sequence[float]:
        if question.parts == prompts.ask_polarity(locale).parts:
            return polarity
        return [2.0, 0.0] if about[question.parts] in yes else [0.0, 2.0]

    return ScriptedBackend(answer, text)


def judge(backend: ScriptedBackend, **config: object) -> Judge:
    return Judge(DirectEngine(backend, WallClock()), JudgeConfig.model_validate(config))


def with_note(judge: Judge, view: UnitView) -> UnitJudgement:
    """Judge a unit, then write its note."""
    return judge.write_note(NoteRequest(view=view, judgement=judge.judge(view))).judgement


def test_an_error_has_attributes_a_note_and_one_quote() -> None:
    view = robot_turn()
    judged = with_note(judge(answering([4, 0, 0], {Attribute.EMOTIONS, Attribute.ENGAGEMENT})), view)
    assert (judged.unit, judged.outcome) == (view.unit, Outcome.ANSWERED)
    assert judged.probability[Polarity.ERROR] > 0.9
    assert set(judged.attributes) == {Attribute.EMOTIONS, Attribute.ENGAGEMENT}
    assert (judged.rationale, judged.correction) == ("The robot mocks the person.", "Say it kindly.")
    assert [fact.quote for fact in judged.evidence] == ["too slow"]
    assert judged.provenance.window_digest == window_digest(view.window)


def test_an_ordinary_unit_is_asked_about_once() -> None:
    asked: list[Question] = []

    def ordinary(question: Question, call: RequestContext) -> Sequence[float]:
        asked.append(question)
        return [0, 0, 4]

    judged = judge(ScriptedBackend(ordinary)).judge(robot_turn())
    assert len(asked) == 1
    assert (judged.outcome, judged.attributes, judged.evidence) == (Outcome.ANSWERED, (), ())
    assert sum(judged.probability.values()) < 0.1


@pytest.mark.parametrize("text", ["", "I think it was rude.", '{"rationale": 3}'])
def test_an_error_without_a_note_names_its_turn_and_a_fact(text: str) -> None:
    judged = with_note(judge(answering([4, 0, 0], text=text)), robot_turn())
    assert judged.rationale == "The model takes the robot's “You are too slow for me.” for a social error."
    assert [fact.quote for fact in judged.evidence] == ["You are too slow for me."]


def test_note_has_one_short_claim_and_no_invented_quote() -> None:
    claim = "The robot blames the person " + "and again " * 30
    text = f'{{"rationale": "{claim}. It also lies.", "quote": "I hate you all", "correction": "Wait."}}'
    judged = with_note(judge(answering([4, 0, 0], text=text)), robot_turn())
    assert word_count(judged.rationale) <= MAX_NOTE_WORDS
    assert "lies" not in judged.rationale
    assert [fact.quote for fact in judged.evidence] == ["You are too slow for me."]


@pytest.mark.parametrize(
    ("text", "rationale", "correction"),
    [
        ('{"rationale": "It mocks her.", "quote": "too', "It mocks her.", ""),
        ('{"rationale": "It says \\"slow\\". It also lau', 'It says "slow".', ""),
        ('{"rationale": "It mocks her', "", ""),
        ('{"rationale": "他嘲笑她。而且', "他嘲笑她。", ""),
        ('{"rationale": "It mocks her.", "correction": "Wait. Then ans', "It mocks her.", "Wait."),
        ("It mocks her.", "", ""),
    ],
)
def test_cut_note_ends_with_a_whole_sentence(text: str, rationale: str, correction: str) -> None:
    note = read_note(text)
    assert (note.rationale, note.correction) == (rationale, correction)


def test_decision_and_note_have_separate_deadlines() -> None:
    clock, written = ReplayClock(), []

    class Slow(ScriptedBackend):
        def generate(self, prompt: Prompt, call: RequestContext, **asked: Any) -> str:
            written.append(asked["max_tokens"])
            return NOTE

    def think(question: Question, call: RequestContext) -> Sequence[float]:
        clock.advance_to(clock.now_ns() + NS_PER_S)
        return [4.0] + [0.0] * (len(question.options) - 1)

    judge, view = Judge(DirectEngine(Slow(think), clock)), robot_turn()
    late = judge.judge(view, Deadline(clock, clock.now_ns() + 4 * NS_PER_S))  # eight questions take eight seconds
    assert (late.outcome, late.awaits_note) == (Outcome.TIMED_OUT, False)
    judgement = judge.judge(view, Deadline(clock, clock.now_ns() + 9 * NS_PER_S))
    assert (judgement.outcome, judgement.awaits_note, written) == (Outcome.ANSWERED, True, [])
    request = NoteRequest(view=view, judgement=judgement)
    assert judge.write_note(request, Deadline(clock, clock.now_ns() + NS_PER_S)).outcome is Outcome.ANSWERED
    past = judge.write_note(request, Deadline(clock, clock.now_ns()))
    assert (past.outcome, past.judgement, written) == (Outcome.TIMED_OUT, judgement, [40])


def test_an_engine_that_fails_gives_an_outcome_and_no_evidence() -> None:
    def broken(question: Question, call: RequestContext) -> Sequence[float]:
        raise EngineFailedError("the server is gone")

    judged = judge(ScriptedBackend(broken)).judge(robot_turn())
    assert (judged.outcome, judged.reason) == (Outcome.FAILED, "the server is gone")
    assert (judged.probability, judged.evidence) == ({}, ())


@pytest.mark.parametrize(
    ("settings", "decides"),
    [
        ({"model": "another", "calls_per_hour": 3600.0, "deadline_s": 1.0}, False),
        ({"min_attribute_probability": 0.7}, True),
        ({"images": 1}, True),
        ({"deployment_context": "home"}, True),
    ],
    ids=lambda given: next(iter(given)) if isinstance(given, dict) else "",
)
def test_hash_covers_the_settings_that_decide_an_answer(settings: dict[str, object], decides: bool) -> None:
    judged = [judge(answering([4, 0, 0]), **one).judge(robot_turn()) for one in ({}, settings)]
    assert (len({one.provenance.config_sha256 for one in judged}) == 2) is decides


def test_questions_about_chinese_talk_are_chinese() -> None:
    talk = [*user(1, 3, "你好，我想买票。"), *robot(4, 6, "你太慢了。")]
    seen: list[Question] = []

    def act(question: Question, call: RequestContext) -> Sequence[float]:
        seen.append(question)
        return [3.0] + [0.0] * (len(question.options) - 1)

    judge(ScriptedBackend(act), note_tokens=0).judge(views_of(talk)[UnitKind.ROBOT_TURN, 4])
    assert len(seen) == 8
    assert all(is_chinese("".join(question.options)) for question in seen)


TALK = [*user(1, 3, "Nobody listens to me."), *robot(4, 6, "Great!")]
SEEN = views_of(TALK, frames=[FRAME])[UnitKind.ROBOT_TURN, 4]
EXCERPT = Excerpt.of_unit(SEEN)


@pytest.mark.parametrize("context", DeploymentContext)
def test_emotion_question_has_pictures_only_if_allowed(context: DeploymentContext) -> None:
    planned = plan(EXCERPT, 4, context)
    emotions = prompts.ask_attributes()[list(Attribute).index(Attribute.EMOTIONS)]
    (asked_with,) = [batch.prompt for batch in planned.attributes if emotions in batch.questions]
    allowed = context in {"home", "public", "health"}
    assert bool(asked_with.images) == allowed
    assert planned.prompt.images
    assert ("do not infer emotions" in planned.prompt.as_text()) != allowed
    assert sorted(index for batch in planned.attributes for index in batch.indices) == list(range(len(Attribute)))


def test_the_frames_around_the_unit_are_shown() -> None:
    frames = [replace(FRAME, stamp_ns=at(second)) for second in range(30)]
    talk = [*robot(12, 13, "Hello."), *user(1, 2, "Hello?")]
    view = views_of(talk, 30, frames)[UnitKind.ROBOT_TURN, 12]
    shown = [(frame.stamp_ns - at(0)) / 1e9 for frame in Excerpt.of_unit(view).frames]
    assert (shown[0], shown[-1]) == (7, 17)


def test_remote_model_sees_pictures_only_if_they_may_leave() -> None:
    far = ModelInfo(model="far", engine="openai", on_this_machine=False)
    assert count_images(far, JudgeConfig(images=3)) == 0
    assert count_images(far, JudgeConfig(images=3, pictures_may_leave=True)) == 3
    assert count_images(replace(far, on_this_machine=True, max_images=2), JudgeConfig(images=3)) == 2
