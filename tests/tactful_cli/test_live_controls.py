"""What the view's viewers set in a monitor, and what they are told after it started again."""

from typing import Any

import pytest

from norm_core.records.json_codec import to_plain
from norm_core.runtime.time import NS_PER_S
from study_desk.view.timeline import SessionTimeline
from tactful_cli.graph_stream import GraphLine
from tactful_cli.view.verb import LiveControls
from tests.node_records import node_status

START_NS = 1_700_000_000 * NS_PER_S
OWN = {"fusion.sensitivity": "balanced", "fusion.muted": ["greets"], "study.log": "", "judge.prompts_folder": ""}


class Monitor:
    """A monitor behind the stream of its graph: it takes what is set, and starts again with its own settings."""

    namespace = "/tactful"

    def __init__(self) -> None:
        self.timeline = SessionTimeline("/tactful", START_NS, keep_s=3600)
        self.controls = LiveControls(self, self.timeline)  # type: ignore[arg-type]
        self.problem, self.starts, self.asked = "", 0, 0
        self.start()

    def start(self) -> None:
        self.starts += 1
        self.values: dict[str, Any] = dict(OWN)
        self.beat()

    def beat(self, config: str = "") -> None:
        """Publish a heartbeat, and answer what it makes the view ask."""
        asked = self.asked
        status = node_status(
            START_NS, node="/tactful/monitor", instance_id=f"start {self.starts}", config_sha256=config
        )
        self._give("status", to_plain(status))
        if self.asked > asked:
            self._give("reply", {"id": self.asked, "values": dict(self.values)})

    def send(self, command: dict[str, Any]) -> int:
        self.asked += 1
        return self.asked

    def ask(self, command: dict[str, Any]) -> str:
        if not self.problem:
            self.values |= command["set"]
        return self.problem

    def told(self) -> Any:
        return self.timeline.changes()["state"].get("restart")

    def _give(self, kind: str, record: dict[str, Any]) -> None:
        arrival_ns = START_NS + 10 * self.starts * NS_PER_S
        self.controls.take(GraphLine(kind=kind, topic="", arrival_ns=arrival_ns, record=record))


@pytest.fixture
def monitor() -> Monitor:
    return Monitor()


def set_all(monitor: Monitor) -> None:
    monitor.controls.set_sensitivity("keen")
    monitor.controls.set_muted("monologue", is_muted=True)
    monitor.controls.set_muted("greets", is_muted=False)


def test_a_restart_tells_what_was_set_and_lost(monitor: Monitor) -> None:
    set_all(monitor)
    assert monitor.told() is None
    monitor.start()
    assert monitor.told() == {"at": 20_000, "sensitivity": "keen", "muted": ["monologue"], "unmuted": ["greets"]}


def test_what_was_lost_can_be_set_again(monitor: Monitor) -> None:
    set_all(monitor)
    monitor.start()
    assert monitor.controls.restore(is_wanted=True) == ""
    assert (monitor.values["fusion.sensitivity"], monitor.values["fusion.muted"]) == ("keen", ["monologue"])
    assert monitor.told() is None
    monitor.start()
    assert monitor.told()["sensitivity"] == "keen"


def test_what_somebody_else_changed_is_no_loss(monitor: Monitor) -> None:
    monitor.controls.set_sensitivity("keen")
    monitor.values["fusion.sensitivity"] = "quiet"
    monitor.beat(config="changed")
    monitor.start()
    assert monitor.told() is None
