"""`tactful study publish`."""

from pathlib import Path
from typing import Annotated

import typer

from norm_core.records.json_codec import to_plain
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.time import WallClock
from norm_core.runtime.wording import count_of
from study_desk.privacy.key_file import KeyFile
from study_desk.privacy.redact import NamesToRemove
from study_desk.publication.dataset import LICENCES
from study_desk.publication.publication_key import KEY_FILE, PublicationKey
from study_desk.publication.publish import check_publication
from study_desk.publication.publish import publish as publish_study
from study_desk.study.study_folder import Study
from tactful_cli.console import err, print_json
from tactful_cli.study.arguments import StudyPath
from tactful_cli.verb import AsJson

app = typer.Typer()


@app.command()
def publish(  # noqa: PLR0917
    folder: StudyPath,
    output: Annotated[Path, typer.Argument(metavar="OUT", help="Folder to write the dataset into.")],
    licence: Annotated[
        str, typer.Option(help=f"Licence of the data: {', '.join(LICENCES)}, or your own words; default: none granted.")
    ] = "",
    keys: Annotated[
        Path | None, typer.Option(help="Key file with the real names, which must stand in no file.")
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(help=f"Key of the published labels, made if absent; default: {KEY_FILE} in the study's folder."),
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Only check the files in OUT, and write nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a pseudonymised dataset of who consented, in BIDS's layout, after a check for names, media and times."""
    study = Study(folder)
    names = KeyFile(keys).names() if keys else NamesToRemove()
    labels = PublicationKey(key or study.folder / KEY_FILE)
    notes = [] if keys else ["no key file was given, so real names were not looked for: give --keys"]
    if check:
        number, scope = check_publication(study, output, labels, names)
        found: dict[str, object] = {"checked": number, "looked_for": scope, "hits": 0}
        done = f"{count_of(number, 'file')} checked for {scope}: no hit"
    else:
        published = publish_study(study, output, labels, WallClock(), names, licence)
        found = to_plain(published)
        sessions, people = count_of(published.sessions, "session"), count_of(published.participants, "participant")
        done = f"{output}: {sessions} of {people}, {count_of(len(published.files), 'file')}"
        notes += [*published.left_out, *(f"{name}: was edited, so stays as it is" for name in published.kept)]
        notes.append(f"{labels.path}: says which label is whose; keep it apart from the dataset")
        notes.append(f"edit README.md, then run {PROGRAM} study publish again: it checks what you wrote")
    if as_json:
        print_json(found | {"notes": notes})
        return
    print(done)
    for note in notes:
        err.print(note, markup=False, soft_wrap=True)
