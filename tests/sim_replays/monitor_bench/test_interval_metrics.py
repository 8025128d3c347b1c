"""Labelled intervals: what their file may say, the measures by hand, and a shipped bag against labels."""

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from norm_core.records.flag import Attribute, Evidence, FlagState, Polarity, Severity, SocialFlag, Tier
from norm_core.records.speech import RobotSpeech, Speaker, SpeechEdge, Utterance, silence_mark
from norm_core.runtime.time import ReplayClock, s_to_ns
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.context.meaning import EncoderMatcher
from norm_monitor.encounters.library import shipped
from norm_monitor.monitor import Monitor, MonitorConfig
from norm_monitor.windows.cutter import Entry
from sim_replays.monitor_bench.labelled_recording import (
    Interval,
    LabelClass,
    LabelFileError,
    LabelledRecording,
    RaisedFlag,
    interval_agreement,
    join_recordings,
    read_intervals,
    record_flags,
    session_of,
)
from tactful_cli.main import app
from tests.norm_monitor.encounter_talk import waiting_alone

START_NS, END_NS = s_to_ns(1_000), s_to_ns(1_360)  # a tenth of an hour
HEADER = "class,onset_s,offset_s\n"
MISTAKE, RUPTURE = LabelClass.ROBOT_MISTAKE, LabelClass.INTERACTION_RUPTURE


def label(onset_s: float, offset_s: float, kind: LabelClass = MISTAKE) -> Interval:
    return Interval(label=kind, onset_ns=START_NS + s_to_ns(onset_s), offset_ns=START_NS + s_to_ns(offset_s))


def raised(onset_s: float, offset_s: float, known_s: float) -> RaisedFlag:
    return RaisedFlag(
        flag=SocialFlag(
            stamp_ns=START_NS,
            event_id=f"{onset_s}",
            state=FlagState.CLOSED,
            polarity=Polarity.ERROR,
            attributes=(Attribute.EMOTIONS,),
            severity=Severity.MINOR,
            probability=0.8,
            onset_ns=START_NS + s_to_ns(onset_s),
            offset_ns=START_NS + s_to_ns(offset_s) if offset_s >= 0 else None,
            decision_ns=START_NS,
            tier=Tier.CUE,
            evidence=(Evidence(measure="m", value=1, start_ns=0, end_ns=1),),
            rationale="r",
            correction="c",
        ),
        known_ns=START_NS + s_to_ns(known_s),
    )


def recording(labels: list[Interval], flags: list[RaisedFlag]) -> LabelledRecording:
    return LabelledRecording(
        name="bag",
        start_ns=START_NS,
        end_ns=END_NS,
        labels=tuple(labels),
        raised=tuple(flags),
    )


def read(tmp_path: Path, text: str) -> tuple[Interval, ...]:
    file = tmp_path / "labels.csv"
    file.write_text(text, encoding="utf-8")
    return read_intervals(file, START_NS, END_NS)


def test_a_file_gives_its_intervals_in_order(tmp_path: Path) -> None:
    found = read(tmp_path, "comment,class,onset_s,offset_s\nlate,rm,20.5,23\n,Interaction Rupture,2,3\n")
    assert found == (label(2, 3, RUPTURE), label(20.5, 23))


