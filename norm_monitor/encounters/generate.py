"""Generate a bag from an encounter as a robot would record it: its records by sense, and its labels beside it."""

import random
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from rosbags.typesys import get_types_from_msg

from norm_core.bags.types import make, typestore
from norm_core.bags.writer import BagWriter
from norm_core.records.frame import Frame
from norm_core.records.presence import Face, Presence
from norm_core.records.record import record
from norm_core.records.speech import RobotSpeech, Speaker, SpeechEdge, Utterance, Word
from norm_core.records.stamps import split_stamp
from norm_core.records.topics import ROBOT_SPEECH_TOPIC, UTTERANCES_TOPIC, full_topic
from norm_core.runtime.config import Config
from norm_core.runtime.time import NS_PER_MS, NS_PER_S, s_to_ns
from norm_monitor.encounters.encounter import Edges, Encounter
from norm_monitor.encounters.library import Truth, make_truth, truth_path, write_truth
from norm_monitor.encounters.media import RATE_HZ, USUAL_M, durations, mix, render_frame
from norm_monitor.encounters.timeline import Sighting, SpeechPiece, SpokenTurn, Timeline, lay_out
from norm_monitor.senses.faces.presence_tracker import PresenceTracker

AUDIO = "/audio"
CAMERA = "/camera/image_raw/compressed"
ROBOT_SPEECH = full_topic(ROBOT_SPEECH_TOPIC)
UTTERANCES = full_topic(UTTERANCES_TOPIC)
PERSONS = "/humans/persons/tracked"
TRANSFORMS = "/tf"
PRESENCE_HZ = 1.0
DISTANCE_HZ = 5.0
# A pause of this length splits a turn into two utterances.
MIN_SPLIT_S = 0.7
# The pitch of heads that look away and towards the camera, as measured on the generated images.
AWAY_PITCH_DEG = -38.0
TOWARDS_PITCH_DEG = -8.0
# Any fixed instant, so that a seed gives the same bytes.
START_NS = 1_767_225_600 * NS_PER_S
CHUNK_S = 0.1
MAX_FRAME_JITTER_NS = 8 * NS_PER_MS
# The distance between two persons in front of the robot.
SIDEWAYS_M = 0.5
# Types of packages that are not part of ROS 2 Jazzy. The bag carries their definitions.
_FOREIGN = {
    "audio_common_msgs/msg/AudioData": "uint8[] data",
    "audio_common_msgs/msg/AudioDataStamped": "std_msgs/Header header\naudio_common_msgs/AudioData audio",
    "hri_msgs/msg/IdsList": "std_msgs/Header header\nstring[] ids",
}


@record
class Distance:
    """The distance of a person from the robot."""

    stamp_ns: int
    person_id: str
    distance_m: float


@record
class Senses:
    """The speech, frames and presence of an encounter, each in order of time."""

    utterances: tuple[Utterance, ...]
    robot_speech: tuple[RobotSpeech, ...]
    presences: tuple[Presence, ...]
    distances: tuple[Distance, ...]


def senses_of(timeline: Timeline, start_ns: int) -> Senses:
    """Make the records of a timeline that starts at `start_ns`. Word times are proportional to letters."""
    return Senses(
        utterances=utterances_of(timeline, start_ns),
        robot_speech=make_robot_speech(timeline, start_ns),
        presences=_make_presences(timeline, start_ns),
        distances=make_distances(timeline, start_ns),
    )


