"""The same steps with a model: pictures in, what others do written by it, options scored in several orders."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from action_selector.decider import Decider
from action_selector.queries import convert_query, extract_answer
from action_selector.request import Request
from action_selector.selector_config import SelectorConfig
from norm_core.engines.direct_engine import DirectEngine
from norm_core.engines.errors import EngineFailedError
from norm_core.engines.prompt import Prompt, Question
from norm_core.engines.request_context import Deadline, RequestContext
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.records.decision import Decision, Veto
from norm_core.records.outcome import Outcome
from norm_core.runtime.time import NS_PER_MS, ReplayClock
from sim_replays.suites import egogapbench as suite
from tests.action_selector.questions import BEST_EFFORT, NOW_NS, decide, request, window
from tests.norm_core.engines.scripted import ScriptedBackend

SEEN = json.dumps(
    {
        "viewpoint": "behind the counter",
        "place": "kitchen",
        "role": "helper",
        "others": [
            {"role": "cook", "appearance": "the man in white", "doing": "stirring the soup", "duplicable": "no"}
        ],
    }
)
FULL = SelectorConfig(when_unsure=BEST_EFFORT.when_unsure, orders=64)


def model(act: Any, text: str = SEEN, clock: ReplayClock | None = None) -> DirectEngine:
    return DirectEngine(ScriptedBackend(act, text), clock or ReplayClock(NOW_NS))


def yes_to_all(question: Question) -> list[float] | None:
    return [1.0 if option == "Yes" else -1.0 for option in question.options] if "Yes" in question.options else None


def test_position_bias_is_averaged_away(sentences: SentenceEncoder) -> None:
    """A model that adds much for the first place, and a little for what is right."""

    def biased(question: Question, call: RequestContext) -> list[float]:
        return yes_to_all(question) or [
            (3.0 if index == 0 else 0.0) + (0.5 if "right" in option else 0.0)
            for index, option in enumerate(question.options)
        ]

    for place in range(4):
        options = [f"wrong {n}" for n in range(4)]
        options[place] = "the right thing"
        decision = decide(sentences, request(*options), FULL, engine=model(biased))
        assert decision.chosen_index == place
        once = decide(sentences, request(*options), FULL.model_copy(update={"orders": 1}), engine=model(biased))
        assert once.chosen_index == 0


def test_rotated_probabilities_return_to_their_options(sentences: SentenceEncoder) -> None:
    worth = {"a": 0.0, "b": 1.0, "c": 2.0, "None of the above.": 3.0}
    engine = model(lambda question, call: yes_to_all(question) or [worth[option] for option in question.options])
    decision = decide(sentences, request("c", "", "a", "b"), FULL, engine=engine)
    powers = np.exp([2.0, 3.0, 0.0, 1.0])
    assert [candidate.probability for candidate in decision.candidates] == pytest.approx(list(powers / powers.sum()))
    assert (decision.chosen_index, decision.chosen) == (1, "")


def test_model_vetoes_what_cannot_be_done_from_here(sentences: SentenceEncoder) -> None:
    def far_off(question: Question, call: RequestContext) -> list[float]:
        asked = " ".join(part.text for part in question.parts if hasattr(part, "text"))
        if "Yes" in question.options and "exactly here" in asked and "roof" in asked:
            return [-3.0 if option == "Yes" else 3.0 for option in question.options]
        return yes_to_all(question) or [1.0 if "roof" in option else 0.0 for option in question.options]

    decision = decide(sentences, request("Climb down from the roof.", "Wave."), engine=model(far_off))
    assert decision.candidates[0].veto is Veto.OFF_VANTAGE
    assert decision.chosen == "Wave."


def test_pictures_lead_to_a_decision(sentences: SentenceEncoder, tmp_path: Path) -> None:
    """Images by file name in a folder, the others observed by the model and vetoed, the choice scored."""
    (tmp_path / "000000000001.jpg").write_bytes(jpeg())
    item = suite.EgoGapItem(
        uid="1:a", image="1", file_name="000000000001.jpg", captions=(), others=(),
        options=("Stir the pot of soup.", "Lay the table.", "Juggle the plates."), prompt="",
    )  # fmt: skip
    prompts: list[Prompt] = []

    class Eye(ScriptedBackend):
        def encoded(self, prefix: Prompt, call: RequestContext) -> Any:
            prompts.append(prefix)
            return super().encoded(prefix, call)

        def generate(self, prompt: Prompt, call: RequestContext, **how: Any) -> str:
            prompts.append(prompt)
            return super().generate(prompt, call, **how)

    def prefer_table(question: Question, call: RequestContext) -> list[float]:
        return yes_to_all(question) or [1.0 if "table" in option else 0.0 for option in question.options]

    for style in ("default", "egoplan", "exclusion"):
        query = suite.make_query(item, suite.EgoGapSetting.IMAGES, style=style)
        asked = convert_query(query, window(jpeg=(tmp_path / item.file_name).read_bytes()))
        engine = DirectEngine(Eye(prefer_table, SEEN), ReplayClock(NOW_NS))
        decision = decide(sentences, asked, engine=engine)
        assert decision.candidates[0].veto is Veto.SINGLETON
        assert extract_answer(decision, query).chosen == (1,)
        assert decision.provenance.model == "scripted"
        assert decision.provenance.prompt_version == "select_action-2"
    assert all(len(prompt.images) == 1 for prompt in prompts)
    styles = {prompt.parts[1] for prompt in prompts if prompt.version == "select_action-2"}
    assert len(styles) == 3
    assert any("already doing" in getattr(part, "text", "") for part in styles)


@pytest.mark.parametrize(
    ("step", "task", "outcome"),
    [
        ("possible", "", Outcome.FAILED),
        ("possible", "action", Outcome.FAILED),
        ("sensible", "", Outcome.ANSWERED),
        ("sensible", "action", Outcome.ANSWERED),  # which does not ask it
        ("sensible", "sensible", Outcome.FAILED),
        ("justify", "", Outcome.ANSWERED),
        ("justify", "justification", Outcome.FAILED),
    ],
)
def test_failed_question_decides_only_its_task(
    sentences: SentenceEncoder, step: str, task: str, outcome: Outcome
) -> None:
    """The similarity takes the place of no reply."""
    steps: list[str] = []

    def act(question: Question, call: RequestContext) -> list[float]:
        steps.append(question.step)
        if question.step == step:
            raise EngineFailedError("the server is gone")
        return yes_to_all(question) or [float(index) for index in range(len(question.options))]

    asked = replace(
        request("Stir the soup.", "Lay the table.", situation="The guests are about to eat at the table."),
        task=task,
        justifications=("It is polite.", "They are hungry."),
    )
    decision = decide(sentences, asked, engine=model(act))
    assert decision.outcome is outcome
    if outcome is Outcome.FAILED:
        assert (decision.chosen_index, decision.justification_index) == (None, None)
        assert "the server is gone" in decision.explanation
    elif not task:
        assert (decision.justification_index is None) == (step == "justify")
        assert (decision.sensible == ()) == (step == "sensible")
        assert "as the model failed" in decision.explanation
    if task:
        assert ("sensible" in steps) == (task == "sensible" and step != "possible")


def decide_in_time(sentences: SentenceEncoder, each_ms: float, asked: Request, deadline_ms: float) -> Decision:
    """A decision with a model whose every question takes so long."""
    clock = ReplayClock(NOW_NS)

    def slow(question: Question, call: RequestContext) -> list[float]:
        clock.advance_to(clock.now_ns() + round(each_ms * NS_PER_MS))
        call.check()
        return yes_to_all(question) or [float(index) for index in range(len(question.options))]

    decider = Decider(sentences, BEST_EFFORT, engine=model(slow, clock=clock))
    return decider.decide(asked, Deadline(clock, NOW_NS + round(deadline_ms * NS_PER_MS))).decision


def test_model_out_of_time_leaves_no_choice(sentences: SentenceEncoder) -> None:
    asked = request("Stir the soup.", "Lay the table.", situation="The guests are about to eat at the table.")
    in_time = decide_in_time(sentences, each_ms=1, asked=asked, deadline_ms=1000)
    assert in_time.provenance.model == "scripted"
    pressed = decide_in_time(sentences, each_ms=30, asked=asked, deadline_ms=60)
    assert (pressed.outcome, pressed.chosen_index) == (Outcome.TIMED_OUT, None)
    assert "By likeness alone: “Lay the table.”" in pressed.explanation
    assert pressed.deadline_ns is not None
    assert pressed.decided_ns < pressed.deadline_ns
    late = decide_in_time(sentences, each_ms=500, asked=asked, deadline_ms=60)
    assert (late.outcome, late.chosen_index, late.sensible) == (Outcome.TIMED_OUT, None, ())


def jpeg() -> bytes:
    return bytes(cv2.imencode(".jpg", np.zeros((48, 64, 3), np.uint8))[1].tobytes())
