"""`tactful study plan, init, participant`: the plan of a study."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from norm_core.records.json_codec import to_plain
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import WallClock
from norm_core.runtime.wording import count_of
from norm_monitor.session_log.key_file import KeyFile
from norm_monitor.session_log.study_folder import Study, init_study
from study_desk.analysis.sample_size import Pilot, PlanAssumptions, pilot_of, sample_size
from study_desk.analysis.study_tables import study_tables
from study_desk.study.add_session import set_consent
from study_desk.study.frozen_plan import (
    changes_of_plan,
    draw_orders,
    freeze_plan,
    frozen_plans,
    no_plan_line,
    plan_lines,
)
from study_desk.verbs.arguments import StudyPath
from tactful_cli.console import print_result, show, titled_table
from tactful_cli.verb import AsJson

app = typer.Typer()

_POWERS = (0.8, 0.9)


@app.command()
def plan(  # noqa: PLR0917
    folder: Annotated[
        Path | None, typer.Argument(metavar="STUDY", help="Study whose plan to show; leave it out for a computation.")
    ] = None,
    freeze: Annotated[
        bool, typer.Option("--freeze", help="Freeze the plan of study.yaml as a version with hash and date.")
    ] = False,
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
    crossed: Annotated[
        float | None,
        typer.Option(
            metavar="CORRELATION",
            min=0,
            max=1,
            help="Each participant meets both conditions; correlation of their own rates between the two.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compute how many participants show a difference between two rates of events, or show the plan of a STUDY.

    In a crossed design, showing the plan draws the order of conditions for participants who have none yet.
    """
    if folder:
        if pilot or crossed is not None or {rate_a, rate_b, minutes, spread} != {None}:
            raise TactfulError(f"{folder}: a STUDY shows its plan; to compute from it, give --from {folder} alone")
        _show_plan(Study(folder), freeze=freeze, as_json=as_json)
        return
    if freeze:
        raise TactfulError("--freeze: names no study; give STUDY")
    sessions = "One session per participant" if crossed is None else "A session per participant and condition"
    notes = [f"{sessions}, by the formula of Zhu and Lakkis (2014) with Student's t."]
    piloted = pilot_of(study_tables(Study(pilot)), "errors") if pilot else None
    if piloted:
        notes += _notes(piloted, is_spread_open=spread is None, is_crossed=crossed is not None)
        if len(piloted.rates) > 2 and None in (rate_a, rate_b):
            conditions = f"{len(piloted.rates)} conditions, {', '.join(piloted.rates)}"
            raise TactfulError(f"{pilot}: has {conditions}: give --rate-a and --rate-b")
        of_a, of_b, *_ = (*piloted.rates.values(), None, None)
        rate_a = of_a if rate_a is None else rate_a
        rate_b = of_b if rate_b is None else rate_b
        minutes = piloted.minutes if minutes is None else minutes
        spread = piloted.spread if spread is None else spread
    if rate_a is None or rate_b is None or minutes is None:
        raise TactfulError(
            "a rate or the length of a session is missing: give --rate-a, --rate-b and --minutes, or --from"
        )
    assumed = PlanAssumptions(
        rate_a=rate_a,
        rate_b=rate_b,
        minutes=minutes,
        spread=0.5 if spread is None else spread,
        correlation=crossed,
    )
    sizes = {power: sample_size(assumed, power) for power in _POWERS}
    result = {"assumed": to_plain(assumed)} | ({"pilot": to_plain(piloted)} if piloted else {})
    result["sizes"] = [{"power": power, "participants": participants} for power, participants in sizes.items()]
    print_result(result, _table(assumed, sizes), as_json=as_json, notes=notes)


def _show_plan(study: Study, *, freeze: bool, as_json: bool) -> None:
    """Print the plan, each frozen version and what changed since; draw orders that are missing."""
    draw_orders(study)
    if freeze:
        freeze_plan(study, WallClock())
    versions, changes = frozen_plans(study), changes_of_plan(study)
    orders = {name: entry.order for name, entry in study.file.participants.items() if entry.order}
    result = {"plan": study.file.plan.model_dump(mode="json"), "frozen": to_plain(versions), "changes": changes}
    lines = [line for version in versions for line in plan_lines(version)] or [no_plan_line()]
    lines += [f"{name}: {', '.join(order)}" for name, order in orders.items()]
    print_result(result | {"orders": orders}, *lines, as_json=as_json, notes=changes)