def utterances_of(timeline: Timeline, start_ns: int) -> tuple[Utterance, ...]:
    """Make the utterances, with turns split at long pauses."""
    utterances = []
    for spoken in timeline.spoken:
        for index, pieces in enumerate(_split_at_pauses(spoken)):
            words = tuple(word for piece in pieces for word in _time_words(piece, timeline.language, start_ns))
            onset_ns = start_ns + s_to_ns(pieces[0].start_s)
            utterances.append(
                Utterance(
                    stamp_ns=onset_ns,
                    utterance_id=f"{timeline.encounter_id}-{spoken.turn_id}-{index}",
                    speaker=Speaker.ROBOT if spoken.is_by_robot else Speaker.USER,
                    speaker_id="" if spoken.is_by_robot else spoken.speaker,
                    text=" ".join(piece.text for piece in pieces),
                    locale=timeline.language,
                    start_ns=onset_ns,
                    end_ns=start_ns + s_to_ns(pieces[-1].end_s),
                    words=words,
                    confidence=1.0,
                    no_speech_probability=0.0,
                    overlap_ns=s_to_ns(_measure_overlap_s(pieces, spoken, timeline)),
                    source_topic=AUDIO,
                )
            )
    return tuple(sorted(utterances, key=lambda utterance: utterance.start_ns))


def make_robot_speech(timeline: Timeline, start_ns: int) -> tuple[RobotSpeech, ...]:
    """Make the robot's messages about the start and end of its speech."""
    edges = []
    for spoken in timeline.spoken:
        if not spoken.is_by_robot or spoken.edges is Edges.NONE:
            continue
        for at_s, state in ((spoken.start_s, SpeechEdge.START), (spoken.end_s, SpeechEdge.STOP)):
            edges.append(
                RobotSpeech(
                    stamp_ns=start_ns + s_to_ns(at_s),
                    speech_id=f"{timeline.encounter_id}-{spoken.turn_id}",
                    state=state,
                    text=spoken.text,
                    locale=timeline.language,
                    estimated=spoken.edges is Edges.ESTIMATED,
                )
            )
    return tuple(sorted(edges, key=lambda edge: edge.stamp_ns))


def make_distances(timeline: Timeline, start_ns: int) -> tuple[Distance, ...]:
    """Make the distances of people where the script states them."""
    return tuple(
        Distance(stamp_ns=start_ns + s_to_ns(at_s), person_id=person.person_id, distance_m=distance_m)
        for at_s in _list_times_s(timeline.length_s, DISTANCE_HZ)
        for person in timeline.people
        if (distance_m := person.distance_at(at_s)) is not None
    )


def _split_at_pauses(spoken: SpokenTurn) -> list[list[SpeechPiece]]:
    stretches = [[spoken.pieces[0]]]
    for before, piece in pairwise(spoken.pieces):
        if piece.start_s - before.end_s >= MIN_SPLIT_S:
            stretches.append([])
        stretches[-1].append(piece)
    return stretches


