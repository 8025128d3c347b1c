"""Figures that pages share: docs/results/figures.yaml holds each once, and pages and plots take it from there."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from norm_core.files.atomic_file import write_atomic
from norm_core.runtime.errors import TactfulError
from tactful_cli.extras import ROOT

FILE = ROOT / "docs/results/figures.yaml"
_NUMBER = r"-?\d+(?:\.\d+)?"
# A page shows no comment: "<!--temi.errors_f1-->**32** [26, 37]", "<!--temi.errors_f1.control-->14".
_MARKED = re.compile(
    rf"(?P<mark><!--(?P<run>[a-z]\w*)\.(?P<name>\w+)(?P<control>\.control)?-->)"
    rf"(?:(?P<bold>\**)(?P<value>{_NUMBER})(?P=bold)(?P<span> \[{_NUMBER}, {_NUMBER}\])?)?"
)


def load() -> dict[str, Any]:
    """Return the runs, each with its date, commit, command and figures, and the plots."""
    shared: dict[str, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return shared


def fill(text: str, runs: dict[str, Any]) -> str:
    """Write the value of each marked figure with as many decimals as the page gives it."""

    def state(match: re.Match[str]) -> str:
        figure = runs.get(match["run"], {}).get("figures", {}).get(match["name"])
        if figure is None or match["value"] is None:
            raise TactfulError(f"{match['mark']}: names no figure, or no number follows; see {FILE.name}")
        decimals = len(match["value"].partition(".")[2])
        value = figure["control" if match["control"] else "value"]
        span = f" [{figure['low']:.{decimals}f}, {figure['high']:.{decimals}f}]" if match["span"] else ""
        return f"{match['mark']}{match['bold']}{value:.{decimals}f}{match['bold']}{span}"

    return _MARKED.sub(state, text)


def take_over(run_name: str, output: Path) -> None:
    """Replace a run's figures by those that its command wrote as JSON."""
    shared = load()
    if run_name not in shared["runs"]:
        raise TactfulError(f"{run_name}: no such run; {FILE.name} has {', '.join(shared['runs'])}")
    run = shared["runs"][run_name]
    document = json.loads(output.read_text(encoding="utf-8"))
    if "within" in run:
        document = look_up(document, run["within"])
    for figure in run["figures"].values():
        if "key" in figure:
            figure["value"] = _round(look_up(document, figure["key"]))
        if "key" in figure and "low" in figure:
            interval = look_up(document, figure.get("interval_key", f"{figure['key']}_interval"))
            ends = (interval["low"], interval["high"]) if isinstance(interval, dict) else interval
            figure["low"], figure["high"] = map(_round, ends)
        if "control_key" in figure:
            figure["control"] = _round(look_up(document, figure["control_key"]))
    run["date"] = datetime.now(UTC).date()
    write_atomic(FILE, yaml.safe_dump(shared, default_flow_style=None, sort_keys=False, allow_unicode=True, width=120))


def _round(value: float) -> float:
    return float(f"{value:.4g}")


def look_up(document: Any, key: str) -> Any:
    """Follow a key such as "rows/part.language=en/scores/errors/f1"; a part with "=" picks the item of a list."""
    for part in key.split("/"):
        path, is_choice, wanted = part.partition("=")
        if is_choice:
            document = [item for item in document if str(look_up(item, path.replace(".", "/"))) == wanted]
        else:
            items = document if isinstance(document, list) else [document]
            if len(items) != 1 or not isinstance(items[0], dict) or path not in items[0]:
                raise TactfulError(f"{key}: no single {path} in the output; correct the key in {FILE.name}")
            document = items[0][path]
    return document
