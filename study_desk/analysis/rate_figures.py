"""Draw rates with their intervals as SVG, in black alone, for a screen and for print."""

import math
from collections.abc import Callable, Iterable, Sequence
from html import escape

from norm_core.records.record import record
from study_desk.analysis.event_rates import PER_MINUTES, EventRate

_WIDTH, _LEFT, _RIGHT, _ROW, _GAP, _TOP, _FOOT = 760, 190, 24, 22, 10, 8, 46
_EDGE, _SINGLE = 4, 10  # below a rate, those of single units
_INK, _RULE, _FONT = "#000", "#bbb", "Helvetica, Arial, sans-serif"
_LONGEST = 4  # most length of the axis, in highest rates
_GLYPH = 6.4  # widest mean width of a character at 12 pixels


@record
class RateBar:
    """One line of a figure: a rate, its mark, and the rates of single units."""

    label: str
    rate: EventRate
    mark: int = 0
    single: tuple[float, ...] = ()


def rate_figure(title: str, groups: Sequence[tuple[str, Sequence[RateBar]]]) -> str:
    """Draw groups of rates on one axis. An interval that is far longer than the rates ends in an arrow."""
    every = [bar for _, bars in groups for bar in bars]
    shown = max((value for bar in every for value in (bar.rate.rate, *bar.single)), default=0.0)
    highest = max((bar.rate.high for bar in every), default=1.0)
    highest = max(shown, min(highest, _LONGEST * shown)) if shown else highest
    step = _step(highest)
    end = step * math.ceil(highest / step)
    plot = _WIDTH - _LEFT - _RIGHT

    def x(value: float) -> float:
        return round(_LEFT + plot * min(value, end) / end, 2)

    y, rows = _TOP, []
    for name, bars in groups:
        y += _ROW
        rows.append(f'<text x="{_EDGE}" y="{y - 6}" font-weight="bold">{escape(name)}</text>')
        for bar in bars:
            rows += _bar(bar, y + _ROW / 2, x, is_cut=bar.rate.high > end)
            y += _ROW + (_SINGLE if bar.single else 0)
        y += _GAP
    height = y + _FOOT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'font-family="{_FONT}" font-size="12" fill="{_INK}">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>',
    ]
    for number in range(round(end / step) + 1):
        at = x(number * step)
        parts.append(f'<path d="M{at} {_TOP + _ROW}V{y}" stroke="{_RULE}" stroke-width="0.7"/>')
        parts.append(_text(at, y + 16, f"{number * step:g}", anchor="middle"))
    parts.append(f'<path d="M{x(0)} {y}H{x(end)}" stroke="{_INK}"/>')
    parts.append(_text((x(0) + x(end)) / 2, y + 36, f"events per {PER_MINUTES} minutes", anchor="middle"))
    return "\n".join([*parts, *rows, "</svg>", ""])


def _bar(bar: RateBar, y: float, x: Callable[[float], float], *, is_cut: bool) -> Iterable[str]:
    low, high = x(bar.rate.low), x(bar.rate.high)
    yield _text(_LEFT - 12, y + 4, _short(bar.label), anchor="end")
    for value in bar.single:
        yield f'<circle cx="{x(value)}" cy="{y + _SINGLE}" r="2.6" fill="none" stroke="{_INK}" stroke-width="0.7"/>'
    line = f"M{low} {y}H{high}M{low} {y - 4}v8" + (f"M{high - 6} {y - 4}l6 4l-6 4" if is_cut else f"M{high} {y - 4}v8")
    yield f'<path d="{line}" stroke="{_INK}" stroke-width="1.4" fill="none"/>'
    yield _mark(bar.mark, x(bar.rate.rate), y)


def _mark(mark: int, x: float, y: float) -> str:
    shapes = (
        f'<circle cx="{x}" cy="{y}" r="4.5"',
        f'<rect x="{x - 4.2}" y="{y - 4.2}" width="8.4" height="8.4"',
        f'<path d="M{x} {y - 5.5}l5.2 9h-10.4z"',
        f'<path d="M{x} {y - 5.6}l5.6 5.6l-5.6 5.6l-5.6 -5.6z"',
    )
    fill = "#fff" if (mark // len(shapes) + mark) % 2 else _INK  # shapes come filled and hollow in turn
    return f'{shapes[mark % len(shapes)]} fill="{fill}" stroke="{_INK}" stroke-width="1.4"/>'


def _text(x: float, y: float, text: str, *, anchor: str) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>'


def _short(text: str) -> str:
    most = int((_LEFT - 24) / _GLYPH)
    return text if len(text) <= most else text[: most - 1] + "…"


def _step(highest: float) -> float:
    """Choose a round step that gives about five ticks."""
    power = 10 ** math.floor(math.log10(highest / 5)) if highest > 0 else 1
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor * 6 >= highest)
