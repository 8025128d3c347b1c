from pathlib import Path

import pytest

from norm_core.runtime.artefact import Artefact, artefact_path, load_artefact, write_artefact
from norm_core.runtime.config import ConfigError


def test_a_bare_name_lies_in_the_users_calibration_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert artefact_path("lab") == tmp_path / "tactful" / "calibration" / "lab.json"
    assert artefact_path("lab.json") == Path("lab.json")
    assert artefact_path("here/lab") == Path("here/lab")


def test_an_artefact_is_written_where_no_folder_is_yet_and_refused_on_other_weights(tmp_path: Path) -> None:
    path = tmp_path / "calibration" / "lab.json"
    head = Artefact(kind="test", format=1, made_on="2026-11-23", made_with={"weights": "a"}, fitted_on={})
    write_artefact(head, path)

    assert load_artefact(Artefact, path, kind="test", format_=1, made_with={"weights": "a"}, remedy="refit") == head
    with pytest.raises(ConfigError, match="in weights; refit"):
        load_artefact(Artefact, path, kind="test", format_=1, made_with={"weights": "b"}, remedy="refit")
    with pytest.raises(ConfigError, match="Is a directory; name another file"):
        write_artefact(head, tmp_path)
