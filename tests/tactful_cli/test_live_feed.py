"""What the view makes of the stream of a running graph, and of the monitor's settings that its viewers change."""

from dataclasses import replace
from typing import Any

import cv2
import numpy as np
import pytest

from norm_core.records.json_codec import to_plain
from norm_core.records.speech import RobotSpeech, Speaker, SpeechEdge, Utterance
from norm_core.runtime.time import NS_PER_S
from norm_monitor.view.pictures import LiveStills
from norm_monitor.view.timeline import SessionTimeline
from tactful_cli.graph_stream import GraphLine
from tactful_cli.view import LiveControls, LiveFeed
from tests.node_records import camera_frame, node_status

START_NS = 1_700_000_000 * NS_PER_S
SAID = Utterance(
    stamp_ns=START_NS,
    utterance_id="u",
    speaker=Speaker.USER,
    text="Hello?",
    start_ns=START_NS,
    end_ns=START_NS + NS_PER_S,
)
STATUS = node_status(START_NS)
FRAME = camera_frame(START_NS, b"no picture")


@pytest.fixture
def timeline() -> SessionTimeline:
    return SessionTimeline("/tactful", START_NS, keep_s=3600)


@pytest.fixture
def feed(timeline: SessionTimeline) -> LiveFeed:
    return LiveFeed("/tactful", timeline, LiveStills(None))


def line(kind: str, record: Any, second: float = 0, topic: str = "/tactful/x") -> GraphLine:
    plain = record if isinstance(record, dict) else to_plain(record)
    return GraphLine(kind=kind, topic=topic, arrival_ns=START_NS + int(second * NS_PER_S), record=plain)


def spans(timeline: SessionTimeline) -> list[tuple[float, float]]:
    return [(item["start"], item["end"]) for item in timeline.changes()["speech"]]


def test_stamps_of_a_replay_move_to_this_clock_together(feed: LiveFeed, timeline: SessionTimeline) -> None:
    for second in (10, 12):
        stamp_ns = 1_000 * NS_PER_S + second * NS_PER_S
        old = replace(SAID, utterance_id=f"u{second}", stamp_ns=stamp_ns, start_ns=stamp_ns, end_ns=stamp_ns + NS_PER_S)
        feed.take(line("utterance", old, second=second + second / 10))
    first, later = spans(timeline)
    assert later[0] - first[0] == 2_000
    assert timeline.changes()["end"] == 13_200


def test_users_are_numbered_without_their_names(feed: LiveFeed, timeline: SessionTimeline) -> None:
    for number, name in enumerate(("Ana", "Bo", "Ana", "")):
        feed.take(line("utterance", replace(SAID, utterance_id=f"u{number}", speaker_id=name), second=number))
    speech = timeline.changes()["speech"]
    assert {item["who"] for item in speech} == {"person"}
    assert [item["voice"] for item in speech] == [1, 2, 1, None]
    assert "Ana" not in str(speech)


def test_the_robot_s_own_words_replace_what_was_heard_of_them(feed: LiveFeed, timeline: SessionTimeline) -> None:
    speech = RobotSpeech(stamp_ns=START_NS, speech_id="s", state=SpeechEdge.START, text="The bridge is left.")
    stop = replace(speech, stamp_ns=START_NS + 2 * NS_PER_S, state=SpeechEdge.STOP)
    feed.take(line("robot_speech", speech, second=0))
    feed.take(line("robot_speech", stop, second=2))
    feed.take(line("utterance", replace(SAID, speaker=Speaker.ROBOT, text="the fridge"), second=3))
    assert [item["text"] for item in timeline.changes()["speech"]] == ["The bridge is left."]
    assert spans(timeline) == [(0, 2000)]


def test_the_robot_s_words_have_a_length_while_it_speaks(feed: LiveFeed, timeline: SessionTimeline) -> None:
    """A stop with an estimated time comes at once, and may name a speech before the last."""
    for number in (0, 1):
        start = RobotSpeech(stamp_ns=START_NS, speech_id=f"s{number}", state=SpeechEdge.START, text="To the left.")
        feed.take(line("robot_speech", start))
    stop = replace(start, speech_id="s0", stamp_ns=START_NS + 2 * NS_PER_S, state=SpeechEdge.STOP)
    feed.take(line("robot_speech", stop, second=0.1))
    assert [(item["end"], item["is_open"]) for item in timeline.changes()["speech"]] == [(0, True), (2_000, False)]


