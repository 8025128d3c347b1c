"""The confusion picture: who called what what, as an SVG for a paper."""

from html import escape

from norm_monitor.study.agreement import NOTHING, Confusion

_CELL, _LEFT, _TOP = 46, 250, 230
_INK, _FAINT, _HUE = "#1c2430", "#67707c", (28, 92, 138)


def confusion_svg(confusion: Confusion) -> str:
    """Rows are the first coder, columns the second; the shade goes with the share of its row."""
    number = len(confusion.categories)
    width, height = _LEFT + number * _CELL + 24, _TOP + number * _CELL + 40
    first, second = map(escape, confusion.coders)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="Confusion of {first} (rows) and {second} (columns)" '
        'font-family="Helvetica, Arial, sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="{_LEFT - 10}" y="{_TOP - 14}" text-anchor="end" fill="{_FAINT}">'
        f"rows: {first}; columns: {second}</text>",
    ]
    for index, name in enumerate(confusion.categories):
        middle = index * _CELL + _CELL // 2
        shown, ink = escape(name.replace("_", " ")), _FAINT if name == NOTHING else _INK
        parts.append(f'<text x="{_LEFT - 10}" y="{_TOP + middle + 4}" text-anchor="end" fill="{ink}">{shown}</text>')
        x, y = _LEFT + middle + 4, _TOP - 10
        parts.append(f'<text transform="translate({x} {y}) rotate(-52)" fill="{ink}">{shown}</text>')
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


def _shade(share: float) -> str:
    if not share:
        return "#f3f5f7"
    strength = 0.12 + 0.88 * share
    return "#" + "".join(f"{round(255 - (255 - channel) * strength):02x}" for channel in _HUE)
