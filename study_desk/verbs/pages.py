"""`tactful study report, code, withdraw, publish`: pages, what is taken back and what is shared."""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from norm_core.bags.storage import is_bag
from norm_core.records.json_codec import to_plain
from norm_core.runtime.atomic_file import private_path
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.time import NS_PER_MS, WallClock
from norm_core.runtime.wording import count_of
from norm_monitor.session_log.recording import Recording, open_recording
from norm_monitor.session_log.redact import KeyFile, KeyFileError, NamesToRemove
from norm_monitor.session_log.schema import CONSENSUS, MONITOR, Consent, LinkedMedia, linked_media
from norm_monitor.session_log.session_config import redactor_of
from norm_monitor.session_log.study_folder import Study, StudyError, is_study, study_of
from norm_monitor.view.page_server import new_token
from norm_monitor.view.pictures import (
    BagStills,
    check_bag,
    has_sound,
    is_playable,
    reason_against_pictures,
    sound_piece,
)
from study_desk.analysis.session_page import session_page
from study_desk.analysis.study_tables import few_units, study_tables
from study_desk.analysis.write_analysis import write_analysis
from study_desk.coding.coding_server import CodingServer, PlayerMedia
from study_desk.coding.forms.sheet import origin_of
from study_desk.publication.dataset import KEY_FILE, LICENCES, PublicationKey
from study_desk.publication.publish import publish as publish_study
from study_desk.study.outputs import REPORT, default_output, note_output
from study_desk.study.withdrawal import (
    PlannedRemoval,
    StudyErasure,
    expire_study,
    plan_removal,
    remove_session,
    withdraw,
)
from study_desk.verbs.arguments import LogPath, StudyPath
from tactful_cli.console import complain, err, print_json, print_result, remark, show
from tactful_cli.session_options import face_finder, warn_of_listeners
from tactful_cli.verb import AsJson

app = typer.Typer()


