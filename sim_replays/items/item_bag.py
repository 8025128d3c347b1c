"""Write and read bags of benchmark items, one episode each. Labels lie beside the bag, never in it."""

import hashlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np

from norm_core.bags.reader import BagReader
from norm_core.bags.writer import BagWriter
from norm_core.decoding.picture_decoding import decode_picture
from norm_core.health.health_log import HealthLog
from norm_core.records.episode import Episode, EpisodeEdge, Query
from norm_core.records.frame import Frame
from norm_core.records.speech import Speaker, Timing, Utterance
from norm_core.records.topics import EPISODES_TOPIC, FRAMES_TOPIC, QUERIES_TOPIC, UTTERANCES_TOPIC, full_topic
from norm_core.runtime.time import NS_PER_S
from norm_monitor.senses.camera.frame_keeper import FrameConfig, FrameKeeper
from norm_monitor.senses.camera.picture import Picture
from sim_replays.items.clip import Shot, jpegs, shots
from sim_replays.items.run_config import RunConfig, RunItem
from sim_replays.items.target import SuiteError

START_NS = 1_767_225_600 * NS_PER_S  # any fixed instant, so that the same items give the same bytes
EPISODES, FRAMES = full_topic(EPISODES_TOPIC), full_topic(FRAMES_TOPIC)
UTTERANCES, QUERIES = full_topic(UTTERANCES_TOPIC), full_topic(QUERIES_TOPIC)
CAMERA = "/camera/image_raw/compressed"
PAPER_WIDTH_PX, KEEP_HZ = 4096, 30.0

Record = Episode | Frame | Utterance | Query


def build(bag: Path, asking: RunConfig, items: Sequence[RunItem]) -> None:
    """Write the bag of some items."""
    start_ns = START_NS
    with BagWriter(bag) as writer:
        for item in items:
            for topic, entry in _episode(item, asking, start_ns):
                writer.write(topic, entry, entry.stamp_ns)
                start_ns = max(start_ns, entry.stamp_ns)
            start_ns += NS_PER_S


def episodes(bag: Path) -> Iterator[list[Record]]:
    """Yield the records of each episode, in bag order."""
    with BagReader(bag) as reader:
        topics = {topic.topic for topic in reader.topics} & {EPISODES, FRAMES, UTTERANCES, QUERIES}
        if QUERIES not in topics:
            raise SuiteError(f"{bag}: holds no queries on {QUERIES}: it is no bag of a suite")
        episode: list[Record] = []
        for message in reader.messages(topics):
            entry = reader.decode(message)
            if isinstance(entry, Episode) and entry.state is EpisodeEdge.BEGIN and episode:
                yield episode
                episode = []
            episode.append(entry)
        if episode:
            yield episode


