"""The end of the demo: flags against human labels, decisions, and the files written."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from norm_core.bags.writer import BagWriter
from norm_core.records.flag import Attribute, Polarity
from norm_core.records.json_codec import to_json
from norm_core.runtime.wording import count_of
from sim_replays.examples.demo_session import DemoSession
from sim_replays.monitor_bench.event_metrics import Alarm, EventSession, match_alarms
from tactful_cli.demo.view import MARKS, DemoView

TOLERANCE_S = 2.0


def summary(session: DemoSession, view: DemoView, end: Mapping[str, Any], took_s: float) -> dict[str, Any]:
    """Summarize the demo's result as plain JSON."""
    pairs = _pairs(session, view)
    right = {scene.choice.query.query_id: scene.choice.right for scene in session.scenes}
    return {
        "took_s": round(took_s, 1),
        "played_in_s": round(end["took_s"], 1),
        "marked": len(session.truth.events),
        "flagged": len(view.flags),
        "found": len(pairs),
        "choices": len(right),
        "choices_right": sum(
            d.chosen_index is not None and d.chosen_index == right.get(d.query_id) for d in view.decisions
        ),
        "window_digests": [window.sha256 for window in view.windows],
        "windows_late": sum(window.late for window in view.windows),
        "dropped": view.dropped(),
        "lost": end["lost"],
    }


def show(session: DemoSession, view: DemoView, told: Mapping[str, Any], console: Console) -> None:
    """Print the summary for a person."""
    console.print()
    console.print(_table(session, view))
    console.print(
        f"{told['found']} of {told['marked']} marked events were flagged (same polarity, a shared attribute, within "
        f"{TOLERANCE_S:.0f} s); {told['flagged'] - told['found']} flags met none of them. "
        "Two encounters measure nothing: docs/results/monitor.md has the figures of many."
    )
    console.print(f"{told['choices_right']} of {told['choices']} choices are those that their author holds for right.")
    lost = sum(told["lost"].values()) + told["dropped"]
    late = f", {count_of(told['windows_late'], 'late window')}" if told["windows_late"] else ""
    console.print(f"{view.counts()}{late}{'; the machine was too slow for its rate' if lost else ''}", style="dim")


def write(folder: Path, session: DemoSession, view: DemoView, said: Sequence[tuple[int, str, Any]]) -> dict[str, Path]:
    """Write the nodes' output as a bag and as JSON lines. Returns each file by its content."""
    files = {
        "session": session.bag,
        "labels": session.bag.with_name(f"{session.bag.name}.truth.json"),
        "said by the nodes": folder / "said",
        "flags": folder / "flags.jsonl",
        "decisions": folder / "decisions.jsonl",
    }
    with BagWriter(files["said by the nodes"]) as bag:
        for at_ns, topic, record in sorted(said, key=lambda entry: entry[0]):
            bag.write(topic, record, at_ns)
    flags = sorted((seen.flag for seen in view.flags.values()), key=lambda flag: flag.onset_ns)
    for name, records in (("flags", flags), ("decisions", view.decisions)):
        lines = "".join(f"{to_json(one)}\n" for one in records)
        files[name].write_text(lines, encoding="utf-8")
    return files


def _pairs(session: DemoSession, view: DemoView) -> dict[int, int]:
    alarms = tuple(Alarm.of(seen.flag, seen.known_ns) for seen in view.flags.values())
    return dict(match_alarms(EventSession(truth=session.truth, alarms=alarms), TOLERANCE_S))


def _table(session: DemoSession, view: DemoView) -> Table:
    pairs, seen = _pairs(session, view), list(view.flags.values())
    rows: list[tuple[int, Text, Text]] = []
    for place, event in enumerate(session.truth.events):
        flag = seen[pairs[place]].flag if place in pairs else None
        found = _about(flag.polarity, flag.attributes) if flag else Text("–", "dim")
        rows.append((event.onset_ns, _about(event.polarity, event.attributes, event.rationale), found))
    for place, one in enumerate(seen):
        if place not in pairs.values():
            rows.append((one.flag.onset_ns, Text("–", "dim"), _about(one.flag.polarity, one.flag.attributes)))
    table = Table("", "marked beforehand", "flagged", box=None, padding=(0, 2, 0, 0), title_justify="left")
    for onset_ns, marked, flagged in sorted(rows, key=lambda row: row[0]):
        table.add_row(Text(view.clock(onset_ns), "dim"), marked, flagged)
    return table


def _about(polarity: Polarity, attributes: Sequence[Attribute], rationale: str = "") -> Text:
    mark, colour = MARKS[polarity]
    about = ", ".join(attribute.replace("_", " ") for attribute in attributes)
    return Text.assemble((f"{mark} {about}", colour), (f"\n{rationale}" if rationale else "", "dim"))
