"""Words and pictures of a clip, as records of an episode."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from norm_core.records.speech import Speaker, Timing, Utterance
from sim_replays.runs.items.clip import Shot, shots
from sim_replays.runs.run_config import RunConfig


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
