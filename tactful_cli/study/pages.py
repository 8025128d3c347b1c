"""`tactful study report, review`."""

from pathlib import Path
from typing import Annotated

import typer

from norm_core.bags.listing import is_bag
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import WallClock
from norm_core.runtime.wording import count_of
from norm_monitor.senses.faces.weights import FaceWeightsMissingError
from study_desk.coding.forms.sheet import in_place_of
from study_desk.log.recording import Recording, open_recording
from study_desk.log.session_config import redactor_of
from study_desk.privacy.blur import FindFaces
from study_desk.privacy.face_search import TiledFaceDetector
from study_desk.report.clips import check_bag, clip, reason_against_clips, thumbnails
from study_desk.report.page_server import LOOPBACK, new_token
from study_desk.report.report import page
from study_desk.report.review_server import ReviewServer
from study_desk.study.outputs import REPORT, default_output, note_output
from tactful_cli.console import complain, err, print_json
from tactful_cli.study.logs import LogPath, SourcePath
from tactful_cli.verb import AsJson

app = typer.Typer()


@app.command()
def report(
    source: SourcePath,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write; default: in the study's exports, or beside the source."),
    ] = None,
    frames: Annotated[
        Path | None,
        typer.Option(
            metavar="BAG", help="Bag to take images from: at most 3 per flag and 40 MB in total, faces blurred."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a session as one HTML file that opens offline. It holds images only with --frames."""
    recording = open_recording(source)
    pictures: dict[str, list[str]] = {}
    notes: list[str] = []
    if frames:
        pictures, left_out = thumbnails(recording, frames, face_finder())
        if left_out:
            notes.append(f"{count_of(left_out, 'picture')} left out to stay within 40 MB")
    path = output or default_output(source, recording, ".html")
    text = page(recording, pictures, notes=notes)
    with in_place_of(path) as part:
        part.write_text(text, encoding="utf-8", errors="replace")
    note_output(source, path, REPORT)
    if as_json:
        shown = sum(map(len, pictures.values()))
        print_json({"file": str(path), "bytes": path.stat().st_size, "flags": len(recording.flags), "pictures": shown})
    else:
        print(path)
        for note in (*recording.notes, *notes):
            err.print(note, markup=False)


@app.command()
def review(  # noqa: PLR0917
    log: LogPath,
    reviewer: Annotated[
        list[str], typer.Option(help="Pseudonym of a reviewer; each receives a token. Repeatable.", show_default=False)
    ],
    bag: Annotated[Path | None, typer.Option(help="Bag to cut clips from, for participants with consent.")] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="TCP port; 0: a free one.")] = 0,
    host: Annotated[
        str, typer.Option(help="Address to listen on. Any address other than loopback exposes the log to the network.")
    ] = "127.0.0.1",
    keys: Annotated[Path | None, typer.Option(help="Key file with the names to remove from notes.")] = None,
    as_json: AsJson = False,
) -> None:
    """Serve the report on this machine until interrupted, and append verdicts to the log."""
    if bag and not is_bag(bag):
        raise TactfulError(f"{bag}: is not a rosbag2 bag; name the bag of the session")
    tokens = {new_token(): name for name in reviewer}
    if len(set(tokens.values())) < len(tokens):
        raise TactfulError("--reviewer: a name is given twice; give each reviewer once")
    recording = open_recording(log)
    reason = reason_against_clips(recording) if bag else ""
    if bag and not reason:
        check_bag(recording, bag)
    finder = face_finder() if bag and not reason else None

    def cut(shown: Recording, event_id: str) -> tuple[bytes, str]:
        return clip(shown, event_id, bag or Path(), finder)

    try:
        server = ReviewServer(
            log,
            tokens,
            WallClock(),
            host=host,
            port=port,
            clip=cut if bag and not reason else None,
            no_clip=reason,
            redactor=redactor_of(None, keys),
        )
    except OSError as error:
        raise TactfulError(f"{host}:{port}: cannot be listened on: {error.strerror}; give another --port") from error
    if host not in LOOPBACK:
        complain(f"listening on {host}: whoever reaches this machine and has a link sees the session, unencrypted")
    if as_json:
        print_json([{"reviewer": name, "url": server.url(token)} for token, name in tokens.items()])
    else:
        for token, name in tokens.items():
            print(f"{name}  {server.url(token)}", flush=True)
        err.print("Ctrl-C ends it.")
    try:
        server.serve()
    finally:
        server.close()


def face_finder() -> FindFaces | None:
    """Load the face detector. Returns None, and warns on standard error, where its weights are missing."""
    try:
        return TiledFaceDetector().find
    except FaceWeightsMissingError as error:
        complain(f"pictures are blurred as a whole, as faces cannot be found: {error}")
        return None
