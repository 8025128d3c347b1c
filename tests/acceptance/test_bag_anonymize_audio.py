"""Mute every voice of a shared bag but the robot's and those of consenting participants."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from norm_core.bags.reader import BagReader
from norm_core.records.speech import Speaker, Utterance
from tests.foreign_bag import Maker, write
from tests.foreign_interfaces import NAOQI
from tests.patience import PATIENCE_S

SECOND_NS = 1_000_000_000
START_NS = 1_700_000_000 * SECOND_NS
# The second in which each voice speaks alone, by its label in the transcript.
VOICES = {"robot": 1, "p1": 3, "": 5, "p2": 7, "passer_by": 9}


def messages(make: Maker) -> Iterator[tuple[int, str, Any]]:
    tone = (8000 * np.sin(np.arange(16_000) * 0.1)).astype(np.int16)
    for second in range(11):
        stamp_ns = START_NS + second * SECOND_NS
        values = {"header": make.header(stamp_ns), "frequency": 16_000, "channel_map": np.zeros(1, np.uint8)}
        yield stamp_ns, "/audio", make("naoqi_bridge_msgs/msg/AudioBuffer", values | {"data": tone})
    for label, second in VOICES.items():
        stamp_ns = START_NS + second * SECOND_NS
        utterance = Utterance(
            stamp_ns=stamp_ns,
            utterance_id=f"u{second}",
            speaker=Speaker.ROBOT if label == "robot" else Speaker.USER,
            speaker_id="" if label == "robot" else label,
            text="some words",
            start_ns=stamp_ns,
            end_ns=stamp_ns + SECOND_NS,
        )
        yield stamp_ns, "/utterances", make.of(utterance)


@pytest.fixture(scope="module")
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    make = Maker(NAOQI)
    return write(tmp_path_factory.mktemp("bags") / "session", make, messages(make))


@pytest.mark.parametrize(
    ("participants", "consenting", "audible"),
    [
        ([], [], ["robot"]),
        (["P-1"], [], ["robot"]),
        (["P-1"], ["P-1"], ["robot"]),
        (["P-1=p1"], [], ["robot"]),
        (["P-1=p1"], ["P-1"], ["robot", "p1"]),
        (["P-1=p1", "P-2"], [], ["robot"]),
        (["P-1=p1", "P-2=p2"], ["P-1"], ["robot", "p1"]),
        (["P-1=p1", "P-2=p2"], ["P-1", "P-2"], ["robot", "p1", "p2"]),
        (["P-1=p1,p2", "P-2=p2"], ["P-1"], ["robot", "p1"]),
    ],
)
def test_only_a_labelled_voice_of_a_consenting_participant_stays_audible(
    bag: Path, tmp_path: Path, participants: list[str], consenting: list[str], audible: list[str]
) -> None:
    options = [text for name in participants for text in ("--participant", name)]
    options += [text for name in consenting for text in ("--voice", name)]
    bags = [str(bag), str(tmp_path / "shared")]
    command = [sys.executable, "-m", "tactful_cli", "bag", "anonymize", *bags, "--audio", "mute"]
    completed = subprocess.run(
        [*command, *options], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )  # fmt: skip
    assert completed.returncode == 0, completed.stderr
    with BagReader(tmp_path / "shared") as reader:
        sound = [reader.decode(message).data for message in reader.messages(["/audio"])]
    assert [second for second, data in enumerate(sound) if np.abs(data).max() > 0] == [VOICES[v] for v in audible]
    without_utterance = [name for name in consenting if f"{name}=p" not in " ".join(participants)]
    noted = " ".join(completed.stderr.split())
    assert [name for name in consenting if f"{name}: no utterance has a person id of theirs" in noted] == (
        without_utterance
    )
