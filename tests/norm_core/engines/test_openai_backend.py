"""The engine of servers: what it asks, what it waits for, and what it does with a server that is down."""

import json
import logging
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from norm_core.engines.direct_engine import DirectEngine
from norm_core.engines.engine import ServerStatus
from norm_core.engines.errors import EngineFailedError
from norm_core.engines.openai.backend import OpenAIBackend
from norm_core.engines.openai.client import CircuitBreaker, OpenAIServer
from norm_core.engines.request_context import Deadline
from norm_core.engines.settings import Guide, OpenAISettings
from norm_core.records.outcome import Outcome
from norm_core.runtime.time import WallClock, s_to_ns
from tests.norm_core.engines.contract import (
    OPTIONS,
    SCENE,
    Deed,
    EngineContract,
    assert_answered,
    score,
)
from tests.norm_core.engines.fake_server import (
    CONTEXT_TOKENS,
    DEAD_URL,
    MAX_IMAGES,
    FakeServer,
    answering,
    dribbling,
    dropping,
    error,
    free_port,
    serving,
    stalling,
)
from tests.patience import PATIENCE_S, comes_true


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with serving() as server:
        yield server


def connected(
    url: str, *, stall_s: float = 5.0, tries: int = 4, key: str = "", settings: Any = None, **limits: Any
) -> DirectEngine:
    link = OpenAIServer(url, stall_s=stall_s, tries=tries, backoff_s=0.001, api_key_variable=key)
    backend = OpenAIBackend(link, "fake", settings=OpenAISettings.model_validate(settings or {}), **limits)
    return DirectEngine(backend, WallClock())


@pytest.fixture
def engine(server: FakeServer) -> Iterator[DirectEngine]:
    engine = connected(server.url)
    yield engine
    engine.close()


class TestOpenAI(EngineContract):
    @pytest.fixture
    def engine(self, server: FakeServer) -> Iterator[DirectEngine]:
        engine = connected(server.url, max_images=MAX_IMAGES, context_tokens=CONTEXT_TOKENS)
        yield engine
        engine.close()


