"""Draw false errors an hour against recall for all thresholds of a fit, readable on light and dark backgrounds."""

from calibration.threshold_fit import MeasuredBars, ThresholdFit

_SIDE, _LEFT, _TOP, _WIDTH, _HEIGHT = 320, 70, 40, 430, 430
_STYLE = """
  svg { background: #ffffff; color: #1a1a1a; font: 12px sans-serif; --mark: #1f5fa8; --faint: #c9c9c9; }
  @media (prefers-color-scheme: dark) {
    svg { background: #16181c; color: #ececec; --mark: #7db4f0; --faint: #4a4d52; }
  }
  text { fill: currentColor; } .axis { stroke: currentColor; fill: none; }
  .path { stroke: var(--mark); fill: none; stroke-width: 2; } .target { stroke: var(--faint); stroke-dasharray: 4 3; }
  .chosen { fill: var(--mark); } .before { fill: none; stroke: currentColor; stroke-width: 2; }
"""


def draw_thresholds(fit: ThresholdFit) -> str:
    """Draw the path with the chosen thresholds, those before, and the target where it is a rate."""
    shown = [one for one in (fit.before, fit.chosen) if one]
    most = max([1.0, 1.1 * (fit.target.false_errors_per_hour or 0.0), *(1.5 * _rate(one) for one in shown)])

    def place(one: MeasuredBars) -> tuple[float, float]:
        return _LEFT + _SIDE * _rate(one) / most, _TOP + _SIDE * (1 - one.recall)

    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(place, (one for one in fit.path if _rate(one) <= most)))
    parts = [
        f'<text x="{_LEFT}" y="24" font-size="15">Thresholds of a site: {fit.target}</text>',
        f'<rect class="axis" x="{_LEFT}" y="{_TOP}" width="{_SIDE}" height="{_SIDE}"/>',
        f'<polyline class="path" points="{line}"/>',
    ]
    if fit.target.false_errors_per_hour is not None:
        x = _LEFT + _SIDE * fit.target.false_errors_per_hour / most
        parts.append(f'<line class="target" x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{_TOP + _SIDE}"/>')
        parts.append(f'<text x="{x - 5:.1f}" y="{_TOP + 16}" text-anchor="end">target</text>')
    for name, one in (("before", fit.before), ("chosen", fit.chosen)):
        if one:
            x, y = place(one)
            parts.append(f'<circle class="{name}" cx="{x:.1f}" cy="{y:.1f}" r="5"><title>{name}</title></circle>')
            parts.append(f'<text x="{x + 9:.1f}" y="{y - 6:.1f}">{name}</text>')
    below = _TOP + _SIDE + 16
    parts += [
        f'<text x="{_LEFT}" y="{below}">0</text>',
        f'<text x="{_LEFT + _SIDE}" y="{below}" text-anchor="end">{most:.3g}</text>',
        f'<text x="{_LEFT + _SIDE / 2}" y="{below + 18}" text-anchor="middle">false errors an hour</text>',
        f'<text x="{_LEFT - 8}" y="{_TOP + 10}" text-anchor="end">1</text>',
        f'<text x="{_LEFT - 8}" y="{_TOP + _SIDE}" text-anchor="end">0</text>',
        f'<text x="{_LEFT - 8}" y="{_TOP + _SIDE / 2}" text-anchor="end">recall</text>',
    ]
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">\n'
        f"<title>False errors an hour against recall</title>\n<style>{_STYLE}</style>\n{body}\n</svg>\n"
    )


def _rate(one: MeasuredBars) -> float:
    return one.false / one.hours
