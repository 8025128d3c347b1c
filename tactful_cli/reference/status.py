"""What a node's status can hold, from the tables in the code: its counters, and the faults of the camera."""

from norm_core.runtime.counters import MEANINGS
from norm_monitor.senses.camera.faults import ADVICE

COUNTERS = """# Status counters

Made from the code by `python -m tactful_cli.reference`; do not edit it by hand.

Each node publishes its status on `/tactful/status` and `/diagnostics` once a second. [Troubleshooting](LINES) explains
its lines. A counter starts at 0 when the node is configured. `*` stands for a family.

| counter | what it counts |
|---|---|
""".replace("LINES", "../troubleshooting.md#by-status-line")

CAMERA_FAULTS = """
## Camera

A line about the camera begins with its topic. A counter of the given name counts how often it happened.

| counter | cause | remedy |
|---|---|---|
"""


def page() -> str:
    """Give the page of counters and of the camera's faults as Markdown."""
    counters = (f"| `{name}` | {meaning} |\n" for name, meaning in sorted(MEANINGS.items()))
    faults = (f"| `{fault}` | {advice.problem} | {advice.remedy} |\n" for fault, advice in ADVICE.items())
    return "".join((COUNTERS, *counters, CAMERA_FAULTS, *faults))
