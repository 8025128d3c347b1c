"""Where pulled weights and a team's own manifests lie: in the user's data, which removing the set-up leaves alone."""

import shutil
from pathlib import Path

import pytest

from norm_core.models.catalogue import Catalogue
from norm_core.models.manifest import Manifest
from norm_core.models.store import Store


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The `.tactful` of a checkout, beside an empty data folder and cache."""
    for name in ("TACTFUL_WEIGHTS", "TACTFUL_MODELS"):
        monkeypatch.delenv(name, raising=False)
    for name in ("data", "cache"):
        monkeypatch.setenv(f"XDG_{name.upper()}_HOME", str(tmp_path / name))
    monkeypatch.setenv("TACTFUL_STATE", str(tmp_path / ".tactful"))
    (tmp_path / ".tactful").mkdir()
    return tmp_path / ".tactful"


@pytest.fixture
def manifest() -> Manifest:
    return Catalogue().manifest("whisper-base")


def test_removing_the_set_up_leaves_pulled_weights(state: Path, manifest: Manifest) -> None:
    pulled = Store().folder(manifest)
    pulled.mkdir(parents=True)
    shutil.rmtree(state)
    assert pulled.is_dir()


def test_removing_the_set_up_leaves_the_teams_manifests(state: Path) -> None:
    own = Catalogue().own
    own.mkdir(parents=True)
    shutil.rmtree(state)
    assert own.is_dir()
