"""`tactful models add` and `send` as their user calls them."""

import json
import stat
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from norm_core.engines.openai import batch_sender
from norm_core.engines.openai.batch import BatchRequest, BatchWriter, read_answers
from norm_core.engines.prompt import Prompt, Text
from norm_core.records.outcome import Outcome
from tests.command_line import tactful
from tests.norm_core.engines.fake_server import (
    DEAD_URL,
    FakeServer,
    answering,
    describe_model,
    error,
    free_port,
    serving,
)
from tests.norm_core.models.hub_server import COMMIT, REPOSITORY, serving_hub
from tests.norm_core.models.tiny_decoder import write_tiny_decoder
from tests.norm_core.models.tiny_files import write_checkpoint


def hub_files(folder: Path, **changes: Any) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in write_checkpoint(folder, **changes).iterdir()}


def test_a_folder_becomes_a_model_that_verifies(models: Any, tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "Our Team_VL")
    code, printed, complained = models("models", "add", str(folder), "--json")
    assert code == 0, complained
    added = json.loads(printed)
    assert added["name"] == "our-team-vl"
    shown = json.loads(models("models", "list", "our-team-vl", "--json")[1])
    assert shown["manifest"] == added["manifest"]
    assert shown["manifest"]["source"] == {"path": str(folder)}
    assert shown["manifest"]["context_tokens"] == 8192
    assert shown["manifest"]["memory"]["estimated"]
    (folder / "config.json").write_text("{}")
    assert "config.json has" in models("models", "list", "our-team-vl")[2]