@app.command()
def report(
    source: Annotated[
        Path, typer.Argument(metavar="BAG|LOG|STUDY", help="Study log, rosbag2 bag, or folder of a study.")
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="File, or folder of a study's report; default: in the study's exports, or beside the source.",
        ),
    ] = None,
    coder: Annotated[
        str,
        typer.Option(
            help="Of a study, coder whose labels count, or monitor; default: the consensus, else a session's first."
        ),
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Write a session as one HTML file that opens offline, without pictures.

    Of a study, write a report by condition, tables, a data dictionary and a script for R into a folder.
    """
    if is_study(source):
        _report_study(Study(source), output or source / "exports" / "analysis", coder, as_json=as_json)
        return
    if coder:
        raise TactfulError(f"{source}: --coder is for the report of a study; name its folder")
    recording = open_recording(source)
    path = output or default_output(source, recording, ".html")
    text = session_page(recording)
    with private_path(path) as part:
        part.write_text(text, encoding="utf-8", errors="replace")
    note_output(source, path, REPORT)
    result = {"file": str(path), "bytes": path.stat().st_size, "flags": len(recording.flags)}
    print_result(result, str(path), as_json=as_json, notes=recording.notes)


def _report_study(study: Study, folder: Path, coder: str, *, as_json: bool) -> None:
    tables = study_tables(study, coder)
    if coder and not tables.analysed:
        names = ", ".join(sorted({str(row["coder"]) for row in tables.sessions})) or "none"
        raise StudyError(f"{study.path}: no session is coded by {coder}; it has {names}: give one of them as --coder")
    written = write_analysis(study, tables, folder)
    plan_notes = [f"Deviation from the plan: {deviation}" for deviation in tables.plan.deviations]
    notes = [
        *few_units(tables),
        *plan_notes,
        *tables.remarks,
        *(f"{path}: was changed, so stays as it is" for path in written.edited),
    ]
    files = [str(path) for path in written.files]
    result = {
        "files": files,
        "sessions": len(tables.sessions),
        "events": len(tables.events),
        "plan": to_plain(tables.plan),
    }
    result["notes"] = notes
    rows, events = count_of(len(tables.sessions), "row"), count_of(len(tables.events), "label")
    next_step = f"{rows} of sessions, {events}. Open report.html; run analysis.R in that folder."
    print_result(result, *files, as_json=as_json, notes=(*notes, next_step))


@app.command()
def code(  # noqa: PLR0917
    log: LogPath,
    coder: Annotated[
        list[str], typer.Option(help="Pseudonym of a coder, who receives a link. Repeatable.", show_default=False)
    ],
    bag: Annotated[Path | None, typer.Option(help="Bag for stills and sound; default: as in study.yaml.")] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="TCP port; 0: a free one.")] = 0,
    host: Annotated[
        str, typer.Option(help="Address to listen on. Any address other than loopback exposes the log to the network.")
    ] = "127.0.0.1",
    keys: Annotated[Path | None, typer.Option(help="Key file with the names to remove from comments.")] = None,
    as_json: AsJson = False,
) -> None:
    """Serve the coding page on this machine until interrupted, and append to the log.

    Each coder is blind until their coding is done, then sees the others', and settles a consensus.
    """
    membership = study_of(log)
    watched = membership[0].recording_for_coders(membership[1]) if membership else open_recording(log)
    coders = {new_token(): name for name in coder}
    _check_coders(coder, membership)
    if bag is None and membership and (planned := membership[0].session(membership[1]).bag):
        bag = membership[0].folder / planned
    if bag and not is_bag(bag):
        raise TactfulError(f"{bag}: is not a rosbag2 bag; name the bag of the session")
    videos = [media for media in map(linked_media, watched.info.media) if is_playable(Path(media.path))]
    if bag is None and not videos:
        complain("coders see no picture and hear no sound: name the bag with --bag, or a video in study.yaml")
    server = CodingServer(
        log,
        coders,
        WallClock(),
        host=host,
        port=port,
        redactor=redactor_of(keys),
        study=membership[0].file if membership else None,
        media=player_media(watched, bag, videos),
        notes=_order_notes(membership, coder),
    )
    warn_of_listeners(host, "the session")
    if as_json:
        print_json([{"coder": name, "url": server.url(token)} for token, name in coders.items()])
    else:
        for token, name in coders.items():
            show(f"{name}  {server.url(token)}")
        err.print("Ctrl-C ends it.")
    try:
        server.serve()
    finally:
        server.close()


def _check_coders(coders: list[str], membership: tuple[Study, str] | None) -> None:
    """Refuse a name that is given twice or is no coder's."""
    if repeated := {name for name in coders if coders.count(name) > 1}:
        raise TactfulError(f"--coder: {min(repeated)} is given twice; give each coder once")
    if taken := {"", MONITOR, CONSENSUS} & {name.strip() for name in coders}:
        raise TactfulError(f"--coder: {min(taken) or 'an empty name'} is no person; give a pseudonym")
    if membership is None:
        return
    study, session = membership
    study.check_known("coder", coders, study.file.coders)
    assigned = study.file.coders_of(session)
    if others := [name for name in coders if name not in assigned]:
        complain(f"session {session} is assigned to {', '.join(assigned)}, not to {', '.join(others)}")


def _order_notes(membership: tuple[Study, str] | None, coders: list[str]) -> dict[str, str]:
    """Tell each coder which session of theirs this is, in the order drawn for them, and what comes before it."""
    notes: dict[str, str] = {}
    if membership is None:
        return notes
    study, session = membership
    for name in coders:
        order = study.file.sessions_of(name)
        if session in order:
            earlier = order[: order.index(session)]
            logs = dict(study.logs())
            owed = [
                earlier_session
                for earlier_session in earlier
                if earlier_session in logs and name not in study.recording_of(earlier_session).coders
            ]
            first = f" Code {', '.join(owed)} first." if owed else ""
            notes[name] = f"Session {len(earlier) + 1} of {len(order)} in the order drawn for you.{first}"
            if owed:
                complain(f"{name}: codes {', '.join(owed)} before {session}, in the order drawn for them")
    return notes


def player_media(recording: Recording, bag: Path | None, videos: Sequence[LinkedMedia]) -> PlayerMedia:
    """Choose what the coders' player shows: a video, else stills and sound of the bag. Without consent, nothing."""
    if not (bag or videos):
        return PlayerMedia(why="No picture: this page was served without one.")
    if reason := reason_against_pictures(recording):
        return PlayerMedia(why=f"No picture: {reason}")
    if bag:
        check_bag(recording, bag)
    stills = BagStills(bag, face_finder()) if bag else None
    ahead_ms = (origin_of(recording) - recording.start_ns) / NS_PER_MS  # from the session's start to the media's
    return PlayerMedia(
        still_at=stills.at if stills and stills.topic else None,
        sound_of=partial(sound_piece, recording, bag) if bag and has_sound(bag) else None,
        video=Path(videos[0].path) if videos else None,
        video_offset_ms=ahead_ms - videos[0].offset_s * 1000 if videos else 0.0,
        why="No picture: the bag has no camera.",
    )


_NO_KEY_FILE = "No key file was changed: remove the name there too, with --keys."


@app.command("withdraw")
def withdraw_(  # noqa: PLR0917
    folder: StudyPath,
    participant: Annotated[str, typer.Argument(metavar="PSEUDONYM", help="Pseudonym of the participant.")] = "",
    words: Annotated[bool, typer.Option("--words", help="Withhold their words, and all that quotes them.")] = False,
    coders: Annotated[bool, typer.Option("--coders", help="Hide them from coders; delete packs.")] = False,
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

    Take the words and names that went out of what others said and wrote too, delete what was made from these sessions,
    then search every file of the folder. Exits with 1 if something is left to do. A log outside a study is first added
    to one.
    """
    study = Study(folder)
    if [bool(participant), bool(session), expired].count(True) != 1:
        raise TactfulError(f"{folder}: give the PSEUDONYM of who withdraws, --session or --expired, and one of them")
    if session:
        _remove(study, session, reason, yes=yes, as_json=as_json)
        return
    if expired:
        _expire(study, as_json=as_json)
        return
    chosen = {
        Consent.WORDS: words,
        Consent.CODERS: coders,
        Consent.CLIPS: clips,
        Consent.PUBLICATION: publication,
        Consent.EVERYTHING: everything,
    }
    consents = tuple(consent for consent, is_chosen in chosen.items() if is_chosen)
    if not consents:
        raise TactfulError(
            f"{participant}: nothing is named to withdraw; name --words, --clips, --coders, --publication or "
            "--everything"
        )
    key_file = keys or _key_file_in(folder, participant)
    erasure = withdraw(
        study,
        participant,
        consents,
        WallClock(),
        reason or "the participant's wish",
        keep_unattributed=keep_unattributed,
        names=KeyFile(key_file).names_of(participant) if key_file else (),
        key_file=key_file,
    )
    is_left = erasure.faults or erasure.missing  # whose names the next time is to look for
    key_removed = KeyFile(key_file).forget(participant) if key_file and everything and not is_left else False
    if everything and is_left:
        err.print("The key file stays as it is until every session is done: run this again then.")
    elif everything and not key_removed:
        err.print(_NO_KEY_FILE)
    done = f"of {participant} erased" if everything else f"of {participant} without words now" if words else ""
    _print_erasure(study, erasure, done, as_json=as_json, key_removed=key_removed)


def _remove(study: Study, session: str, reason: str, *, yes: bool, as_json: bool) -> None:
    """List what goes with a session, and remove it once that is confirmed."""
    planned = plan_removal(study, session)
    if as_json and not yes:
        raise TactfulError(f"session {session}: --json asks nothing; give --yes to remove it")
    if not as_json:
        _print_removal(planned)
    if not yes:
        typer.confirm("Remove this for good? (--yes leaves this question out)", abort=True)
    outputs = remove_session(study, planned, WallClock(), reason)
    result = to_plain(planned) | {"outputs": to_plain(outputs)}
    print_result(result, f"session {session} is removed", as_json=as_json)
    remark(*(f"{path}: was changed since it was made, so it stays" for path in outputs.changed))
    remark(*(f"{path}: lies outside the study's folder, so it stays" for path in outputs.outside))


def _print_removal(planned: PlannedRemoval) -> None:
    counts = ", ".join(f"{count} {kind}" for kind, count in planned.entries.items()) or "no entries"
    show(f"session {planned.session}: {counts}; coded by {', '.join(planned.coders) or 'nobody'}")
    for path in planned.files:
        show(f"goes: {path}")
    for path in planned.outputs:
        show(f"goes, unless it was changed since: {path}")
    for path in planned.stays:
        show(f"stays: {path}")


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
    _print_files(study, erasure)
    emptied = {name: f"{count_of(count, 'entry', 'entries')} emptied" for name, count in counts.items() if count}
    print_result(counts, *(f"{name}: {emptied.get(name, 'nothing is due')}" for name in counts), as_json=as_json)
    if not erasure.is_complete:
        raise typer.Exit(1)


def _print_erasure(study: Study, erasure: StudyErasure, what: str, *, as_json: bool, **more: object) -> None:
    """Print what became of a study's sessions and files. Exits with 1 if something is left to do.

    `what` tells what was done with the entries; empty: they stay, and the withdrawal is noted.
    """
    if as_json:
        print_json(to_plain(erasure) | more)
    else:
        for name, count in erasure.entries.items():
            if name not in erasure.faults:
                show(f"{name}: {count_of(count, 'entry', 'entries')} {what}" if what else f"{name}: noted")
        if not (erasure.entries or erasure.missing):
            show("no session is concerned")
        if erasure.looked_for:
            show(erasure.looked_for)
    _print_files(study, erasure)
    if not erasure.is_complete:
        raise typer.Exit(1)


def _print_files(study: Study, erasure: StudyErasure) -> None:
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
        folder = (study.folder / path).parent.resolve()
        session = next((name for name, log in study.logs() if log.resolve() == folder), "")
        if not session:
            complain(f"{path}: {what}, so it is left to you; erase it, or take that out of it")
        elif session not in erasure.faults:
            command = f"{PROGRAM} study withdraw {study.folder} --session {session}"
            complain(f"{path}: {what} where no entry can be erased; remove the session, and add it anew: {command}")
    for path in erasure.outputs.republish:
        complain(f"{path}: was published before; publish it again with {PROGRAM} study publish, or delete it")


@app.command()
def publish(
    folder: StudyPath,
    output: Annotated[Path, typer.Argument(metavar="OUT", help="Folder to write the dataset into.")],
    licence: Annotated[
        str, typer.Option(help=f"Licence of the data: {', '.join(LICENCES)}, or your own words; default: none granted.")
    ] = "",
    keys: Annotated[
        Path | None, typer.Option(help="Key file with the real names, which must stand in no file.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a pseudonymised dataset of who consented, in BIDS's layout, after a check for names, media and times."""
    study = Study(folder)
    names = KeyFile(keys).names() if keys else NamesToRemove()
    labels = PublicationKey(study.folder / KEY_FILE)
    published = publish_study(study, output, labels, WallClock(), names, licence)
    sessions, people = count_of(published.sessions, "session"), count_of(published.participants, "participant")
    done = f"{output}: {sessions} of {people}, {count_of(len(published.files), 'file')}"
    notes = [
        *([] if keys else ["no key file was given, so real names were not looked for: give --keys"]),
        *published.left_out,
        *(f"{name}: was edited, so stays as it is" for name in published.kept),
        f"{labels.path}: says which label is whose; keep it apart from the dataset",
        f"edit README.md, then run {PROGRAM} study publish again: it checks what you wrote",
    ]
    print_result(to_plain(published) | {"notes": notes}, done, as_json=as_json, notes=notes)
