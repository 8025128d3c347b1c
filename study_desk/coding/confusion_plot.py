"""Draw the confusion matrix of two coders as an SVG for a paper."""

import math
from html import escape

from study_desk.coding.agreement import Confusion
from study_desk.coding.reliability import NO_EVENT

_CELL, _LEFT, _TOP, _EDGE = 46, 260, 250, 16
_SLANT_DEG = 52  # of the column labels
_INK, _FAINT, _HUE = "#1c2430", "#67707c", (28, 92, 138)


def confusion_svg(confusion: Confusion) -> str:
    """Draw the matrix: first coder as rows, second as columns, shaded by the share of the row."""
    number = len(confusion.categories)
    columns = [
        (_LEFT + index * _CELL + _CELL // 2 + 4, name.replace("_", " "))
        for index, name in enumerate(confusion.categories)
    ]
    first, second = confusion.coders
    title = f"Events matched within {confusion.tolerance_s:g} s: {first} (rows), {second} (columns)"
    ends = [x + _length(name) * math.cos(math.radians(_SLANT_DEG)) for x, name in columns]
    width = math.ceil(max(_LEFT + number * _CELL, *ends, _EDGE + _length(title))) + _EDGE
    height = _TOP + number * _CELL + _EDGE
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" '
        'font-family="Helvetica, Arial, sans-serif" font-size="12">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="{_EDGE}" y="{_EDGE + 8}" fill="{_INK}">{escape(title)}</text>',
    ]
    for index, (x, name) in enumerate(columns):
        y = _TOP + index * _CELL + _CELL // 2 + 4
        shown, ink = escape(name), _FAINT if name == NO_EVENT else _INK
        parts.append(f'<text x="{_LEFT - 10}" y="{y}" text-anchor="end" fill="{ink}">{shown}</text>')
        parts.append(f'<text transform="translate({x} {_TOP - 10}) rotate(-{_SLANT_DEG})" fill="{ink}">{shown}</text>')
    for row, counts in enumerate(confusion.counts):
        total = sum(counts)
        for column, count in enumerate(counts):
            share = count / total if total else 0.0
            x, y = _LEFT + column * _CELL, _TOP + row * _CELL
            parts.append(
                f'<rect x="{x}" y="{y}" width="{_CELL - 2}" height="{_CELL - 2}" rx="2" fill="{_shade(share)}"/>'
            )
            if count:
                ink = "#ffffff" if share > 0.5 else _INK
                parts.append(
                    f'<text x="{x + _CELL // 2 - 1}" y="{y + _CELL // 2 + 4}" text-anchor="middle" fill="{ink}">'
                    f"{count}</text>"
                )
    return "\n".join([*parts, "</svg>", ""])


def _length(text: str) -> float:
    """Estimate the maximal text width in pixels, because the viewer's font is unknown."""
    return sum(7.2 if ord(character) < 0x2E80 else 12.5 for character in text)


def _shade(share: float) -> str:
    if not share:
        return "#f3f5f7"
    strength = 0.12 + 0.88 * share
    return "#" + "".join(f"{round(255 - (255 - channel) * strength):02x}" for channel in _HUE)
