"""`tactful models` as its user calls it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.norm_core.models.hub_server import COMMIT, serving_hub
from tests.tactful_cli.conftest import TINY


def test_list_shows_what_is_here_and_how_large_it_is(models: Any) -> None:
    code, printed, _ = models("models", "list", "--json")
    rows = {row["name"]: row for row in json.loads(printed)}
    assert code == 0
    assert rows["silero-vad-v6"]["installed"] == "packaged"
    assert rows["qwen3-vl-4b"]["installed"] == ""
    assert rows["qwen3-vl-4b"]["peak_mb"] > 8876
    assert rows["qwen3-vl-4b"]["size_estimated"]
    assert not rows["silero-vad-v6"]["size_estimated"]
    assert rows["qwen3-vl-4b-nf4"]["size_mb"] == rows["qwen3-vl-4b"]["size_mb"] == 8876
    assert "tiny-vl" in models("models", "list")[1]


def test_one_bad_manifest_does_not_hide_the_others(models: Any, tmp_path: Path) -> None:
    (tmp_path / "own/bad.yaml").write_text(TINY.replace("tiny-vl", "bad").replace("licence", "license"))
    code, printed, complained = models("models", "list")
    assert code == 1
    assert "tiny-vl" in printed
    assert "bad.yaml: license: unknown key; did you mean licence?" in complained


def test_a_changed_file_is_named_after_a_pull(models: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"config.json": b"{}", "model.safetensors": b"weights" * 1000}
    with serving_hub(files, monkeypatch, tmp_path / "hf") as hub:
        code, printed, complained = models("models", "add", "tiny-vl", "--json")
        assert code == 0, complained
        assert json.loads(printed)["revision"] == COMMIT
        hub.files.clear()
        assert models("models", "add", "tiny-vl")[0] == 0
        missing = models("models", "add", "qwen3-vl-2b")
    assert missing[0] == 1
    assert "accept its terms on the hub and set HF_TOKEN" in missing[2]
    shown = json.loads(models("models", "list", "tiny-vl", "--json")[1])
    assert shown["lock"]["revision"] == COMMIT
    Path(shown["folder"], "config.json").write_bytes(b"[]")
    code, printed, complained = models("models", "list", "tiny-vl")
    assert code == 1
    assert COMMIT in printed
    assert "config.json has the SHA-256" in complained
    assert "tiny-vl: run ./tactful models add tiny-vl" in complained
