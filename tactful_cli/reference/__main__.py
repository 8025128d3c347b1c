"""Write the generated pages in docs from the code, and shared figures into pages and plots.

Run: python -m tactful_cli.reference [RUN OUTPUT.json], with a run of docs/results/figures.yaml and its new output.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from norm_core.files.data_files import shipped_text
from norm_core.health.counters import MEANINGS
from norm_core.records.flag import Polarity
from norm_core.runtime.errors import TactfulError
from norm_monitor.assessment.threshold_table import Cue, Threshold, ThresholdTable
from norm_monitor.senses.camera.faults import ADVICE
from tactful_cli.extras import ROOT
from tactful_cli.reference.figures import fill, load, take_over
from tactful_cli.reference.plots import plot

# The prose of each page, and what each threshold means.
_TEXTS: dict[str, Any] = yaml.safe_load(shipped_text("tactful_cli.reference", "page_texts.yaml"))


def cues_page() -> str:
    """Generate the page from the shipped table."""
    table = ThresholdTable.shipped()
    return "\n".join((_TEXTS["cues"], f"The shipped table has version {table.version}.", *_tables(table))) + "\n"


def _tables(table: ThresholdTable) -> Iterator[str]:
    yield from ("", "## Errors", "", *_head("cue", "finds", "attributes", "severity"))
    for name, cue in table.cues.items():
        if cue.polarity is Polarity.ERROR:
            yield _row(f"`{name}`", cue.finds, _attributes(cue), _severity(cue))
    yield from ("", "## Competences", "", *_head("cue", "finds", "attributes"))
    for name, cue in table.cues.items():
        if cue.polarity is Polarity.COMPETENCE:
            yield _row(f"`{name}`", cue.finds, _attributes(cue))
    yield from ("", _TEXTS["thresholds"], *_head("cue", "threshold", "value", "meaning", "evidence"))
    for name, cue in table.cues.items():
        for key, threshold in cue.thresholds.items():
            evidence = f"{threshold.evidence}: {threshold.source}"
            yield _row(f"`{name}`", f"`{key}`", _value(threshold), _TEXTS["meanings"][key], evidence)


def _attributes(cue: Cue) -> str:
    return ", ".join(attribute.replace("_", " ") for attribute in cue.attributes)


def _severity(cue: Cue) -> str:
    """Show the severity, or the least and the greatest of a threshold's bands."""
    bands = [name for threshold in cue.thresholds.values() for name in threshold.bands]
    return f"{bands[0]} to {bands[-1]}" if len(bands) > 1 else cue.severity


def _value(threshold: Threshold) -> str:
    """Show the number with its unit and the values from which severity rises."""
    unit = f" {threshold.unit}" if threshold.unit else ""
    more = [f"{severity} from {least:g}{unit}" for severity, least in threshold.bands.items()]
    return "; ".join((f"{threshold.value:g}{unit}", *more))


def _head(*titles: str) -> tuple[str, str]:
    return _row(*titles), f"|{'---|' * len(titles)}"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def status_page() -> str:
    """Generate the page of counters and of the camera's faults."""
    faulty = {fault.value for fault in ADVICE}
    counters = (f"| `{name}` | {meaning} |\n" for name, meaning in sorted(MEANINGS.items()) if name not in faulty)
    faults = (f"| `{fault}` | {advice.problem} | {advice.remedy} |\n" for fault, advice in ADVICE.items())
    return "".join((_TEXTS["counters"], *counters, _TEXTS["camera_faults"], *faults))


def _generate(page: str) -> str:
    """Return the page of ROS parameters, or that of topics, services and actions."""
    command = [sys.executable, "-m", "norm_bench.reference_pages", page]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise TactfulError(f"page {page}: the nodes cannot be described: {done.stderr.strip()}; run ./tactful setup")
    return done.stdout


PAGES: Mapping[str, Callable[[], str]] = {
    "cues.md": cues_page,
    "parameters.md": partial(_generate, "parameters"),
    "ros_api.md": partial(_generate, "ros_api"),
    "status.md": status_page,
}

# These start nodes, and so need ROS.
ROS_PAGES = frozenset({"parameters.md", "ros_api.md"})


def figure_files() -> Iterator[tuple[Path, str]]:
    """Yield each page with shared figures and each plot, and what it has to hold."""
    shared = load()
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        yield page, fill(page.read_text(encoding="utf-8"), shared["runs"])
    for name, content in shared["plots"].items():
        yield ROOT / "docs/images/results" / name, plot(content, shared["runs"])


if __name__ == "__main__":
    if len(sys.argv) not in {1, 3}:
        sys.exit("Run: python -m tactful_cli.reference [RUN OUTPUT.json]")
    if len(sys.argv) == 3:
        try:
            take_over(sys.argv[1], Path(sys.argv[2]))
        except (TactfulError, OSError, ValueError) as error:
            sys.exit(f"tactful_cli.reference: {error}")
    for name, generate in PAGES.items():
        (ROOT / "docs/reference" / name).write_text(generate(), encoding="utf-8")
    for path, text in figure_files():
        path.write_text(text, encoding="utf-8")
