"""What is flagged in coded stretches of talk, matched with the coders' marks and printed."""

import sys
from collections.abc import Mapping, Sequence

import numpy as np
from rich.console import Console
from rich.table import Table

from calibration.real_robots.scout import CodedStretch, meets
from calibration.unit_examples import LabelledUnit
from norm_core.records.flag import Polarity
from norm_monitor.assessment.unit import UnitKind
from scoring.f1 import f1_score
from scoring.intervals import draw_clusters, percentile_interval

_DRAWS = 2000


def make_figures(
    stretches: Sequence[CodedStretch],
    flagged: Sequence[Sequence[tuple[LabelledUnit, Polarity]]],
    coder: str,
    polarity: Polarity,
) -> dict[str, float]:
    """Match what is flagged, in each stretch, with a coder's marks, and count."""
    rows = []
    false, harmless_h = 0, 0.0
    for stretch, flags in zip(stretches, flagged, strict=True):
        left = [unit for unit, what in flags if what is polarity]
        events = [event for event in stretch.events_by_coder[coder] if event.polarity is polarity]
        raised, hit_count = len(left), 0
        for event in events:
            met = next((unit for unit in left if meets(unit, event)), None)
            if met:
                left.remove(met)
                hit_count += 1
        rows.append((hit_count, raised, len(events)))
        if not events:
            false, harmless_h = false + raised, harmless_h + stretch.hours
    counts = np.array(rows)
    hits, flags_raised, marks = counts.sum(axis=0)
    drawn = counts[draw_clusters(len(counts), _DRAWS)].sum(axis=1)
    low, high = percentile_interval(f1_score(drawn[:, 0], drawn[:, 1] + drawn[:, 2], scale=100))
    return {
        "f1": float(f1_score(hits, flags_raised + marks, scale=100)),
        "low": low,
        "high": high,
        "precision": float(100 * hits / max(1, flags_raised)),
        "recall": float(100 * hits / max(1, marks)),
        "false_an_hour": false / max(1e-9, harmless_h),
        "control": find_control(stretches, coder, polarity),
    }


def find_control(stretches: Sequence[CodedStretch], coder: str, polarity: Polarity) -> float:
    """Return the F1 to expect of as many flags as there are marks, at random turns of the robot and silences."""
    are_met = [
        any(meets(unit, event) for event in stretch.events_by_coder[coder] if event.polarity is polarity)
        for stretch in stretches
        for unit in stretch.units
        if unit.kind in {UnitKind.ROBOT_TURN, UnitKind.SILENCE}
    ]
    return 100 * sum(are_met) / max(1, len(are_met))


def print_figures(figures: Mapping[str, Mapping[str, Mapping[str, Mapping[str, float]]]]) -> None:
    """Print the figures by coder, sensitivity and polarity."""
    table = Table(
        "coder", "sensitivity", "of", "F1", "control", "precision", "recall", "false an hour where none is marked"
    )
    for coder, by_sensitivity in figures.items():
        for sensitivity, by_polarity in by_sensitivity.items():
            for polarity, row in by_polarity.items():
                f1 = f"{row['f1']:.0f} [{row['low']:.0f}, {row['high']:.0f}]"
                numbers = (f"{row[name]:.0f}" for name in ("control", "precision", "recall"))
                table.add_row(coder, sensitivity, polarity, f1, *numbers, f"{row['false_an_hour']:.1f}")
    Console(highlight=False, width=None if sys.stdout.isatty() else 200).print(table)
