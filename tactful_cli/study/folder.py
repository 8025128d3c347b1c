"""`tactful study init, participant, remove`: the plan of a study."""

from pathlib import Path
from typing import Annotated

import typer

from norm_core.records.json_codec import to_plain
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import WallClock
from study_desk.log.schema import Consent
from study_desk.privacy.key_file import KeyFile
from study_desk.study.add_session import set_consent
from study_desk.study.study_folder import Study, init_study
from study_desk.study.withdrawal import PlannedRemoval, plan_removal, remove_session
from tactful_cli.console import print_json, remark
from tactful_cli.study.arguments import StudyPath
from tactful_cli.verb import AsJson

app = typer.Typer()


@app.command()
def init(  # noqa: PLR0917
    folder: Annotated[Path, typer.Argument(metavar="STUDY", help="Folder to make the study in.")],
    name: Annotated[str, typer.Option(help="Name of the study; default: that of the folder.")] = "",
    condition: Annotated[list[str] | None, typer.Option(help="Condition of sessions. Repeatable.")] = None,
    coder: Annotated[list[str] | None, typer.Option(help="Pseudonym of a coder. Repeatable.")] = None,
    retention_days: Annotated[
        int, typer.Option(min=0, help="Days after which `study withdraw --expired` empties the logs; 0: never.")
    ] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of what is drawn for the study.")] = 0,
) -> None:
    """Make a study's folder with a commented study.yaml, which its owner alone can read."""
    study = init_study(
        folder,
        name or folder.resolve().name,
        condition or (),
        coder or (),
        retention_days=retention_days,
        seed=seed,
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
    consents = study.file.participants[pseudonym]
    allowed = [what.value for what in (Consent.WORDS, Consent.CLIPS, Consent.PUBLICATION) if consents.allows(what)]
    if as_json:
        print_json({"pseudonym": pseudonym, "consents": allowed})
    else:
        print(f"{pseudonym}: {', '.join(allowed) or 'consents to nothing but taking part'}")


@app.command()
def remove(
    folder: StudyPath,
    session: Annotated[str, typer.Argument(metavar="SESSION", help="Name of the session.")],
    reason: Annotated[str, typer.Option(help="Reason to note in the study's folder.")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Remove a session with its log, codings and exports for good, after listing them. It can then be added anew.

    Its bag and media stay. A line in the study's folder notes the removal.
    """
    study = Study(folder)
    planned = plan_removal(study, session)
    if as_json and not yes:
        raise TactfulError(f"session {session}: --json asks nothing; give --yes to remove it")
    if not as_json:
        _print_removal(planned)
    if not yes:
        typer.confirm("Remove this for good? (--yes leaves this question out)", abort=True)
    outputs = remove_session(study, planned, WallClock(), reason)
    if as_json:
        print_json(to_plain(planned) | {"outputs": to_plain(outputs)})
    else:
        print(f"session {session} is removed")
    remark(*(f"{path}: was changed since it was made, so it stays" for path in outputs.changed))
    remark(*(f"{path}: lies outside the study's folder, so it stays" for path in outputs.outside))


def _print_removal(planned: PlannedRemoval) -> None:
    counts = ", ".join(f"{count} {kind}" for kind, count in planned.entries.items()) or "no entries"
    print(f"session {planned.session}: {counts}; coded by {', '.join(planned.coders) or 'nobody'}")
    for path in planned.files:
        print(f"goes: {path}")
    for path in planned.outputs:
        print(f"goes, unless it was changed since: {path}")
    for path in planned.stays:
        print(f"stays: {path}")
