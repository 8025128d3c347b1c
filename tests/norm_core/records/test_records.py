"""Every record survives JSON, CDR and a bag unchanged, and refuses what it cannot be."""

import math
import re
from dataclasses import fields, replace
from types import SimpleNamespace
from typing import Any, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from norm_core.bags.types import INTERFACES, find_interfaces_folder, serialize, typestore
from norm_core.records.decision import Decision, Duplicable, Norm, OtherAgent, Veto
from norm_core.records.episode import Answer, EpisodeEdge, Query
from norm_core.records.flag import (
    Attribute,
    Evidence,
    Failure,
    FlagState,
    Polarity,
    Severity,
    SocialFlag,
    Tier,
    Verdict,
)
from norm_core.records.json_codec import RecordError, from_json, to_json
from norm_core.records.messages import RECORDS, MessageError, from_message, message_type
from norm_core.records.outcome import Outcome
from norm_core.records.presence import Presence, PresenceState
from norm_core.records.speech import Speaker, SpeechEdge, Timing, Utterance
from norm_core.records.status import Health, NodeState
from tests.records import records

EVERY_RECORD = st.one_of(*(records(cls) for cls in RECORDS.values()))
PATIENT = settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)


@PATIENT
@given(EVERY_RECORD)
def test_json_round_trip(record: Any) -> None:
    assert from_json(type(record), to_json(record)) == record


@PATIENT
@given(EVERY_RECORD)
def test_message_round_trip_through_cdr(record: Any) -> None:
    message = typestore().deserialize_cdr(serialize(record), message_type(type(record)))
    assert from_message(type(record), message) == record


@pytest.mark.parametrize("cls", RECORDS.values(), ids=lambda cls: cls.__name__)
def test_message_and_record_have_the_same_fields(cls: type) -> None:
    defined = [name for name, _ in typestore().fielddefs[message_type(cls)][1]]
    names = [field.name for field in fields(cls)]
    own = [re.sub("_(ns|deg|jpeg)$", "", name) for name in names if name not in ("stamp_ns", "frame_id")]
    assert defined == (["header", *own] if "stamp_ns" in names else own)


@pytest.mark.parametrize(
    ("definition", "prefix", "enumeration"),
    [
        ("msg/Outcome", "", Outcome),
        ("msg/SocialFlag", "POLARITY", Polarity),
        ("msg/SocialFlag", "ATTRIBUTE", Attribute),
        ("msg/SocialFlag", "FAILURE", Failure),
        ("msg/SocialFlag", "SEVERITY", Severity),
        ("msg/SocialFlag", "TIER", Tier),
        ("msg/SocialFlag", "STATE", FlagState),
        ("msg/CandidateJudgement", "VETO", Veto),
        ("msg/CandidateJudgement", "NORM", Norm),
        ("msg/OtherAgent", "DUPLICABLE", Duplicable),
        ("msg/Episode", "STATE", EpisodeEdge),
        ("msg/Utterance", "SPEAKER", Speaker),
        ("msg/Utterance", "TIMING", Timing),
        ("msg/RobotSpeech", "STATE", SpeechEdge),
        ("msg/MonitorStatus", "HEALTH", Health),
        ("msg/MonitorStatus", "STATE", NodeState),
        ("srv/ReviewFlag", "VERDICT", Verdict),
    ],
)
def test_constants_match_the_enumeration(definition: str, prefix: str, enumeration: Any) -> None:
    folder, name = definition.split("/")
    (text,) = (
        path.read_text(encoding="utf-8")
        for package in INTERFACES
        if (path := find_interfaces_folder(package) / folder / f"{name}.{folder}").is_file()
    )
    constants = {n: int(v) for n, v in re.findall(rf"^uint8 {prefix and f'{prefix}_'}(\w+)=(\d+)", text, re.MULTILINE)}
    assert constants == {member.name: number for number, member in enumerate(enumeration)}


def test_json_of_something_else_names_the_field() -> None:
    with pytest.raises(RecordError, match=r"outcome.*'answered'"):
        from_json(Answer, '{"stamp_ns":0,"query_id":"q","episode_id":"e","task":"t","outcome":"guessed"}')


def test_an_enumeration_beyond_the_known_is_a_message_error() -> None:
    name = message_type(Answer)
    message: Any = typestore().deserialize_cdr(
        serialize(Answer(stamp_ns=0, query_id="q", episode_id="e", task="t", outcome=Outcome.FAILED)), name
    )
    message.outcome = beyond = len(Outcome)
    with pytest.raises(MessageError, match=rf"Answer\.outcome is {beyond}"):
        from_message(Answer, message)


def test_a_time_with_more_than_a_second_of_nanoseconds_is_refused() -> None:
    answer = Answer(stamp_ns=0, query_id="q", episode_id="e", task="t", outcome=Outcome.FAILED)
    message: Any = typestore().deserialize_cdr(serialize(answer), message_type(Answer))
    message.header.stamp.sec, message.header.stamp.nanosec = 2**31 - 1, 2**31 - 1
    with pytest.raises(MessageError, match="a time has 2147483647 nanoseconds"):
        from_message(Answer, message)


