"""`tactful study init, participant`: the folder of a study, and who takes part."""

from pathlib import Path
from typing import Annotated

import typer

from norm_core.runtime.errors import TactfulError
from norm_monitor.session_log.key_file import KeyFile
from norm_monitor.session_log.study_folder import Study, init_study
from study_desk.study.add_session import set_consent
from study_desk.verbs.arguments import StudyPath
from tactful_cli.console import print_result, show
from tactful_cli.verb_options import AsJson

app = typer.Typer()


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(metavar="STUDY", help="Folder for the study.")],
    name: Annotated[str, typer.Option(help="Name of the study; default: that of the folder.")] = "",
    condition: Annotated[list[str] | None, typer.Option(help="Condition of sessions. Repeatable.")] = None,
    coder: Annotated[list[str] | None, typer.Option(help="Pseudonym of a coder. Repeatable.")] = None,
) -> None:
    """Make a study's folder with a commented study.yaml, which only its owner can read."""
    study = init_study(folder, name or folder.resolve().name, condition or (), coder or ())
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
    name: Annotated[list[str] | None, typer.Option(help="Real name or nickname, for --keys. Repeatable.")] = None,
    keys: Annotated[
        Path | None, typer.Option(help="Key file to write the names into, made if absent; keep it apart from the logs.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Add a participant to study.yaml, or change what they consent to; by default, only to words.

    With --keys, also link the pseudonym to the names, only in the key file.
    """
    study = Study(folder)
    if bool(name) != bool(keys) or not (pseudonym or name):
        raise TactfulError("give a PSEUDONYM, or --name and --keys together; study.yaml holds no names")
    if name and keys:
        pseudonym = KeyFile(keys).add(tuple(name), pseudonym=pseudonym)
    set_consent(study, pseudonym, words=words, coders=coders)
    entry = study.file.participants[pseudonym]
    text = f"{pseudonym}: {', '.join(entry.allowed) or 'consents to nothing but taking part'}"
    print_result({"pseudonym": pseudonym, "consents": entry.allowed}, text, as_json=as_json)
