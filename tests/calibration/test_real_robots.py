"""What is measured on people with real robots, on invented talks in the layouts of their corpora."""

import csv
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from calibration.real_robots.outcomes import make_talk
from calibration.real_robots.scout import TimedStretch, join_marks
from calibration.real_robots.silence_rule import find_flags, find_silences, score_rules
from calibration.real_robots.time_to_alarm import measure_time_to_alarm, read_planned_talks
from norm_core.runtime.errors import TactfulError

# By, seconds, words and relation.
ROWS = (
    ("person", 10.0, "take a picture", "None"),
    ("robot", 13.0, "processing. . .", "processing"),
    ("robot", 20.0, "sent", "translation-l"),
    ("person", 30.0, "drive to the red door", "None"),
    ("robot", 37.0, "Can you repeat that?", "req-repeat"),
    ("person", 40.0, "go through the second one", "clar-repair"),
    ("robot", 66.0, "How far should I go?", "req-clar"),
    ("person", 70.0, "five feet", "clar-repair"),
)


def test_a_turn_after_which_people_say_it_again_counts_against_the_robot() -> None:
    rows = [{"by": by, "at_s": at_s, "text": text, "relation": relation} for by, at_s, text, relation in ROWS]
    turns = make_talk({"id": "scout/p9.01_main1", "turns": rows}, 71).turns
    assert [turn.is_fault for turn in turns if turn.votes] == [False, True, False]
    assert turns[0].start_s == pytest.approx(9.0)  # a person's row is stamped as its words end
    assert turns[1].start_s == pytest.approx(13.0)
    assert turns[1].votes is None  # the robot speaks again


def invented_stretch() -> TimedStretch:
    rows = [
        {"id": str(n), "by": by, "at_s": 60.0 + at_s, "text": text, "relation": relation}
        for n, (by, at_s, text, relation) in enumerate(ROWS)
    ]
    return TimedStretch.of({"start_s": 60.0, "end_s": 140.0}, {"id": "scout/p9.01_main1", "turns": rows})


def test_a_stopwatch_flags_silences_after_a_persons_words_and_signs_of_work_alone() -> None:
    silences = list(find_silences(invented_stretch()))

    def onsets_s(after_person_s: float, after_sign_s: float | None) -> list[float]:
        return [unit.onset_ns / 1e9 - 65.0 for unit, _ in find_flags(silences, after_person_s, after_sign_s)]

    assert onsets_s(6.5, None) == pytest.approx([30.0, 40.0, 70.0])  # the last lasts until the end
    assert onsets_s(20.0, None) == pytest.approx([40.0])
    assert len(onsets_s(20.0, 4.0)) == 2  # "processing" too


def test_a_silence_begins_with_the_last_words_or_sign_of_work_before_it_counts() -> None:
    stretch = invented_stretch()
    after = {"attributes": ["conversational_mechanics"], "polarity": "error", "why": ""}
    late = {**after, "row": "0", "silence": True, "onset_s": 72.0}  # before any sign of work
    stuck = {**after, "row": "0", "silence": True, "onset_s": 79.0}  # "processing" was the last that was heard
    unclear = {**after, "row": "4", "silence": False, "onset_s": 97.0}
    onsets_s = [event.onset_ns / 1e9 - 65.0 for event in stretch.find_events([late, stuck, unclear])]
    assert onsets_s[0] == pytest.approx(10.0)
    assert 13.0 < onsets_s[1] < 20.0
    assert onsets_s[2] == pytest.approx(37.0)


def test_two_coders_marks_of_one_row_are_one_label() -> None:
    first, second = ({"row": "4", "polarity": "error", "onset_s": onset_s} for onset_s in (97.0, 99.0))
    praise = {"row": "4", "polarity": "competence", "onset_s": 90.0}
    assert join_marks({"a": [first], "b": [second, praise]}) == [praise, first]


def run(command: Callable[..., None], *arguments: object) -> Result:
    app = typer.Typer()
    app.command()(command)
    result = CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def write(path: Path, *rows: Mapping[str, object]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


@pytest.fixture
def nodbot(tmp_path: Path) -> Path:
    errors = [(n, start_s) for n in (2, 11) for start_s in (3, 11, 19)]
    write(tmp_path / "error_times.csv", *({"participant_num": n, "start": at_s, "end": at_s + 2} for n, at_s in errors))
    spoken = [
        {"participant_num": f"p{n}nodbot", "speaker": voice, "start": error_s + start_s, "end": error_s + end_s}
        for n, error_s in errors
        for voice, start_s, end_s in (("participant", -2, -1.5), ("participant", -1.3, -1), ("nodbot", 0, 2))
    ]
    write(tmp_path / "speaker_diarization_all_audio.csv", *spoken)
    labels = [{"participant_num": n, "start": at_s + 1.5, "end": at_s + 2, "labels": "confusion"} for n, at_s in errors]
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
    result = run(measure_time_to_alarm, "--nodbot", nodbot)
    assert "2 people, 6 errors" in result.output
    first = next(line for line in result.output.splitlines() if "first reaction" in line)
    assert {"100", "1.5"} <= set(first.replace("[", " ").split())


def test_a_file_of_something_else_is_refused_by_what_it_lacks(tmp_path: Path) -> None:
    (tmp_path / "talk.txt").write_text("hello", "utf-8")
    with pytest.raises(TactfulError, match="is not one JSON a line"):
        run(score_rules, "--scout", tmp_path / "talk.txt")
