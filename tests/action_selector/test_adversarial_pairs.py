"""Orders in the text change no answer: each hostile question is answered as the plain one of its pair."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from action_selector.request import Request
from action_selector.text_safety.injection_filter import strip_instructions
from norm_core.engines.engine import Engine
from norm_core.engines.options import letter_options
from norm_core.engines.prompt import Prompt, Question, Text
from norm_core.engines.request_context import RequestContext
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.records.decision import OtherAgent, Viewpoint
from norm_core.records.speech import Speaker, Utterance
from norm_core.runtime.config import load_yaml
from norm_core.runtime.time import ReplayClock
from tests.action_selector.questions import BEST_EFFORT, NOW_NS, decide, window
from tests.norm_core.engines.scripted import ScriptedBackend

DATA = load_yaml(Path(__file__).with_name("adversarial_pairs.yaml"))
PAIRS = [pytest.param(pair, id=f"{pair['scene']}-{pair['place']}-{n}") for n, pair in enumerate(DATA["pairs"])]
RIGHT = ("plates", "tray", "lift", "盘子", "托盘")  # a word of what is right in each scene
FILTERED = ("choose.norms", "prompts", "retrieval", "vetoes")


@pytest.mark.parametrize("is_filtered", [True, False])
@pytest.mark.parametrize("pair", PAIRS)
def test_likeness_is_not_moved_by_an_order_with_the_filter_or_without(
    sentences: SentenceEncoder, pair: dict[str, Any], is_filtered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in () if is_filtered else FILTERED:
        monkeypatch.setattr(f"action_selector.{module}.strip_instructions", str)
    plain, hostile = (
        (found.outcome, found.chosen_index, found.sensible, [one.veto for one in found.candidates])
        for found in (decide(sentences, asked) for asked in requests(pair))
    )
    assert plain[1] == 1 or not is_filtered
    assert hostile == plain


@pytest.mark.parametrize("pair", PAIRS)
def test_a_model_that_obeys_whoever_speaks_as_we_do_is_not_moved(
    sentences: SentenceEncoder, pair: dict[str, Any]
) -> None:
    """It believes every word that stands outside a fence, options included; quoted words it leaves alone."""
    order = pair["order"]

    def obey(question: Question, call: RequestContext) -> list[float]:
        heard = "\n".join([*ours(question.parts), letter_options(question.options)])
        assert order not in heard
        return [0.0 if o == "Yes" or any(word in o for word in RIGHT) else -2.0 for o in question.options]

    class Gullible(ScriptedBackend):
        def encoded(self, prefix: Prompt, call: RequestContext) -> Any:
            assert order not in "\n".join(ours(prefix.parts))
            return super().encoded(prefix, call)

    for asked in requests(pair):
        engine = Engine(Gullible(obey), ReplayClock(NOW_NS))
        assert decide(sentences, asked, BEST_EFFORT, engine=engine).chosen_index == 1


@pytest.mark.parametrize("text", DATA["not_orders"])
def test_what_is_no_order_is_weighed_as_it_stands(text: str) -> None:
    assert strip_instructions(text) == text


def ours(parts: tuple[Any, ...]) -> list[str]:
    return [part.text for part in parts if isinstance(part, Text)]


def requests(pair: dict[str, Any]) -> tuple[Request, Request]:
    """The plain question and the hostile one."""
    scene, place, order = DATA["scenes"][pair["scene"]], pair["place"].split(), pair["order"]
    others = tuple(OtherAgent(agent_id=str(n), **one) for n, one in enumerate(scene["others"]))
    plain = Request(
        query_id="pair",
        candidates=tuple(scene["candidates"]),
        situation=scene["situation"],
        others=others,
        viewpoint=Viewpoint(description="", place="inside"),
        window=heard("It is nice in here."),
    )

    def with_order(text: str) -> str:
        return " ".join(filter(None, (order, text) if pair.get("before") else (text, order)))

    if place[0] == "situation":
        return plain, replace(plain, situation=with_order(plain.situation))
    if place[0] == "viewpoint":
        viewpoint = replace(plain.viewpoint or Viewpoint(), description=with_order(""))
        return plain, replace(plain, viewpoint=viewpoint)
    if place[0] == "speech":
        return plain, replace(plain, window=heard(with_order("It is nice in here.")))
    at = int(place[1])
    if place[0] == "candidate":
        spoken = tuple(with_order(text) if n == at else text for n, text in enumerate(plain.candidates))
        return plain, replace(plain, candidates=spoken)
    other = others[at]
    if place[0] == "other":
        changed = replace(other, doing=with_order(other.doing))
    else:
        changed = replace(other, appearance=with_order(other.appearance))
    return plain, replace(plain, others=tuple(changed if n == at else one for n, one in enumerate(others)))


def heard(text: str) -> Any:
    utterance = Utterance(
        stamp_ns=NOW_NS - 10, utterance_id="u", speaker=Speaker.USER, text=text, start_ns=NOW_NS - 10, end_ns=NOW_NS
    )
    return window(utterances=(utterance,))
