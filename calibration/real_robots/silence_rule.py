"""Score a stopwatch as the monitor is scored.

Run: python -m calibration.real_robots.silence_rule --scout FILE [--json FILE]. The rule flags an error at the onset of
each silence that lasts for so long: after a person's words until anybody speaks, and, where a second limit is given,
after a sign of work ("processing") too. It knows nothing else.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from calibration.command import run_command
from calibration.real_robots.figures import make_figures, print_figures
from calibration.real_robots.scout import TimedStretch, read_stretches
from calibration.unit_examples import LabelledUnit
from norm_core.records.flag import Polarity
from norm_core.runtime.time import ns_to_s
from norm_monitor.assessment.unit import UnitKind
from norm_monitor.context.wording import is_sign_of_work

AFTER_PERSON, AFTER_SIGN = "silent_after_person_s", "silent_after_sign_s"
# The seconds after a person's words, and after a sign of work; None never flags those.
RULES: dict[str, tuple[float, float | None]] = {
    "4 s": (4, None),
    "8 s": (8, None),
    "8 s, or 20 s after a sign of work": (8, 20),
    "10 s, or 20 s after a sign of work": (10, 20),
}


def score_rules(
    scout: Annotated[Path, typer.Option(exists=True, dir_okay=False, help="SCOUT's sessions, one JSON a line.")],
    json_file: Annotated[Path | None, typer.Option("--json", help="File of the figures.")] = None,
) -> None:
    """Print what each rule finds of all errors that the coders marked."""
    stretches = list(read_stretches(scout, lambda _talk, timed, _marks: find_silences(timed)))
    flagged = {rule: [find_flags(stretch.units, *limits) for stretch in stretches] for rule, limits in RULES.items()}
    figures = {
        coder: {
            rule: {"error": make_figures(stretches, flags, coder, Polarity.ERROR)} for rule, flags in flagged.items()
        }
        for coder in stretches[0].events_by_coder
    }
    print_figures(figures)
    if json_file:
        json_file.write_text(json.dumps(figures, indent=1) + "\n", "utf-8")


def find_silences(stretch: TimedStretch) -> Iterator[LabelledUnit]:
    """Yield the silences after a person's words, and after the robot's signs of work, until anybody speaks."""
    for turn in stretch.turns:
        is_spoken_over = any(other.start_ns <= turn.end_ns < other.end_ns for other in stretch.turns)
        if is_spoken_over or not (turn.speaker_id or is_sign_of_work(turn.text)):
            continue
        end_ns = min(
            (other.start_ns for other in stretch.turns if other.start_ns > turn.end_ns), default=stretch.until_ns
        )
        yield LabelledUnit(
            talk=0,
            kind=UnitKind.SILENCE,
            onset_ns=turn.end_ns,
            offset_ns=end_ns,
            facts={AFTER_PERSON if turn.speaker_id else AFTER_SIGN: ns_to_s(end_ns - turn.end_ns)},
            exchange=None,
            findings=(),
            borne_out=(),
            polarity=None,
            attributes=(),
        )


def find_flags(
    silences: Iterable[LabelledUnit], after_person_s: float, after_sign_s: float | None
) -> list[tuple[LabelledUnit, Polarity]]:
    """Return an error for each silence that lasts for its limit."""
    limits = {AFTER_PERSON: after_person_s, AFTER_SIGN: after_sign_s}
    return [
        (unit, Polarity.ERROR)
        for unit in silences
        for name, silent_s in unit.facts.items()
        if (limit_s := limits[name]) is not None and silent_s >= limit_s
    ]


if __name__ == "__main__":
    run_command(score_rules)
