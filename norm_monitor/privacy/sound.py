"""Find the format of sound that its messages do not state, and mute and cut sound by who may speak."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from norm_core.bags.reader import BagError, BagReader
from norm_core.bags.topic import BagTopic
from norm_core.records.messages import MessageError
from norm_core.records.speech import Speaker
from norm_core.runtime.time import NS_PER_S
from norm_monitor.senses.microphone.audio_message import SoundChunk, decode, format_of_info
from norm_monitor.senses.microphone.pcm import PcmFormat, SoundError
from norm_monitor.session_log.recording import Recording

# The type that Tactful's own microphone uses, with a stamp in its label: 16 kHz, mono, 16 bit.
_BYTES = "std_msgs/msg/UInt8MultiArray"

RATE_HZ = 16_000
# A message without its own format has no known duration, so it is refused.
_STATED_NOWHERE = PcmFormat(sample_format="unstated", rate_hz=0, channels=0)
_SILENCES = (b"\0", b"\x80", b"\0\x80")


def is_sound(type_name: str) -> bool:
    """Whether messages of a type hold sound, by the type names of robot packages."""
    name = type_name.rsplit("/", 1)[-1].lower()
    return "audio" in type_name.lower() and not name.endswith("info")


def sound_formats(reader: BagReader, stated: Mapping[str, PcmFormat]) -> dict[str, PcmFormat | None]:
    """Return the format of each topic of sound: as `stated` by topic, or else as the bag states it.

    None means that messages must state it themselves. An AudioInfo is about the sound of its namespace, or about the
    only sound of the bag. If several of them disagree, none counts.
    """
    infos = [topic for topic in reader.topics if topic.type_name.endswith("/AudioInfo")]
    beside = {_namespace(info) for info in infos}
    sounds = [
        topic
        for topic in reader.topics
        if is_sound(topic.type_name) or (topic.type_name == _BYTES and _namespace(topic) in beside)
    ]
    formats: dict[str, PcmFormat | None] = {}
    for topic in sounds:
        near = [info for info in infos if _namespace(info) == _namespace(topic)] or (infos if len(sounds) == 1 else [])
        near_formats = {pcm_format for info in near for pcm_format in _stated_formats(reader, info)}
        formats[topic.topic] = near_formats.pop() if len(near_formats) == 1 else None
    formats |= {topic.topic: PcmFormat() for topic in reader.topics if _is_stamped_sound(reader, topic)}
    there = {topic.topic for topic in reader.topics}
    return formats | {name: pcm_format for name, pcm_format in stated.items() if name in there}


def _namespace(topic: BagTopic) -> str:
    return topic.topic.rpartition("/")[0]


def _stated_formats(reader: BagReader, topic: BagTopic) -> Iterator[PcmFormat]:
    for message in reader.messages([topic.topic]):
        with suppress(BagError, MessageError, SoundError):
            yield format_of_info(reader.decode(message), PcmFormat())


def _is_stamped_sound(reader: BagReader, topic: BagTopic) -> bool:
    if topic.type_name != _BYTES:
        return False
    with suppress(BagError, SoundError):
        first = next(iter(reader.messages([topic.topic])), None)
        return first is not None and decode(reader.decode(first), PcmFormat()).stamp_ns is not None
    return False


def muted_sound(recording: Recording, bag: Path, from_ns: int, until_ns: int) -> NDArray[np.int16] | None:
    """Read the bag's sound at 16 kHz, silenced wherever anyone without consent may speak."""
    samples = np.zeros(int((until_ns - from_ns) * RATE_HZ // NS_PER_S), np.float32)
    is_audible = False
    stated = PcmFormat()
    with BagReader(bag) as reader:
        for topic in reader.topics:
            if not is_sound(topic.type_name):
                continue
            for message in reader.messages([topic.topic], from_ns - NS_PER_S, until_ns + NS_PER_S):
                try:
                    chunk = decode(reader.decode(message), stated)
                except SoundError:
                    continue
                is_audible = True
                _place(samples, chunk.samples, chunk.rate_hz, chunk.stamp_ns or message.stamp_ns, from_ns)
            break
    if not is_audible:
        return None
    audible = audible_spans(recording, from_ns, until_ns)
    mask = np.zeros(len(samples), np.float32)
    for start_ns, end_ns in audible:
        mask[(start_ns - from_ns) * RATE_HZ // NS_PER_S : (end_ns - from_ns) * RATE_HZ // NS_PER_S] = 1
    return np.asarray(np.clip(samples * mask, -1, 1) * 32767, np.int16)


def audible_spans(recording: Recording, from_ns: int, until_ns: int) -> list[tuple[int, int]]:
    """Find the spans where the robot or consenting participants speak alone. Unlabelled voices count as others."""
    people = recording.info.participants
    consenting = {person for p in people if p.clips for person in p.person_ids}
    consenting -= {"", *(person for p in people if not p.clips for person in p.person_ids)}
    spans: list[tuple[int, int]] = []
    others: list[tuple[int, int]] = []
    for utterance in recording.utterances:
        span = (max(utterance.start_ns, from_ns), min(utterance.end_ns, until_ns))
        if span[0] >= span[1]:
            continue
        is_audible = utterance.speaker is Speaker.ROBOT or utterance.speaker_id in consenting
        (spans if is_audible else others).append(span)
    for start, end in others:
        cut = (((a, min(b, start)), (max(a, end), b)) for a, b in spans)
        spans = [(a, b) for pieces in cut for a, b in pieces if a < b]
    return _join_spans(spans)


def _place(samples: NDArray[np.float32], chunk: Any, rate_hz: int, stamp_ns: int, from_ns: int) -> None:
    mono = np.asarray(chunk, np.float32).reshape(len(chunk), -1).mean(axis=1)
    wanted = max(1, round(len(mono) * RATE_HZ / rate_hz))
    mono = np.interp(np.linspace(0, len(mono) - 1, wanted), np.arange(len(mono)), mono).astype(np.float32)
    at = (stamp_ns - from_ns) * RATE_HZ // NS_PER_S
    skip = max(0, -at)
    part = mono[skip : skip + max(0, len(samples) - max(at, 0))]
    samples[max(at, 0) : max(at, 0) + len(part)] = part


class VoiceMuting:
    """Mute outside `spans_ns`, the sorted, separate spans in which only consenting people speak."""

    def __init__(self, spans_ns: list[tuple[int, int]]) -> None:
        self._starts = [start for start, _ in spans_ns]
        self._ends = [end for _, end in spans_ns]

    def treat(self, message: Any, recorded_ns: int, stated: PcmFormat | None = None) -> Any:
        """Return the message unchanged if it lies within one span, otherwise muted.

        `stated` is the format of messages without one. Raises SoundError if the message holds no sound.
        """
        stated = stated or _STATED_NOWHERE
        chunk = decode(message, stated)
        length_ns = len(chunk.samples) * NS_PER_S // chunk.rate_hz
        start_ns, end_ns = recorded_ns - length_ns, recorded_ns + length_ns
        if chunk.stamp_ns is not None:
            start_ns, end_ns = chunk.stamp_ns, chunk.stamp_ns + length_ns
        index = bisect_right(self._starts, start_ns) - 1
        if index >= 0 and end_ns <= self._ends[index]:
            return message
        return _silence(message, chunk, stated)


def _join_spans(spans_ns: list[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans_ns):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined


def _silence(message: Any, chunk: SoundChunk, stated: PcmFormat) -> Any:
    for silence in _SILENCES:
        silenced = _fill(message, silence)
        # The value of silence depends on the format, so it is checked.
        if not decode(silenced, stated).samples.any() and len(chunk.samples):
            return silenced
    raise SoundError("audio_format_unknown", "its format has no silence")


def _fill(message: Any, silence: bytes) -> Any:
    if hasattr(message, "audio"):
        return replace(message, audio=_fill(message.audio, silence))
    if hasattr(message, "audio_data"):
        return replace(message, audio_data=_fill(message.audio_data, silence))
    changes = {}
    for field in fields(message):
        value = getattr(message, field.name)
        if isinstance(value, np.ndarray) and "data" in field.name:
            raw = (silence * (value.nbytes // len(silence) + 1))[: value.nbytes]
            changes[field.name] = np.frombuffer(raw, value.dtype)
    return replace(message, **changes)
