"""A custom cue raises flags beside the shipped ones, and its source is in their hash."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from norm_core.records.flag import Attribute, Polarity, SocialFlag
from norm_core.runtime.config import ConfigError
from norm_core.runtime.time import ReplayClock
from norm_monitor.assessment.cues import CueFunction, source_sha256
from norm_monitor.assessment.finding import CueAnswer, evidence_of
from norm_monitor.assessment.threshold_table import Cue, ThresholdTable
from norm_monitor.assessment.unit import Unit
from norm_monitor.context.meaning import EncoderMatcher, WordMatcher
from norm_monitor.context.scene import Scene
from norm_monitor.monitor import Monitor
from tests.norm_monitor.encounter_talk import ALONE, robot, user

SHOUTS = Cue(
    polarity=Polarity.ERROR,
    attributes=(Attribute.SOCIAL_NORMS_AND_ROUTINES,),
    probability=0.9,
    correction="Speak softly.",
)
TABLE = ThresholdTable.shipped().with_cues({"shouts": SHOUTS})
TALK = [*user(1, 3, "Where can I buy a ticket?"), *robot(10, 12, "AT THE COUNTER!"), *user(13, 14, "Thank you.")]


def shouts(scene: Scene, table: ThresholdTable, meaning: WordMatcher) -> Iterator[CueAnswer]:
    for turn in scene.recent:
        if turn.is_robot and turn.text.isupper():
            yield table.finding(
                "shouts",
                Unit.of_turn(turn),
                evidence=[evidence_of(turn, "words", turn.word_count)],
                rationale="The robot shouted.",
            )


def flags(meaning: EncoderMatcher, *cues: CueFunction) -> list[SocialFlag]:
    monitor = Monitor(ALONE, TABLE, meaning, ReplayClock(), cues=cues)
    return [flag for entry in TALK for flag in monitor.take(entry)] + monitor.end_input()


def test_custom_cue_adds_its_finding_and_changes_the_hash(meaning: EncoderMatcher) -> None:
    without, with_it = flags(meaning), flags(meaning, shouts)
    assert any("The robot shouted." in flag.rationale for flag in with_it)
    assert not any("The robot shouted." in flag.rationale for flag in without)
    old, new = ({flag.provenance.config_sha256 for flag in found} for found in (without, with_it))
    assert len(old) == len(new) == 1
    assert old != new
    assert flags(meaning, shouts) == with_it


def test_the_digest_follows_the_cues_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib import import_module

    monkeypatch.syspath_prepend(tmp_path)
    texts = {"slow": "LEAST = 1", "fast": "LEAST = 2", "same": "LEAST = 1"}
    for name, text in texts.items():
        (tmp_path / f"{name}_cue.py").write_text(f"{text}\ndef cue(scene, table, meaning):\n    yield from ()\n")
    digests = {name: source_sha256(import_module(f"{name}_cue").cue) for name in texts}
    assert digests["slow"] == digests["same"] != digests["fast"]


def test_a_cue_without_a_source_file_is_refused() -> None:
    space: dict[str, CueFunction] = {}
    exec("def cue(scene, table, meaning):\n    yield from ()", {"__name__": "nowhere"}, space)
    with pytest.raises(ConfigError, match="its source cannot be read; define it as a function in a file"):
        source_sha256(space["cue"])
