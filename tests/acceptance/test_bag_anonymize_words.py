"""Words of a participant without consent leave a shared bag wherever others, the robot or its nodes repeat them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from norm_core.bags.reader import BagReader
from norm_core.records.decision import CandidateJudgement, Decision
from norm_core.records.flag import Attribute, Evidence, FlagState, Polarity, Severity, SocialFlag, Tier
from norm_core.records.outcome import Outcome
from norm_core.records.speech import RobotSpeech, Speaker, SpeechEdge, Utterance
from norm_core.records.status import Health, MonitorStatus, NodeState
from tests.command_line import tactful
from tests.foreign_bag import Maker, write
from tests.foreign_interfaces import ROS_DRIVERS

SECOND_NS = 1_000_000_000
START_NS = 1_700_000_000 * SECOND_NS
SECRET = "I live at twelve Elm Street."
REPEATED = "live at twelve Elm Street"
GONE = "[not consented]"


def said(text: str, at_s: int, speaker_id: str, speaker: Speaker = Speaker.USER) -> Utterance:
    start_ns = START_NS + at_s * SECOND_NS
    return Utterance(
        stamp_ns=start_ns, utterance_id=f"u{at_s}", speaker=speaker, speaker_id=speaker_id, text=text,
        start_ns=start_ns, end_ns=start_ns + SECOND_NS,
    )  # fmt: skip


def told(text: str, at_s: int) -> RobotSpeech:
    return RobotSpeech(stamp_ns=START_NS + at_s * SECOND_NS, speech_id=f"s{at_s}", state=SpeechEdge.START, text=text)


def flag(at_s: int) -> SocialFlag:
    at_ns = START_NS + at_s * SECOND_NS
    return SocialFlag(
        stamp_ns=at_ns, event_id="e1", state=FlagState.CLOSED, polarity=Polarity.ERROR,
        attributes=(Attribute.ENGAGEMENT,), severity=Severity.MINOR, probability=0.9, onset_ns=at_ns, offset_ns=at_ns,
        decision_ns=at_ns, tier=Tier.CUE, rationale=f"the robot heard “Elm Street”, and they {REPEATED}",
        correction=f"ask whether they {REPEATED}",
        evidence=(Evidence(measure="m", value=1.0, start_ns=at_ns, end_ns=at_ns, utterance_id="u1", quote="Elm"),),
    )  # fmt: skip


def decision(at_s: int) -> Decision:
    at_ns = START_NS + at_s * SECOND_NS
    return Decision(
        stamp_ns=at_ns, decided_ns=at_ns, decision_id="d1", outcome=Outcome.ABSTAINED, question=f"they {REPEATED}?",
        situation=f"they {REPEATED}", explanation=f"they {REPEATED}", justification=f"they {REPEATED}",
        candidates=(CandidateJudgement(index=0, action=f"say: you {REPEATED}", veto_reason=f"they {REPEATED}"),),
    )  # fmt: skip


def messages(make: Maker) -> Iterator[tuple[int, str, Any]]:
    records = (
        said(SECRET, 1, "p1"),
        said("Did you say you live at twelve, Elm street?", 3, "p2"),
        told("So you live at twelve ELM STREET. Lovely.", 5),
        said("elm", 6, "", Speaker.ROBOT),
        said("elm street, lovely", 7, "", Speaker.ROBOT),
        told("Good morning to both of you", 8),
        said("good morning to both", 8, "", Speaker.ROBOT),
        flag(9),
        decision(10),
        MonitorStatus(
            stamp_ns=START_NS + 11 * SECOND_NS, node="selector", state=NodeState.ACTIVE, health=Health.DEGRADED,
            reasons=(f"no answer to: they {REPEATED}",), software_version="1", config_sha256="", instance_id="i",
            started_ns=1,
        ),
    )  # fmt: skip
    for record in records:
        yield record.stamp_ns, f"/{type(record).__name__.lower()}", make.of(record)
    stamp_ns = START_NS + 12 * SECOND_NS
    value = make("diagnostic_msgs/msg/KeyValue", {"key": "last prompt", "value": f"A person says: {SECRET}"})
    status = {"level": 1, "name": "judge", "message": f"refused: {SECRET}", "hardware_id": "", "values": [value]}
    array = {"header": make.header(stamp_ns), "status": [make("diagnostic_msgs/msg/DiagnosticStatus", status)]}
    yield stamp_ns, "/diagnostics", make("diagnostic_msgs/msg/DiagnosticArray", array)
    yield stamp_ns, "/prompt", make("std_msgs/msg/String", {"data": f'{{"prompt": "{SECRET}", "of": 1}}'})
    yield stamp_ns, "/battery", make("std_msgs/msg/String", {"data": "half full"})
    yield stamp_ns, "/tactful/flags_json", make("std_msgs/msg/String", {"data": '{"quote": "Elm"}'})
    speech = {"header": make.header(stamp_ns), "incremental": "", "final": "Elm", "confidence": 1.0, "locale": "en"}
    yield stamp_ns, "/humans/voices/a/speech", make("hri_msgs/msg/LiveSpeech", speech)


def anonymized(bag: Path, copy: Path, *keep: str, code: int = 0) -> str:
    options = [part for topic in keep for part in ("--keep", topic)]
    options += ["--participant", "P-1=p1", "--participant", "P-2=p2", "--no-words", "P-1"]
    completed = tactful("bag", "anonymize", bag, copy, *options)
    assert completed.returncode == code, completed.stderr
    return " ".join((completed.stdout + completed.stderr).split())


@pytest.fixture(scope="module")
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    make = Maker(ROS_DRIVERS)
    return write(tmp_path_factory.mktemp("bags") / "session", make, messages(make))


def decoded(bag: Path, topic: str) -> list[Any]:
    with BagReader(bag) as reader:
        return [reader.decode(message) for message in reader.messages([topic])]


def test_withheld_words_are_removed_from_all_topics(bag: Path, tmp_path: Path) -> None:
    shown = anonymized(bag, tmp_path / "new", "/monitorstatus", "/diagnostics", "/prompt", "/battery")
    everything = b"".join(path.read_bytes() for path in (tmp_path / "new").iterdir()).lower()
    assert b"elm" not in everything
    assert [record.text for record in decoded(tmp_path / "new", "/utterance")] == [
        GONE, f"Did you say you {GONE}?", GONE, GONE, "good morning to both"
    ]  # fmt: skip
    assert [record.text for record in decoded(tmp_path / "new", "/robotspeech")] == [
        f"So you {GONE}. Lovely.", "Good morning to both of you"
    ]  # fmt: skip
    (flagged,) = decoded(tmp_path / "new", "/socialflag")
    assert (flagged.rationale, flagged.evidence[0].quote) == (f"the robot heard “{GONE}”, and they {GONE}", GONE)
    (decided,) = decoded(tmp_path / "new", "/decision")
    assert decided.candidates[0].action == f"say: you {GONE}"
    assert decoded(tmp_path / "new", "/monitorstatus")[0].reasons == (f"no answer to: they {GONE}",)
    (status,) = decoded(tmp_path / "new", "/diagnostics")[0].status
    assert (status.message, status.values[0].value) == (f"refused: {GONE}.", f"A person says: {GONE}.")
    assert decoded(tmp_path / "new", "/prompt")[0].data == f'{{"prompt": "{GONE}.", "of": 1}}'
    assert decoded(tmp_path / "new", "/battery")[0].data == "half full"
    assert "/diagnostics: kept, 1 of 1 message, 1 of them changed" in shown
    assert "/battery: kept, 1 of 1 message, 0 of them changed" in shown


@pytest.mark.parametrize("topic", ["/humans/voices/a/speech", "/tactful/flags_json"])
def test_a_topic_of_words_that_are_not_searched_cannot_be_kept(bag: Path, tmp_path: Path, topic: str) -> None:
    assert "take it off the list" in anonymized(bag, tmp_path / "new", topic, code=2)
    assert not (tmp_path / "new").exists()
