"""A custom cue raises flags beside the shipped ones, and its source is in their hash."""

from pathlib import Path

import pytest

from norm_core.records.flag import SocialFlag
from norm_core.runtime.config import ConfigError
from norm_core.runtime.time import ReplayClock
from norm_monitor.assessment.cues import CueFunction, load_custom_cues, source_sha256
from norm_monitor.context.meaning import EncoderMatcher
from norm_monitor.monitor import Monitor
from tests.norm_monitor.encounter_talk import ALONE, robot, user

SHOUTS = """
from norm_monitor import Cue, CustomCue, Unit, evidence_of


def find(scene, table, matcher):
    for turn in scene.recent:
        if turn.is_robot and turn.text.isupper():
            evidence = [evidence_of(turn, "words", turn.word_count)]
            yield table.finding("shouts", Unit.of_turn(turn), evidence=evidence, rationale="The robot shouted.")


ENTRY = Cue(polarity="error", attributes=["emotions"], probability=0.9, correction="Speak softly.")
SHOUTS = CustomCue(find=find, entry=ENTRY)
"""
TALK = [*user(1, 3, "Where can I buy a ticket?"), *robot(10, 12, "AT THE COUNTER!"), *user(13, 14, "Thank you.")]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package with the cue `shouts`, one that is no cue, and one that cannot be imported."""
    (tmp_path / "shouting.py").write_text(SHOUTS)
    (tmp_path / "mine-1.0.dist-info").mkdir()
    points = ("shouts = shouting:SHOUTS", "function = shouting:find", "absent = shouting_absent:CUE")
    (tmp_path / "mine-1.0.dist-info/entry_points.txt").write_text("\n".join(["[tactful.cues]", *points]))
    monkeypatch.syspath_prepend(tmp_path)


def flags(meaning: EncoderMatcher, *cues: str) -> list[SocialFlag]:
    config = ALONE.model_copy(update={"cues": cues})
    monitor = Monitor(config, config.table(), meaning, ReplayClock())
    return [flag for entry in TALK for flag in monitor.take(entry)] + monitor.end_input()


@pytest.mark.usefixtures("package")
def test_custom_cue_adds_its_finding_and_changes_the_hash(meaning: EncoderMatcher) -> None:
    without, with_it = flags(meaning), flags(meaning, "shouts")
    assert any("The robot shouted." in flag.rationale for flag in with_it)
    assert not any("The robot shouted." in flag.rationale for flag in without)
    old, new = ({flag.provenance.config_sha256 for flag in states} for states in (without, with_it))
    assert len(old) == len(new) == 1
    assert old != new
    assert flags(meaning, "shouts") == with_it


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize(
    ("name", "problem"),
    [("shoots", "not installed .*shouts"), ("function", "let its entry point name a CustomCue"), ("absent", "loaded")],
)
def test_a_cue_that_cannot_be_loaded_is_named(name: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=f"cues: '{name}' .*{problem}"):
        load_custom_cues([name])


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
