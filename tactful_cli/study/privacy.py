"""`tactful study erase, expire, inventory, participant`."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import WallClock
from norm_core.runtime.wording import count_of
from study_desk.privacy import erase as erasing
from study_desk.privacy.inventory import inventory
from study_desk.privacy.key_file import KeyFile
from tactful_cli.console import complain, err, print_json, print_table
from tactful_cli.study.logs import LogPath
from tactful_cli.verb import AsJson

app = typer.Typer()
participant = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Manage the key file, which links pseudonyms to names."
)

Keys = Annotated[Path, typer.Option(help="Key file; keep it apart from every log.")]


@app.command()
def erase(  # noqa: PLR0917
    log: LogPath,
    participant: Annotated[str, typer.Option(help="Pseudonym whose data to erase.")],
    keys: Annotated[Path | None, typer.Option(help="Key file from which to remove the participant too.")] = None,
    reason: Annotated[str, typer.Option(help="Reason to store in the tombstone.")] = "the participant's wish",
    keep_unattributed: Annotated[
        bool, typer.Option("--keep-unattributed", help="Keep entries without a participant if several took part.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Erase a participant's data from a log for good. A tombstone remains, and the hash chain stays valid."""
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
        err.print("No key file was changed: remove the name there too, with --keys.")
    err.print("Bags, exports, reports and copies made from this log are not reached from here: erase them as well.")


@app.command()
def expire(
    logs: Annotated[list[Path], typer.Argument(metavar="LOG...", help="Folders of study logs.")],
    as_json: AsJson = False,
) -> None:
    """Erase the logs whose retention time is over. Tries every log, then exits with 1 if one failed."""
    counts: dict[str, int] = {}
    for log in logs:
        try:
            counts[str(log)] = erasing.expire(log, WallClock())
        except TactfulError as error:
            complain(str(error))
    if as_json:
        print_json(counts)
    else:
        for name, count in counts.items():
            print(f"{name}: {count_of(count, 'entry', 'entries') + ' emptied' if count else 'nothing is due'}")
    if len(counts) < len({str(log) for log in logs}):
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
