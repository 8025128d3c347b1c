"""Play a generated conversation to the nodes over DDS, and compare their output with the truth."""

import json
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from norm_core.bags.reader import BagReader
from norm_core.records.presence import Presence, PresenceState
from norm_core.records.speech import Utterance
from norm_core.runtime.time import NS_PER_S, ns_to_s
from norm_monitor.senses.microphone.sound_file import chunks_of
from sim_replays.drivers.node_process import NodeProcess
from tests.foreign_bag import Maker, int16, write
from tests.foreign_interfaces import NAOQI
from tests.norm_monitor.senses.camera_messages import face_image
from tests.norm_monitor.senses.speech_path import START_NS, edges_of

SPEECH = Path(__file__).resolve().parents[1] / "norm_monitor/senses"
AUDIO_TYPE = "naoqi_bridge_msgs/msg/AudioBuffer"
IMAGE_TOPIC = "/camera/image_raw/compressed"
FACE_S = ((3.5, 8.5), (10.5, 14.5))  # times of a face in front of the camera
FRAMES_HZ = 10
SILENCE_AFTER_S = 4.0  # time to transcribe the last words


def truth() -> list[dict[str, Any]]:
    """List who said what and when, in seconds from the start."""
    return list(json.loads((SPEECH / "conversation.json").read_text(encoding="utf-8")))


def build_bag(path: Path) -> Path:
    """Write a bag with the sound, the robot's speech edges and a face that comes and goes."""
    make = Maker(NAOQI)
    chunks = list(chunks_of(SPEECH / "conversation.flac"))
    rate_hz = chunks[0].rate_hz
    samples = np.concatenate([chunk.samples[:, 0] for chunk in chunks])
    sound = int16(np.concatenate([samples, np.zeros(round(SILENCE_AFTER_S * rate_hz), np.float32)]))
    messages: list[tuple[int, str, Any]] = []
    step = rate_hz // 10
    for first in range(0, len(sound), step):
        stamp_ns, part = START_NS + first * NS_PER_S // rate_hz, sound[first : first + step]
        values = {"header": make.header(stamp_ns), "frequency": rate_hz, "channel_map": np.zeros(1, np.uint8)}
        message = make(AUDIO_TYPE, values | {"data": part})
        messages.append((stamp_ns + len(part) * NS_PER_S // rate_hz, "/audio", message))
    for edge in edges_of(turn for turn in truth() if turn["speaker"] == "robot"):
        messages.append((edge.stamp_ns, "/tactful/robot_speech", make.of(edge)))
    frames = {shown: _jpeg(shown) for shown in (False, True)}
    for index in range(round(len(sound) / rate_hz * FRAMES_HZ)):
        at_s = index / FRAMES_HZ
        stamp_ns = START_NS + index * NS_PER_S // FRAMES_HZ
        data = frames[any(came <= at_s < left for came, left in FACE_S)]
        values = {"header": make.header(stamp_ns), "format": "jpeg", "data": data}
        messages.append((stamp_ns, IMAGE_TOPIC, make("sensor_msgs/msg/CompressedImage", values)))
    return write(path, make, messages)


def _jpeg(shown: bool) -> Any:
    frame = np.full((480, 640, 3), 90, np.uint8)
    if shown:
        frame[:, 80:560] = cv2.resize(face_image(), (480, 480), interpolation=cv2.INTER_AREA)
    return cv2.imencode(".jpg", frame)[1].ravel()


def play(bag: Path, folder: Path, domain_id: int) -> tuple[list[Utterance], list[Presence], int]:
    """Return the final utterances, the presences, and the peak memory in kB of camera and ears."""
    received, topics = folder / "received", ["/tactful/utterances", "/tactful/presence"]
    senses = {"camera": {"topic": IMAGE_TOPIC}, "ears": {"audio_type": AUDIO_TYPE}}
    player = {"bag": str(bag), "wait_for_subscribers_s": 30.0}
    with (
        NodeProcess(["bag_recorder"], {"bag_recorder": {"bag": str(received), "topics": topics}}, domain_id),
        NodeProcess(["camera", "ears"], senses, domain_id) as host,
        NodeProcess(["bag_player"], {"bag_player": player}, domain_id) as played,
    ):
        played.wait(120)
        status = Path(f"/proc/{host.pid}/status").read_text(encoding="utf-8")
    with BagReader(received) as reader:
        records = [reader.decode(message) for message in reader.messages()]
    peak_kb = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    utterances = [record for record in records if isinstance(record, Utterance) and record.final]
    return utterances, [record for record in records if isinstance(record, Presence)], peak_kb


def compared(utterances: list[Utterance], presences: list[Presence]) -> list[dict[str, Any]]:
    """Pair each true turn with the nearest utterance, and each face with the first frame that shows it."""
    rows = []
    for turn in truth():
        heard = min(utterances, key=lambda u: abs(ns_to_s(u.start_ns - START_NS) - turn["start_s"]))
        start_s, end_s = ns_to_s(heard.start_ns - START_NS), ns_to_s(heard.end_ns - START_NS)
        rows.append(
            {
                "truth": f"{turn['speaker']}: {turn['text']}",
                "found": f"{heard.speaker}: {heard.text}",
                "start_s": turn["start_s"],
                "start_error_ms": round(1_000 * (start_s - turn["start_s"])),
                "end_s": turn["end_s"],
                "end_error_ms": round(1_000 * (end_s - turn["end_s"])),
            }
        )
    seen_s = [ns_to_s(p.stamp_ns - START_NS) for p in presences if p.state is PresenceState.PRESENT]
    for came_s, left_s in FACE_S:
        within = [at_s for at_s in seen_s if came_s - 1 <= at_s < left_s + 1]
        rows.append(
            {
                "truth": "a face",
                "found": f"a face in {len(within)} frames",
                "start_s": came_s,
                "start_error_ms": round(1_000 * (min(within) - came_s)) if within else None,
                "end_s": left_s,
                "end_error_ms": round(1_000 * (max(within) - left_s)) if within else None,
            }
        )
    return rows
