"""The plots of the results pages as SVG, from the figures that pages share."""

from collections.abc import Iterator
from html import escape
from math import ceil
from typing import Any

WIDTH = 820
_LEFT, _ROW, _COLORS = 330, 40, ("#c27803", "#2563a8", "#7d8590", "#3a7d4a", "#b4483a", "#8250a0")
_STYLE = (
    'text { font-family: "Helvetica Neue", Arial, "DejaVu Sans", sans-serif; font-size: 14px; fill: #1b1f24; }'
    " .title { font-weight: bold; } .end { text-anchor: end; } .tick { text-anchor: middle; }"
    " .axis { stroke: #d0d7de; } .bar { fill: #9dbde5; } .span { stroke: #1b1f24; stroke-width: 2; }"
    " .control { stroke: #b4483a; stroke-width: 3; }"
)
_STEPS = (0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500)  # between two ticks
_SENSITIVITIES = ("_quiet", "", "_keen")  # the one that is set by default has no ending


def plot(content: dict[str, Any], runs: dict[str, Any]) -> str:
    """Draw bars with controls and rivals, and intervals if each has one, or a line for each run."""
    body = list(_lines(content, runs) if "lines" in content else _bars(content, runs))
    rows = len(content.get("bars", ())) + ("control" in content) + ("rival" in content)
    height = 400 if "lines" in content else 60 + _ROW * (rows + 1)
    title = escape(content["title"])
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="title">'
    frame = f'<rect x="1" y="1" width="{WIDTH - 2}" height="{height - 2}" rx="10" fill="#ffffff" stroke="#d0d7de"/>'
    heading = f'<text class="title" x="20" y="30">{title}</text>'
    return "\n".join(
        (head, f'<title id="title">{title}</title>', f"<style>{_STYLE}</style>", frame, heading, *body, "</svg>\n")
    )


def _bars(content: dict[str, Any], runs: dict[str, Any]) -> Iterator[str]:
    def find(place: str) -> dict[str, float]:
        run, _, name = place.partition(".")
        return dict(runs[run]["figures"][name])

    figures = [find(place) for place in content["bars"].values()]
    rivals = {label: find(place)["value"] for label, place in content.get("rivals", {}).items()}
    ends = [figure.get(end, 0) for figure in figures for end in ("value", "high", "control")]
    most = max(*ends, *rivals.values())
    step = next(step for step in _STEPS if most <= 5 * step)
    last = ceil(most / step)
    scale, bottom = (WIDTH - _LEFT - 70) / (step * last), 50 + _ROW * len(figures)
    for tick in (step * count for count in range(last + 1)):
        yield f'<path class="axis" d="M{_LEFT + tick * scale:.1f},44 V{bottom}"/>'
        yield f'<text class="tick" x="{_LEFT + tick * scale:.1f}" y="{bottom + 18}">{tick:g}</text>'
    has_intervals = all("low" in figure for figure in figures)
    for index, (label, figure) in enumerate(zip(content["bars"], figures, strict=True)):
        top, value = 50 + _ROW * index, figure["value"]
        yield f'<text class="end" x="{_LEFT - 12}" y="{top + 17}">{escape(label)}</text>'
        yield f'<rect class="bar" x="{_LEFT}" y="{top}" width="{value * scale:.1f}" height="24"/>'
        right = _LEFT + value * scale
        if has_intervals:
            low, right = (_LEFT + figure[end] * scale for end in ("low", "high"))
            yield f'<path class="span" d="M{low:.1f},{top + 12} H{right:.1f}"/>'
        if "control" in figure:
            control = _LEFT + figure["control"] * scale
            right = _clear(right, control)
            yield f'<path class="control" d="M{control:.1f},{top - 4} v32"/>'
        if label in rivals:
            rival = _LEFT + rivals[label] * scale
            right = _clear(right, rival + 6)
            yield _diamond(rival, top + 12)
        yield f'<text x="{right + 8:.1f}" y="{top + 17}">{value:{".0f" if value >= 10 else "g"}}</text>'
    top = bottom + _ROW
    if "control" in content:
        yield f'<path class="control" d="M{_LEFT},{top} v24"/>'
        yield f'<text x="{_LEFT + 14}" y="{top + 17}">{escape(content["control"])}</text>'
        top += _ROW
    if "rival" in content:
        yield _diamond(_LEFT, top + 12)
        yield f'<text x="{_LEFT + 14}" y="{top + 17}">{escape(content["rival"])}</text>'


def _clear(right: float, mark: float) -> float:
    """Return where a number may begin that a mark would cross at `right`."""
    return mark if right - 8 < mark < right + 42 else right


def _diamond(x: float, y: float) -> str:
    return f'<path fill="#1b1f24" d="M{x - 8:.1f},{y} l8,-8 l8,8 l-8,8 z"/>'


def _lines(content: dict[str, Any], runs: dict[str, Any]) -> Iterator[str]:
    """Draw recall in percent against false errors an hour."""
    rates = [
        float(figure["value"])
        for run in content["lines"].values()
        for name, figure in runs[run]["figures"].items()
        if name.removeprefix("false_an_hour") in _SENSITIVITIES
    ]
    step = 5 if max(rates) <= 20 else 10
    last = step * ceil(max(rates) / step)

    def place(rate: float) -> float:
        return 70 + 450 * rate / last

    for share in range(0, 101, 25):
        yield f'<path class="axis" d="M70,{_y(share):.0f} H{place(last):.0f}"/>'
        yield f'<text class="end" x="62" y="{_y(share) + 5:.0f}">{share}</text>'
    for rate in range(0, last + 1, step):
        yield f'<text class="tick" x="{place(rate):.0f}" y="{_y(0) + 22:.0f}">{rate}</text>'
    yield f'<text x="70" y="{_y(0) + 44:.0f}">{escape(content["x"])}</text>'
    yield f'<text x="20" y="54">{escape(content["y"])}</text>'
    for index, (label, run) in enumerate(content["lines"].items()):
        figures, color = runs[run]["figures"], _COLORS[index]
        points = [
            (place(figures[f"false_an_hour{ending}"]["value"]), _y(figures[f"errors_recall{ending}"]["value"]))
            for ending in _SENSITIVITIES
            if f"false_an_hour{ending}" in figures
        ]
        path = " L".join(f"{x:.1f},{y:.1f}" for x, y in points)
        yield f'<path d="M{path}" fill="none" stroke="{color}" stroke-width="2"/>'
        for place_of, (x, y) in enumerate(points):
            if place_of == 1 or len(points) == 1:  # balanced
                yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="9" fill="none" stroke="{color}" stroke-width="2"/>'
            yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{color}"/>'
        yield f'<circle cx="545" cy="{75 + 26 * index}" r="5" fill="{color}"/>'
        yield f'<text x="558" y="{80 + 26 * index}">{escape(label)}</text>'


def _y(share: float) -> float:
    return 340 - 2.7 * share
