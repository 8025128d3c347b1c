"""The example robot with scripted people who protest, and a scripted stand-in for its language model."""

import asyncio
from pathlib import Path

import pytest

from benchmarks.monitor.mending import MAX_PROTESTS, SCRIPTS, Ask, Messages, main, play


def stand_in_of(script: dict[str, str]) -> Ask:
    async def ask(messages: Messages) -> str:
        is_told = "social error" in messages[0]["content"] or script["mended"] in str(messages)
        return script["mended" if is_told else "error"]

    return ask


def test_a_robot_that_reads_its_flags_repeats_fewer_errors_and_does_not_loop() -> None:
    """The stand-in obeys whatever it is told, so this bounds from above what a model gains."""
    repeated = {}
    for reads_flags in (False, True):
        talks = [asyncio.run(play(script, stand_in_of(script), reads_flags=reads_flags)) for script in SCRIPTS]
        repeated[reads_flags] = sum(sum(talk["errors"][1:]) for talk in talks)
        assert max(count for talk in talks for count in talk["requests"]) <= 2
    assert repeated[False] == len(SCRIPTS) * MAX_PROTESTS
    assert repeated[True] < repeated[False]


def test_a_line_that_was_not_finished_is_played_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, whole = tmp_path / "made.jsonl", '{"talk": 0, "reads_flags": false, "errors": [true]}\n'
    made.write_text(f'{whole}{{"talk": 0, "rea', encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["mending", "http://127.0.0.1:9/v1", "model", "--out", str(made)])
    assert main() == 1  # no server
    assert made.read_text(encoding="utf-8") == whole
