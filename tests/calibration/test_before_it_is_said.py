"""What the check of an utterance says of the robot's turns in encounters."""

import json
import shutil
from pathlib import Path

import pytest

from calibration.before_it_is_said import measure
from norm_core.files.data_files import shipped_file
from norm_core.runtime.errors import TactfulError


def test_only_turns_whose_words_are_labelled_count_as_bad(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dialogues = shipped_file("calibration", "dialogues/unseen")
    shutil.copy(dialogues / "s_allotment.yaml", tmp_path)  # no error
    with pytest.raises(TactfulError, match="no robot turn of it has an error"):
        measure(tmp_path)
    shutil.copy(dialogues / "s_alp_dairy.yaml", tmp_path)  # two errors of wording, one of timing
    measure(tmp_path)
    figures = json.loads(capsys.readouterr().out)
    assert (figures["read_by"], figures["turns"], figures["bad"]) == ("sentences", 14, 2)
    assert 0 < figures["caught"] <= figures["advised_against"]
    assert figures["caught_by_chance"] == pytest.approx(2 * figures["advised_against"] / 14, abs=0.05)
    assert figures["harmless_minutes"] > 0.5  # of the first alone