def test_a_server_here_is_reached_past_any_proxy(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy on another machine would be shown the pictures that are not to leave this one."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, DEAD_URL)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    engine = connected(server.url, tries=1)
    assert_answered(score(engine, SCENE, OPTIONS), 3)
    assert engine.model_info.on_this_machine
    engine.close()


@pytest.mark.parametrize("fault", [answering(429, {}, Retry_After="0.01"), answering(503, b"busy"), dropping])
def test_temporary_faults_are_retried_and_counted(server: FakeServer, engine: DirectEngine, fault: Any) -> None:
    server.faults += [fault, fault]
    scores = score(engine, SCENE, OPTIONS)
    assert_answered(scores, 3)
    assert scores.usage.retries == 2


@pytest.mark.parametrize(
    ("fault", "outcome", "words"),
    [
        (answering(200, b"<html>welcome to your router</html>"), Outcome.FAILED, "not a chat completion"),
        (answering(200, b"[]"), Outcome.FAILED, "not a chat completion"),
        (answering(200, {"choices": []}), Outcome.FAILED, "choices"),
        (answering(200, {"choices": [{"message": {"content": "A"}}]}), Outcome.FAILED, "no log-probabilities"),
        (answering(200, {"choices": [{"message": {"refusal": "I will not"}}]}), Outcome.REFUSED, "I will not"),
        (answering(200, b"not gzip", Content_Encoding="gzip"), Outcome.FAILED, ""),
        (answering(401, error(401, "Incorrect API key provided")[1]), Outcome.FAILED, "refuses the key"),
        (answering(404, error(404, "The model `fake` does not exist.")[1]), Outcome.FAILED, "does not exist"),
        (answering(307, b"", Location="http://elsewhere.invalid/"), Outcome.FAILED, "307"),
        (
            answering(400, error(400, "too long", "exceed_context_size_error")[1]),
            Outcome.INVALID,
            "exceeds the context",
        ),
        (answering(500, error(500, "image input is not supported")[1]), Outcome.INVALID, "pictures"),
        (answering(400, {"error": {"code": "content_filter", "message": "filtered"}}), Outcome.REFUSED, "filter"),
    ],
    ids=lambda value: str(value) if isinstance(value, str) else None,
)
def test_permanent_faults_become_an_outcome_without_a_retry(
    server: FakeServer, engine: DirectEngine, fault: Any, outcome: Outcome, words: str
) -> None:
    server.faults.append(fault)
    scores = score(engine, SCENE, OPTIONS)
    assert (scores.outcome, scores.usage.retries, len(server.bodies)) == (outcome, 0, 1)
    assert words in scores.reason
    assert_answered(score(engine, SCENE, OPTIONS), 3)


def test_a_server_without_schemas_or_logprobs_is_read_by_its_words(server: FakeServer) -> None:
    """And an unknown field of a request is left out."""
    engine = connected(
        server.url,
        settings={"answers": "auto", "tokens_field": "max_completion_tokens", "extra": {"temperature": None}},
    )
    server.faults += [
        answering(400, error(400, "logprobs are not supported with reasoning models")[1]),
        answering(200, {"choices": [{"message": {"content": "<think>A? No.</think>Answer: B"}}]}),
        answering(400, error(400, "response_format: json_schema is not supported")[1]),
        answering(200, {"choices": [{"message": {"content": 'Here it is:\n```json\n{"action": "bow"}\n```'}}]}),
    ]
    scores = score(engine, SCENE, OPTIONS)
    assert (scores.probabilities, scores.best) == ((0.0, 1.0, 0.0), 1)
    assert scores.text.endswith("Answer: B")
    assert engine.generate(SCENE, Deed).value == Deed(action="bow")
    engine.close()
    assert "response_format" not in server.bodies[-1]
    assert all("temperature" not in body and "max_completion_tokens" in body for body in server.bodies)


def test_a_limit_holds_for_all_threads_that_ask(server: FakeServer) -> None:
    engine = connected(server.url, tries=1)
    server.faults += [answering(429, {}, Retry_After="600")]
    assert score(engine, SCENE, OPTIONS).outcome is Outcome.FAILED
    assert score(engine, SCENE, OPTIONS, soon(5)).outcome is Outcome.TIMED_OUT
    assert len(server.bodies) == 1  # as the server said not to ask
    engine.close()


def test_a_server_that_stays_broken_is_given_up(server: FakeServer, engine: DirectEngine) -> None:
    server.faults += [answering(500, error(500, "out of memory")[1])] * 4
    scores = score(engine, SCENE, OPTIONS)
    assert (scores.outcome, len(server.bodies), scores.usage.retries) == (Outcome.FAILED, 4, 3)
    assert "out of memory" in scores.reason
    assert "4 tries" in scores.reason
    assert_answered(score(engine, SCENE, OPTIONS), 3)


def soon(time_s: float = PATIENCE_S) -> Deadline:
    clock = WallClock()
    return Deadline(clock, clock.now_ns() + s_to_ns(time_s))


def test_a_dead_server_is_asked_once_and_then_refused_at_once() -> None:
    engine = connected(url := f"http://127.0.0.1:{free_port()}/v1")
    first, second = (score(engine, SCENE, OPTIONS, soon()) for _ in range(2))
    status = engine.server_status
    engine.close()
    assert {(scores.outcome, scores.usage.retries) for scores in (first, second)} == {(Outcome.FAILED, 0)}
    assert first.reason == second.reason
    assert re.match(f"{url}: cannot be reached .*; start the server, or correct source.url", first.reason)
    assert status == ServerStatus(outage=first.reason, requests_refused=1)


def test_a_server_that_comes_back_is_found_without_a_request() -> None:
    engine = connected(f"http://127.0.0.1:{(port := free_port())}/v1")
    assert score(engine, SCENE, OPTIONS, soon()).outcome is Outcome.FAILED
    with serving(port) as server:
        assert comes_true(lambda: engine.server_status == ServerStatus())
        assert server.bodies == []
        assert_answered(score(engine, SCENE, OPTIONS, soon()), 3)
        engine.close()


@pytest.mark.parametrize("fault", [stalling, dribbling])
def test_the_deadline_holds_whatever_the_server_does(server: FakeServer, engine: DirectEngine, fault: Any) -> None:
    """And the server of a stream is told that nobody listens."""
    server.faults.append(fault)
    assert score(engine, SCENE, OPTIONS, soon(0.1)).outcome is Outcome.TIMED_OUT
    assert fault is stalling or server.released.wait(PATIENCE_S)
    assert_answered(score(engine, SCENE, OPTIONS), 3)


def test_silence_without_a_deadline_is_a_failure(server: FakeServer) -> None:
    engine = connected(server.url, stall_s=0.1)
    server.faults.append(stalling)
    scores = score(engine, SCENE, OPTIONS)
    assert (scores.outcome, scores.usage.retries) == (Outcome.FAILED, 0)
    assert "no data for 0.1 s" in scores.reason
    engine.close()


KEY = "sk-secret/+1"
ESCAPED_KEY = "".join(f"\\u{ord(character):04x}" for character in KEY)


def breaking_a_header(handler: Any) -> None:
    """Answers with a line that is no header, which the client's library quotes."""
    handler.wfile.write(f"HTTP/1.1 200 OK\r\nIncorrect API key {KEY}\r\n\r\n".encode())
    handler.close_connection = True


@pytest.mark.parametrize(
    "fault",
    [
        answering(401, error(401, f"Incorrect API key provided: {KEY}")[1]),
        answering(401, error(401, f"Incorrect API key{'.' * 365} {KEY}")[1]),
        answering(400, f'{{"error": {{"message": "Incorrect API key {ESCAPED_KEY}"}}}}'.encode()),
        answering(404, f"Incorrect API key at /v1?key={quote(KEY, safe='')}".encode()),
        answering(400, {"error": {"message": json.dumps(f"Incorrect API key {KEY}").replace("/", r"\/")}}),
        answering(200, {"choices": [{"message": {"refusal": f"Incorrect API key {KEY}"}}]}),
        answering(200, f"Incorrect API key {KEY}".encode()),
        breaking_a_header,
    ],
    ids=["plain", "cut", "as codes", "in an address", "quoted twice", "refusal", "no JSON", "header"],
)
def test_the_key_is_sent_and_never_shown(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, fault: Any
) -> None:
    monkeypatch.setenv("ROBOT_KEY", KEY)
    caplog.set_level(logging.INFO)
    engine = connected(server.url, key="ROBOT_KEY", tries=1)
    server.faults.append(fault)
    scores = score(engine, SCENE, OPTIONS)
    engine.close()
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert "Incorrect API key" in scores.reason
    for part in ("sk-s", "0073", "secret"):  # nor a part of it, where the answer is cut
        assert part not in scores.reason + caplog.text


def test_a_key_that_is_not_set_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROBOT_KEY", raising=False)
    with pytest.raises(EngineFailedError, match="ROBOT_KEY"):
        OpenAIServer("http://127.0.0.1:1/v1", api_key_variable="ROBOT_KEY")


@pytest.mark.parametrize(
    ("guide", "asked"),
    [
        (Guide.STRUCTURED_OUTPUTS, {"structured_outputs": {"choice": ["A", "B", "C"]}}),
        (Guide.GRAMMAR, {"grammar": 'root ::= "A" | "B" | "C"'}),
        (Guide.NONE, {}),
    ],
)
def test_a_guide_is_asked_for_as_the_server_knows_it(server: FakeServer, guide: Guide, asked: dict[str, Any]) -> None:
    engine = connected(server.url, settings={"guide": guide, "extra": {"cache_prompt": False}})
    assert_answered(score(engine, SCENE, OPTIONS), 3)
    engine.close()
    (body,) = server.bodies
    assert asked.items() <= body.items()
    known = {"model", "messages", "max_tokens", "temperature", "logprobs", "top_logprobs", "cache_prompt"}
    assert body.keys() == known | asked.keys()


def test_a_seed_and_a_schema_reach_the_server(server: FakeServer, engine: DirectEngine) -> None:
    engine.generate(SCENE, Deed, max_tokens=9, seed=7)
    (body,) = server.bodies
    assert (body["max_tokens"], body["seed"], body["temperature"]) == (9, 7, 1)
    assert body["response_format"]["json_schema"]["schema"]["required"] == ["action"]


def test_an_endless_answer_is_cut_off(
    server: FakeServer, engine: DirectEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("norm_core.engines.openai.client._MAX_ANSWER_BYTES", 1000)
    server.faults.append(answering(200, b" " * 5000))
    scores = score(engine, SCENE, OPTIONS)
    assert scores.outcome is Outcome.FAILED
    assert "larger than" in scores.reason


def test_pauses_double_up_to_the_longest_and_a_second_outage_begins_with_the_short_one() -> None:
    breaker, pauses_s = CircuitBreaker(lambda: 100.0), []
    for _ in range(7):
        breaker.open("no route")
        pauses_s.append(breaker.time_until_probe_s())
    assert pauses_s == [0.5, 1, 2, 4, 8, 15, 15]
    breaker.close()
    assert breaker.refuse() == ""
    breaker.open("down again")
    assert breaker.time_until_probe_s() == 0.5
