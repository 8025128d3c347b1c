"""`tactful study import`: bring coders' labels and reviewers' verdicts into logs."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from norm_core.records.json_codec import RecordError, from_json
from norm_core.runtime.time import NS_PER_MS, WallClock, ns_to_s
from norm_core.runtime.wording import count_of
from study_desk.coding.forms import boris, eaf, table
from study_desk.coding.forms.sheet import FormError, sheet_of
from study_desk.log.reader import LogError
from study_desk.log.recording import Recording, open_recording
from study_desk.log.schema import Coding, Label, Review
from study_desk.log.session_config import redactor_of
from study_desk.log.writer import LogWriteError, StudyLog
from study_desk.study.study_folder import study_of
from tactful_cli.console import print_json
from tactful_cli.study.logs import LogPath
from tactful_cli.verb import AsJson

app = typer.Typer()


@app.command("import")
def import_(  # noqa: PLR0917
    log: LogPath,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="Coded EAF, BORIS sheet (xlsx, tsv), CSV, or a review's JSON."),
    ] = None,
    coder: Annotated[str, typer.Option(help="Pseudonym of the coder or reviewer; default: as in the file.")] = "",
    observation: Annotated[
        str, typer.Option(metavar="ID", help="Observation to import from a BORIS export with several.")
    ] = "",
    keys: Annotated[Path | None, typer.Option(help="Key file with the names to remove from comments.")] = None,
    add: Annotated[bool, typer.Option("--add", help="Add to this coder's labels in the log.")] = False,
    complete: Annotated[
        bool,
        typer.Option(
            "--complete",
            help="Record that the coder coded the whole session. A form without rows implies it.",
        ),
    ] = False,
    outside: Annotated[
        bool, typer.Option("--outside", help="Accept labels that start before or after the session.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Append a coder's labels or a reviewer's verdicts to a log. Entries already in the log are skipped."""
    recording = open_recording(log)
    if file is None and not complete:
        raise FormError(f"{log}: no file of labels is named; give a FILE, or --complete if the coder found nothing")
    coded = _read(file, recording, coder, observation) if file else ()
    if file and not outside:
        _check_times(file, coded, recording)
    empty = file is not None and not coded and file.suffix.lower() != ".json"
    new = _new(coded, recording, log, empty_by=coder if empty else "", add=add)
    found = (*new, *_codings(coded, new, recording, coder, complete=complete or empty))
    if belongs := study_of(log):
        study, _ = belongs
        coders = {entry.coder for entry in found if isinstance(entry, Label | Coding)}
        study.check_known("coder", sorted(coders), study.file.coders)
    redactor = redactor_of(None, keys)
    with StudyLog.resume(log, WallClock(), redactor=redactor) as writer:
        before = writer.entries
        try:
            for entry in found:
                writer.append(entry, entry.start_ns if isinstance(entry, Label) else recording.end_ns)
        except LogWriteError as error:
            taken = f"{writer.entries - before} of {len(found)} are in the log"
            raise LogError(f"{error}, and import the file again with --add: {taken}") from error
        head = writer.head
    if as_json:
        print_json({"imported": len(found), "head": head})
    else:
        labels, verdicts = (sum(isinstance(entry, kind) for entry in found) for kind in (Label, Review))
        counts = [count_of(number, name) for number, name in ((labels, "label"), (verdicts, "verdict")) if number]
        counts += [
            f"coding by {e.coder} complete: {count_of(e.labels, 'label')}" for e in found if isinstance(e, Coding)
        ]
        print(f"{', '.join(counts) or 'nothing new'}\nhead {head}")


def _check_times(file: Path, coded: Iterable[Label | Review], recording: Recording) -> None:
    """Refuse labels that start outside the session by a millisecond or more."""
    origin_ns = sheet_of(recording).origin_ns
    begun_ns = [entry.start_ns for entry in coded if isinstance(entry, Label)]
    outside = [ns for ns in begun_ns if not origin_ns - NS_PER_MS < ns < recording.end_ns + NS_PER_MS]
    if outside:
        named = ", ".join(f"{ns_to_s(ns - origin_ns):.1f} s" for ns in outside[:5]) + (", ..." if outside[5:] else "")
        raise FormError(
            f"{file}: {len(outside)} of {len(begun_ns)} labels begin outside the session, which is from 0 to "
            f"{ns_to_s(recording.end_ns - origin_ns):.1f} s: {named}. Correct them, or take them with --outside"
        )


