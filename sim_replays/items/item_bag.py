"""Bags of benchmark items, an episode each. Labels are never in the bag."""

import hashlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np

from norm_core.bags.reader import BagReader
from norm_core.bags.writer import BagWriter
from norm_core.decoding.picture_decoding import decode_picture, encode_jpeg
from norm_core.health.health_log import HealthLog
from norm_core.records.episode import Episode, EpisodeEdge, Query
from norm_core.records.frame import Frame
from norm_core.records.speech import Speaker, Timing, Utterance
from norm_core.records.topics import EPISODES_TOPIC, FRAMES_TOPIC, QUERIES_TOPIC, UTTERANCES_TOPIC, full_topic
from norm_core.runtime.time import NS_PER_S
from norm_monitor.senses.camera.frame_keeper import FrameConfig, FrameKeeper
from norm_monitor.senses.camera.picture import Picture
from sim_replays.items.clip import Shot, list_shots, read_jpegs
from sim_replays.items.run_config import RunConfig, RunItem
from sim_replays.items.target import SuiteError

START_NS = 1_767_225_600 * NS_PER_S  # A fixed instant, so that the same items give the same bytes.

# Topics of the bag.
EPISODES = full_topic(EPISODES_TOPIC)
FRAMES = full_topic(FRAMES_TOPIC)
UTTERANCES = full_topic(UTTERANCES_TOPIC)
QUERIES = full_topic(QUERIES_TOPIC)
CAMERA = "/camera/image_raw/compressed"

# The images were selected before, so the camera keeps all of them.
_KEEP_HZ = 30.0
_PAPER_WIDTH_PX = 4096  # wider than any picture of the datasets

_TILES_ACROSS = 5
_TILES_JPEG_QUALITY = 90  # of 100

Record = Episode | Frame | Utterance | Query


def write_item_bag(bag: Path, run_config: RunConfig, items: Sequence[RunItem]) -> None:
    """Write the bag of these items."""
    start_ns = START_NS
    with BagWriter(bag) as writer:
        for item in items:
            for topic, entry in _make_episode(item, run_config, start_ns):
                writer.write(topic, entry, entry.stamp_ns)
                start_ns = max(start_ns, entry.stamp_ns)
            start_ns += NS_PER_S


def read_records(bag: Path) -> Iterator[Record]:
    """Yield the records of the episodes, in the order of the bag."""
    with BagReader(bag) as reader:
        topics = {topic.topic for topic in reader.topics} & {EPISODES, FRAMES, UTTERANCES, QUERIES}
        if QUERIES not in topics:
            raise SuiteError(f"{bag}: holds no queries on {QUERIES}: it is not a bag of a suite; name another bag")
        yield from map(reader.decode, reader.messages(topics))