QUERY = Query(stamp_ns=0, query_id="q", episode_id="e", task="t")
NOBODY = Presence(stamp_ns=0, source_topic="/eye", state=PresenceState.ABSENT)


@pytest.mark.parametrize("sec", [0, -1, -5])
@pytest.mark.parametrize(
    ("record", "field"), [(QUERY, "deadline"), *((NOBODY, name) for name in ("since", "last_seen", "away_since"))]
)
def test_an_optional_time_of_zero_or_before_is_absent(record: Any, field: str, sec: int) -> None:
    """An absent one is written as zero, which every ROS client converts; older bags have -1 s."""
    message: Any = typestore().deserialize_cdr(serialize(record), message_type(type(record)))
    time = getattr(message, field)
    assert (time.sec, time.nanosec) == (0, 0)
    time.sec = sec
    assert from_message(type(record), message) == record


def test_an_optional_time_at_zero_of_a_simulated_clock_is_no_absent_one() -> None:
    begun = replace(NOBODY, state=PresenceState.PRESENT, since_ns=0, last_seen_ns=0)
    message: Any = typestore().deserialize_cdr(serialize(begun), message_type(Presence))
    assert from_message(Presence, message) == replace(begun, since_ns=1, last_seen_ns=1)


def test_a_time_at_the_end_of_what_ros_can_hold_is_refused_in_an_optional_field_too() -> None:
    message: Any = typestore().deserialize_cdr(serialize(NOBODY), message_type(Presence))
    message.last_seen.sec = 2**31 - 1
    with pytest.raises(MessageError, match="Presence has an impossible last_seen; let its publisher set it"):
        from_message(Presence, message)


def test_a_field_that_an_older_bag_lacks_has_its_default() -> None:
    other = OtherAgent(agent_id="a", role="cook", doing="stirring")
    message: Any = SimpleNamespace(agent_id="a", role="cook", doing="stirring")
    assert from_message(OtherAgent, message) == other
    del message.doing
    with pytest.raises(MessageError, match="OtherAgent lacks doing; another version of Tactful recorded it"):
        from_message(OtherAgent, message)


ERROR_FLAG: dict[str, Any] = {
    "stamp_ns": 0, "event_id": "e1", "state": FlagState.OPENED, "polarity": Polarity.ERROR, "severity": Severity.INFO,
    "attributes": (Attribute.EMOTIONS,), "probability": 0.5, "onset_ns": 0, "decision_ns": 0, "tier": Tier.CUE,
    "evidence": (Evidence(measure="response_delay", value=2.1, start_ns=0, end_ns=1),), "rationale": "r",
}  # fmt: skip
ABSTAINED = {"stamp_ns": 0, "query_id": "q", "episode_id": "e", "task": "t", "outcome": Outcome.ABSTAINED}
DECIDED = {"stamp_ns": 1, "decision_id": "d", "outcome": Outcome.ANSWERED, "decided_ns": 1, "chosen_index": 0}


@pytest.mark.parametrize(
    ("kind", "fields", "complaint"),
    [
        (SocialFlag, ERROR_FLAG, "without a correction"),
        (Answer, ABSTAINED | {"chosen": (1,)}, "yet chooses"),
        (Decision, DECIDED | {"chosen_index": -2}, "decision d"),
        (Decision, DECIDED | {"justification_index": -2}, "decision d"),
        (Decision, DECIDED | {"chosen_index": None}, "decision d"),
    ],
)
def test_invalid_record_is_refused(kind: Any, fields: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        kind(**fields)


@pytest.mark.parametrize(("locale", "language"), [("zh-CN", "zh"), ("pt_BR", "pt"), ("EN", "en"), ("", "")])
def test_the_language_of_an_utterance_is_that_of_its_locale(locale: str, language: str) -> None:
    utterance = Utterance(
        stamp_ns=1, utterance_id="u", speaker=Speaker.USER, text="a", start_ns=1, end_ns=2, locale=locale
    )
    assert utterance.language == language


@pytest.mark.parametrize("cls", RECORDS.values(), ids=lambda cls: cls.__name__)
@settings(PATIENT, max_examples=5)
@given(data=st.data())
def test_a_message_without_a_required_time_or_number_is_refused_by_name(cls: type, data: st.DataObject) -> None:
    """A required time may be zero, as of a simulated clock, but not -1 s; an absent number is NaN."""
    hints = get_type_hints(cls)
    names = [name for name, hint in hints.items() if hint is float or (hint is int and name.endswith("_ns"))]
    for name in names:
        message: Any = typestore().deserialize_cdr(serialize(data.draw(records(cls))), message_type(cls))
        target = re.sub("_(ns|deg)$", "", name)
        holder = message.header if name == "stamp_ns" else message
        if hints[name] is float:
            setattr(holder, target, math.nan)
        else:
            time = getattr(holder, target)
            time.sec, time.nanosec = -1, 0
        with pytest.raises(MessageError, match=f"{cls.__name__} states no {target}; let its publisher set it"):
            from_message(cls, message)
