"""`tactful study withdraw`: carry out a withdrawal, end retention, or remove a session."""

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from norm_core.records.json_codec import to_plain
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.time import WallClock
from norm_core.runtime.wording import count_of
from norm_monitor.session_log.key_file import KeyFile, KeyFileError
from norm_monitor.session_log.schema import Consent
from norm_monitor.session_log.study_folder import Study
from study_desk.study.removal import plan_removal, remove_session
from study_desk.study.withdrawal import StudyErasure, expire_study, withdraw
from study_desk.verbs.arguments import StudyPath
from tactful_cli.console import complain, err, print_json, print_result, remark, show
from tactful_cli.verb_options import AsJson

app = typer.Typer()


@app.command("withdraw")
def withdraw_(  # noqa: PLR0917
    folder: StudyPath,
    participant: Annotated[str, typer.Argument(metavar="PSEUDONYM", help="Pseudonym of the participant.")] = "",
    words: Annotated[bool, typer.Option("--words", help="Withhold their words, and all that quotes them.")] = False,
    coders: Annotated[bool, typer.Option("--coders", help="Hide them from coders; delete packs.")] = False,
    everything: Annotated[bool, typer.Option("--everything", help="Erase all their data, for good.")] = False,
    keys: Annotated[
        Path | None,
        typer.Option(
            help="Key file with their names, to search for; --everything removes them there. "
            "Default: one that lies in the study's folder."
        ),
    ] = None,
    expired: Annotated[
        bool, typer.Option("--expired", help="Erase everybody's data in the logs whose retention is over; for a timer.")
    ] = False,
    session: Annotated[
        str,
        typer.Option(
            metavar="SESSION",
            help="Remove a session with its log, codings and exports, after listing them. Its bag and media stay, "
            "and it can be added anew.",
        ),
    ] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Remove the session without asking.")] = False,
    reason: Annotated[
        str, typer.Option(help="Reason to store in the tombstones; default: the participant's wish, or none.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Carry out a withdrawal for good, in every log of a study. A tombstone remains; the hash chain stays valid.

    Also take the withdrawn words and names out of what others said and wrote, and delete what was made from these
    sessions. Then search every file of the folder. Exits with 1 if something is left to do. Add a log outside a study
    to one first.
    """
    study = Study(folder)
    if [bool(participant), bool(session), expired].count(True) != 1:
        raise TactfulError(f"{folder}: give one of three: the PSEUDONYM of who withdraws, --session or --expired")
    if session:
        _remove_session(study, session, reason, yes=yes, as_json=as_json)
        return
    if expired:
        _print_erasure(study, expire_study(study, WallClock()), "emptied", as_json=as_json)
        return
    is_chosen = {Consent.WORDS: words, Consent.CODERS: coders, Consent.EVERYTHING: everything}
    consents = tuple(consent for consent in is_chosen if is_chosen[consent])
    if not consents:
        raise TactfulError(f"{participant}: nothing is named to withdraw; name --words, --coders or --everything")
    key_file = keys or _find_key_file(folder, participant)
    erasure = withdraw(
        study,
        participant,
        consents,
        WallClock(),
        reason or "the participant's wish",
        names=KeyFile(key_file).names_of(participant) if key_file else (),
        key_file=key_file,
    )
    # While a session is left, the next run looks for the names in it.
    is_session_left = bool(erasure.faults or erasure.missing)
    key_removed = KeyFile(key_file).forget(participant) if key_file and everything and not is_session_left else False
    if everything and is_session_left:
        err.print("The key file stays as it is until every session is done: run this again then.")
    elif everything and not key_removed:
        err.print("No key file was changed: remove the name there too, with --keys.")
    outcome = f"of {participant} erased" if everything else f"of {participant} without words now" if words else ""
    _print_erasure(study, erasure, outcome, as_json=as_json, key_removed=key_removed)


def _remove_session(study: Study, session: str, reason: str, *, yes: bool, as_json: bool) -> None:
    """List what goes with a session, and remove it once that is confirmed."""
    planned = plan_removal(study, session)
    if as_json and not yes:
        raise TactfulError(f"session {session}: --json asks nothing; give --yes to remove it")
    if not as_json:
        counts = ", ".join(f"{count} {kind}" for kind, count in planned.entries.items()) or "no entries"
        show(f"session {session}: {counts}; coded by {', '.join(planned.coders) or 'nobody'}")
        show(f"goes: {planned.log}")
        for path in planned.outputs:
            show(f"goes, unless it was changed since: {path}")
        for path in planned.stays:
            show(f"stays: {path}")
    if not yes:
        typer.confirm("Remove this for good? (--yes leaves this question out)", abort=True)
    outputs = remove_session(study, planned, WallClock(), reason)
    result = to_plain(planned) | {"outputs": to_plain(outputs)}
    print_result(result, f"session {session} is removed", as_json=as_json)
    remark(*(f"{path}: was changed since it was made, so it stays" for path in outputs.changed))
    remark(*(f"{path}: lies outside the study's folder, so it stays" for path in outputs.outside))


def _find_key_file(folder: Path, participant: str) -> Path | None:
    """Find a key file that lies in a study's folder and names the participant."""
    for path in sorted(folder.glob("*.json")):
        with suppress(KeyFileError):
            if participant in KeyFile(path).pseudonyms:
                return path
    return None


def _print_erasure(study: Study, erasure: StudyErasure, outcome: str, *, as_json: bool, **details: object) -> None:
    """Print the outcome for a study's sessions and files. Exits with 1 if something is left to do.

    `outcome` completes "N entries ..."; if empty, the entries stay and the withdrawal is noted.
    """
    if as_json:
        print_json(to_plain(erasure) | details)
    else:
        for name, count in erasure.entries.items():
            if name not in erasure.faults:
                show(f"{name}: {count_of(count, 'entry', 'entries')} {outcome}" if outcome else f"{name}: noted")
        if not (erasure.entries or erasure.missing):
            show("no session is concerned")
        if erasure.scope:
            show(erasure.scope)
    _complain_of_rest(study, erasure)
    if not erasure.is_complete:
        raise typer.Exit(1)


def _complain_of_rest(study: Study, erasure: StudyErasure) -> None:
    """Print on standard error what was deleted, and which sessions and files were not reached."""
    for fault in erasure.faults.values():
        complain(fault)
    for name in erasure.missing:
        complain(f"session {name}: its log is not there, so nothing in it is erased; find it, and run this again")
    remark(*(f"deleted: {path}" for path in erasure.outputs.deleted))
    for path in erasure.outputs.changed:
        complain(f"{path}: was changed since it was made, so it stays; import what is new in it, then delete it")
    for path in (*erasure.outputs.outside, *erasure.not_reached):
        complain(f"{path}: is not reached from here; erase it yourself")
    for path, content in erasure.left.items():
        folder = (study.folder / path).parent.resolve()
        session = next((name for name, log in study.logs() if log.resolve() == folder), "")
        if not session:
            complain(f"{path}: {content}, so it is left to you; erase it, or take that out of it")
        elif session not in erasure.faults:
            command = f"{PROGRAM} study withdraw {study.folder} --session {session}"
            complain(f"{path}: {content} where no entry can be erased; remove the session, and add it anew: {command}")
