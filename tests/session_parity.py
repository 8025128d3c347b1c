"""Compare what two replays of one session publish."""

from collections.abc import Iterable
from typing import Any

from norm_monitor.replay.node_driver import NodeOutput

# Fields in which two runs may differ: the time of an output, and the clock.
_FREE = {"stamp_ns", "decision_ns", "decided_ns", "frame_id", "state"}


def items(outputs: Iterable[NodeOutput]) -> dict[str, dict[str, Any]]:
    """Index the outputs that parity covers by stamp and content. Leaves out windows and flags that closed late."""
    found: dict[str, dict[str, Any]] = {}
    for output in outputs:
        message = output.message
        match output.topic:
            case "/tactful/windows" if not message["late"]:
                found[f"{message['end_ns']} window from {message['start_ns']}"] = message
            case "/tactful/utterances" if message["final"]:
                found[f"{message['start_ns']} utterance {message['utterance_id']}"] = message
            case "/tactful/flags" if not message["provenance"]["window_late"]:
                found[f"{message['onset_ns']} flag {message['event_id']}"] = message
            case "/tactful/answers":
                found[f"{message['stamp_ns']} answer to {message['query_id']}"] = message
    return {name: _without_times(found[name]) for name in sorted(found, key=_stamp_and_name)}


def _stamp_and_name(name: str) -> tuple[int, str]:
    return int(name.split(maxsplit=1)[0]), name


def _without_times(message: dict[str, Any]) -> dict[str, Any]:
    """Remove the fields in which two equal runs may differ."""
    plain = {name: value for name, value in message.items() if name not in _FREE}
    if "provenance" in plain:
        plain["provenance"] = {name: value for name, value in message["provenance"].items() if name != "latency"}
    return plain


def first_differing_output(first: Iterable[NodeOutput], second: Iterable[NodeOutput]) -> dict[str, Any] | None:
    """Find the earliest item in which two runs differ, and the difference. None means parity."""
    first_items, second_items = items(first), items(second)
    for name in sorted(first_items | second_items, key=_stamp_and_name):
        a, b = (found.get(name, {"item": "missing"}) for found in (first_items, second_items))
        if a != b:
            fields = sorted(field for field in a | b if a.get(field) != b.get(field))
            return {
                "item": name,
                "differs_in": fields,
                "first": {field: a.get(field) for field in fields},
                "second": {field: b.get(field) for field in fields},
            }
    return None
