"""Generate the bag of a study session: a drawn person at the robot's camera, and tones where somebody speaks."""

from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from norm_core.bags.writer import BagWriter
from norm_core.records.decision import Decision
from norm_core.records.flag import SocialFlag
from norm_core.records.presence import Presence
from norm_core.records.speech import Speaker, Utterance
from norm_core.runtime.time import NS_PER_S
from sim_replays.examples.study_session import PARTICIPANTS, START_NS, person_ids, records
from sim_replays.scenarios.generate import make_header, make_message
from sim_replays.scenarios.records import AUDIO, CAMERA
from sim_replays.scenarios.voice import RATE_HZ
from study_desk.log.recording import bag_reference
from study_desk.log.schema import BagRef, Participant

_TOPICS = {
    Utterance: "/tactful/utterances",
    SocialFlag: "/tactful/flags",
    Presence: "/tactful/presence",
    Decision: "/tactful/decisions",
}
_WIDTH_PX, _HEIGHT_PX = 320, 240
_PITCH_HZ = {Speaker.ROBOT: 210.0, Speaker.USER: 125.0}
_SYLLABLES_HZ = 4.0


def write_session_bag(
    bag: Path,
    *,
    length_s: float = 600,
    flags: int = 34,
    seed: int = 7,
    participants: tuple[Participant, ...] = PARTICIPANTS,
    has_sound: bool = True,
) -> BagRef:
    """Write the bag of the session that `study_session.write_log` generates from the same values.

    It also holds what Tactful's nodes publish, so that it can be logged with its participants and flags.
    """
    found = list(records(length_s=length_s, flags=flags, seed=seed, persons=person_ids(participants)))
    talk = sorted((record for _, record in found if isinstance(record, Utterance)), key=lambda said: said.start_ns)
    with BagWriter(bag) as writer:
        for second in range(int(length_s)):
            stamp_ns = START_NS + second * NS_PER_S
            header = make_header(stamp_ns, "camera")
            values = {"header": header, "format": "jpeg", "data": _picture(talk, stamp_ns)}
            writer.write_message(CAMERA, make_message("sensor_msgs/msg/CompressedImage", values), stamp_ns)
            if has_sound:
                writer.write_message(AUDIO, _sound(talk, stamp_ns), stamp_ns)
        for known_ns, record in found:
            writer.write(_TOPICS[type(record)], record, known_ns)
    return bag_reference(bag, START_NS)


def _speaking(talk: Sequence[Utterance], from_ns: int, until_ns: int) -> list[Utterance]:
    number = bisect_left(talk, until_ns, key=lambda said: said.start_ns)
    return [said for said in talk[max(0, number - 3) : number] if said.end_ns > from_ns]


def _picture(talk: Sequence[Utterance], at_ns: int) -> NDArray[np.uint8]:
    image = np.full((_HEIGHT_PX, _WIDTH_PX, 3), (206, 216, 222), np.uint8)
    cv2.rectangle(image, (0, 190), (_WIDTH_PX, _HEIGHT_PX), (168, 182, 190), -1)
    for left in range(10, _WIDTH_PX, 62):  # a shelf of books
        cv2.rectangle(image, (left, 20), (left + 48, 84), (150 - left // 4, 130, 110 + left // 4), -1)
    sway = (at_ns - START_NS) // NS_PER_S % 6 * 4
    speaker = next((said.speaker for said in _speaking(talk, at_ns, at_ns + NS_PER_S)), None)
    cv2.ellipse(image, (150 + sway, 235), (62, 78), 0, 180, 360, (120, 84, 62), -1)
    cv2.circle(image, (150 + sway, 126), 36, (136, 172, 214), -1)
    for eye in (-13, 13):
        cv2.circle(image, (150 + sway + eye, 118), 4, (40, 40, 40), -1)
    mouth = (11, 8) if speaker is Speaker.USER else (11, 1)
    cv2.ellipse(image, (150 + sway, 143), mouth, 0, 0, 360, (60, 60, 140), -1)
    data: NDArray[np.uint8] = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, 75])[1]
    return data.reshape(-1)


def _sound(talk: Sequence[Utterance], from_ns: int) -> Any:
    """Return one second of tones that swell as syllables do."""
    times = np.arange(RATE_HZ) / RATE_HZ
    mixed = np.zeros(RATE_HZ)
    for said in _speaking(talk, from_ns, from_ns + NS_PER_S):
        begun = (said.start_ns - from_ns) / NS_PER_S
        inside = (times >= begun) & (times < (said.end_ns - from_ns) / NS_PER_S)
        pitch = 2 * np.pi * _PITCH_HZ.get(said.speaker, 160.0) * times
        swell = np.abs(np.sin(np.pi * _SYLLABLES_HZ * (times - begun)))
        mixed += inside * swell * (np.sin(pitch) + 0.5 * np.sin(2 * pitch)) * 0.2
    samples = (mixed * (2**15 - 1)).round().astype("<i2").tobytes()
    data = make_message("audio_common_msgs/msg/AudioData", {"data": np.frombuffer(samples, np.uint8)})
    values = {"header": make_header(from_ns, "microphone"), "audio": data}
    return make_message("audio_common_msgs/msg/AudioDataStamped", values)
