"""The command that installs an extra is the one of this installation."""

from pathlib import Path

import pytest

from norm_core.runtime.extras import install_command


def test_a_checkout_installs_by_its_script() -> None:
    assert install_command("llama") == "./tactful setup llama"


def test_an_installed_package_installs_by_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tactful-1.0.dist-info").mkdir()
    (tmp_path / "tactful-1.0.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: tactful\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert install_command("llama") == "pip install 'tactful[llama]'"
