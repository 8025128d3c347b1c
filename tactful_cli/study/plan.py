"""`tactful study plan`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import track
from rich.table import Table

from norm_core.records.flag import Polarity
from norm_core.records.json_codec import to_plain
from norm_core.runtime.wording import count_of
from study_desk.analysis.sample_size import (
    Pilot,
    PlanAssumptions,
    PlanError,
    SampleSize,
    formula_size,
    pilot_of,
    simulate_sizes,
)
from study_desk.analysis.study_tables import PLURALS, study_tables
from study_desk.study.study_folder import Study
from tactful_cli.console import err, print_json, print_table, remark, titled_table
from tactful_cli.verb import AsJson

app = typer.Typer()

_POWERS = (0.8, 0.9)


@app.command()
def plan(  # noqa: PLR0917
    rate_a: Annotated[float | None, typer.Option(help="Events per ten minutes in the first condition.")] = None,
    rate_b: Annotated[float | None, typer.Option(help="Events per ten minutes in the second condition.")] = None,
    minutes: Annotated[float | None, typer.Option(help="Length of each participant's session in minutes.")] = None,
    spread: Annotated[
        float | None,
        typer.Option(help="Coefficient of variation of participants' own rates; default: 0.5, or as piloted."),
    ] = None,
    pilot: Annotated[
        Path | None, typer.Option("--from", metavar="STUDY", help="Study to take rates, length and spread from.")
    ] = None,
    polarity: Annotated[Polarity, typer.Option(help="Events to take from the piloted study.")] = Polarity.ERROR,
    power: Annotated[
        list[float] | None, typer.Option(min=0.01, max=0.999, help="Power to reach. Repeatable; default: 0.8 and 0.9.")
    ] = None,
    simulations: Annotated[int, typer.Option(min=100, max=1_000_000, help="Number of simulated studies.")] = 5000,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the simulation.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Simulate how many participants per condition show a difference between two rates of events."""
    found_by: dict[str, object] = {}
    spread_given = spread is not None
    if pilot:
        piloted = pilot_of(study_tables(Study(pilot)), PLURALS[polarity])
        found_by = {"pilot": to_plain(piloted)}
        names = list(piloted.rates)
        if len(names) > 2 and None in (rate_a, rate_b):
            raise PlanError(f"{pilot}: has {len(names)} conditions, {', '.join(names)}: give --rate-a and --rate-b")
        rates = dict(enumerate(piloted.rates.values()))
        rate_a, rate_b = (given if given is not None else rates.get(n) for n, given in enumerate((rate_a, rate_b)))
        minutes = piloted.minutes if minutes is None else minutes
        spread = piloted.spread if spread is None else spread
    if rate_a is None or rate_b is None or minutes is None:
        raise PlanError(
            "a rate or the length of a session is missing: give --rate-a, --rate-b and --minutes, or --from"
        )
    plan = PlanAssumptions(
        rate_a=rate_a,
        rate_b=rate_b,
        minutes=minutes,
        spread=0.5 if spread is None else spread,
    )
    powers = tuple(power or _POWERS)
    limit = max(20, 2 * max(formula_size(plan, level) for level in powers))
    if limit > 20_000:
        raise PlanError(f"about {limit // 2} participants per condition are needed: plan for a larger difference")
    sizes = simulate_sizes(
        plan,
        powers,
        simulations=simulations,
        seed=seed,
        most=limit,
        progress=lambda blocks: track(blocks, "simulating studies", console=err, transient=True),
    )
    if as_json:
        about = {"assumed": to_plain(plan), "simulations": simulations, "seed": seed, "most": limit}
        print_json(about | found_by | {"sizes": [to_plain(size) for size in sizes]})
        return
    print_table(_table(plan, sizes, limit))
    remark(
        f"{simulations} simulated studies, seed {seed}: one session per participant, tested by a quasi-Poisson model. "
        "The interval is that of the simulation. The formula is that of Zhu and Lakkis (2014)."
    )
    if pilot:
        remark(*_notes(piloted, spread_given=spread_given))


def _notes(piloted: Pilot, *, spread_given: bool) -> Iterator[str]:
    """Tell how far the pilot carries the plan."""
    units = count_of(piloted.units, "unit")
    yield f"Piloted with {units} (participants, or groups who share sessions): the fewer, the less is known."
    if not spread_given and piloted.spread is None:
        yield "The pilot has one unit per condition, so it tells no spread; 0.5 is assumed: give --spread."
    elif not spread_given and not piloted.spread:
        yield "The piloted counts differ no more than by chance, so the spread is 0. That says little: give --spread."
    if piloted.is_within:
        yield "In the pilot, units were in several conditions. The plan gives each participant one condition."


def _table(plan: PlanAssumptions, sizes: tuple[SampleSize, ...], most: int) -> Table:
    title = (
        f"{plan.rate_a:g} and {plan.rate_b:g} events per 10 minutes, {plan.minutes:g} minutes, spread {plan.spread:.2f}"
    )
    names = ("power", "participants per condition", "95 % interval", "power found", "by formula")
    table = titled_table(title, numbers=names)
    for size in sizes:
        over = f"over {most}"
        table.add_row(
            f"{size.power:.0%}",
            str(size.participants or over),
            f"{size.low or over} to {size.high or over}",
            f"{size.found_power:.3f}",
            str(size.formula),
        )
    return table