def _read(file: Path, recording: Recording, coder: str, observation: str) -> tuple[Label | Review, ...]:
    origin_ns, session = sheet_of(recording).origin_ns, recording.info.session
    if observation and file.suffix.lower() not in (".xlsx", ".tsv"):
        raise FormError(f"{file}: --observation is for a BORIS export (xlsx, tsv); leave it out")
    match file.suffix.lower():
        case ".eaf":
            labels = eaf.read_eaf(file, coder, None if _states_origin(file) else origin_ns, session)
            return (*labels, *_known(file, eaf.read_verdicts(file, coder, session), recording))
        case ".xlsx" | ".tsv":
            return boris.read_boris(file, coder, origin_ns, observation)
        case ".csv":
            return table.read_csv(file, coder, origin_ns, session)
        case ".jsonl":
            return table.read_jsonl(file, coder, origin_ns, session)
        case ".json":
            return _known(file, _reviews(file, recording, coder), recording)
        case other:
            raise FormError(f"{file}: {other or 'no ending'} is not read; eaf, xlsx, tsv, csv, jsonl and json are")


def _new(
    read: tuple[Label | Review, ...], recording: Recording, log: Path, *, empty_by: str, add: bool
) -> tuple[Label | Review, ...]:
    """Select the entries that the log lacks. A second version of a coder's work would count twice, so it is refused."""
    known: set[Label | Review] = {*recording.labels, *recording.reviews}
    found = tuple(entry for entry in read if entry not in known)
    coders = recording.coders & {entry.coder for entry in found if isinstance(entry, Label)}
    coders |= {empty_by} & {label.coder for label in recording.labels}
    if coders and not add:
        raise FormError(
            f"{log}: has a coding by {', '.join(sorted(coders))} already, and this is another: "
            "give another --coder, or --add it to the first"
        )
    return found


def _codings(
    read: Iterable[Label | Review], found: Iterable[Label | Review], recording: Recording, coder: str, *, complete: bool
) -> tuple[Coding, ...]:
    """Make the records of complete codings. New labels renew an existing record."""
    new = [entry.coder for entry in found if isinstance(entry, Label)]
    coders = {*new} & {coding.coder for coding in recording.codings}
    if complete:
        if any(isinstance(entry, Review) for entry in read):
            raise FormError(f"{recording.source}: verdicts are no coding of the whole session; leave --complete out")
        coders |= {coder} if coder else {entry.coder for entry in read if isinstance(entry, Label)}
        if not coders:
            raise FormError(f"{recording.source}: the coding names no coder; give --coder")
    counts = Counter([*new, *(label.coder for label in recording.labels)])
    codings = (Coding(coder=each, labels=counts[each]) for each in sorted(coders))
    return tuple(coding for coding in codings if coding not in recording.codings)


def _states_origin(file: Path) -> bool:
    try:
        return eaf.ORIGIN in file.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise FormError(f"{file}: cannot be read: {error.strerror}") from error


def _reviews(file: Path, recording: Recording, coder: str) -> tuple[Review, ...]:
    try:
        plain = json.loads(file.read_text(encoding="utf-8"))
        if plain["session"] != recording.info.session:
            raise FormError(f"{file}: is of session {plain['session']}, and the log of {recording.info.session}")
        reviews = tuple(from_json(Review, json.dumps(review)) for review in plain["reviews"])
        return tuple(replace(review, reviewer=coder or review.reviewer) for review in reviews)
    except (OSError, ValueError, KeyError, TypeError, RecordError) as error:
        if isinstance(error, FormError):
            raise
        raise FormError(f"{file}: is no review that the report exported: {error}") from error


def _known(file: Path, reviews: tuple[Review, ...], recording: Recording) -> tuple[Review, ...]:
    """Check that each verdict refers to an event of the log."""
    known = {flag.event_id for flag in recording.flags}
    if unknown := [review.event_id for review in reviews if review.event_id not in known]:
        raise FormError(f"{file}: reviews events that are not in this log: {', '.join(unknown[:3])}")
    return reviews
