"""`tactful models add` as its user calls it."""

import json
from typing import Any

from tests.norm_core.engines.fake_server import free_port, serving


def test_a_server_becomes_a_model_by_what_it_lists(models: Any) -> None:
    with serving() as server:
        server.served = [{"id": "Team/Tiny-VL", "owned_by": "vllm", "max_model_len": 4096}]
        url = server.url
        refused = models("models", "add", url)
        added = models("models", "add", url, "--name", "lab", "--task", "vision-language")
        assert added[0] == 0, added[2]
    assert "with --task" in refused[2]
    manifest = json.loads(models("models", "list", "lab", "--json")[1])["manifest"]
    assert manifest["settings"] == {"model": "Team/Tiny-VL", "guide": "structured_outputs"}
    assert (manifest["source"], manifest["context_tokens"], manifest["max_images"]) == ({"url": url}, 4096, 15)
    assert "memory" not in manifest


def test_a_server_of_several_models_or_none_needs_a_choice(models: Any) -> None:
    with serving() as server:
        server.served = [{"id": "one"}, {"id": "two"}]
        assert "serves one, two; name one with --served-model" in models("models", "add", server.url)[2]
        server.served = [{"id": "one for sk-secret"}, {"id": "two"}]
        complaint = models("models", "add", server.url, "--api-key-variable", "ROBOT_KEY", ROBOT_KEY="sk-secret")[2]
        assert "serves one for (the key), two;" in complaint
    assert "is not the address of a server (Invalid IPv6 URL)" in models("models", "add", "http://[::1")[2]
    silent = ("models", "add", f"http://127.0.0.1:{free_port()}/v1", "--task", "language")
    assert "cannot be reached" in models(*silent)[2]
    assert models(*silent, "--served-model", "two")[0] == 0


def test_a_name_that_is_taken_and_what_is_no_server(models: Any) -> None:
    with serving() as server:
        server.served = [{"id": "tiny-vl"}]
        taken = models("models", "add", server.url, "--task", "language")
    assert taken[0] == 2
    assert "--name: there is a model tiny-vl already; give another name" in taken[2]
    assert "./weights: is no address of a server" in models("models", "add", "./weights")[2]