def _make_episode(item: RunItem, run_config: RunConfig, start_ns: int) -> Iterator[tuple[str, Record]]:
    """Yield the records of an episode with their topics: its begin, what is seen and said, its queries and its end."""
    frames = make_frames(item, run_config, start_ns)
    utterances = [_shift_utterance(utterance, start_ns) for utterance in item.utterances]
    sensed: list[tuple[int, str, Record]] = [(frame.stamp_ns, FRAMES, frame) for frame in frames]
    asked_ns = max([start_ns, *(frame.stamp_ns for frame in frames), *(utterance.end_ns for utterance in utterances)])
    length_s = max([1, *(shot.offset_ns // NS_PER_S + 1 for shot in item.shots)])
    end_ns = max(start_ns + length_s * NS_PER_S, asked_ns + len(item.queries) + 1)
    edge = Episode(
        stamp_ns=start_ns,
        episode_id=item.id,
        state=EpisodeEdge.BEGIN,
        suite=run_config.suite,
        setting=run_config.setting,
        start_ns=start_ns,
        end_ns=end_ns,
    )
    yield EPISODES, edge
    sensed += [(utterance.stamp_ns, UTTERANCES, utterance) for utterance in utterances]
    for _, topic, entry in sorted(sensed, key=lambda record: record[:2]):
        yield topic, entry
    for offset_ns, query in enumerate(item.queries, 1):
        # Queries are a nanosecond apart, because messages with equal stamps have no defined order.
        yield QUERIES, replace(query, stamp_ns=asked_ns + offset_ns)
    yield EPISODES, replace(edge, stamp_ns=end_ns, state=EpisodeEdge.END)


def _shift_utterance(utterance: Utterance, by_ns: int) -> Utterance:
    words = tuple(replace(word, start_ns=word.start_ns + by_ns, end_ns=word.end_ns + by_ns) for word in utterance.words)
    return replace(
        utterance,
        stamp_ns=utterance.stamp_ns + by_ns,
        start_ns=utterance.start_ns + by_ns,
        end_ns=utterance.end_ns + by_ns,
        words=words,
    )


def make_frames(item: RunItem, run_config: RunConfig, start_ns: int) -> list[Frame]:
    """Return the pictures of an item as the camera keeps them, in the form that the run asks for."""
    width_px = _PAPER_WIDTH_PX if run_config.sampling == "paper" else FrameConfig().tile_width_px
    health_log = HealthLog()
    camera = FrameKeeper(CAMERA, health_log, FrameConfig(tile_width_px=width_px, keep_hz=_KEEP_HZ))
    frames = []
    for shot, data in read_jpegs(item.shots):
        picture = Picture(
            stamp_ns=start_ns + shot.offset_ns, frame_id="camera", encoding="jpeg", compressed=True, data=data
        )
        frame = camera.keep(picture)
        if frame is None:
            raise SuiteError(f"{shot.path}: is not a usable JPEG: {'; '.join(health_log.reasons)}; save it again")
        frames.append(frame)
    if run_config.frames.endswith("shuffled"):
        shuffled = random.Random(f"{run_config.seed}:{item.id}").sample(frames, len(frames))
        frames = [replace(other, stamp_ns=frame.stamp_ns) for frame, other in zip(frames, shuffled, strict=True)]
    return [tile_pictures(frames)] if frames and run_config.frames.startswith("tiled") else frames


def tile_pictures(frames: Sequence[Frame]) -> Frame:
    """Return one frame with the pictures of all, five in a row, and with the newest stamp.

    Each cell has the size of the first frame.
    """
    newest = max(frames, key=lambda frame: frame.stamp_ns)
    width = frames[0].tile_width_px
    height = frames[0].tile_height_px
    rows = -(-len(frames) // _TILES_ACROSS)
    sheet = np.zeros((rows * height, min(_TILES_ACROSS, len(frames)) * width, 3), np.uint8)
    for index, frame in enumerate(frames):
        picture = decode_picture(frame.tile_jpeg)
        assert picture is not None, "the camera itself encoded the tile of a kept frame"
        row, column = divmod(index, _TILES_ACROSS)
        cell = cv2.resize(picture, (width, height), interpolation=cv2.INTER_AREA)
        sheet[row * height : (row + 1) * height, column * width : (column + 1) * width] = cell
    hashes = "".join(frame.payload_sha256 for frame in frames)
    return replace(
        newest,
        payload_sha256=hashlib.sha256(hashes.encode()).hexdigest(),
        tile_width_px=sheet.shape[1],
        tile_height_px=sheet.shape[0],
        tile_jpeg=encode_jpeg(sheet, _TILES_JPEG_QUALITY),
    )


def make_utterance(utterance_id: str, speaker: Speaker, text: str, speaker_id: str = "") -> Utterance:
    """Make an utterance of a transcript, without times."""
    return Utterance(
        stamp_ns=0,
        utterance_id=utterance_id,
        speaker=speaker,
        speaker_id=speaker_id.strip(),
        text=text.strip(),
        start_ns=0,
        end_ns=0,
        source_topic="transcript",
    )


def set_times(utterance: Utterance, start_ns: int, end_ns: int, timing: Timing) -> Utterance:
    """Return the utterance with these times, which count from the start of the episode."""
    return replace(utterance, stamp_ns=start_ns, start_ns=start_ns, end_ns=end_ns, timing=timing)


def set_order(utterances: Sequence[Utterance]) -> list[Utterance]:
    """Return utterances without times in this order, a nanosecond apart."""
    return [set_times(utterance, index, index, Timing.ABSENT) for index, utterance in enumerate(utterances)]


def list_clip_shots(
    data: Path, run_config: RunConfig, paper_frames: int, name: str, duration_s: float | None
) -> tuple[Shot, ...]:
    """List the images of a clip as the run samples them: as many as the paper, or one a second."""
    folder = data if data.is_dir() else data.parent
    if run_config.pictures:
        folder = Path(run_config.pictures)
    max_count = paper_frames if run_config.sampling == "paper" else 0
    return list_shots(folder, name, duration_s=duration_s, max_count=max_count)
