"""What each engine is handed of a manifest, and that the engine as it is takes it."""

import inspect
import socket
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from norm_core.engines.engine_factory import OPENERS
from norm_core.engines.errors import EngineFailedError
from norm_core.engines.reply import ModelInfo
from norm_core.engines.settings import Guide
from norm_core.models.manifest import EngineKind, Manifest
from norm_core.models.store import ModelFiles
from norm_core.runtime.config import ConfigError, check_config
from norm_core.runtime.server_address import is_on_this_machine

KINDS = {
    EngineKind.TRANSFORMERS: ("transformers.backend", "TransformersBackend"),
    EngineKind.OPENAI: ("openai.backend", "OpenAIBackend"),
}


class Taken:
    """Stands for a backend, or a server, and keeps what it was made with."""

    def __init__(self, *given: Any, **named: Any) -> None:
        self.given, self.named = given, named
        self.model_info = ModelInfo(model="its own", engine="taken")


def manifest(engine: str, **changes: Any) -> Manifest:
    plain = {
        "name": "tiny",
        "task": "vision-language",
        "engine": engine,
        "source": {"url": "http://127.0.0.1:1/v1"} if engine == "openai" else {"path": "weights"},
        "quantization": "nf4",
        "context_tokens": 2048,
        "max_images": 3,
        "licence": "MIT",
    }
    return check_config(Manifest, plain | changes, "tiny.yaml")


def files(*names: str) -> list[dict[str, Any]]:
    return [{"path": name, "sha256": "0" * 64, "size_bytes": 1} for name in names]


@pytest.fixture
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Puts Taken in the place of every backend, as their libraries are not in each environment."""
    for name, kind in (*KINDS.values(), ("openai.client", "OpenAIServer")):
        module = ModuleType(name)
        vars(module).update({kind: Taken})
        monkeypatch.setitem(sys.modules, f"norm_core.engines.{name}", module)


def taken(given: Manifest, folder: Path | None = Path("/weights")) -> Any:
    return OPENERS[given.engine](given, ModelFiles(folder=folder, sha256="f" * 64))


@pytest.mark.usefixtures("stand_ins")
def test_a_number_format_is_no_quantization() -> None:
    quantized = taken(manifest("transformers", settings={"device": "cuda"}))
    assert quantized.given == (Path("/weights"),)
    assert (quantized.named["quantization"], quantized.named["device"]) == ("nf4", "cuda")
    assert quantized.named["weights_sha256"] == "f" * 64
    assert (quantized.named["context_tokens"], quantized.named["max_images"]) == (2048, 3)
    assert taken(manifest("transformers", quantization="bf16")).named["quantization"] == ""


@pytest.mark.usefixtures("stand_ins")
def test_a_gguf_file_is_told_from_others_of_its_folder(tmp_path: Path) -> None:
    for name in ("tiny-q4.gguf", "tiny-q8.gguf", "NOTICE.md"):
        (tmp_path / name).touch()
    by_files = manifest("transformers", files=files("tiny-q4.gguf", "NOTICE.md"))
    by_pattern = manifest("transformers", source={"hub": "a/b", "include": ["*q8.gguf"]})
    assert taken(by_files, tmp_path).named["gguf_file"] == "tiny-q4.gguf"
    assert taken(by_pattern, tmp_path).named["gguf_file"] == "tiny-q8.gguf"
    assert taken(manifest("transformers"), tmp_path).named["gguf_file"] == ""
    with pytest.raises(EngineFailedError, match=r"one GGUF file is needed, not tiny-q4\.gguf, tiny-q8\.gguf"):
        taken(manifest("transformers", source={"hub": "a/b", "include": ["*.gguf"]}), tmp_path)


@pytest.mark.usefixtures("stand_ins")
def test_a_server_is_asked_for_its_own_name_of_the_model() -> None:
    served = taken(manifest("openai", settings={"model": "Org/Tiny", "guide": "grammar", "tries": 2}), folder=None)
    server, name = served.given
    assert server.given == ("http://127.0.0.1:1/v1",)
    assert server.named["tries"] == 2
    assert (name, served.named["settings"].guide) == ("Org/Tiny", Guide.GRAMMAR)
    assert taken(manifest("openai"), folder=None).given[1] == "tiny"


@pytest.mark.usefixtures("stand_ins")
@pytest.mark.parametrize("kind", KINDS)
def test_an_unknown_setting_is_refused_with_the_nearest(kind: EngineKind) -> None:
    known = {"transformers": "device", "openai": "guide"}[kind]
    with pytest.raises(ConfigError, match=f"tiny: settings: {known}s: unknown key; did you mean {known}\\?"):
        taken(manifest(kind, settings={f"{known}s": 1}))


@pytest.mark.usefixtures("stand_ins")
def test_a_url_is_only_for_servers() -> None:
    served = manifest("transformers", source={"url": "http://127.0.0.1:1"})
    with pytest.raises(EngineFailedError, match="a url is for the openai engine, not for transformers"):
        taken(served, folder=None)


@pytest.mark.parametrize("kind", KINDS)
def test_the_engine_takes_what_it_is_handed(kind: EngineKind, request: pytest.FixtureRequest) -> None:
    """Without a stand-in: the signatures of what is really there."""
    module_name, class_name = KINDS[kind]
    module = pytest.importorskip(f"norm_core.engines.{module_name}", exc_type=ImportError)
    signature = inspect.signature(getattr(module, class_name))
    request.getfixturevalue("stand_ins")
    handed = taken(manifest(kind), folder=None if kind is EngineKind.OPENAI else Path("/w"))
    signature.bind(*handed.given, **handed.named)


@pytest.mark.parametrize(
    ("url", "is_here"),
    [
        *((f"http://{host}:8000/v1", True) for host in ("127.8.0.1", "[::1]", "0.0.0.0", "LocalHost", "a.localhost")),
        (f"http://{socket.gethostname()}:8000/v1", True),
        ("http+unix://%2Frun%2Fmodel.sock/v1", True),
        *((f"http://{host}:8000/v1", False) for host in ("gpu-box", "192.168.0.7", "localhost.org", "127.0.0.1.org")),
        *((url, False) for url in ("http://127.0.0.1@gpu-box/v1", "http:///v1", "http://[::1/v1")),
    ],
)
def test_only_this_machine_s_addresses_are_here(url: str, is_here: bool) -> None:
    assert is_on_this_machine(url) is is_here
