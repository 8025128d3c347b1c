"""Serve a session's sound in pieces and its video in ranges, as a player asks for them."""

import io
import re
import wave
from http import HTTPStatus
from pathlib import Path

from norm_core.bags.reader import BagReader
from study_desk.log.recording import Recording
from study_desk.privacy.clip_sound import RATE_HZ, muted_sound
from study_desk.report.page_server import NOT_FOUND, PageReply, text_reply

PIECE_BYTES = 2_000_000
_VIDEO_TYPES = {".mp4": "video/mp4", ".m4v": "video/mp4", ".webm": "video/webm", ".mov": "video/quicktime"}
_RANGE = re.compile(r"bytes=(\d{1,15})-(\d{0,15})")


def sound_piece(recording: Recording, bag: Path, from_ns: int, until_ns: int) -> bytes | None:
    """Make a WAV file of a time, in which only the robot and consenting participants are heard; None: no sound."""
    samples = muted_sound(recording, bag, from_ns, until_ns)
    if samples is None:
        return None
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE_HZ)
        file.writeframes(samples.tobytes())
    return buffer.getvalue()


def has_sound(bag: Path) -> bool:
    """Whether a bag has a topic that may hold sound."""
    with BagReader(bag) as reader:
        return any("audio" in topic.type_name.lower() and topic.message_count for topic in reader.topics)


def is_playable(video: Path) -> bool:
    """Whether browsers play a file of this type as it is."""
    return video.suffix.lower() in _VIDEO_TYPES and video.is_file()


def video_reply(video: Path, byte_range: str) -> PageReply:
    """Return the part of a video that a media element asks for, at most `PIECE_BYTES` of it."""
    try:
        size = video.stat().st_size
        found = _RANGE.fullmatch(byte_range or "bytes=0-")
        first = int(found[1]) if found else size
        if first >= size:
            refused = text_reply(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, "there is no such part of the video")
            return refused._replace(headers={"Content-Range": f"bytes */{size}"})
        last = min(int(found[2]) if found and found[2] else size - 1, size - 1, first + PIECE_BYTES - 1)
        with video.open("rb") as file:
            file.seek(first)
            data = file.read(max(0, last - first + 1))
    except OSError:
        return NOT_FOUND
    headers = {"Content-Range": f"bytes {first}-{first + len(data) - 1}/{size}", "Accept-Ranges": "bytes"}
    return PageReply(data, _VIDEO_TYPES[video.suffix.lower()], HTTPStatus.PARTIAL_CONTENT, headers)
