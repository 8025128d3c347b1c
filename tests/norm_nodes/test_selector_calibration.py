"""The selector's node loads a calibration: its published probabilities change, and another encoder's is refused."""

from pathlib import Path

import pytest

from norm_core.records.decision import Decision
from sim_replays.drivers.node_process import NodeProcess, NodeProcessError
from tests.action_selector.calibrations import written
from tests.norm_nodes.test_selector import ask, ready
from tests.observer import Observer

pytestmark = pytest.mark.ros


def published(observer: Observer, domain_id: int, calibration: str) -> Decision:
    with ready({"when_unsure": "best_effort", "calibration": calibration}, domain_id):
        return ask(observer, query_id="q", candidates=["Lay the table.", "Sing a song."])[0]


def test_published_probabilities_change_with_the_calibration(
    domain_id: int, observer: Observer, tmp_path: Path
) -> None:
    plain = published(observer, domain_id, "")
    calibrated = published(observer, domain_id, str(written(tmp_path / "site.json")))
    assert calibrated.chosen == plain.chosen
    highest = [max(one.probability for one in decision.candidates) for decision in (plain, calibrated)]
    assert 0.5 < highest[1] < highest[0]
    assert calibrated.provenance.config_sha256 != plain.provenance.config_sha256


def test_a_calibration_of_another_encoder_ends_the_node_at_its_start(domain_id: int, tmp_path: Path) -> None:
    path = written(tmp_path / "site.json", other={"encoder": "12"})
    process = NodeProcess(["selector"], {"selector": {"calibration": str(path)}}, domain_id)
    with pytest.raises(NodeProcessError, match="differs from what runs here in encoder; fit it anew"), process:
        pass
