"""What a log takes from a bag: the words that the robot told, a name, and the end of retention."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from norm_core.records.flag import Attribute, Evidence, FlagState, Polarity, Severity, SocialFlag, Tier
from norm_core.records.speech import RobotSpeech, Speaker, SpeechEdge, Utterance
from norm_monitor.session_log.study_folder import init_study
from study_desk.study.add_session import set_consent
from tests.acceptance.test_study_coding import study
from tests.foreign_bag import Maker, write

SECOND_NS = 1_000_000_000
START_NS = 1_700_000_000 * SECOND_NS
TOLD, ECHO = "the two of you", "PQA"


def said(text: str, at_s: float, speaker: Speaker = Speaker.USER, speaker_id: str = "") -> Utterance:
    start_ns = START_NS + round(at_s * SECOND_NS)
    return Utterance(
        stamp_ns=start_ns, utterance_id=f"u{at_s}", speaker=speaker, speaker_id=speaker_id, text=text,
        start_ns=start_ns, end_ns=start_ns + SECOND_NS,
    )  # fmt: skip


def robot(state: SpeechEdge, at_s: float, text: str, speech_id: str = "s1") -> RobotSpeech:
    return RobotSpeech(stamp_ns=START_NS + round(at_s * SECOND_NS), speech_id=speech_id, state=state, text=text)


def flag(at_s: float) -> SocialFlag:
    at_ns = START_NS + round(at_s * SECOND_NS)
    return SocialFlag(
        stamp_ns=at_ns, event_id="e1", state=FlagState.CLOSED, polarity=Polarity.ERROR,
        attributes=(Attribute.ENGAGEMENT,), severity=Severity.MINOR, probability=0.9, onset_ns=at_ns, offset_ns=at_ns,
        decision_ns=at_ns, tier=Tier.CUE, rationale="why",
        evidence=(Evidence(measure="m", value=1.0, start_ns=at_ns, end_ns=at_ns),),
        correction="how",
    )  # fmt: skip


def messages(make: Maker) -> Iterator[tuple[int, str, Any]]:
    records = (
        robot(SpeechEdge.START, 1, TOLD), robot(SpeechEdge.STOP, 2.5, TOLD), said(ECHO, 1.2, Speaker.ROBOT),
        said("good morning", 4, speaker_id="p1"),
        robot(SpeechEdge.START, 6, "", "s2"), robot(SpeechEdge.STOP, 7, "", "s2"),
        said("words that it did not tell", 6.1, Speaker.ROBOT), flag(8),
    )  # fmt: skip
    for record in records:
        yield record.stamp_ns, f"/{type(record).__name__.lower()}", make.of(record)


@pytest.fixture(scope="module")
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    make = Maker({})
    return write(tmp_path_factory.mktemp("bags") / "session", make, messages(make))


def logged(bag: Path, log: Path, *options: str, session: str = "S1", retention_days: int = 0, code: int = 0) -> str:
    """Add the bag to a new study of one participant, whose first log this is."""
    folder = log.parents[1]
    if not folder.exists():
        set_consent(init_study(folder, "s", retention_days=retention_days), "P-1")
    return study("add", folder, bag, "--session", session, *options, code=code)


def test_the_robots_words_are_those_it_told_and_not_what_was_heard(bag: Path, tmp_path: Path) -> None:
    logged(bag, tmp_path / "s/sessions/S1")
    study("report", tmp_path / "s/sessions/S1", "-o", tmp_path / "s.html")
    text = (tmp_path / "s.html").read_text()
    assert TOLD in text
    assert ECHO not in text
    assert "good morning" in text
    assert "words that it did not tell" in text


def test_retention_counts_from_the_recording(bag: Path, tmp_path: Path) -> None:
    """The bag is of 2023: it is due at once, however late it is logged."""
    logged(bag, tmp_path / "s/sessions/S1", retention_days=30)
    assert f"{bag}: is not reached from here" in study("withdraw", tmp_path / "s", "--expired", code=1)
    logged(bag, tmp_path / "later/sessions/S1", retention_days=36500)
    assert "S1: 0 entries emptied" in study("withdraw", tmp_path / "later", "--expired")
