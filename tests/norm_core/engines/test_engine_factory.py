"""From a manifest to an engine, and every way in which that cannot be, as where the model does not fit."""

import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from norm_core.engines import engine_factory
from norm_core.engines.engine_factory import OPENERS, check_memory, measure_free_memory, open_engine
from norm_core.engines.errors import EngineFailedError, ModelMemoryError
from norm_core.engines.reply import ModelInfo
from norm_core.engines.settings import Guide
from norm_core.models.manifest import EngineKind, HashedFile, Manifest
from norm_core.models.store import ModelFiles, WeightsError
from norm_core.runtime.config import ConfigError, check_config
from norm_core.runtime.time import WallClock
from tests.norm_core.engines.contract import OPTIONS, SCENE, assert_answered, score
from tests.norm_core.engines.scripted import ScriptedBackend

ROOT = Path(__file__).resolve().parents[3]
BackendIs = Callable[..., list[ModelFiles]]
ABC = HashedFile(
    path="model.gguf", sha256="ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", size_bytes=3
)


@pytest.fixture(autouse=True)
def _beside_the_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # where the paths of these manifests begin


@pytest.fixture
def manifest(tmp_path: Path) -> Manifest:
    """A model of three bytes in a folder beside its manifest."""
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights/model.gguf").write_bytes(b"abc")
    plain = {
        "name": "tiny",
        "task": "language",
        "engine": "transformers",
        "source": {"path": "weights"},
        "files": [ABC.model_dump()],
        "quantization": "q4_0",
        "licence": "MIT",
        "memory": {"load_mb": 900, "peak_mb": 1000, "how": "made up for a test"},
    }
    return check_config(Manifest, plain, "tiny.yaml")


def answering(manifest: Manifest, weights: ModelFiles) -> ScriptedBackend:
    return ScriptedBackend(lambda question, call: [0.0, -1.0, -2.0])


@pytest.fixture
def backend_is(monkeypatch: pytest.MonkeyPatch) -> BackendIs:
    """Puts an opener in the place of transformers', and gives the weights that it got."""

    def install(opened: Callable[[Manifest, ModelFiles], Any] = answering) -> list[ModelFiles]:
        seen: list[ModelFiles] = []

        def opener(manifest: Manifest, weights: ModelFiles) -> Any:
            seen.append(weights)
            return opened(manifest, weights)

        monkeypatch.setitem(engine_factory.OPENERS, EngineKind.TRANSFORMERS, opener)
        return seen

    return install


def test_a_missing_engine_names_the_command_that_installs_it(
    manifest: Manifest, tmp_path: Path, backend_is: BackendIs
) -> None:
    def opened(manifest: Manifest, weights: ModelFiles) -> Any:
        raise ModuleNotFoundError("it is not here", name="torch")

    backend_is(opened)
    remedy = "needs torch, which is not installed; install it with ./tactful setup transformers$"
    with pytest.raises(EngineFailedError, match=remedy):
        open_engine(manifest, WallClock())


def test_a_backend_gets_the_folder_and_the_digest_of_checked_weights(
    manifest: Manifest, tmp_path: Path, backend_is: BackendIs
) -> None:
    seen = backend_is()
    engine = open_engine(manifest, WallClock())
    assert seen == [ModelFiles(folder=Path("weights"), sha256=ABC.sha256)]
    assert_answered(score(engine, SCENE, OPTIONS), 3)


def test_changed_weights_are_refused_before_the_backend_sees_them(
    manifest: Manifest, tmp_path: Path, backend_is: BackendIs
) -> None:
    backend_is(lambda *_: pytest.fail("the backend was asked to load changed weights"))
    (tmp_path / "weights/model.gguf").write_bytes(b"abd")
    with pytest.raises(WeightsError, match=r"differ from the lock: model\.gguf has the SHA-256 a52d159f"):
        open_engine(manifest, WallClock())


@pytest.mark.parametrize("changes", [{"files": []}, {"source": {"path": "elsewhere"}}])
def test_a_missing_folder_or_one_without_hashes_is_named(
    manifest: Manifest, tmp_path: Path, backend_is: BackendIs, changes: dict[str, Any]
) -> None:
    backend_is()
    changed = check_config(Manifest, manifest.model_dump(mode="json", exclude_defaults=True) | changes, "tiny.yaml")
    with pytest.raises(WeightsError, match=r"(weights|elsewhere) is missing, or its files have no known hash"):
        open_engine(changed, WallClock())


@pytest.mark.parametrize(
    ("error", "complaint"),
    [
        (MemoryError(), "out of memory while tiny was loaded: it needs about 1000 MB"),
        (RuntimeError("CUDA out of memory"), "tiny: cannot be loaded: RuntimeError: CUDA out of memory"),
        (OSError("no such header"), "tiny: cannot be loaded: OSError"),
        (ConfigError("tiny: settings: unknown key"), "settings: unknown key"),
    ],
)
def test_a_backend_that_cannot_load_is_a_clear_error(
    manifest: Manifest, tmp_path: Path, backend_is: BackendIs, error: Exception, complaint: str
) -> None:
    def opened(manifest: Manifest, weights: ModelFiles) -> Any:
        raise error

    backend_is(opened)
    with pytest.raises((EngineFailedError, ConfigError), match=complaint):
        open_engine(manifest, WallClock())


