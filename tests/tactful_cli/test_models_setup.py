"""`tactful models setup reader`."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from norm_core.models.manifest import Manifest
from norm_core.models.reader_folder import BASES, ReaderSize
from norm_core.models.store import PullError, hash_file, make_lock, write_lock
from norm_core.runtime.config import check_config
from tactful_cli import main
from tactful_cli.models.reader import provide_reader
from tests.norm_core.models.tiny_decoder import write_adapter, write_tiny_decoder


def test_the_reader_is_written_once_and_again_where_it_is_damaged(
    models: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, adapter = tmp_path / "store/tiny-qwen/base.gguf", tmp_path / "adapter.safetensors"
    reader = tmp_path / "store/reader-small"
    base.parent.mkdir(parents=True)
    write_tiny_decoder(base)
    write_adapter(adapter, hash_file(base))
    file = {"path": base.name, "sha256": hash_file(base), "size_bytes": base.stat().st_size}
    fields = {
        "name": "tiny-qwen",
        "task": "language",
        "engine": "openai",  # as the shipped ones: the weights come from packages, and a server reads them too
        "source": {"packages": ["tiny-qwen==1.0"], "url": "http://localhost:9/v1"},
        "quantization": "f32",
        "licence": "MIT",
    }
    manifest = {**fields, "files": [file], "context_tokens": 100, "max_images": 0}
    write_lock(base.parent, make_lock(check_config(Manifest, manifest, "tiny-qwen")))
    (tmp_path / "own/tiny-qwen.yaml").write_text(yaml.safe_dump(manifest))
    monkeypatch.setitem(BASES, ReaderSize.SMALL, "tiny-qwen")

    def set_up() -> bool:
        code, printed, complained = models("models", "setup", "reader", "--adapter", str(adapter), "--json")
        assert code == 0, complained
        return bool(json.loads(printed)["new"])

    def list_readers(**environment: str) -> dict[str, str]:
        rows = json.loads(models("models", "list", "--json", **environment)[1])
        return {row["name"]: row["installed"] for row in rows if row["task"] == "talk reader" and row["size_mb"]}

    assert list_readers() == {"reader, small": "", "reader, middle": ""}
    assert [set_up(), set_up()] == [True, False]
    assert list_readers(TACTFUL_READER="none")["reader, small"] == f"{reader}, not used"
    assert list_readers(TACTFUL_READER="auto") == {"reader, small": f"{reader}, used", "reader, middle": ""}
    (reader / "reader.weights").write_bytes(b"cut")
    assert [set_up(), set_up()] == [True, False]
    base.write_bytes(base.read_bytes() + b"x")
    (reader / "reader.json").unlink()
    code, _, complained = models("models", "setup", "reader", "--adapter", str(adapter))
    assert (code, "differ from the lock" in complained) == (2, True)


def test_a_first_run_makes_the_small_reader_and_without_a_network_goes_on_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made: list[ReaderSize] = []

    def make(size: ReaderSize, adapter: Path) -> None:
        made.append(size)
        raise PullError("pip could not fetch it")

    monkeypatch.setattr("tactful_cli.models.reader._write_reader", make)
    monkeypatch.setenv("TACTFUL_WEIGHTS", str(tmp_path))
    provide_reader()
    assert made == []  # the tests name their reader: none
    monkeypatch.delenv("TACTFUL_READER")
    provide_reader()
    assert "no talk reader, so fewer errors are flagged, and later: pip could not fetch it" in capsys.readouterr().err
    provide_reader()
    assert made == [ReaderSize.SMALL]


def test_only_verbs_that_run_the_monitor_make_the_reader_in_a_package(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr(main, "IS_PACKAGE", True)
    monkeypatch.setattr("tactful_cli.models.reader.provide_reader", lambda: calls.append("made"))
    for line in ("flags bag", "study add zoo bag", "bench monitor", "view"):
        main.provide_reader_first(line.split())
    assert calls == ["made"] * 4
    for line in ("", "study status zoo", "bench run egonormia", "flags --help", "hear bag"):
        main.provide_reader_first(line.split())
    assert calls == ["made"] * 4