@pytest.mark.parametrize(
    ("rows", "line", "why"),
    [
        ("rm,1,2\nrm,3\n", 3, "offset_s is '' and no number"),
        ("rm,1,two\n", 2, "'two' and no number"),
        ("rm,nan,2\n", 2, "onset_s is nan"),
        ("rm,-1,2\n", 2, "onset_s is -1"),
        ("rm,5,5\n", 2, "not after onset_s"),
        ("rm,360,401\n", 2, "after the bag's end at 360.0 s"),
        ("robot_mistakes,1,2\n", 2, "did you mean robot_mistake?"),
        (",1,2\n", 2, "is no class"),
        ("rm,1,2,3,4\n", 2, "more cells"),
        ("rm,1,5\nua,2,3\nrm,4,6\n", 4, "overlaps the robot_mistake of line 2"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path: Path, rows: str, line: int, why: str) -> None:
    with pytest.raises(LabelFileError) as fault:
        read(tmp_path, HEADER + rows)
    assert f"labels.csv, line {line}: " in str(fault.value)
    assert why in str(fault.value)


def test_all_faults_are_told_at_once_and_a_missing_column_first(tmp_path: Path) -> None:
    with pytest.raises(LabelFileError) as fault:
        read(tmp_path, HEADER + "rm,x,2\n" * 30)
    assert len(str(fault.value).splitlines()) == 21
    assert str(fault.value).endswith("10 more")
    with pytest.raises(LabelFileError, match=r"line 1: needs the columns .* has no onset_s, offset_s"):
        read(tmp_path, "class,start,end\nrm,1,2\n")
    with pytest.raises(LabelFileError, match="cannot be read"):
        read_intervals(tmp_path / "nowhere.csv", START_NS, END_NS)
    (tmp_path / "labels.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(LabelFileError, match=r"UTF-8|line 1"):
        read_intervals(tmp_path / "labels.csv", START_NS, END_NS)


def test_the_measures_by_hand() -> None:
    """Two of three labels are found, one late and twice; one flag is false."""
    found = interval_agreement([
        recording(
            [label(10, 20), label(40, 44), label(100, 110, RUPTURE)],
            [raised(10.4, 14, 13), raised(43, 46, 47), raised(43.5, 44, 48), raised(200, 201, 202)],
        )
    ])  # fmt: skip
    mistakes, ruptures = found.by_class["robot_mistake"], found.by_class["interaction_rupture"]
    assert (mistakes.labels, mistakes.detected, ruptures.detected) == (2, 100.0, 0.0)
    assert mistakes.recall == {"0.5": 50.0, "1": 50.0, "2": 50.0, "5": 100.0}
    assert mistakes.time_to_detection_s["p50"] == pytest.approx(5.0)  # 3 s and 7 s
    assert (found.online.recall, found.online.precision) == pytest.approx((100 / 3, 25.0))
    assert found.online.latency_s["p50"] == pytest.approx(3.0)


def test_nothing_flagged_and_nothing_labelled_are_measured_too() -> None:
    silent = interval_agreement([recording([label(10, 20)], [])])
    assert silent.online.recall == 0.0
    clean = interval_agreement([recording([], [raised(5, -1, 6)])])
    assert clean.by_class == {}
    assert clean.online.false_alarms_per_hour == pytest.approx(10.0)


def test_classes_that_overlap_are_one_event_and_neighbours_are_two() -> None:
    one = recording([label(10, 20), label(15, 30, RUPTURE), label(30, 31)], [])
    assert [e.offset_ns - e.onset_ns for e in session_of(one).truth.events] == [s_to_ns(20), s_to_ns(1)]
    assert len(session_of(one, MISTAKE).truth.events) == 2


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 20)).map(lambda one: (one[0], one[0] + one[1]))))
def test_joined_spans_cover_the_same_and_never_overlap(spans: list[tuple[int, int]]) -> None:
    found = join_recordings(spans)
    assert all(before[1] <= after[0] for before, after in pairwise(found))
    assert {t for a, b in found for t in range(a, b)} == {t for a, b in spans for t in range(a, b)}


def test_a_recording_keeps_when_a_flag_was_first_known_and_how_it_ended(meaning: EncoderMatcher) -> None:
    asked = Utterance(
        stamp_ns=START_NS,
        utterance_id="u",
        speaker=Speaker.USER,
        text="Where can I buy a ticket?",
        start_ns=START_NS,
        end_ns=START_NS + s_to_ns(2),
    )
    answer = {14: SpeechEdge.START, 16: SpeechEdge.STOP}

    def records() -> Iterator[tuple[int, Entry]]:
        for second in range(2, 60):
            now_ns = START_NS + s_to_ns(second)
            if second == 2:
                yield now_ns, asked
            if second in answer:
                yield now_ns, RobotSpeech(stamp_ns=now_ns, speech_id="r", state=answer[second], text="At the counter.")
            yield now_ns, silence_mark(now_ns, "audio")

    clock = ReplayClock()
    config, table = MonitorConfig.for_replay(["utterances"]), ThresholdTable.shipped()
    monitor = Monitor(config, table, meaning, clock, unit_model=waiting_alone())
    found = record_flags("bag", (START_NS, END_NS), (), records(), monitor, clock)
    (missing,) = [one for one in found.raised if one.flag.cue_id == "no_response"]
    assert START_NS + s_to_ns(7) <= missing.known_ns <= START_NS + s_to_ns(9)
    assert (missing.flag.state, missing.flag.offset_ns) == (FlagState.CLOSED, START_NS + s_to_ns(14))
    assert found.robot_turns == ((START_NS + s_to_ns(14), START_NS + s_to_ns(16)),)


def test_the_verb_measures_a_bag_against_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, meaning: EncoderMatcher
) -> None:
    monkeypatch.setattr(EncoderMatcher, "shipped", lambda: meaning)  # the same, not loaded again
    bag = next(path for path in shipped() if path.name == "zh_clinic")
    file = tmp_path / "labels.csv"
    file.write_text(HEADER + "rm,7.2,8.8\nua,31.6,33.0\n")
    asked = ["bench", "monitor", "--bag", str(bag), "--language", "zh", "--json"]
    result = CliRunner().invoke(app, [*asked, "--labels", str(file)])
    told = json.loads(result.stdout)
    assert told["labels"] == 2
    assert told["monitor"]["online"]["events"] == 2
    assert set(told["monitor"]["by_class"]) == {"robot_mistake", "user_awkwardness"}
    assert told["baselines"]["always no"]["flags"] == 0
    assert "1 --bag and 0 --labels" in str(CliRunner().invoke(app, asked).exception)