def _notes(piloted: Pilot, *, is_spread_open: bool, is_crossed: bool) -> Iterator[str]:
    """Yield notes of how far the pilot carries the plan."""
    units = count_of(piloted.units, "unit")
    yield f"Piloted with {units} (participants, or groups who share sessions): the fewer, the less is known."
    if is_spread_open and piloted.spread is None:
        yield "The pilot has one unit per condition, so it has no spread; 0.5 is assumed: give --spread."
    elif is_spread_open and not piloted.spread:
        yield "The piloted counts differ no more than by chance, so the spread is 0. That says little: give --spread."
    if piloted.is_within and not is_crossed:
        yield "In the pilot, units were in several conditions. The plan gives each participant one: see --crossed."


def _table(assumed: PlanAssumptions, sizes: dict[float, int]) -> Table:
    rates = f"{assumed.rate_a:g} and {assumed.rate_b:g} events per 10 minutes"
    people = "participants per condition" if assumed.correlation is None else "participants, each in both conditions"
    title = f"{rates}, {assumed.minutes:g} minutes, spread {assumed.spread:.2f}"
    table = titled_table(title, numbers=("power", people))
    for power, participants in sizes.items():
        table.add_row(f"{power:.0%}", str(participants))
    return table


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(metavar="STUDY", help="Folder to make the study in.")],
    name: Annotated[str, typer.Option(help="Name of the study; default: that of the folder.")] = "",
    condition: Annotated[list[str] | None, typer.Option(help="Condition of sessions. Repeatable.")] = None,
    coder: Annotated[list[str] | None, typer.Option(help="Pseudonym of a coder. Repeatable.")] = None,
) -> None:
    """Make a study's folder with a commented study.yaml, which its owner alone can read."""
    study = init_study(
        folder,
        name or folder.resolve().name,
        condition or (),
        coder or (),
    )
    show(str(study.path))


@app.command()
def participant(  # noqa: PLR0917
    folder: StudyPath,
    pseudonym: Annotated[
        str, typer.Argument(metavar="PSEUDONYM", help="Pseudonym of the participant; default: a random one.")
    ] = "",
    words: Annotated[bool | None, typer.Option("--words/--no-words", help="Consent to a transcript.")] = None,
    coders: Annotated[
        bool | None, typer.Option("--coders/--no-coders", help="Consent to be watched by coders.")
    ] = None,
    clips: Annotated[
        bool | None, typer.Option("--clips/--no-clips", help="Consent to show clips of face and voice to others.")
    ] = None,
    publication: Annotated[
        bool | None, typer.Option("--publication/--no-publication", help="Consent to share pseudonymised data.")
    ] = None,
    name: Annotated[list[str] | None, typer.Option(help="Real name or nickname, for --keys. Repeatable.")] = None,
    keys: Annotated[
        Path | None, typer.Option(help="Key file to write the names into, made if absent; keep it apart from the logs.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Add a participant to study.yaml, or change what they consent to. Without an option: words alone.

    In a crossed design, draw the order in which they meet the conditions.
    With --keys, also link the pseudonym to the names, in the key file alone.
    """
    study = Study(folder)
    if bool(name) != bool(keys) or not (pseudonym or name):
        raise TactfulError("give a PSEUDONYM, or --name and --keys together; study.yaml holds no names")
    if name and keys:
        pseudonym = KeyFile(keys).add(tuple(name), pseudonym=pseudonym)
    set_consent(study, pseudonym, words=words, coders=coders, clips=clips, publication=publication)
    entry = study.file.participants[pseudonym]
    text = f"{pseudonym}: {', '.join(entry.allowed) or 'consents to nothing but taking part'}"
    order = [f"conditions in this order: {', '.join(entry.order)}"] if entry.order else []
    result = {"pseudonym": pseudonym, "consents": entry.allowed, "order": entry.order}
    print_result(result, text, *order, as_json=as_json)
