"""What is written of people is readable by its owner alone, whatever the umask allows."""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import pytest

from norm_core.bags.writer import BagWriter
from norm_core.runtime.time import WallClock
from norm_monitor.session_log.schema import SessionInfo
from norm_monitor.session_log.writer import StudyLog

WRITERS: dict[str, Callable[[Path], object]] = {
    "bag": lambda path: BagWriter(path).close(),
    "study log": lambda path: StudyLog.begin(path, SessionInfo(study="s", session="S1"), WallClock()).close(),
}


@pytest.mark.parametrize("kind", WRITERS)
def test_nobody_else_may_read_it(tmp_path: Path, kind: str) -> None:
    before = os.umask(0)
    try:
        WRITERS[kind](tmp_path / "new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700  # which closes all that is in it


def test_a_bag_is_written_where_modes_cannot_be_set(tmp_path: Path) -> None:
    with patch.object(Path, "chmod", side_effect=PermissionError(1, "Operation not permitted")):  # as on FAT
        BagWriter(tmp_path / "bag").close()
    assert (tmp_path / "bag/metadata.yaml").is_file()
