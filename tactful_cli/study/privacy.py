"""`tactful study publish, withdraw`: what is shared, and what is taken back."""

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from norm_core.records.json_codec import to_plain
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.time import WallClock
from norm_core.runtime.wording import count_of
from study_desk.log.schema import Consent
from study_desk.privacy.redact import KeyFile, KeyFileError, NamesToRemove
from study_desk.publication.dataset import KEY_FILE, LICENCES, PublicationKey
from study_desk.publication.publish import check_publication
from study_desk.publication.publish import publish as publish_study
from study_desk.study.study_folder import Study
from study_desk.study.withdrawal import StudyErasure, expire_study, withdraw
from tactful_cli.console import complain, err, print_json, remark
from tactful_cli.study.arguments import StudyPath
from tactful_cli.verb import AsJson

app = typer.Typer()

_NO_KEY_FILE = "No key file was changed: remove the name there too, with --keys."


@app.command("withdraw")
def withdraw_(  # noqa: PLR0917
    folder: StudyPath,
    participant: Annotated[str, typer.Argument(metavar="PSEUDONYM", help="Pseudonym of the participant.")] = "",
    words: Annotated[bool, typer.Option("--words", help="Withhold their words, and all that quotes them.")] = False,
    clips: Annotated[bool, typer.Option("--clips", help="Allow no more clips; delete reports.")] = False,
    publication: Annotated[bool, typer.Option("--publication", help="Leave them out of what is shared.")] = False,
    everything: Annotated[bool, typer.Option("--everything", help="Erase all their data, for good.")] = False,
    keys: Annotated[
        Path | None,
        typer.Option(
            help="Key file with their names, to search for; --everything removes them there. "
            "Default: one that lies in the study's folder."
        ),
    ] = None,
    keep_unattributed: Annotated[
        bool, typer.Option("--keep-unattributed", help="Keep entries without a participant if several took part.")
    ] = False,
    expired: Annotated[
        bool, typer.Option("--expired", help="Erase everybody's data in the logs whose retention is over; for a timer.")
    ] = False,
    reason: Annotated[str, typer.Option(help="Reason to store in the tombstones.")] = "the participant's wish",
    as_json: AsJson = False,
) -> None:
    """Carry out a withdrawal for good, in every log of a study. A tombstone remains; the hash chain stays valid.

    Delete what was made from their sessions, then search every file of the folder for the sentences and names that
    went. Exits with 1 if something is left to do. A log outside a study is first added to one.
    """
    study = Study(folder)
    if expired == bool(participant):
        raise TactfulError(f"{folder}: give the PSEUDONYM of who withdraws, or --expired alone")
    if expired:
        _expire(study, as_json=as_json)
        return
    chosen = {
        Consent.WORDS: words,
        Consent.CLIPS: clips,
        Consent.PUBLICATION: publication,
        Consent.EVERYTHING: everything,
    }
    consents = tuple(consent for consent, is_chosen in chosen.items() if is_chosen)
    if not consents:
        raise TactfulError(
            f"{participant}: nothing is named to withdraw; name --words, --clips, --publication or --everything"
        )
    key_file = keys or _key_file_in(folder, participant)
    erasure = withdraw(
        study,
        participant,
        consents,
        WallClock(),
        reason,
        keep_unattributed=keep_unattributed,
        names=KeyFile(key_file).names_of(participant) if key_file else (),
        key_file=key_file,
    )
    key_removed = KeyFile(key_file).forget(participant) if key_file and everything else False
    if everything and not key_removed:
        err.print(_NO_KEY_FILE)
    done = f"of {participant} erased" if everything else f"of {participant} without words now" if words else ""
    _print_erasure(erasure, done, as_json=as_json, key_removed=key_removed)


def _key_file_in(study: Path, participant: str) -> Path | None:
    """Find a key file that lies in a study's folder and names the participant."""
    for path in sorted(study.glob("*.json")):
        with suppress(KeyFileError):
            if participant in KeyFile(path).pseudonyms:
                return path
    return None


def _expire(study: Study, *, as_json: bool) -> None:
    """Empty the logs whose retention is over, and delete what was made from them."""
    erasure = expire_study(study, WallClock())
    counts = {str(study.log_of(name)): count for name, count in erasure.entries.items()}
    _print_files(erasure)
    if as_json:
        print_json(counts)
    else:
        for name, count in counts.items():
            print(f"{name}: {count_of(count, 'entry', 'entries') + ' emptied' if count else 'nothing is due'}")
    if not erasure.is_complete:
        raise typer.Exit(1)


def _print_erasure(erasure: StudyErasure, what: str, *, as_json: bool, **more: object) -> None:
    """Print what became of a study's sessions and files. Exits with 1 if something is left to do.

    `what` tells what was done with the entries; empty: they stay, and the withdrawal is noted.
    """
    if as_json:
        print_json(to_plain(erasure) | more)
    else:
        for name, count in erasure.entries.items():
            if name not in erasure.faults:
                print(f"{name}: {count_of(count, 'entry', 'entries')} {what}" if what else f"{name}: noted")
        if not (erasure.entries or erasure.missing):
            print("no session is concerned")
        if erasure.looked_for:
            print(erasure.looked_for)
    _print_files(erasure)
    if not erasure.is_complete:
        raise typer.Exit(1)


def _print_files(erasure: StudyErasure) -> None:
    """Print on standard error which sessions and files were not reached."""
    for fault in erasure.faults.values():
        complain(fault)
    for name in erasure.missing:
        complain(f"session {name}: its log is not there, so nothing in it is erased; find it, and run this again")
    remark(*(f"deleted: {path}" for path in erasure.outputs.deleted))
    for path in erasure.outputs.changed:
        complain(f"{path}: was changed since it was made, so it stays; import what is new in it, then delete it")
    for path in (*erasure.outputs.outside, *erasure.not_reached):
        complain(f"{path}: is not reached from here; erase it yourself")
    for path, what in erasure.left.items():
        complain(f"{path}: {what}, so it is left to you; erase it, or take that out of it")
    for path in erasure.outputs.republish:
        complain(f"{path}: was published before; publish it again with {PROGRAM} study publish, or delete it")


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
    check: Annotated[bool, typer.Option("--check", help="Only check the files in OUT, and write nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a pseudonymised dataset of who consented, in BIDS's layout, after a check for names, media and times."""
    study = Study(folder)
    names = KeyFile(keys).names() if keys else NamesToRemove()
    labels = PublicationKey(study.folder / KEY_FILE)
    notes = [] if keys else ["no key file was given, so real names were not looked for: give --keys"]
    if check:
        number, scope = check_publication(study, output, labels, names)
        result: dict[str, object] = {"checked": number, "looked_for": scope, "hits": 0}
        done = f"{count_of(number, 'file')} checked for {scope}: no hit"
    else:
        published = publish_study(study, output, labels, WallClock(), names, licence)
        result = to_plain(published)
        sessions, people = count_of(published.sessions, "session"), count_of(published.participants, "participant")
        done = f"{output}: {sessions} of {people}, {count_of(len(published.files), 'file')}"
        notes += [*published.left_out, *(f"{name}: was edited, so stays as it is" for name in published.kept)]
        notes.append(f"{labels.path}: says which label is whose; keep it apart from the dataset")
        notes.append(f"edit README.md, then run {PROGRAM} study publish again: it checks what you wrote")
    if as_json:
        print_json(result | {"notes": notes})
        return
    print(done)
    remark(*notes)
