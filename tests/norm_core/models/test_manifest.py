"""Manifests are checked as they are read; those that ship say what is so."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from norm_core.models.catalogue import Catalogue
from norm_core.models.estimate import estimate_memory
from norm_core.models.manifest import FilePath, Manifest
from norm_core.models.store import Store, find_damages
from norm_core.runtime.config import ConfigError, check_config

SHIPPED = Path(__file__).resolve().parents[3] / "models"
GOOD: dict[str, Any] = {
    "name": "tiny",
    "task": "language",
    "engine": "transformers",
    "source": {"packages": ["tiny==1.0"]},
    "files": [{"path": "a.gguf", "sha256": "0" * 64, "size_bytes": 3}],
    "quantization": "q4_0",
    "licence": "MIT",
}
FILE = GOOD["files"][0]


@pytest.fixture
def shipped() -> Catalogue:
    return Catalogue((SHIPPED,))


@pytest.mark.parametrize("name", Catalogue((SHIPPED,)).list_names())
def test_every_shipped_manifest_holds(shipped: Catalogue, name: str, tmp_path: Path) -> None:
    manifest = shipped.read_manifest(name)
    if manifest.source.hub:
        # Neither can be known before the first pull, and memory was not measured: nothing may pretend that it was.
        assert manifest.source.revision is None
        assert manifest.files == ()
        assert manifest.memory == estimate_memory(manifest, manifest.quantization)
    assert manifest.memory is None or len(manifest.memory.how) > 20
    if name.endswith("-nf4"):
        assert manifest.source == shipped.read_manifest(name.removesuffix("-nf4")).source
    if manifest.source.packages and (found := Store(tmp_path).find(manifest)):
        assert find_damages(*found) == {}


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"licnece": "MIT"}, "licnece: unknown key; did you mean licence\\?"),
        (
            {"source": {"packages": ["tiny==1.0"], "revison": "x"}},
            "source.revison: unknown key; did you mean revision\\?",
        ),
        ({"files": [FILE | {"sha25": ""}]}, "files.0.sha25: unknown key; did you mean sha256\\?"),
        ({"memory": {"peak": 1}}, "memory.peak: unknown key; did you mean peak_mb\\?"),
        ({"source": {}}, "source: state one of packages, hub, path and url \\(stated: none\\)"),
        ({"source": {"hub": "a/b", "path": "c"}}, "stated: hub, path"),
        ({"source": {"path": "c", "revision": "d"}}, "a revision belongs to a hub repository"),
        ({"source": {"hub": "no-owner"}}, "source.hub: "),
        ({"source": {"packages": ["tiny"]}}, "source.packages.0: "),
        ({"engine": "onnx"}, "engine: input should be 'transformers', "),
        ({"files": []}, "files from packages need their hashes"),
        ({"files": [FILE, FILE]}, "the file a.gguf appears twice"),
        ({"files": [FILE | {"path": "../a.gguf"}]}, "files.0.path: the path of a file must be relative"),
        ({"files": [FILE | {"sha256": "ABC"}]}, "files.0.sha256: "),
        ({"memory": {"load_mb": 2, "peak_mb": 1, "how": "measured so"}}, "memory: the peak is below"),
        ({"name": "Tiny Model"}, "name: "),
    ],
)
def test_a_manifest_that_cannot_be_used_says_what_is_wrong(changes: dict[str, Any], complaint: str) -> None:
    check_config(Manifest, GOOD, "tiny.yaml")
    with pytest.raises(ConfigError, match=f"tiny.yaml: .*{complaint}"):
        check_config(Manifest, GOOD | changes, "tiny.yaml")


@given(st.text(alphabet="ab./\\ ", max_size=12))
def test_no_path_that_is_taken_leads_out_of_its_folder(text: str) -> None:
    folder = Path("/store/model")
    try:
        path = TypeAdapter(FilePath).validate_python(text)
    except ValidationError:
        return
    joined = Path(str(folder / path))
    assert joined != folder
    assert folder in joined.parents
    assert ".." not in joined.parts


def test_a_variant_has_the_fields_of_its_model_and_its_own(tmp_path: Path) -> None:
    base = GOOD | {"parameters_million": 100, "precise_million": 20, "kv_bytes_per_token": 1000, "context_tokens": 1000}
    hub = {"engine": "transformers", "source": {"hub": "a/b"}, "files": [], "quantization": "bf16"}
    variants = {"nf4": {"quantization": "nf4"}, "far": {"engine": "openai", "source": {"url": "http://box/v1"}}}
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(base | hub | {"variants": variants}))
    catalogue = Catalogue((tmp_path,))
    assert catalogue.list_names() == ["tiny", "tiny-far", "tiny-nf4"]
    assert catalogue.find_path("tiny-nf4") == tmp_path / "tiny.yaml"
    small = catalogue.read_manifest("tiny-nf4")
    assert (small.name, small.source.hub) == ("tiny-nf4", "a/b")
    assert small.memory is not None
    assert (small.memory.load_mb, small.memory.estimated) == (85, True)
    assert catalogue.read_manifest("tiny-far").source.url == "http://box/v1"


@pytest.mark.parametrize("name", ["qwen3-vl-2b-nf4", "silero-vad-v6"])  # a variant, and a file
def test_a_teams_own_manifest_counts_before_the_shipped_one(tmp_path: Path, name: str) -> None:
    (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(GOOD | {"name": name}))
    catalogue = Catalogue((SHIPPED, tmp_path))
    assert catalogue.read_manifest(name).quantization == "q4_0"
    assert catalogue.list_names() == Catalogue((SHIPPED,)).list_names()


def test_weights_and_manifests_lie_where_removing_the_set_up_leaves_them(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TACTFUL_WEIGHTS", "TACTFUL_MODELS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    monkeypatch.setenv("TACTFUL_STATE", "/checkout/.tactful")
    assert {Store().root.parts[:2], Catalogue().own_folder.parts[:2]} == {("/", "data")}


def test_an_unknown_name_is_answered_with_the_nearest(shipped: Catalogue) -> None:
    with pytest.raises(ConfigError, match=r"no model 'qwen3-vl-4'; did you mean qwen3-vl-4b or .*models list"):
        shipped.read_manifest("qwen3-vl-4")