def _time_words(piece: SpeechPiece, language: str, start_ns: int) -> list[Word]:
    texts = list(piece.text) if language == "zh" else piece.text.split()
    weights = [len(text) + 1 for text in texts]
    begin_ns, length_ns = start_ns + s_to_ns(piece.start_s), s_to_ns(piece.end_s - piece.start_s)
    words, done = [], 0
    for text, weight in zip(texts, weights, strict=True):
        first_ns = begin_ns + length_ns * done // sum(weights)
        done += weight
        words.append(Word(text=text, start_ns=first_ns, end_ns=begin_ns + length_ns * done // sum(weights)))
    return words


def _measure_overlap_s(pieces: list[SpeechPiece], own: SpokenTurn, timeline: Timeline) -> float:
    others = [piece for spoken in timeline.spoken if spoken.speaker != own.speaker for piece in spoken.pieces]
    return sum(
        max(0.0, min(piece.end_s, other.end_s) - max(piece.start_s, other.start_s))
        for piece in pieces
        for other in others
    )


def _make_presences(timeline: Timeline, start_ns: int) -> tuple[Presence, ...]:
    tracker = PresenceTracker()
    return tuple(
        tracker.follow(
            _make_blank_frame(start_ns + s_to_ns(at_s)),
            tuple(sorted(_make_faces(timeline, at_s), key=lambda face: -face.width_ratio)),
        )
        for at_s in _list_times_s(timeline.length_s, PRESENCE_HZ)
    )


def _make_faces(timeline: Timeline, at_s: float) -> list[Face]:
    return [
        _make_face(person, at_s, (index + 1) / (len(timeline.people) + 1))
        for index, person in enumerate(timeline.people)
        if person.is_seen(at_s)
    ]


def _make_face(person: Sighting, at_s: float, centre: float) -> Face:
    size = min(0.3 / (person.distance_at(at_s) or USUAL_M), 0.45)
    away = person.is_away(at_s)
    return Face(
        left_ratio=max(centre - size / 2, 0.0),
        top_ratio=0.2,
        width_ratio=size,
        height_ratio=size * 4 / 3,
        confidence=0.9,
        yaw_deg=0.0,
        pitch_deg=AWAY_PITCH_DEG if away else TOWARDS_PITCH_DEG,
        roll_deg=0.0,
        looking_away=away,
    )


def _list_times_s(length_s: float, rate_hz: float) -> list[float]:
    return [index / rate_hz for index in range(int(length_s * rate_hz) + 1)]


def _make_blank_frame(stamp_ns: int) -> Frame:
    return Frame(
        stamp_ns=stamp_ns,
        frame_id="camera",
        source_topic=CAMERA,
        source_encoding="jpeg",
        source_width_px=0,
        source_height_px=0,
        payload_sha256="",
        tile_width_px=0,
        tile_height_px=0,
        tile_jpeg=b"",
    )


class GenerationConfig(Config):
    """The content of a bag. Sound needs flite, images need scikit-image."""

    seed: int = 0
    transcripts: bool = False  # write utterances instead of sound; always so for Chinese
    frames_hz: float = 2.0  # 0: no images


@record
class Generated:
    """A generated bag and its ground truth."""

    bag: Path
    truth: Truth
    message_count: int


def records(encounter: Encounter, seed: int = 0, start_ns: int = START_NS) -> tuple[Senses, Truth]:
    """Return the senses' records and the labels, without sound or images: fast, with exact words."""
    timeline = lay_out(encounter, seed=seed)
    return senses_of(timeline, start_ns), make_truth(timeline, start_ns, seed, encounter.sha256())


def generate(encounter: Encounter, bag: Path, config: GenerationConfig | None = None) -> Generated:
    """Write the bag and its labels. The same script, seed and voices give the same messages."""
    config = config or GenerationConfig()
    has_sound = encounter.language == "en" and not config.transcripts
    spoken_s = (lambda turn: durations(encounter, turn)) if has_sound else None
    timeline = lay_out(encounter, spoken_s, config.seed)
    truth = make_truth(timeline, START_NS, config.seed, encounter.sha256())
    # Run every step that needs an external program before the bag is opened.
    entries = [
        *_make_speech_entries(encounter, timeline, config, has_sound=has_sound),
        *_make_people_entries(timeline, config),
    ]
    if config.frames_hz:
        entries += _make_frame_entries(timeline, config)
    entries.sort(key=lambda entry: (entry[0], entry[1]))
    bag.parent.mkdir(parents=True, exist_ok=True)
    with BagWriter(bag, compressed=True) as writer:
        try:
            for stamp_ns, topic, content in entries:
                if hasattr(content, "__msgtype__"):
                    writer.write_message(topic, content, stamp_ns)
                else:
                    writer.write(topic, content, stamp_ns)
        except BaseException:
            writer.close()
            shutil.rmtree(bag, ignore_errors=True)  # a partial bag without labels would pass for a complete one
            raise
        count = writer.message_count
    write_truth(bag, truth)
    return Generated(bag=bag, truth=truth, message_count=count)


def remove(bag: Path) -> None:
    """Remove a generated bag and its labels. Leaves anything else."""
    if (bag / "metadata.yaml").is_file():
        shutil.rmtree(bag)
        truth_path(bag).unlink(missing_ok=True)


Entry = tuple[int, str, Any]


def _make_speech_entries(
    encounter: Encounter, timeline: Timeline, config: GenerationConfig, *, has_sound: bool
) -> Iterator[Entry]:
    for edge in make_robot_speech(timeline, START_NS):
        yield edge.stamp_ns, ROBOT_SPEECH, edge
    if not has_sound:
        for utterance in utterances_of(timeline, START_NS):
            yield utterance.end_ns, UTTERANCES, utterance
        return
    samples = (mix(encounter, timeline, config.seed) * (2**15 - 1)).round().astype("<i2")
    size = round(CHUNK_S * RATE_HZ)
    for first in range(0, len(samples), size):
        chunk = samples[first : first + size]
        begun_ns = START_NS + first * NS_PER_S // RATE_HZ
        data = make_message("audio_common_msgs/msg/AudioData", {"data": chunk.tobytes()})
        header = make_header(begun_ns, "microphone")
        message = make_message("audio_common_msgs/msg/AudioDataStamped", {"header": header, "audio": data})
        yield begun_ns + len(chunk) * NS_PER_S // RATE_HZ, AUDIO, message


def _make_frame_entries(timeline: Timeline, config: GenerationConfig) -> Iterator[Entry]:
    chance = random.Random(config.seed)
    for index in range(int(timeline.length_s * config.frames_hz)):
        at_s = index / config.frames_hz
        stamp_ns = START_NS + s_to_ns(at_s) + chance.randrange(MAX_FRAME_JITTER_NS)
        values = {"header": make_header(stamp_ns, "camera"), "format": "jpeg", "data": render_frame(timeline, at_s)}
        yield stamp_ns, CAMERA, make_message("sensor_msgs/msg/CompressedImage", values)


def _make_people_entries(timeline: Timeline, config: GenerationConfig) -> Iterator[Entry]:
    """Yield REP-155 messages: ids, each person's anchor frame, and transforms."""
    distances_by_stamp: dict[int, list[Distance]] = {}
    for distance in make_distances(timeline, START_NS):
        distances_by_stamp.setdefault(distance.stamp_ns, []).append(distance)
    named: set[str] = set()
    for stamp_ns, distances in distances_by_stamp.items():
        ids = [distance.person_id for distance in distances]
        for person_id in sorted(set(ids) - named):
            named.add(person_id)
            anchor = make_message("std_msgs/msg/String", {"data": f"body_{person_id}"})
            yield stamp_ns, f"/humans/persons/{person_id}/anchor_frame", anchor
        yield stamp_ns, PERSONS, make_message("hri_msgs/msg/IdsList", {"header": make_header(stamp_ns, ""), "ids": ids})
        transforms = [_make_transform(index, distance) for index, distance in enumerate(distances)]
        yield stamp_ns, TRANSFORMS, make_message("tf2_msgs/msg/TFMessage", {"transforms": transforms})


def _make_transform(index: int, distance: Distance) -> Any:
    sideways_m = min(SIDEWAYS_M * index, distance.distance_m)
    forward_m = (distance.distance_m**2 - sideways_m**2) ** 0.5
    translation = make_message("geometry_msgs/msg/Vector3", {"x": forward_m, "y": sideways_m, "z": 0.0})
    rotation = make_message("geometry_msgs/msg/Quaternion", {"x": 0.0, "y": 0.0, "z": 0.0, "w": 1.0})
    transform = make_message("geometry_msgs/msg/Transform", {"translation": translation, "rotation": rotation})
    values = {
        "header": make_header(distance.stamp_ns, "base_link"),
        "child_frame_id": f"body_{distance.person_id}",
        "transform": transform,
    }
    return make_message("geometry_msgs/msg/TransformStamped", values)


def make_header(stamp_ns: int, frame_id: str) -> Any:
    """Build the header of a message."""
    sec, nanosec = split_stamp(stamp_ns)
    stamp = make_message("builtin_interfaces/msg/Time", {"sec": sec, "nanosec": nanosec})
    return make_message("std_msgs/msg/Header", {"stamp": stamp, "frame_id": frame_id})


def make_message(message_type: str, values: dict[str, Any]) -> Any:
    """Build a message of ROS 2, or of one of the foreign packages."""
    store = typestore()
    missing = {name: text for name, text in _FOREIGN.items() if name not in store.fielddefs}
    if missing:
        store.register({k: v for name, text in missing.items() for k, v in get_types_from_msg(text, name).items()})
    return make(message_type, values)