def needing(load_mb: float, peak_mb: float, **settings: Any) -> Manifest:
    plain = {
        "name": "large",
        "task": "language",
        "engine": "transformers",
        "source": {"path": "weights"},
        "quantization": "q4_0",
        "licence": "MIT",
        "memory": {"load_mb": load_mb, "peak_mb": peak_mb},
        "settings": settings,
    }
    return check_config(Manifest, plain, "large.yaml")


def free_mb() -> float:
    return measure_free_memory(needing(1, 1))[1]


def test_a_model_that_does_not_fit_is_refused_with_one_that_does(tmp_path: Path) -> None:
    weights = tmp_path / "weights"
    weights.mkdir()
    (weights / "model.gguf").write_bytes(b"abc")
    large = Manifest.model_validate(
        {**needing(80e6, 90e6).model_dump(mode="json"), "task": "vision-language", "files": [ABC.model_dump()]}
    )
    refusal = r"large needs 90000000 MB, and \d+ MB of memory are free"
    with pytest.raises(ModelMemoryError, match=refusal):
        open_engine(large, WallClock())


def test_without_a_gpu_16_bit_weights_count_twice() -> None:
    plain = needing(1, 0.7 * free_mb()).model_dump(mode="json")
    wide = {"engine": "transformers", "quantization": "bf16", "settings": {"device": "cpu"}}
    plain["memory"]["estimated"] = True
    estimated = Manifest.model_validate(plain | wide)
    with pytest.raises(ModelMemoryError, match="estimated"):
        check_memory(estimated)


def test_wrong_settings_are_named_before_anything_is_measured() -> None:
    with pytest.raises(ConfigError, match="large: settings: device"):
        check_memory(needing(1, 2, device="all"))


@pytest.mark.parametrize(
    ("free_mb", "unused_mb", "fits"),
    [(None, 0, False), (9300, 0, False), (9300, 100, True)],
    ids=["filled by others", "no room for activations", "what torch holds in reserve"],
)
def test_free_memory_of_a_gpu_counts_activations_and_reserves(
    free_mb: float | None, unused_mb: float, fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mem_get_info(index: int) -> tuple[float, float]:
        if free_mb is None:
            raise RuntimeError("CUDA error: out of memory\nSearch for `cudaErrorMemoryAllocation'")
        return 1e6 * free_mb, 80e9

    cuda = SimpleNamespace(
        is_available=lambda: True,
        mem_get_info=mem_get_info,
        get_device_properties=lambda index: SimpleNamespace(is_integrated=False),
        memory_reserved=lambda index: 1e6 * (100 + unused_mb),
        memory_allocated=lambda index: 100e6,
    )
    monkeypatch.setattr("norm_core.engines.engine_factory.find_spec", lambda name: True)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    plain = needing(8000, 9000).model_dump(mode="json") | {"engine": "transformers"}
    plain["memory"]["estimated"] = True  # nine tenths, with a CUDA context of 650 MB that is there when it asks
    refusal = nullcontext() if fits else pytest.raises(ModelMemoryError, match=r"large needs 9350 MB \(estimated\)")
    with refusal:
        check_memory(Manifest.model_validate(plain))


KINDS = {
    EngineKind.TRANSFORMERS: ("transformers.backend", "TransformersBackend"),
    EngineKind.OPENAI: ("openai.backend", "OpenAIBackend"),
}


class Taken:
    """Stands for a backend, or a server, and keeps what it was made with."""

    def __init__(self, *given: Any, **named: Any) -> None:
        self.given, self.named = given, named
        self.model_info = ModelInfo(model="its own", engine="taken")


def described(engine: str, **changes: Any) -> Manifest:
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
    quantized = taken(described("transformers", settings={"device": "cuda"}))
    assert quantized.given == (Path("/weights"),)
    assert (quantized.named["quantization"], quantized.named["device"]) == ("nf4", "cuda")
    assert quantized.named["weights_sha256"] == "f" * 64
    assert (quantized.named["context_tokens"], quantized.named["max_images"]) == (2048, 3)
    assert taken(described("transformers", quantization="bf16")).named["quantization"] == ""


@pytest.mark.usefixtures("stand_ins")
def test_a_server_is_asked_for_its_own_name_of_the_model() -> None:
    served = taken(described("openai", settings={"model": "Org/Tiny", "guide": "grammar", "tries": 2}), folder=None)
    server, name = served.given
    assert server.given == ("http://127.0.0.1:1/v1",)
    assert server.named["tries"] == 2
    assert (name, served.named["settings"].guide) == ("Org/Tiny", Guide.GRAMMAR)
    assert taken(described("openai"), folder=None).given[1] == "tiny"


@pytest.mark.usefixtures("stand_ins")
@pytest.mark.parametrize("kind", KINDS)
def test_an_unknown_setting_is_refused_with_the_nearest(kind: EngineKind) -> None:
    known = {"transformers": "device", "openai": "guide"}[kind]
    with pytest.raises(ConfigError, match=f"tiny: settings: {known}s: unknown key; did you mean {known}\\?"):
        taken(described(kind, settings={f"{known}s": 1}))


@pytest.mark.usefixtures("stand_ins")
def test_a_url_is_only_for_servers() -> None:
    served = described("transformers", source={"url": "http://127.0.0.1:1"})
    with pytest.raises(EngineFailedError, match="a url is for the openai engine, not for transformers"):
        taken(served, folder=None)
