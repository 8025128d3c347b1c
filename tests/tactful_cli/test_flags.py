"""Flags of a shipped bag: from its sound, and from the utterances in it."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from norm_core.engines.talk_reader import TalkReader, open_reader
from norm_core.models.reader_setup import write_reader
from norm_core.models.store import sha256_of_file
from norm_monitor.fusion.site_thresholds import made_with
from norm_monitor.monitor import MonitorConfig
from tactful_cli.flag_watch import FlagOptions, shipped_parts
from tests.command_line import tactful
from tests.norm_core.models.tiny_qwen import write_adapter, write_tiny_qwen

SHIPPED = Path(__file__).parents[2] / "sim_replays" / "scenarios" / "shipped"


def flags(*arguments: str) -> subprocess.CompletedProcess[str]:
    return tactful("flags", *arguments)


def test_a_late_answer_is_heard_and_noted() -> None:
    result = flags(str(SHIPPED / "kiosk_directions"), "--topic", "/audio", "--json")
    assert result.returncode == 0, result.stderr
    late = [flag for flag in json.loads(result.stdout) if flag["cue_id"] == "response_delay"]
    assert late
    assert "old bridge" in late[0]["rationale"]
    assert late[0]["correction"]


def test_given_utterances_need_no_sound() -> None:
    chinese = next(path for path in sorted(SHIPPED.iterdir()) if path.is_dir() and path.name.startswith("zh_"))
    result = flags(str(chinese))
    assert result.returncode == 0, result.stderr
    assert re.search(r"\d social errors? and \d+ competences? in ", result.stdout)


@pytest.fixture
def reader_folder(tmp_path: Path) -> Path:
    """A talk reader of a tiny model."""
    write_tiny_qwen(tmp_path / "base.gguf")
    write_adapter(tmp_path / "adapter.safetensors", sha256_of_file(tmp_path / "base.gguf"))
    write_reader(tmp_path / "base.gguf", tmp_path / "adapter.safetensors", tmp_path / "reader")
    return tmp_path / "reader"


def test_a_talk_reader_brings_its_weights_wherever_a_monitor_is_described(
    reader_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thresholds fitted with a reader load in the monitor with it, and a stored run does not go on by another."""
    without, parts_without = FlagOptions().settings(), shipped_parts()
    monkeypatch.setenv("TACTFUL_READER", str(reader_folder))
    settings, (model, table, matcher) = FlagOptions().settings(), shipped_parts()
    assert model is MonitorConfig().unit_model(matcher)
    assert made_with(model, table, matcher) != made_with(*parts_without)
    assert settings["weights"] == model.sha256() != without["weights"]
    assert settings["reader"] == TalkReader.open(reader_folder).sha256
    assert open_reader("auto") is open_reader("auto")
