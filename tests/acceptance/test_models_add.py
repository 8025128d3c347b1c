"""Weights of one's own, from `./tactful models add` to decisions and judgements of the running nodes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from norm_core.models.bert_onnx import write_onnx
from tests.command_line import tactful
from tests.norm_core.engines.tiny_bert import PLACES, write_tiny_bert
from tests.norm_nodes.test_monitor_node import TALK, monitor, play
from tests.observer import Observer

pytestmark = pytest.mark.ros

Add = Callable[..., dict[str, Any]]


@pytest.fixture
def add(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Add:
    """Calls the verb; the nodes of the test see the models that it adds."""
    monkeypatch.setenv("TACTFUL_MODELS", str(tmp_path / "manifests"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))

    def call(*arguments: str) -> dict[str, Any]:
        done = tactful("models", "add", *arguments, "--json")
        assert done.returncode == 0, done.stderr
        return dict(json.loads(done.stdout))

    return call


@pytest.fixture
def encoder(tmp_path: Path) -> Path:
    """A folder with a sentence encoder as ONNX."""
    folder = tmp_path / "our encoder"
    write_tiny_bert(folder)
    write_onnx(folder, folder / "model.onnx")
    (folder / "model.safetensors").unlink()
    return folder


def test_the_printed_profile_gives_the_monitor_its_judge(
    add: Add, encoder: Path, domain_id: int, observer: Observer
) -> None:
    """From a folder of weights over `models setup` to judgements, by what the commands print alone."""
    name = add(str(encoder), "--context-tokens", str(PLACES))["name"]
    done = tactful("models", "setup", name)
    assert done.returncode == 0, done.stderr
    profile = yaml.safe_load(done.stdout.partition("In your profile:\n")[2])
    observer.watch_status()
    with monitor(domain_id, **profile["/tactful/monitor"]["ros__parameters"]):
        play(observer, TALK)
        observer.until(lambda: observer.counted("judge_answered") > 0, "the judge to answer")