def test_a_hub_name_is_downloaded_and_locked(models: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = hub_files(tmp_path / "made", vision_config={"depth": 1})
    with serving_hub(files, monkeypatch, tmp_path / "hf"):
        code, printed, complained = models("models", "add", REPOSITORY, "--name", "ours")
        assert code == 0, complained
    assert "ours: 3 files, 0.0 MB in " in printed
    shown = json.loads(models("models", "list", "ours", "--json")[1])
    assert shown["lock"]["revision"] == COMMIT
    assert (shown["manifest"]["task"], shown["manifest"]["licence"]) == ("vision-language", "mit")


def test_a_gguf_on_the_hub_is_chosen_by_name(models: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tiny_decoder(tmp_path / "a-q8.gguf")
    files = {"README.md": b"", "a-q4.gguf": b"", "a-q8.gguf": (tmp_path / "a-q8.gguf").read_bytes()}
    with serving_hub(files, monkeypatch, tmp_path / "hf") as hub:
        refused = models("models", "add", REPOSITORY, "--name", "ours")
        assert refused[0] == 2
        assert "choose one with --include, such as a-q4.gguf" in refused[2]
        chosen = models("models", "add", REPOSITORY, "--name", "ours", "--include", "a-q8.gguf", "--json")
    assert chosen[0] == 0, chosen[2]
    assert hub.sent == ["a-q8.gguf"]
    manifest = json.loads(chosen[1])["manifest"]
    assert manifest["engine"] == "transformers"
    assert manifest["source"] == {"hub": REPOSITORY, "include": ["a-q8.gguf"]}


def test_a_server_becomes_a_model_by_what_it_lists(models: Any) -> None:
    with serving() as server:
        server.served = [{"id": "Team/Tiny-VL", "owned_by": "vllm", "max_model_len": 4096}]
        url = server.url
        refused = models("models", "add", url)
        added = models("models", "add", url, "--name", "lab", "--task", "vision-language")
        assert added[0] == 0, added[2]
    assert "with --task" in refused[2]
    manifest = json.loads(models("models", "list", "lab", "--json")[1])["manifest"]
    assert manifest["settings"] == {"model": "Team/Tiny-VL", "guide": "structured_outputs"}
    assert (manifest["source"], manifest["context_tokens"], manifest["max_images"]) == ({"url": url}, 4096, 15)
    assert "memory" not in manifest


def test_a_server_of_several_models_or_none_needs_a_choice(models: Any) -> None:
    with serving() as server:
        server.served = [{"id": "one"}, {"id": "two"}]
        assert "serves one, two; name one with --served-model" in models("models", "add", server.url)[2]
        server.served = [{"id": "one for sk-secret"}, {"id": "two"}]
        complaint = models("models", "add", server.url, "--api-key-variable", "ROBOT_KEY", ROBOT_KEY="sk-secret")[2]
        assert "serves one for (the key), two;" in complaint
    assert "is not the address of a server (Invalid IPv6 URL)" in models("models", "add", "http://[::1")[2]
    silent = ("models", "add", f"http://127.0.0.1:{free_port()}/v1", "--task", "language")
    assert "cannot be reached" in models(*silent)[2]
    assert models(*silent, "--served-model", "two")[0] == 0


COUNT = 12


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with serving() as server:
        yield server


@pytest.fixture
def batch(tmp_path: Path) -> Path:
    writer = BatchWriter(tmp_path / "batch", "judge", max_file_bytes=900)
    for number in range(COUNT):
        prompt = Prompt(version="v-1", parts=(Text(text=f"number {number}"),))
        writer.add(BatchRequest(custom_id=f"k{number}", prompt=prompt, schema={"type": "object"}, max_tokens=50))
    writer.flush()
    return tmp_path / "batch"


def send(batch: Path, server: FakeServer | str, *options: object, **environment: str) -> CompletedProcess[str]:
    name = server if isinstance(server, str) else server.url
    return tactful("models", "send", batch, name, "--concurrency", 3, *options, **environment)


def numbers_asked(server: FakeServer) -> list[int]:
    return [int(body["messages"][0]["content"].split()[1]) for body in server.bodies]


def test_each_request_is_answered_once_beside_the_others(batch: Path, server: FakeServer) -> None:
    result = send(batch, server, "--served-model", "big")
    assert result.returncode == 0, result.stderr
    assert sorted(numbers_asked(server)) == list(range(COUNT))
    assert {body["model"] for body in server.bodies} == {"big"}
    assert f"{COUNT} requests without pictures" in result.stderr
    assert stat.S_IMODE((batch / "answers.jsonl").stat().st_mode) == 0o600
    answers = read_answers(batch)
    assert {answer.outcome for answer in answers.by_id.values()} == {Outcome.ANSWERED}
    assert {answer.prompt_version for answer in answers.by_id.values()} == {"v-1"}
    assert send(batch, server).returncode == 0
    assert len(server.bodies) == COUNT  # nothing was open


def test_only_failed_requests_are_sent_again(batch: Path, server: FakeServer) -> None:
    server.faults += [answering(*error(429, "slow down"), Retry_After="0.01"), answering(*error(400, "no such thing"))]
    server.faults += [answering(200, b"<html>")]
    with (batch / "answers.jsonl").open("w", encoding="utf-8") as file:
        file.write('{"custom_id": "k3", "resp')  # as a killed run leaves it
    result = send(batch, server)
    assert result.returncode == 1
    assert "2 requests without an answer" in result.stderr
    assert "failed 1 time: " in result.stderr
    assert "no such thing" in result.stderr
    failed = [key for key, one in read_answers(batch).by_id.items() if one.outcome is not Outcome.ANSWERED]
    assert len(failed) == 2
    asked = len(server.bodies)
    assert send(batch, server).returncode == 0
    assert {f"k{number}" for number in numbers_asked(server)[asked:]} == set(failed)


def test_a_model_behind_a_server_brings_its_own_settings(batch: Path, server: FakeServer, tmp_path: Path) -> None:
    describe_model(tmp_path, "far", server.url)
    text = (tmp_path / "far.yaml").read_text(encoding="utf-8")
    settings = "tokens_field: max_completion_tokens, extra: {temperature: null, top_k: 1}, answers: text"
    (tmp_path / "far.yaml").write_text(text.replace("tries: 1", f"tries: 1, {settings}"), encoding="utf-8")
    server.complete = lambda body: (200, {"choices": [{"message": {"content": "{}"}}], "usage": {}})  # type: ignore[method-assign]
    result = send(batch, "far", TACTFUL_MODELS=str(tmp_path))
    assert result.returncode == 0, result.stderr
    body: dict[str, Any] = server.bodies[0]
    assert (body["model"], body["max_completion_tokens"], body["top_k"]) == ("far", 1024, 1)
    assert body.keys().isdisjoint({"temperature", "max_tokens"})


@pytest.mark.parametrize(
    ("options", "code", "problem"),
    [
        ((DEAD_URL,), 2, "failed in a row"),
        (("smolvlm2-256m",), 2, "not behind a server"),
        (("nowhere",), 2, "nowhere"),
    ],
)
def test_send_names_the_reason_why_it_stops(
    batch: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[Any, ...], code: int, problem: str
) -> None:
    monkeypatch.setattr(batch_sender, "MAX_FAILURES", 2)
    result = tactful("models", "send", batch, *options)
    assert result.returncode == code
    assert problem in result.stderr
    assert "Traceback" not in result.stderr
    stored = batch / "answers.jsonl"
    ids = [json.loads(line)["custom_id"] for line in stored.read_text().splitlines()] if stored.exists() else []
    assert len(ids) == len(set(ids))


def test_a_folder_without_requests_is_refused(tmp_path: Path, server: FakeServer) -> None:
    (tmp_path / "answers.jsonl").write_text(json.dumps({"custom_id": "k"}), encoding="utf-8")
    result = send(tmp_path, server)
    assert result.returncode == 2
    assert "there are no requests" in result.stderr


def test_a_name_that_is_taken_and_a_path_that_is_not_there(models: Any, tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "tiny")
    taken = models("models", "add", str(folder), "--name", "tiny-vl")
    assert taken[0] == 2
    assert "--name: there is a model tiny-vl already; give another name" in taken[2]
    assert "there is no such folder or file" in models("models", "add", str(tmp_path / "absent"))[2]
