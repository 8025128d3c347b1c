"""Draw how well each offset is supported, as one SVG, readable on light and dark backgrounds."""

from collections.abc import Mapping
from html import escape

from calibration.sensors.alignment import LAGS_MS, LARGEST_MS, Alignment, Method

_WIDE, _HIGH, _LEFT, _TOP = 480, 140, 50, 46
# A voice rises over a tenth of a second, so its steepest place lies later than its beginning.
_CURVES = {Method.SPEECH: "rise of the sound; band: where the rises begin"}
_STYLE = """
  svg { background: #ffffff; color: #1a1a1a; font: 12px sans-serif; --mark: #1f5fa8; --faint: #9a9a9a; }
  @media (prefers-color-scheme: dark) {
    svg { background: #16181c; color: #ececec; --mark: #7db4f0; --faint: #6a6d72; }
  }
  text { fill: currentColor; } .axis { stroke: currentColor; fill: none; }
  .curve { stroke: var(--mark); fill: none; stroke-width: 1.5; }
  .chance { stroke: var(--faint); stroke-dasharray: 4 3; } .told { stroke: var(--mark); opacity: 0.25; }
"""


def drawn(offsets: Mapping[Method, Alignment]) -> str:
    """Draw a panel for each method: support by offset, what chance reaches, and the offset told."""
    panels = [_panel(name, one, _TOP + number * (_HIGH + 80)) for number, (name, one) in enumerate(offsets.items())]
    height = _TOP + len(panels) * (_HIGH + 80)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDE + 2 * _LEFT} {height}" role="img">\n'
        f"<title>offsets from the microphone</title>\n<style>{_STYLE}</style>\n" + "\n".join(panels) + "\n</svg>\n"
    )


def _panel(name: Method, one: Alignment, top: int) -> str:
    told = "cannot tell" if one.offset_ms is None else f"{one.offset_ms:+.0f} ± {one.uncertainty_ms:.0f} ms"
    parts = [
        f'<text x="{_LEFT}" y="{top - 12}">{escape(name)}: {told}</text>',
        f'<rect class="axis" x="{_LEFT}" y="{top}" width="{_WIDE}" height="{_HIGH}"/>',
        *(
            f'<text x="{_x(ms):.0f}" y="{top + _HIGH + 16}" text-anchor="middle">{ms}</text>'
            for ms in range(-LARGEST_MS, LARGEST_MS + 1, 200)
        ),
        f'<text x="{_LEFT + _WIDE / 2:.0f}" y="{top + _HIGH + 34}" text-anchor="middle">'
        f"offset in ms; line: {_CURVES.get(name, 'events that agree')}; dashed: by chance</text>",
    ]
    if one.support:
        most = max(*one.support, one.by_chance) or 1.0

        def y(value: float) -> float:
            return top + _HIGH - max(0.0, value) / most * (_HIGH - 8)

        points = " ".join(
            f"{_x(ms):.1f},{y(value):.1f}" for ms, value in zip(LAGS_MS.tolist(), one.support, strict=True)
        )
        parts.append(f'<polyline class="curve" points="{points}"/>')
        chance = y(one.by_chance)
        parts.append(f'<line class="chance" x1="{_LEFT}" y1="{chance:.1f}" x2="{_LEFT + _WIDE}" y2="{chance:.1f}"/>')
    if one.offset_ms is not None:
        wide = 2 * (one.uncertainty_ms or 0) * _WIDE / (2 * LARGEST_MS)
        x = _x(one.offset_ms)
        parts.append(
            f'<line class="told" x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{top + _HIGH}" stroke-width="{wide:.1f}"/>'
        )
    return "\n".join(parts)


def _x(lag_ms: float) -> float:
    return _LEFT + (lag_ms + LARGEST_MS) / (2 * LARGEST_MS) * _WIDE
