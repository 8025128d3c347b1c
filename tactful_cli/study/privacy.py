"""`tactful study erase, expire, inventory, participant`."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from norm_core.records.json_codec import to_plain
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.time import WallClock
from norm_core.runtime.wording import count_of
from study_desk.log.schema import Consent
from study_desk.privacy import erase as erasing
from study_desk.privacy.inventory import inventory
from study_desk.privacy.key_file import KeyFile
from study_desk.study.study_folder import Study, is_study
from study_desk.study.withdrawal import StudyErasure, expire_study, withdraw
from tactful_cli.console import complain, err, print_json, print_table
from tactful_cli.study.logs import LogOrStudyPath
from tactful_cli.verb import AsJson

app = typer.Typer()
participant = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Manage the key file, which links pseudonyms to names."
)

_NO_KEY_FILE = "No key file was changed: remove the name there too, with --keys."

Keys = Annotated[Path, typer.Option(help="Key file; keep it apart from every log.")]


@app.command()
def erase(  # noqa: PLR0917
    log: LogOrStudyPath,
    participant: Annotated[str, typer.Option(help="Pseudonym whose data to erase.")],
    keys: Annotated[Path | None, typer.Option(help="Key file from which to remove the participant too.")] = None,
    reason: Annotated[str, typer.Option(help="Reason to store in the tombstone.")] = "the participant's wish",
    keep_unattributed: Annotated[
        bool, typer.Option("--keep-unattributed", help="Keep entries without a participant if several took part.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Erase a participant's data from a log for good. A tombstone remains, and the hash chain stays valid.

    Of a study, erase it from every log, and delete the exports and reports of their sessions.
    """
    if is_study(log):
        study = Study(log)
        found = withdraw(
            study, participant, [Consent.EVERYTHING], WallClock(), reason, keep_unattributed=keep_unattributed
        )
        forgotten = KeyFile(keys).forget(participant) if keys else False
        if not forgotten:
            err.print(_NO_KEY_FILE)
        print_erasure(found, f"of {participant} erased", as_json=as_json, key_removed=forgotten)
        return
    done = erasing.erase(log, participant, WallClock(), reason, keep_unattributed=keep_unattributed)
    forgotten = KeyFile(keys).forget(participant) if keys else False
    if as_json:
        print_json(asdict(done) | {"key_removed": forgotten})
        return
    print(f"{log}: {count_of(done.entries, 'entry', 'entries')} of {participant} erased")
    if done.sole:
        err.print("They took part alone: all of the session's contents are gone.")
    elif done.unattributed:
        err.print(f"{done.unattributed} of these named no participant and might have been theirs.")
    if done.left:
        left = ", ".join(f"{count} {kind}" for kind, count in done.left.items())
        err.print(f"Left, as they neither name nor repeat {participant}: {left}.")
        err.print("Look through these with study report: others may tell of them in words of their own.")
    if not forgotten:
        err.print(_NO_KEY_FILE)
    err.print("Bags, exports, reports and copies made from this log are not reached from here: erase them as well.")


@app.command()
def expire(
    logs: Annotated[list[Path], typer.Argument(metavar="LOG|STUDY...", help="Folders of study logs or of studies.")],
    as_json: AsJson = False,
) -> None:
    """Erase the logs whose retention time is over. Tries every log, then exits with 1 if one failed.

    Of a study, delete the exports and reports of these sessions too.
    """
    counts: dict[str, int] = {}
    failed = False
    for log in logs:
        try:
            if is_study(log):
                study = Study(log)
                found = expire_study(study, WallClock())
                counts |= {str(study.log_of(name)): count for name, count in found.entries.items()}
                tell_files(found)
                failed |= not found.is_complete
            else:
                counts[str(log)] = erasing.expire(log, WallClock())
        except TactfulError as error:
            complain(str(error))
            failed = True
    if as_json:
        print_json(counts)
    else:
        for name, count in counts.items():
            print(f"{name}: {count_of(count, 'entry', 'entries') + ' emptied' if count else 'nothing is due'}")
    if failed:
        raise typer.Exit(1)


@app.command("inventory")
def inventory_(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Logs, bags and folders of a study.")],
    as_json: AsJson = False,
) -> None:
    """List stored data, whether each item is personal, and why."""
    found = inventory(paths)
    if as_json:
        print_json(asdict(found))
        return
    table = Table()
    for name in ("where", "what", "count", "bytes", "personal", "why"):
        table.add_column(name, overflow="fold")
    for entry in found.stored:
        size = str(entry.bytes) if entry.bytes else ""
        table.add_row(entry.place, entry.kind, str(entry.count), size, "yes" if entry.personal else "no", entry.why)
    print_table(table)
    print(f"participants: {', '.join(found.participants) or 'none named'}")
    print(f"retention: {'; '.join(found.retention) or 'none stated'}")
    print(f"erased entries: {found.erased_entries}")


def print_erasure(found: StudyErasure, what: str, *, as_json: bool, **more: object) -> None:
    """Print what became of a study's sessions and files. Exits with 1 if something is left to do.

    `what` tells what was done with the entries; empty: they stay, and the withdrawal is noted.
    """
    if as_json:
        print_json(to_plain(found) | more)
    else:
        for name, count in found.entries.items():
            if name not in found.faults:
                print(f"{name}: {count_of(count, 'entry', 'entries')} {what}" if what else f"{name}: noted")
        if not (found.entries or found.missing):
            print("no session is concerned")
    tell_files(found)
    if not found.is_complete:
        raise typer.Exit(1)


def tell_files(found: StudyErasure) -> None:
    """Print on standard error which sessions and files were not reached."""
    for fault in found.faults.values():
        complain(fault)
    for name in found.missing:
        complain(f"session {name}: its log is not there, so nothing in it is erased; find it, and run this again")
    for path in found.outputs.deleted:
        err.print(f"deleted: {path}", markup=False)
    for path in found.outputs.changed:
        complain(f"{path}: was changed since it was made, so it stays; import what is new in it, then delete it")
    for path in (*found.outputs.outside, *found.not_reached):
        complain(f"{path}: is not reached from here; erase it yourself")
    for path in found.outputs.republish:
        complain(f"{path}: was published before; publish it again with {PROGRAM} study publish, or delete it")


@participant.command()
def add(
    keys: Keys,
    name: Annotated[list[str], typer.Option(help="Name or nickname of the participant. Repeatable.")],
    pseudonym: Annotated[str, typer.Option(help="Pseudonym; default: random.")] = "",
    as_json: AsJson = False,
) -> None:
    """Assign a pseudonym to a participant."""
    given = KeyFile(keys).add(tuple(name), pseudonym=pseudonym)
    if as_json:
        print_json({"pseudonym": given})
    else:
        print(given)


@participant.command("list")
def list_(keys: Keys, as_json: AsJson = False) -> None:
    """List the pseudonyms, without the names."""
    found = KeyFile(keys).pseudonyms
    if as_json:
        print_json(found)
    else:
        print("\n".join(found) or "none")


@participant.command()
def forget(keys: Keys, pseudonym: Annotated[str, typer.Argument(help="Pseudonym to remove.")]) -> None:
    """Delete the name behind a pseudonym. Logs are not changed."""
    print("removed" if KeyFile(keys).forget(pseudonym) else "was not there")
