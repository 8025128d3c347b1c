"""A generated conversation, heard and seen by the real nodes over DDS, against its known times."""

from pathlib import Path
from statistics import median

import pytest

from norm_core.records.presence import PresenceState
from norm_core.records.speech import Timing
from norm_monitor.senses.faces.finder import SHORT_RANGE, FaceWeightsMissingError, onnx_file
from tests.foreign_interfaces import environment
from tests.norm_nodes.conversation import FACE_S, build_bag, compared, play, truth


@pytest.mark.thorough
@pytest.mark.ros
def test_words_speakers_and_faces_are_found_at_their_times(
    mgonzs13: Path, domain_id: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        onnx_file(SHORT_RANGE)
    except FaceWeightsMissingError as error:
        pytest.skip(str(error))
    for name, value in environment(mgonzs13).items():
        monkeypatch.setenv(name, value)
    utterances, presences, _ = play(build_bag(tmp_path / "bag"), tmp_path, domain_id)
    assert [u.speaker.value for u in utterances] == [turn["speaker"] for turn in truth()]
    assert {u.timing for u in utterances} == {Timing.SOURCE}
    said = compared(utterances, presences)[: len(utterances)]
    assert median(abs(row["start_error_ms"]) for row in said) < 120
    assert median(abs(row["end_error_ms"]) for row in said) < 120
    states = [presence.state for presence in presences]
    assert states.count(PresenceState.PRESENT) == sum(round(left_s - came_s) for came_s, left_s in FACE_S)
    assert PresenceState.LEFT in states or PresenceState.LOST in states
