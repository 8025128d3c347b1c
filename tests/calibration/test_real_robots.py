"""What is measured on people with real robots, on invented talks in the layout of SCOUT and NodBot."""

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from calibration.real_robots.outcomes import make_talk
from calibration.real_robots.time_to_alarm import measure_time_to_alarm, read_planned_talks
from calibration.real_robots.waiting import Hazard, find_waits
from calibration.real_robots.wizard_choices import find_choices

# By, seconds, words, the row it is about, and its relation.
ROWS: tuple[tuple[str, float, str, str, str], ...] = (
    ("person", 10.0, "take a picture", "None", "None"),
    ("robot", 13.0, "processing. . .", "0", "processing"),
    ("robot", 20.0, "sent", "0", "translation-l"),
    ("person", 30.0, "drive to the red door", "None", "None"),
    ("person", 32.0, "and stop there", "3", "continue"),
    ("robot", 37.0, "Can you repeat that?", "4*", "req-repeat"),
    ("person", 40.0, "drive to the door that is red", "5", "clar-repair"),
    ("person", 60.0, "hello robot are you there", "None", "None"),
    ("robot", 66.0, "How far should I go?", "7", "req-clar"),
    ("person", 70.0, "five feet", "8", "clar-repair"),
    ("robot", 72.0, "ok", "9", "ack-wilco"),
)


@pytest.fixture
def session() -> dict[str, Any]:
    names = ("by", "at_s", "text", "antecedent", "relation")
    turns = [{"id": str(place), **dict(zip(names, row, strict=True))} for place, row in enumerate(ROWS)]
    return {"id": "scout/p9.01_main1", "turns": turns}


def test_waits_end_as_somebody_speaks_or_works(session: dict[str, Any]) -> None:
    waits = list(find_waits(session))
    assert [(wait.row, wait.ends_by) for wait in waits] == [
        ("0", ""), ("3", "goes on"), ("4", ""), ("6", "asks something else"), ("7", ""),
    ]  # fmt: skip
    assert waits[0].first_sign_s == pytest.approx(3)
    assert waits[0].robot_silent_s == pytest.approx(3)
    assert [wait.request for wait in waits[:2]] == ["a picture", "a movement"]
    assert waits[3].pace_s == pytest.approx(4)  # the median of 3 and 5


def test_waits_that_are_cut_off_count_until_then() -> None:
    spans = [("a", 3.5, True), ("a", 3.5, True), ("b", 1.0, False), ("b", 9.0, False)]
    shares = Hazard.of(spans).spoken_again(np.ones(2))
    assert shares[2] == 0
    assert shares[3] == pytest.approx(1 - np.exp(-2 / 2))  # two return while two seconds are waited


def test_the_wizard_s_choices_are_replies_to_the_last_words(session: dict[str, Any]) -> None:
    assert [(choice.spoken[-1], choice.chosen) for choice in find_choices(session)] == [
        ("take a picture", 0), ("and stop there", 2), ("hello robot are you there", 1), ("five feet", 0),
    ]  # fmt: skip


def test_a_turn_after_which_people_say_it_again_counts_against_the_robot(session: dict[str, Any]) -> None:
    turns = make_talk(session, 71).turns
    assert [turn.is_fault for turn in turns if turn.votes] == [False, True, False]
    assert turns[0].start_s == pytest.approx(9.0)  # a person's row is stamped as its words end
    assert turns[1].start_s == pytest.approx(13.0)
    assert turns[1].votes is None  # the robot speaks again


def write(path: Path, *rows: Mapping[str, object]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


@pytest.fixture
def nodbot(tmp_path: Path) -> Path:
    people = [
        {"participant_num": n, "start": 3 + 8 * k, "end": 5 + 8 * k, "error": k + 1} for n in (2, 11) for k in range(3)
    ]
    write(tmp_path / "error_times.csv", *people)
    spoken = [
        {"participant_num": f"p{row['participant_num']}nodbot", "speaker": voice, "start": start_s, "end": end_s}
        for row in people
        for voice, start_s, end_s in (
            ("participant", row["start"] - 2, row["start"] - 1.5),
            ("participant", row["start"] - 1.3, row["start"] - 1),
            ("nodbot", row["start"], row["end"]),
        )
    ]  # fmt: skip
    write(tmp_path / "speaker_diarization_all_audio.csv", *spoken)
    labels = [
        {
            "participant_num": row["participant_num"],
            "start": row["start"] + 1.5,
            "end": row["end"],
            "labels": "confusion",
        }
        for row in people
    ]
    write(tmp_path / "nodbot_annotations.csv", *labels)
    prompt = {"participant_num": 2, "start": 9.0, "end": 10.0, "labels": "simpler prompt, slower", "error": 1}
    write(tmp_path / "filtered_annotations.csv", prompt)
    return tmp_path


def test_errors_are_timed_to_their_flag_and_to_the_reaction(nodbot: Path) -> None:
    talk, _ = read_planned_talks(nodbot)
    assert talk.person == "2"
    assert [turn.text for turn in talk.turns][:4] == [
        "Call the researcher.", "Sorry, I do not understand.", "Researcher.", "Sorry, I do not understand.",
    ]  # fmt: skip
    assert talk.delays_s([3.5, 12.0, 20.0]) == [0.5, 1.0, 1.0]
    assert talk.delays_s([20.0]) == [None, None, 1.0]
    app = typer.Typer()
    app.command()(measure_time_to_alarm)
    result = CliRunner().invoke(app, ["--nodbot", str(nodbot)])
    assert result.exit_code == 0, result.output
    assert "2 people, 6 errors" in result.output
    first = next(line for line in result.output.splitlines() if "first reaction" in line)
    assert {"100", "1.5"} <= set(first.replace("[", " ").split())
