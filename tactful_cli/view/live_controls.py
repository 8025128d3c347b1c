"""Read the monitor's settings for the view, and change them for its viewers."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any

from norm_core.records.json_codec import to_plain
from norm_core.records.status import MonitorStatus
from study_desk.log.schema import Review
from study_desk.report.page_items import ms_since
from study_desk.view.timeline import SessionTimeline
from study_desk.view.view_server import prompt_text
from tactful_cli.graph_stream import GraphLine, GraphStream


class ChosenSettings:
    """Values by parameter. A value that somebody else changes is no longer a viewer's."""

    def __init__(self) -> None:
        self._instance = ""
        self._chosen: dict[str, Any] = {}
        self.lost: dict[str, Any] = {}

    def choose(self, name: str, value: Any) -> None:
        """Take that a viewer set a value."""
        self._chosen[name] = value
        self.lost.pop(name, None)

    def read(self, instance: str, values: Mapping[str, Any]) -> None:
        """Take the values of an instance of the monitor; another instance has lost those that differ."""
        if instance != self._instance:
            self._instance = instance
            self.lost |= self._chosen
        self._chosen = {name: value for name, value in self._chosen.items() if _equal(values.get(name), value)}
        self.lost = {name: value for name, value in self.lost.items() if not _equal(values.get(name), value)}

    def forget_lost(self) -> None:
        """Leave the monitor's own values."""
        self.lost = {}


def _equal(value: Any, other: Any) -> bool:
    return sorted(value or ()) == sorted(other) if isinstance(other, list) else bool(value == other)


SENSITIVITY, MUTED, LOG = "fusion.sensitivity", "fusion.muted", "study.log"
PROMPTS = "judge.prompts_folder"
NAMES = [SENSITIVITY, MUTED, LOG, PROMPTS]


class LiveControls:
    """The settings of the graph's monitor. The viewers' threads change them, one reads the stream."""

    def __init__(self, stream: GraphStream, timeline: SessionTimeline) -> None:
        self._stream, self._timeline = stream, timeline
        self._node = f"{stream.namespace}/monitor"
        self._known: tuple[str, str] | None = None
        self._instance, self._came_ns = "", 0  # of the monitor, with its first heartbeat
        self._values_of = ""  # the instance whose values are known
        self._chosen = ChosenSettings()
        self._values: dict[str, Any] = {}
        self._asked = 0
        self._changing = Lock()

    def take(self, line: GraphLine) -> None:
        """Take a heartbeat of the monitor, or what it replied about its settings."""
        if line.kind == "reply" and line.record.get("id") == self._asked:
            values = line.record.get("values")
            if values:
                self._values_of = self._instance
                self._take_values(values)
            else:
                self._known = None  # the next heartbeat asks again
        elif line.kind == "status" and line.record.get("node") == self._node:
            status: MonitorStatus = line.read()
            if status.instance_id != self._instance:
                self._instance, self._came_ns = status.instance_id, line.arrival_ns
            held = (status.instance_id, status.config_sha256)
            if held != self._known or not self._values:
                self._known = held
                self._ask()

    def set_sensitivity(self, name: str) -> str:
        """Set the sensitivity; return why it was not done, or nothing."""
        return self._set(SENSITIVITY, name)

    def set_muted(self, name: str, *, is_muted: bool) -> str:
        """Mute a cue or an attribute, or raise its flags again; return why it was not done, or nothing."""
        with self._changing:
            others = [each for each in self._values.get(MUTED, []) if each != name]
            return self._set(MUTED, [*others, name] if is_muted else others)

    def restore(self, *, is_wanted: bool) -> str:
        """Set again what a restart of the monitor lost, or let it go; return why it was not done, or nothing."""
        with self._changing:
            for name, value in dict(self._chosen.lost).items() if is_wanted else ():
                if problem := self._set(name, value):
                    return problem
            self._chosen.forget_lost()
            self._tell_lost()
        return ""

    def prompt(self, digest: str) -> str:
        """Return what the judge was asked, where the monitor keeps its prompts on this machine."""
        folder = self._values.get(PROMPTS)
        return prompt_text(Path(folder).expanduser(), digest) if folder else ""

    def review(self, review: Review) -> str:
        """Give a verdict to the monitor's study log; return why it was not recorded, or nothing."""
        return self._stream.ask({"review": to_plain(review)})

    def _set(self, name: str, value: Any) -> str:
        if not self._values:
            return "the monitor's settings are unknown; see its health"
        problem = self._stream.ask({"set": {name: value}})
        if not problem:
            self._chosen.choose(name, value)
            self._take_values({**self._values, name: value})
        return problem

    def _ask(self) -> None:
        with suppress(OSError):  # the process starts again, and the next heartbeat asks again
            self._asked = self._stream.send({"get": NAMES})

    def _take_values(self, values: dict[str, Any]) -> None:
        self._values = values
        self._chosen.read(self._values_of, values)
        self._tell_lost()
        self._timeline.set_state(
            "settings",
            {
                "instance": self._values_of,
                "sensitivity": values.get(SENSITIVITY),
                "muted": list(values.get(MUTED) or ()),
                "log": bool(values.get(LOG)),
                "prompts": bool(values.get(PROMPTS)),
            },
        )

    def _tell_lost(self) -> None:
        lost, muted = self._chosen.lost, set(self._values.get(MUTED) or ())
        wanted = set(lost.get(MUTED, muted))
        told = {
            "at": ms_since(self._timeline.start_ns, self._came_ns),
            "sensitivity": lost.get(SENSITIVITY, ""),
            "muted": sorted(wanted - muted),
            "unmuted": sorted(muted - wanted),
        }
        self._timeline.set_state("restart", told if lost else None)
