"""Batches of requests for OpenAI-compatible services, and the lines that come back."""

import json
from pathlib import Path
from typing import Any

import pytest

from norm_core.engines.openai.batch import BatchError, BatchRequest, BatchWriter, read_answers
from norm_core.engines.prompt import Image, Part, Prompt, Quoted, Text
from norm_core.records.outcome import Outcome

SCHEMA = {"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "string"}}}


def request(key: str, *pictures: bytes) -> BatchRequest:
    parts: tuple[Part, ...] = (
        Text(text="你好" * 10),
        Quoted(text="lone \ud800 half"),
        *(Image(jpeg=one) for one in pictures),
    )
    prompt = Prompt(version="v-1", parts=parts)
    return BatchRequest(custom_id=key, prompt=prompt, schema=SCHEMA, max_tokens=90)


def body(text: Any, reason: str = "stop", **message: Any) -> dict[str, Any]:
    return {"model": "m", "choices": [{"message": {"content": text, **message}, "finish_reason": reason}]}


def line(response: Any, error: Any = None) -> bytes:
    return json.dumps({"custom_id": "k", "response": response, "error": error}).encode()


def test_requests_are_split_into_files_by_size(tmp_path: Path) -> None:
    writer = BatchWriter(tmp_path / "batch", "m", max_file_bytes=8_000)
    for number in range(5):
        writer.add(request(f"k{number}", bytes(2_000)))
    writer.flush()
    files = sorted((tmp_path / "batch").iterdir())
    assert len(files) == 3
    assert all(file.stat().st_size <= 8_000 for file in files)
    requests = [json.loads(one) for file in files for one in file.read_bytes().splitlines()]
    assert [one["custom_id"] for one in requests] == [f"k{number}" for number in range(5)]
    form = requests[0]["body"]["response_format"]["json_schema"]
    assert (form["name"], list(form["schema"]["properties"])) == ("v-1", ["b", "a"])  # in the order of an answer
    assert writer.size.pictures == 5
    assert 5 * (20 + 270) < writer.size.prompt_tokens < 5 * (20 + 270 + 60)
    assert "5 requests with 5 pictures" in str(writer.size)


@pytest.mark.parametrize(
    ("answered", "outcome", "reason"),
    [
        (line({"status_code": 200, "body": body("yes")}), Outcome.ANSWERED, ""),
        (line({"body": body("yes")}), Outcome.ANSWERED, ""),
        (line({"status_code": 200, "body": body("ye", "length")}), Outcome.UNPARSED, "cut"),
        (line({"status_code": 200, "body": body(None, refusal="I will not")}), Outcome.REFUSED, "I will not"),
        (line({"status_code": 200, "body": body("", "content_filter")}), Outcome.REFUSED, "filter"),
        (line({"status_code": 200, "body": {"choices": []}}), Outcome.FAILED, "not a chat completion"),
        (line({"status_code": 200, "body": "<html>"}), Outcome.FAILED, "<html>"),
        (line({"status_code": 400, "body": {"error": {"message": "too long"}}}), Outcome.INVALID, "too long"),
        (line({"status_code": 503, "body": {"error": {"message": "busy"}}}), Outcome.FAILED, "busy"),
        (line(None, {"code": "batch_expired", "message": "too late"}), Outcome.TIMED_OUT, "too late"),
        (line("odd", "strange"), Outcome.FAILED, "strange"),
        (line(None), Outcome.FAILED, "no answer"),
    ],
)
def test_each_line_is_an_answer_or_a_reason(tmp_path: Path, answered: bytes, outcome: Outcome, reason: str) -> None:
    (tmp_path / "out.jsonl").write_bytes(answered + b"\n")
    answer = read_answers(tmp_path).by_id["k"]
    assert (answer.outcome, answer.text) == (outcome, "yes" if outcome is Outcome.ANSWERED else "")
    assert reason in answer.reason


def test_an_answer_counts_above_a_failure_whichever_comes_first(tmp_path: Path) -> None:
    good, bad = line({"status_code": 200, "body": body("yes")}), line(None, {"message": "lost"})
    for number, lines in enumerate(([good, bad], [bad, good])):
        path = tmp_path / f"{number}.jsonl"
        path.write_bytes(b"\r\n".join([*lines, b"", b"[1]", b"\xff\xfe", b'{"custom_id": 3}', b"[" * 100_000]))
        answers = read_answers(path)
        assert (answers.by_id["k"].text, answers.unreadable_count) == ("yes", 4)


def test_requests_beside_the_answers_say_what_was_asked(tmp_path: Path) -> None:
    writer = BatchWriter(tmp_path, "m")
    writer.add(request("k"))
    writer.flush()
    with pytest.raises(BatchError, match="there are no answers"):
        read_answers(tmp_path)
    (tmp_path / "z.jsonl").write_bytes(line({"status_code": 200, "body": body("yes")}))
    answer = read_answers(tmp_path).by_id["k"]
    assert (answer.prompt_version, len(answer.request_sha256)) == ("v-1", 64)
