"""Files written whole: what stays of the old one, who may read the new one, what an error says; artefacts in them."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from norm_core.files.atomic_file import atomic_file, atomic_path, write_atomic
from norm_core.runtime.artefact import Artefact, load_artefact, resolve_artefact_path, write_artefact
from norm_core.runtime.config import ConfigError


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("content", ["Grüße\n", b"\x00\xff"])
@pytest.mark.parametrize("fsync", [False, True])
def test_what_is_written_takes_the_place_of_what_was_there(tmp_path: Path, content: str | bytes, fsync: bool) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    write_atomic(path, content, fsync=fsync)
    assert path.read_bytes() == (content.encode() if isinstance(content, str) else content)
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("raised", [ValueError, KeyboardInterrupt])
def test_an_error_in_the_middle_leaves_the_old_file_alone(tmp_path: Path, raised: type[BaseException]) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def write_half() -> None:
        with atomic_file(path) as file:
            file.write(b"new")
            raise raised

    with pytest.raises(raised):
        write_half()
    assert path.read_text() == "old"
    assert names(tmp_path) == ["file"]


def test_a_killed_process_leaves_the_old_file_and_the_next_write_works(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    killed = (
        "import os, signal, sys; from pathlib import Path; from norm_core.files.atomic_file import atomic_file\n"
        "with atomic_file(Path(sys.argv[1]), fsync=True) as file:\n"
        "    file.write(b'half'); file.flush(); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert subprocess.run([sys.executable, "-c", killed, str(path)], check=False).returncode == -signal.SIGKILL
    assert path.read_text() == "old"
    assert names(tmp_path) == ["file", "file.part"]
    write_atomic(path, "new")
    assert path.read_text() == "new"
    assert names(tmp_path) == ["file"]


def test_the_file_mode_holds_from_the_first_byte(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text("old")
    path.chmod(0o644)
    (tmp_path / "keys.part").touch(0o666)
    with atomic_file(path, mode=0o600) as file:
        assert os.fstat(file.fileno()).st_mode & 0o777 == 0o600
        file.write(b"secret")
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_full_disk_is_told_by_the_path_that_was_to_be_written(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def write_to_full_disk() -> None:
        with atomic_path(path) as part:
            part.symlink_to("/dev/full")
            part.write_bytes(b"new")

    with pytest.raises(OSError, match="No space left") as caught:
        write_to_full_disk()
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(path))
    assert path.read_text() == "old"
    assert names(tmp_path) == ["file"]


def test_a_link_is_followed_and_a_special_file_is_written_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    write_atomic(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"
    write_atomic(Path("/dev/null"), "gone")
    assert Path("/dev/null").is_char_device()
    with pytest.raises(IsADirectoryError):
        write_atomic(tmp_path, "new")


def test_two_processes_may_write_one_path_at_once(tmp_path: Path) -> None:
    path = tmp_path / "file"
    other = (
        "import sys; from pathlib import Path; from norm_core.files.atomic_file import atomic_file\n"
        "with atomic_file(Path(sys.argv[1]), concurrent=True) as file: file.write(b'other')\n"
    )
    with atomic_file(path, concurrent=True) as file:
        file.write(b"mine, begun earlier")
        subprocess.run([sys.executable, "-c", other, str(path)], check=True)
        assert path.read_bytes() == b"other"
    assert path.read_bytes() == b"mine, begun earlier"
    assert names(tmp_path) == ["file"]


def test_a_bare_name_lies_in_the_users_calibration_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert resolve_artefact_path("lab") == tmp_path / "tactful" / "calibration" / "lab.json"
    assert resolve_artefact_path("lab.json") == Path("lab.json")
    assert resolve_artefact_path("here/lab") == Path("here/lab")


def test_an_artefact_is_written_where_no_folder_is_yet_and_refused_on_other_weights(tmp_path: Path) -> None:
    path = tmp_path / "calibration" / "lab.json"
    head = Artefact(kind="test", format=1, made_on="2026-11-23", made_with={"weights": "a"}, fitted_on={})
    write_artefact(head, path)

    assert load_artefact(Artefact, path, kind="test", format_=1, made_with={"weights": "a"}, remedy="refit") == head
    with pytest.raises(ConfigError, match="in weights; refit"):
        load_artefact(Artefact, path, kind="test", format_=1, made_with={"weights": "b"}, remedy="refit")
    with pytest.raises(ConfigError, match="Is a directory; name another file"):
        write_artefact(head, tmp_path)
