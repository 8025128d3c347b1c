"""Measure the calibration of a run's raw answers, and draw it as one SVG, readable on light and dark backgrounds."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from html import escape

from norm_core.evaluation.probabilities import Bin, expected_calibration_error, reliability_bins
from norm_core.evaluation.risk_coverage import RiskCoverage
from norm_core.records.outcome import Outcome
from norm_core.records.record import record
from norm_core.runtime.wording import count_of
from sim_replays.runs.results.run_folder import Run

SIDE, LEFT, TOP, BELOW, RIGHT = 200, 130, 60, 90, 20
WIDE, HIGH, ACROSS = LEFT + SIDE + RIGHT, TOP + SIDE + BELOW, 4
Panel = Callable[[int, int], str]
_STYLE = """
  svg { background: #ffffff; color: #1a1a1a; font: 12px sans-serif; --mark: #1f5fa8; --faint: #c9c9c9; }
  @media (prefers-color-scheme: dark) {
    svg { background: #16181c; color: #ececec; --mark: #7db4f0; --faint: #4a4d52; }
  }
  text { fill: currentColor; } .axis { stroke: currentColor; fill: none; } .ideal { stroke: var(--faint); }
  .line { stroke: var(--mark); stroke-width: 2; fill: none; }
  .bar { fill: var(--mark); }
"""


@record
class CalibrationFigures:
    """One task's figures. `error` is the expected calibration error in percent, over answers with probabilities."""

    task: str
    count: int
    error: float
    bins: tuple[Bin, ...]


def measure_calibration(run: Run) -> list[CalibrationFigures]:
    """Measure each task: a single choice's probability against correctness, or that of each member of a set."""
    targets = {target.key: target for target in run.key.targets}
    pairs: dict[str, list[tuple[float, bool]]] = {}
    for query_id, timed in run.told.items():
        answer = timed.answer
        target = targets[run.key.items[query_id], answer.task]
        order = run.key.orders[query_id]
        if (
            timed.by_text
            or answer.outcome is not Outcome.ANSWERED
            or len(answer.probabilities) != len(order)
            or not order
        ):
            continue
        right = [order[place] in target.right for place in range(len(order))]
        chosen = range(len(order)) if target.several else answer.chosen[:1]
        pairs.setdefault(answer.task, []).extend((answer.probabilities[place], right[place]) for place in chosen)
    return [
        CalibrationFigures(
            task=task,
            count=len(of_task),
            error=100 * (expected_calibration_error(of_task) or 0.0),
            bins=reliability_bins(of_task),
        )
        for task, of_task in pairs.items()
    ]


def picture(
    title: str,
    calibrations: Sequence[CalibrationFigures],
    risks: Mapping[str, RiskCoverage] | None = None,
) -> str:
    """Draw one panel per task, then all curves of risk and coverage in one, in rows.

    Each panel gets the left and the upper end of its square of SIDE by SIDE.
    """
    drawn: list[Panel] = [partial(calibration_panel, figures) for figures in calibrations]
    drawn += [partial(_risk, risks)] if risks else []
    parts = [f'<text x="16" y="24" font-size="15">{escape(title)}</text>']
    for place, panel in enumerate(drawn):
        row, column = divmod(place, ACROSS)
        parts.append(panel(column * WIDE + LEFT, row * HIGH + TOP))
    width, height = min(ACROSS, max(len(drawn), 1)) * WIDE, max(1, -(-len(drawn) // ACROSS)) * HIGH
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">\n'
        f"<title>{escape(title)}: calibration</title>\n<style>{_STYLE}</style>\n{body}\n</svg>\n"
    )


def zero_to_one(x: int, y: int) -> tuple[str, ...]:
    """Draw the ends of both axes."""
    return (
        f'<text x="{x}" y="{y + SIDE + 16}">0</text>',
        f'<text x="{x + SIDE}" y="{y + SIDE + 16}" text-anchor="end">1</text>',
        f'<text x="{x - 8}" y="{y + SIDE}" text-anchor="end">0</text>',
        f'<text x="{x - 8}" y="{y + 12}" text-anchor="end">1</text>',
    )


def calibration_panel(figures: CalibrationFigures, x: int, y: int) -> str:
    """Draw one bar per bin, with the share of right answers as height. The diagonal is perfect calibration."""
    title = f"{figures.task}: ECE {figures.error:.1f} %, n {figures.count}"
    parts = [
        f'<text x="{x + SIDE / 2:.0f}" y="{y - 10}" text-anchor="middle">{escape(title)}</text>',
        f'<rect class="axis" x="{x}" y="{y}" width="{SIDE}" height="{SIDE}"/>',
    ]
    for part in figures.bins:
        height = part.right * SIDE
        tip = (
            f"{count_of(part.count, 'answer')}, confidence "
            f"{100 * part.confidence:.0f} %, right {100 * part.right:.0f} %"
        )
        parts.append(
            f'<rect class="bar" x="{x + part.low * SIDE + 1:.1f}" y="{y + SIDE - height:.1f}" '
            f'width="{(part.high - part.low) * SIDE - 2:.1f}" height="{height:.1f}"><title>{tip}</title></rect>'
        )
    parts += [
        f'<line class="ideal" x1="{x}" y1="{y + SIDE}" x2="{x + SIDE}" y2="{y}" stroke-width="2"/>',
        *zero_to_one(x, y),
        f'<text x="{x + SIDE / 2}" y="{y + SIDE + 16}" text-anchor="middle">confidence</text>',
        f'<text x="{x - 8}" y="{y + SIDE / 2}" text-anchor="end">share right</text>',
    ]
    return "\n".join(parts)


def _risk(curves: Mapping[str, RiskCoverage], x: int, y: int) -> str:
    """Draw the share of errors among the answers that are kept, a line for each ranking."""
    parts = [
        f'<text x="{x + SIDE / 2:.0f}" y="{y - 10}" text-anchor="middle">errors by share answered</text>',
        f'<rect class="axis" x="{x}" y="{y}" width="{SIDE}" height="{SIDE}"/>',
    ]
    for number, (name, curve) in enumerate(curves.items()):
        points = " ".join(
            f"{x + at * SIDE:.1f},{y + SIDE - risk * SIDE:.1f}"
            for at, risk in zip(curve.coverage, curve.risk, strict=True)
        )
        dashes = f"{8 - 2 * number} {2 * number}"
        parts += [
            f'<polyline class="line" stroke-dasharray="{dashes}" points="{points}"><title>{escape(name)}</title>'
            "</polyline>",
            f'<line class="line" stroke-dasharray="{dashes}" x1="{x}" y1="{y + SIDE + 34 + 16 * number}" '
            f'x2="{x + 24}" y2="{y + SIDE + 34 + 16 * number}"/>',
            f'<text x="{x + 30}" y="{y + SIDE + 38 + 16 * number}">{escape(name)}</text>',
        ]
    parts += [
        *zero_to_one(x, y),
        f'<text x="{x + SIDE / 2}" y="{y + SIDE + 16}" text-anchor="middle">share answered</text>',
        f'<text x="{x - 8}" y="{y + SIDE / 2}" text-anchor="end">share wrong</text>',
    ]
    return "\n".join(parts)
