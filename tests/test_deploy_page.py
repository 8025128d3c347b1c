"""The page on deploying names what the code writes and what a user types."""

from pathlib import Path

import pytest
import yaml

from norm_core.files.data_files import make_cache_folder, site_folder
from norm_core.models.catalogue import Catalogue
from norm_core.models.store import Store
from tests.docker_file import FILE
from tests.markdown_pages import ROOT

PAGE = (ROOT / "docs/how-to/deploy.md").read_text(encoding="utf-8")
ROWS = [line.split("|")[1] for line in PAGE.splitlines() if line.startswith("|")]


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A user's home, away from a checkout and with no variable that moves a folder."""
    for name in (
        "TACTFUL_STATE",
        "TACTFUL_WEIGHTS",
        "TACTFUL_MODELS",
        "XDG_CACHE_HOME",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_it_names_every_folder_in_the_users_home(home: Path) -> None:
    written = [Store().root, Catalogue().own_folder, site_folder("calibration"), make_cache_folder("sentences")]
    named = [home / row.strip(" `").removeprefix("~/") for row in ROWS if row.startswith(" `~/")]
    assert [path for path in written if not any(path.is_relative_to(each) for each in named)] == []


def test_it_names_the_volumes_of_the_container() -> None:
    composed = yaml.safe_load(FILE.with_name("compose.yaml").read_text(encoding="utf-8"))
    assert all(f"`{composed['name']}_{volume}`" in PAGE for volume in composed["volumes"])