def test_frames_of_a_second_replay_are_shown() -> None:
    stills = LiveStills(None, shows_faces=True)
    pictures = [cv2.imencode(".jpg", np.full((60, 80, 3), grey, np.uint8))[1].tobytes() for grey in (0, 250)]
    for replay, picture in enumerate(pictures):
        for second in range(3):
            frame = camera_frame(START_NS, picture)
            stills.take(frame, START_NS + second * NS_PER_S, START_NS + (10 * replay + second) * NS_PER_S)
    shown = [stills.at(START_NS + second * NS_PER_S) for second in (1, 11)]
    assert [np.array(cv2.imdecode(np.frombuffer(still or b"", np.uint8), 0)).mean() > 128 for still in shown] == [
        False,
        True,
    ]


def test_what_the_monitor_remembers_is_shown_once() -> None:
    timeline = SessionTimeline("/tactful", START_NS + 30 * NS_PER_S, keep_s=3600, past_s=600)
    feed = LiveFeed("/tactful", timeline, LiveStills(None))
    feed.take(line("utterance", replace(SAID, utterance_id="now", stamp_ns=START_NS + 31 * NS_PER_S), second=31))
    past = [["utterance", to_plain(SAID)], ["utterance", to_plain(replace(SAID, utterance_id="now"))]]
    feed.take(line("reply", {"id": 1, "problem": "", "recent": past}, second=32))
    assert [item["id"] for item in timeline.changes()["speech"]] == ["u", "now"]
    assert timeline.changes()["from"] == 570_000


def test_a_node_without_heartbeats_is_stale_until_the_next(feed: LiveFeed, timeline: SessionTimeline) -> None:
    feed.take(line("status", STATUS))
    feed.take_time(START_NS + 6 * NS_PER_S)
    feed.take_time(START_NS + 7 * NS_PER_S)
    feed.take(line("status", STATUS, second=8))
    health = timeline.changes()["health"]
    assert [(item["start"], item["health"]) for item in health] == [(0, "ok"), (6000, "stale"), (8000, "ok")]
    assert health[1]["reasons"] == ["no heartbeat for 5 s; look at its process and network"]


def test_an_outage_lasts_from_the_last_heartbeat_to_the_next(feed: LiveFeed, timeline: SessionTimeline) -> None:
    for second in (0, 1, 2):
        feed.take(line("status", STATUS, second=second))
    for second in range(3, 20):
        feed.take(line("utterance", replace(SAID, utterance_id=f"u{second}"), second=second))
        feed.take_time(START_NS + second * NS_PER_S)
    feed.take(line("status", STATUS, second=20.5))
    feed.take_time(START_NS + 21 * NS_PER_S)
    assert [(item["start"], item["end"]) for item in timeline.changes()["outages"]] == [(2_000, 20_500)]


def test_invalid_and_lost_messages_are_noted(feed: LiveFeed, timeline: SessionTimeline) -> None:
    feed.take(line("refused", {"problem": "SocialFlag.state is 9"}, topic="/tactful/flags"))
    feed.take(line("utterance", {"text": "of no time"}, topic="/tactful/utterances"))
    feed.take(line("lost", {"count": 2}))
    feed.take(line("lost", {"count": 3}))
    changes = timeline.changes()
    assert "/tactful/flags: SocialFlag.state is 9" in changes["notes"]
    assert any(note.startswith("/tactful/utterances: ") for note in changes["notes"])
    assert changes["state"]["lost"] == 5


class Stream:
    """The stream of a graph whose monitor answers what the view asks."""

    namespace = "/tactful"

    def __init__(self) -> None:
        self.values: dict[str, Any] = {"fusion.sensitivity": "balanced", "fusion.muted": ["greets"], "study.log": ""}
        self.request_count = 0

    def send(self, command: dict[str, Any]) -> int:
        self.request_count += "get" in command
        return self.request_count

    def ask(self, command: dict[str, Any]) -> str:
        self.values |= command["set"]
        return ""


def test_settings_are_read_anew_after_each_change_and_restart(timeline: SessionTimeline) -> None:
    stream = Stream()
    controls = LiveControls(stream, timeline)  # type: ignore[arg-type]

    def beat(instance: str, config: str) -> dict[str, Any]:
        status = node_status(START_NS, node="/tactful/monitor", instance_id=instance, config_sha256=config)
        controls.take(line("status", status))
        controls.take(line("reply", {"id": stream.request_count, "values": dict(stream.values)}))
        return dict(timeline.changes()["state"]["settings"])

    assert beat("first", "a")["sensitivity"] == "balanced"
    controls.set_muted("monologue", is_muted=True)
    controls.set_muted("greets", is_muted=False)
    assert stream.values["fusion.muted"] == timeline.changes()["state"]["settings"]["muted"] == ["monologue"]
    stream.values["fusion.sensitivity"] = "keen"
    assert beat("first", "b")["sensitivity"] == "keen"
    stream.values["fusion.sensitivity"] = "quiet"
    assert beat("second", "b")["sensitivity"] == "quiet"
    assert stream.request_count == 3