def _episode(item: RunItem, asking: RunConfig, start_ns: int) -> Iterator[tuple[str, Record]]:
    frames = frames_of(item, asking, start_ns)
    seen: list[tuple[int, str, Record]] = [(frame.stamp_ns, FRAMES, frame) for frame in frames]
    utterances = [_shifted(utterance, start_ns) for utterance in item.utterances]
    asked_ns = max([start_ns, *(stamp_ns for stamp_ns, *_ in seen), *(utterance.end_ns for utterance in utterances)])
    length_s = max([1, *(shot.offset_ns // NS_PER_S + 1 for shot in item.shots)])
    end_ns = max(start_ns + length_s * NS_PER_S, asked_ns + len(item.queries) + 1)
    edge = Episode(
        stamp_ns=start_ns,
        episode_id=item.id,
        state=EpisodeEdge.BEGIN,
        suite=asking.suite,
        setting=asking.setting,
        start_ns=start_ns,
        end_ns=end_ns,
    )
    yield EPISODES, edge
    seen += [(utterance.stamp_ns, UTTERANCES, utterance) for utterance in utterances]
    for _, topic, entry in sorted(seen, key=lambda sensed: sensed[:2]):
        yield topic, entry
    for number, query in enumerate(item.queries, 1):
        # A nanosecond apart, because messages with equal stamps have no defined order.
        yield QUERIES, replace(query, stamp_ns=asked_ns + number)
    yield EPISODES, replace(edge, stamp_ns=end_ns, state=EpisodeEdge.END)


def _shifted(utterance: Utterance, by_ns: int) -> Utterance:
    words = tuple(replace(word, start_ns=word.start_ns + by_ns, end_ns=word.end_ns + by_ns) for word in utterance.words)
    start_ns, end_ns = utterance.start_ns + by_ns, utterance.end_ns + by_ns
    return replace(utterance, stamp_ns=utterance.stamp_ns + by_ns, start_ns=start_ns, end_ns=end_ns, words=words)


def frames_of(item: RunItem, asking: RunConfig, start_ns: int) -> list[Frame]:
    """Return an item's pictures as the camera keeps them, in the form that the run asks for."""
    # The images were selected before, so the camera keeps all of them.
    width_px = PAPER_WIDTH_PX if asking.sampling == "paper" else FrameConfig().tile_width_px
    config = FrameConfig(tile_width_px=width_px, keep_hz=KEEP_HZ)
    health_log = HealthLog()
    camera = FrameKeeper(CAMERA, health_log, config)
    frames = []
    for shot, data in jpegs(item.shots):
        picture = Picture(
            stamp_ns=start_ns + shot.offset_ns, frame_id="camera", encoding="jpeg", compressed=True, data=data
        )
        frame = camera.keep(picture)
        if frame is None:
            raise SuiteError(f"{shot.path}: is no usable JPEG: {'; '.join(health_log.reasons)}")
        frames.append(frame)
    if asking.frames.endswith("shuffled"):
        drawn = random.Random(f"{asking.seed}:{item.id}").sample(frames, len(frames))
        frames = [replace(shown, stamp_ns=frame.stamp_ns) for frame, shown in zip(frames, drawn, strict=True)]
    return [tile_pictures(frames)] if frames and asking.frames.startswith("tiled") else frames


ACROSS = 5
_QUALITY = 90


def tile_pictures(frames: Sequence[Frame]) -> Frame:
    """Tile frames five wide, with the newest stamp. Cells have the size of the first frame's tile."""
    newest = max(frames, key=lambda frame: frame.stamp_ns)
    width, height = frames[0].tile_width_px, frames[0].tile_height_px
    rows = -(-len(frames) // ACROSS)
    whole = np.zeros((rows * height, min(ACROSS, len(frames)) * width, 3), np.uint8)
    for place, frame in enumerate(frames):
        picture = decode_picture(frame.tile_jpeg)
        assert picture is not None, "a kept frame's tile was encoded by the camera itself"
        row, column = divmod(place, ACROSS)
        cell = cv2.resize(picture, (width, height), interpolation=cv2.INTER_AREA)
        whole[row * height : (row + 1) * height, column * width : (column + 1) * width] = cell
    encoded, jpeg = cv2.imencode(".jpg", whole, (cv2.IMWRITE_JPEG_QUALITY, _QUALITY))
    if not encoded:
        raise RuntimeError("the image library could not encode a JPEG")
    payloads = "".join(frame.payload_sha256 for frame in frames)
    return replace(
        newest,
        payload_sha256=hashlib.sha256(payloads.encode()).hexdigest(),
        tile_width_px=whole.shape[1],
        tile_height_px=whole.shape[0],
        tile_jpeg=jpeg.tobytes(),
    )


def utterance_of(name: str, speaker: Speaker, text: str, speaker_id: str = "") -> Utterance:
    """Make an utterance of a transcript, without times."""
    return Utterance(
        stamp_ns=0,
        utterance_id=name,
        speaker=speaker,
        speaker_id=speaker_id.strip(),
        text=text.strip(),
        start_ns=0,
        end_ns=0,
        source_topic="transcript",
    )


def with_times(utterance: Utterance, start_ns: int, end_ns: int, timing: Timing) -> Utterance:
    """Return the utterance at these times from the episode's start."""
    return replace(utterance, stamp_ns=start_ns, start_ns=start_ns, end_ns=end_ns, timing=timing)


def in_order(utterances: Sequence[Utterance]) -> list[Utterance]:
    """Order utterances without times, a nanosecond apart."""
    return [with_times(utterance, place, place, Timing.ABSENT) for place, utterance in enumerate(utterances)]


def shots_of(data: Path, asking: RunConfig, paper_frames: int, name: str, duration_s: float | None) -> tuple[Shot, ...]:
    """List a clip's images as the run samples them."""
    folder = Path(asking.pictures) if asking.pictures else data if data.is_dir() else data.parent
    most = paper_frames if asking.sampling == "paper" else 0
    return shots(folder, name, duration_s=duration_s, most=most)
