"""`tactful study plan, init, participant`: the plan of a study."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from norm_core.records.json_codec import to_plain
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.wording import count_of
from study_desk.analysis.sample_size import (
    Pilot,
    PlanAssumptions,
    pilot_of,
    sample_size,
)
from study_desk.analysis.study_tables import study_tables
from study_desk.privacy.redact import KeyFile
from study_desk.study.add_session import set_consent
from study_desk.study.study_folder import Study, init_study
from tactful_cli.console import print_result, titled_table
from tactful_cli.study.arguments import StudyPath
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
    as_json: AsJson = False,
) -> None:
    """Compute how many participants per condition show a difference between two rates of events."""
    found_by: dict[str, object] = {}
    spread_given = spread is not None
    if pilot:
        piloted = pilot_of(study_tables(Study(pilot)), "errors")
        found_by = {"pilot": to_plain(piloted)}
        names = list(piloted.rates)
        if len(names) > 2 and None in (rate_a, rate_b):
            raise TactfulError(f"{pilot}: has {len(names)} conditions, {', '.join(names)}: give --rate-a and --rate-b")
        rates = dict(enumerate(piloted.rates.values()))
        rate_a, rate_b = (given if given is not None else rates.get(n) for n, given in enumerate((rate_a, rate_b)))
        minutes = piloted.minutes if minutes is None else minutes
        spread = piloted.spread if spread is None else spread
    if rate_a is None or rate_b is None or minutes is None:
        raise TactfulError(
            "a rate or the length of a session is missing: give --rate-a, --rate-b and --minutes, or --from"
        )
    plan = PlanAssumptions(
        rate_a=rate_a,
        rate_b=rate_b,
        minutes=minutes,
        spread=0.5 if spread is None else spread,
    )
    sizes = {power: sample_size(plan, power) for power in _POWERS}
    listed = [{"power": power, "participants": participants} for power, participants in sizes.items()]
    notes = ["One session per participant, by the formula of Zhu and Lakkis (2014). Add two to fewer than 20."]
    notes += _notes(piloted, spread_given=spread_given) if pilot else ()
    result = {"assumed": to_plain(plan)} | found_by | {"sizes": listed}
    print_result(result, _table(plan, sizes), as_json=as_json, notes=notes)


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


def _table(plan: PlanAssumptions, sizes: dict[float, int]) -> Table:
    title = (
        f"{plan.rate_a:g} and {plan.rate_b:g} events per 10 minutes, {plan.minutes:g} minutes, spread {plan.spread:.2f}"
    )
    table = titled_table(title, numbers=("power", "participants per condition"))
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
    print(study.path)


@app.command()
def participant(  # noqa: PLR0917
    folder: StudyPath,
    pseudonym: Annotated[
        str, typer.Argument(metavar="PSEUDONYM", help="Pseudonym of the participant; default: a random one.")
    ] = "",
    words: Annotated[bool | None, typer.Option("--words/--no-words", help="Consent to a transcript.")] = None,
    clips: Annotated[
        bool | None, typer.Option("--clips/--no-clips", help="Consent to clips of face and voice.")
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

    With --keys, also link the pseudonym to the names, in the key file alone.
    """
    study = Study(folder)
    if bool(name) != bool(keys) or not (pseudonym or name):
        raise TactfulError("give a PSEUDONYM, or --name and --keys together; study.yaml holds no names")
    if name and keys:
        pseudonym = KeyFile(keys).add(tuple(name), pseudonym=pseudonym)
    set_consent(study, pseudonym, words=words, clips=clips, publication=publication)
    allowed = study.file.participants[pseudonym].allowed
    text = f"{pseudonym}: {', '.join(allowed) or 'consents to nothing but taking part'}"
    print_result({"pseudonym": pseudonym, "consents": allowed}, text, as_json=as_json)
