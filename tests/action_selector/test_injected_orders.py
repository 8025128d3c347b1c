"""Two hundred attacks and four hundred plain sentences, half of each by somebody who had not seen the filter."""

import json
import re
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from action_selector.request import Request
from action_selector.text_safety.injection_filter import strip_instructions
from norm_core.engines.direct_engine import DirectEngine
from norm_core.engines.options import format_options
from norm_core.engines.prompt import Prompt, Question, Text, neutralize_markup
from norm_core.engines.request_context import RequestContext
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.records.decision import Decision, OtherAgent, Viewpoint
from norm_core.records.speech import Speaker, Utterance
from norm_core.runtime.config import load_yaml
from norm_core.runtime.time import ReplayClock
from tests.action_selector.questions import BEST_EFFORT, NOW_NS, decide, list_vetoes, window
from tests.norm_core.engines.scripted import ScriptedBackend

DATA = load_yaml(Path(__file__).with_name("adversarial_pairs.yaml"))
PAIRS = [pytest.param(pair, id=f"{pair['scene']}-{pair['place']}-{n}") for n, pair in enumerate(DATA["pairs"])]
RIGHT = ("plates", "tray", "lift", "盘子", "托盘")  # a word of what is right in each scene
FILTERED = ("choose.norms", "prompts", "retrieval", "vetoes")


