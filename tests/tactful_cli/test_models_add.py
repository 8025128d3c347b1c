"""`tactful models add` as its user calls it."""

import json
from pathlib import Path
from typing import Any

from norm_core.models.bert_onnx import write_onnx
from tests.norm_core.engines.fake_server import free_port, serving
from tests.norm_core.engines.tiny_bert import write_tiny_bert
from tests.norm_core.models.detection.tiny_files import write_checkpoint
from tests.norm_core.models.hub_server import COMMIT, REPOSITORY, HubServer


def hub_files(folder: Path, **changes: Any) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in write_checkpoint(folder, **changes).iterdir()}


def test_a_folder_becomes_a_model_that_verifies(models: Any, tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "Our Team_VL")
    code, printed, complained = models("models", "add", str(folder), "--context-tokens", "2048", "--json")
    assert code == 0, complained
    added = json.loads(printed)
    assert (added["name"], added["hashes"]) == ("our-team-vl", "stated")
    shown = json.loads(models("models", "list", "our-team-vl", "--json")[1])
    assert shown["manifest"] == added["manifest"]
    assert shown["manifest"]["source"] == {"path": str(folder)}
    assert (shown["manifest"]["licence"], shown["manifest"]["context_tokens"]) == ("mit", 2048)
    assert shown["manifest"]["memory"]["estimated"]
    (folder / "config.json").write_text("{}")
    assert "config.json has" in models("models", "list", "our-team-vl")[2]


def test_a_hub_name_is_downloaded_and_locked(models: Any, tmp_path: Path) -> None:
    with HubServer(hub_files(tmp_path / "made", vision_config={"depth": 1})) as hub:
        code, printed, complained = models("models", "add", REPOSITORY, "--name", "ours", HF_ENDPOINT=hub.url)
        assert code == 0, complained
        assert "ours: 3 files, 0.0 MB in " in printed
        shown = json.loads(models("models", "list", "ours", "--json")[1])
        hub.freeze_listing()
        hub.files["model.safetensors"] = bytes(len(hub.files["model.safetensors"]) - 1) + b"r"
        (tmp_path / "store").rename(tmp_path / "elsewhere")
        code, _, complained = models("models", "add", REPOSITORY, "--name", "rotten", HF_ENDPOINT=hub.url)
    assert (shown["hashes"], shown["lock"]["revision"]) == ("locked", COMMIT)
    assert shown["manifest"]["task"] == "vision-language"
    assert code == 1
    assert "The manifest is written; go on with ./tactful models add rotten" in complained


def test_a_listed_model_takes_no_other_options(models: Any) -> None:
    code, _, complained = models("models", "add", "tiny-vl", "--licence", "MIT")
    assert code == 2
    assert "tiny-vl: is listed already, so that only --mirror and --from apply" in complained
    assert "did you mean tiny-vl?" in models("models", "add", "tiny-vll")[2]


def test_a_gguf_on_the_hub_is_chosen_by_name(models: Any, tmp_path: Path) -> None:
    with HubServer({"README.md": b"", "a-q4.gguf": b"", "a-q8.gguf": b""}) as hub:
        refused = models("models", "add", REPOSITORY, "--name", "ours", "--mirror", hub.url)
        assert refused[0] == 2
        assert "choose one with --include, as a-q4.gguf" in refused[2]
        chosen = models(
            "models", "add", REPOSITORY, "--name", "ours", "--mirror", hub.url, "--include", "a-q8.gguf", "--json"
        )
    manifest = json.loads(chosen[1])["manifest"]
    assert manifest["engine"] == "llama.cpp"
    assert manifest["source"] == {"hub": REPOSITORY, "include": ["a-q8.gguf"]}


def test_without_the_hub_the_task_is_stated(models: Any) -> None:
    nowhere = {"HF_ENDPOINT": "http://127.0.0.1:9"}
    code, _, complained = models("models", "add", REPOSITORY, "--name", "ours", **nowhere)
    assert code == 2
    assert "state --task to write the manifest without the hub" in complained
    code, printed, _ = models("models", "add", REPOSITORY, "--name", "ours", "--task", "language", **nowhere)
    assert code == 0
    assert "hashes: unverified until the first download locks them" in printed
    assert "next: ./tactful models add ours" in printed


def test_a_server_becomes_a_model_by_what_it_lists(models: Any) -> None:
    with serving() as server:
        server.served = [{"id": "Team/Tiny-VL", "owned_by": "vllm", "max_model_len": 4096}]
        url = server.url
        refused = models("models", "add", url)
        added = models("models", "add", url, "--name", "lab", "--task", "vision-language")
        assert added[0] == 0, added[2]
    assert "state --task" in refused[2]
    manifest = json.loads(models("models", "list", "lab", "--json")[1])["manifest"]
    assert manifest["settings"] == {"model": "Team/Tiny-VL", "guide": "structured_outputs"}
    assert (manifest["source"], manifest["context_tokens"], manifest["max_images"]) == ({"url": url}, 4096, 15)
    assert "memory" not in manifest


def test_a_server_of_several_models_or_none_needs_a_choice(models: Any) -> None:
    with serving() as server:
        server.served = [{"id": "one"}, {"id": "two"}]
        assert "serves one, two; name one with --served-model" in models("models", "add", server.url)[2]
    assert "is no address of a server (Invalid IPv6 URL)" in models("models", "add", "http://[::1")[2]
    silent = ("models", "add", f"http://127.0.0.1:{free_port()}/v1", "--task", "language")
    assert "cannot be reached" in models(*silent)[2]
    assert models(*silent, "--served-model", "two")[0] == 0


def test_a_name_that_is_taken_and_a_path_that_is_not_there(models: Any, tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "tiny")
    taken = models("models", "add", str(folder), "--name", "tiny-vl")
    assert taken[0] == 2
    assert "--name: there is a model tiny-vl already; give another name" in taken[2]
    assert "there is no such folder or file" in models("models", "add", str(tmp_path / "absent"))[2]


def test_a_graph_whose_task_is_not_known_asks_for_it(models: Any, tmp_path: Path) -> None:
    write_tiny_bert(tmp_path / "bert")
    write_onnx(tmp_path / "bert", tmp_path / "detector.onnx")
    code, _, complained = models("models", "add", str(tmp_path / "detector.onnx"))
    assert code == 2
    assert "state --task, one of vision-language, " in complained
    assert models("models", "add", str(tmp_path / "detector.onnx"), "--task", "faces")[0] == 0
