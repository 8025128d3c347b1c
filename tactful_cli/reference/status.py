"""The status reference: every issue and counter that a node's status can hold, from the tables in the code."""

from collections.abc import Iterator

from norm_core.runtime.counters import MEANINGS
from norm_core.runtime.issues import ISSUES
from norm_monitor.senses.camera.faults import ADVICE

HEAD = """# Status lines and counters

Made from the code by `./tactful api`; do not edit it by hand.

Each node publishes its status on `/tactful/status` and `/diagnostics` once a second. The status holds lines, each
about one issue, and counters. A line names the thing, the problem and the remedy.
"""


def page() -> str:
    """Give the page as Markdown."""
    return HEAD + "".join(f"{line}\n" for line in (*_issues(), *_camera_issues(), *_counters()))


def _issues() -> Iterator[str]:
    yield from ("", "## Lines", "", "| line | meaning | remedy |", "|---|---|---|")
    for issue in ISSUES.values():
        yield f"| {issue.line} | {issue.meaning} | {issue.remedy} |"


def _camera_issues() -> Iterator[str]:
    yield from ("", "## Lines about a camera's topic", "", "Each begins with the topic. The counter has its own name.")
    yield from ("", "| counter | problem | remedy |", "|---|---|---|")
    for fault, advice in ADVICE.items():
        yield f"| `{fault.value}` | {advice.problem} | {advice.remedy} |"


def _counters() -> Iterator[str]:
    yield from ("", "## Counters", "", "A counter starts at 0 when the node is configured. `*` stands for a family.")
    yield from ("", "| counter | what it counts |", "|---|---|")
    for name, meaning in sorted(MEANINGS.items()):
        yield f"| `{name}` | {meaning} |"