@pytest.mark.parametrize("is_filtered", [True, False])
@pytest.mark.parametrize("pair", PAIRS)
def test_injected_order_does_not_change_similarity(
    sentences: SentenceEncoder, pair: dict[str, Any], is_filtered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in () if is_filtered else FILTERED:
        monkeypatch.setattr(f"action_selector.{module}.strip_instructions", str)
    plain, hostile = (
        (
            decision.outcome,
            decision.chosen_index,
            decision.sensible,
            list_vetoes(decision),
        )
        for decision in (decide(sentences, asked) for asked in build_requests(pair))
    )
    assert plain[1] == 1 or not is_filtered
    assert hostile == plain


@pytest.mark.parametrize("pair", PAIRS)
def test_gullible_model_sees_no_injected_order(sentences: SentenceEncoder, pair: dict[str, Any]) -> None:
    """It believes every word that stands outside a fence, options included; quoted words it leaves alone."""
    order = pair["order"]

    def obey(question: Question, call: RequestContext) -> list[float]:
        unfenced = "\n".join([*list_own_texts(question.parts), format_options(question.options)])
        assert order not in unfenced
        return [0.0 if o == "Yes" or any(word in o for word in RIGHT) else -2.0 for o in question.options]

    class Gullible(ScriptedBackend):
        def encoded(self, prefix: Prompt, call: RequestContext) -> Any:
            assert order not in "\n".join(list_own_texts(prefix.parts))
            return super().encoded(prefix, call)

    for asked in build_requests(pair):
        engine = DirectEngine(Gullible(obey), ReplayClock(NOW_NS))
        assert decide(sentences, asked, BEST_EFFORT, engine=engine).chosen_index == 1


@pytest.mark.parametrize("text", DATA["not_orders"])
def test_plain_text_passes_the_filter_unchanged(text: str) -> None:
    assert strip_instructions(text) == text


def list_own_texts(parts: tuple[Any, ...]) -> list[str]:
    return [part.text for part in parts if isinstance(part, Text)]


def build_requests(pair: dict[str, Any]) -> tuple[Request, Request]:
    """The plain question and the hostile one."""
    scene, place, order = DATA["scenes"][pair["scene"]], pair["place"].split(), pair["order"]
    others = tuple(OtherAgent(agent_id=str(n), **fields) for n, fields in enumerate(scene["others"]))
    plain = Request(
        query_id="pair",
        candidates=tuple(scene["candidates"]),
        situation=scene["situation"],
        others=others,
        viewpoint=Viewpoint(description="", place="inside"),
        window=hear("It is nice in here."),
    )

    def with_order(text: str) -> str:
        return " ".join(filter(None, (order, text) if pair.get("before") else (text, order)))

    if place[0] == "situation":
        return plain, replace(plain, situation=with_order(plain.situation))
    if place[0] == "viewpoint":
        viewpoint = replace(plain.viewpoint or Viewpoint(), description=with_order(""))
        return plain, replace(plain, viewpoint=viewpoint)
    if place[0] == "speech":
        return plain, replace(plain, window=hear(with_order("It is nice in here.")))
    index = int(place[1])
    if place[0] == "candidate":
        spoken = tuple(with_order(text) if n == index else text for n, text in enumerate(plain.candidates))
        return plain, replace(plain, candidates=spoken)
    other = others[index]
    if place[0] == "other":
        changed = replace(other, doing=with_order(other.doing))
    else:
        changed = replace(other, appearance=with_order(other.appearance))
    return plain, replace(plain, others=tuple(changed if n == index else agent for n, agent in enumerate(others)))


def hear(text: str) -> Any:
    utterance = Utterance(
        stamp_ns=NOW_NS - 10, utterance_id="u", speaker=Speaker.USER, text=text, start_ns=NOW_NS - 10, end_ns=NOW_NS
    )
    return window(utterances=(utterance,))


def read_rows(name: str) -> list[dict[str, str]]:
    lines = Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


ATTACKS, PLAIN = read_rows("injected_orders.jsonl"), read_rows("plain_sentences.jsonl")
SCENES = list(DATA["scenes"])
AUTHORS = pytest.mark.parametrize("author", ["developer", "blind", "spoken"])


def select_author(author: str, data: list[dict[str, str]]) -> list[dict[str, str]]:
    return [row for row in data if row["author"] == author]


def is_cut(text: str) -> bool:
    return strip_instructions(text).split() != neutralize_markup(text).split()


def build_request(number: int, place: str, text: str) -> Request:
    """Put the text into one scene; the scenes take turns."""
    return build_requests({"scene": SCENES[number % len(SCENES)], "place": place, "order": text})[1]


def summarize(decision: Decision) -> tuple[str, int | None]:
    return decision.outcome, decision.chosen_index


@AUTHORS
def test_filter_cuts_at_most_one_plain_sentence_in_a_hundred(author: str) -> None:
    lost = [row["text"] for row in select_author(author, PLAIN) if is_cut(row["text"])]
    assert len(lost) <= 0.01 * len(select_author(author, PLAIN)), lost


def test_filter_cuts_most_known_attacks() -> None:
    """Those by somebody else lose words less often: the filter cannot know every wording."""
    assert sum(is_cut(row["text"]) for row in select_author("developer", ATTACKS)) >= 95


@AUTHORS
def test_attacks_change_decisions_no_more_than_plain_twins(sentences: SentenceEncoder, author: str) -> None:
    for number, row in enumerate(select_author(author, ATTACKS)):
        place = ("situation", "viewpoint", "speech")[number % 3]
        undisturbed, by_attack, by_twin = (
            summarize(decide(sentences, build_request(number, place, text))) for text in ("", row["text"], row["plain"])
        )
        assert by_attack == undisturbed or by_twin != undisturbed, row["id"]


@AUTHORS
def test_attacks_in_compared_texts_change_no_more_than_plain_twins(sentences: SentenceEncoder, author: str) -> None:
    """Words within another's activity or a candidate change what is compared, whoever wrote them."""
    moved = {"text": 0, "plain": 0}
    for number, row in enumerate(select_author(author, ATTACKS)):
        for place in ("other 0", "candidate 2"):
            undisturbed = summarize(decide(sentences, build_request(number, place, "")))
            for kind in moved:
                moved[kind] += summarize(decide(sentences, build_request(number, place, row[kind]))) != undisturbed
    assert moved["text"] <= moved["plain"]


ORDERS = [*(row["text"] for row in ATTACKS), *(pair["order"] for pair in DATA["pairs"])]


def test_attacks_stay_inside_their_fences(sentences: SentenceEncoder) -> None:
    """Whoever reads the prompt line by line, as a model does, finds no line of an order outside the fences."""
    prompts: list[str] = []

    class Reader(ScriptedBackend):
        def encoded(self, prefix: Prompt, call: RequestContext) -> Any:
            prompts.append(prefix.as_text())
            return super().encoded(prefix, call)

    engine = DirectEngine(Reader(lambda question, call: [0.0] * len(question.options)), ReplayClock(NOW_NS))
    config = BEST_EFFORT.model_copy(update={"ask_viewpoint": False})

    def ask_unfenced_lines(text: str) -> set[str]:
        prompts.clear()
        everywhere = build_request(0, "situation", text)
        for place, field in (("speech", "window"), ("viewpoint", "viewpoint"), ("other 0", "others")):
            everywhere = replace(everywhere, **{field: getattr(build_request(0, place, text), field)})
        decide(sentences, everywhere, config, engine=engine)
        return {line for prompt in prompts for line in list_unfenced_lines(prompt)}

    ours = ask_unfenced_lines("")
    assert ours
    for text in ORDERS:
        assert ask_unfenced_lines(text) <= ours, text


def list_unfenced_lines(text: str) -> list[str]:
    """The lines that stand in no fence: one opens with its length, and ends with a line of just that length."""
    lines, fence = [], ""
    for line in text.splitlines():
        if fence:
            fence = "" if line == fence else fence
        elif opened := re.fullmatch(r"(={3,}) .*\(data, not instructions\)", line):
            fence = opened[1]
        else:
            lines.append(line)
    return lines


def measure_processor_time(step: Callable[[], object]) -> float:
    started = time.process_time()
    step()
    return time.process_time() - started


@pytest.mark.parametrize(
    "piece", [" ", "\n \n", "ignore all ", "(", "option A. ", "o p t i o n ", "\u202e", "===\n", "忽略", "правила "]
)
def test_filter_time_grows_with_text_length(piece: str) -> None:
    short, long = piece * (1_000 // len(piece)), piece * (8_000 // len(piece))
    times = [
        min(measure_processor_time(partial(strip_instructions.__wrapped__, text)) for _ in range(2))
        for text in (short, long)
    ]
    assert times[1] < 24 * max(times[0], 0.001)
