"""Make the sound of a clip with only the robot and consenting participants audible."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from norm_core.bags.reader import BagReader
from norm_core.records.speech import Speaker
from norm_core.runtime.time import NS_PER_S
from norm_monitor.senses.microphone.audio_message import decode
from norm_monitor.senses.microphone.pcm import PcmFormat, SoundError
from study_desk.log.recording import Recording

RATE_HZ = 16_000


def muted_sound(recording: Recording, bag: Path, from_ns: int, until_ns: int) -> NDArray[np.int16] | None:
    """Read the bag's sound at 16 kHz, silenced wherever anyone without consent may speak."""
    samples = np.zeros(int((until_ns - from_ns) * RATE_HZ // NS_PER_S), np.float32)
    is_audible = False
    stated = PcmFormat()
    with BagReader(bag) as reader:
        for topic in reader.topics:
            if not any(word in topic.type_name for word in ("Audio", "audio")):
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
    return sorted(set(spans))


def _place(samples: NDArray[np.float32], chunk: Any, rate_hz: int, stamp_ns: int, from_ns: int) -> None:
    mono = np.asarray(chunk, np.float32).reshape(len(chunk), -1).mean(axis=1)
    wanted = max(1, round(len(mono) * RATE_HZ / rate_hz))
    mono = np.interp(np.linspace(0, len(mono) - 1, wanted), np.arange(len(mono)), mono).astype(np.float32)
    at = (stamp_ns - from_ns) * RATE_HZ // NS_PER_S
    skip = max(0, -at)
    part = mono[skip : skip + max(0, len(samples) - max(at, 0))]
    samples[max(at, 0) : max(at, 0) + len(part)] = part
