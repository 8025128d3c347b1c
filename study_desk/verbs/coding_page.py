"""`tactful study code`: the coding page for each coder of a session."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from norm_core.bags.storage import is_bag
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import NS_PER_MS, WallClock
from norm_monitor.session_log.recording import Recording, open_recording
from norm_monitor.session_log.schema import CONSENSUS, MONITOR, LinkedMedia, parse_media
from norm_monitor.session_log.session_config import make_redactor
from norm_monitor.session_log.study_folder import Study, study_of
from norm_monitor.view.page_server import make_token
from norm_monitor.view.pictures import (
    BagStills,
    check_bag,
    explain_hidden_pictures,
    has_sound,
    is_playable,
    make_sound_piece,
)
from study_desk.coding.coding_server import CodingServer, PlayerMedia
from study_desk.coding.forms.sheet import find_origin_ns
from tactful_cli.console import complain, err, print_json, show
from tactful_cli.session_options import face_finder, warn_of_listeners
from tactful_cli.verb_options import AsJson

app = typer.Typer()


@app.command()
def code(  # noqa: PLR0917
    log: Annotated[Path, typer.Argument(metavar="LOG", help="Folder of a study log.")],
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

    Each coder works blind until their coding is done, then sees the others' and settles a consensus.
    """
    membership = study_of(log)
    recording = membership[0].recording_for_coders(membership[1]) if membership else open_recording(log)
    coders = {make_token(): name for name in coder}
    _check_coders(coder, membership)
    if bag is None and membership and (planned := membership[0].session(membership[1]).bag):
        bag = membership[0].folder / planned
    if bag and not is_bag(bag):
        raise TactfulError(f"{bag}: is not a rosbag2 bag; name the bag of the session")
    videos = [media for media in map(parse_media, recording.info.media) if is_playable(Path(media.path))]
    if bag is None and not videos:
        complain("coders see no picture and hear no sound: name the bag with --bag, or a video in study.yaml")
    server = CodingServer(
        log,
        coders,
        WallClock(),
        host=host,
        port=port,
        redactor=make_redactor(keys),
        study=membership[0].file if membership else None,
        media=choose_player_media(recording, bag, videos),
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
    """Refuse a name that is given twice, or is not a coder's."""
    if repeated := {name for name in coders if coders.count(name) > 1}:
        raise TactfulError(f"--coder: {min(repeated)} is given twice; give each coder once")
    if reserved := {"", MONITOR, CONSENSUS} & {name.strip() for name in coders}:
        raise TactfulError(f"--coder: {min(reserved) or 'an empty name'} is not a person; give a pseudonym")
    if membership is None:
        return
    study, session = membership
    study.check_known("coder", coders, study.file.coders)
    assigned = study.file.coders_of(session)
    if others := [name for name in coders if name not in assigned]:
        complain(f"session {session} is assigned to {', '.join(assigned)}, not to {', '.join(others)}")


def choose_player_media(recording: Recording, bag: Path | None, videos: Sequence[LinkedMedia]) -> PlayerMedia:
    """Choose what the coders' player shows: a video, else stills and sound of the bag. Without consent, nothing."""
    if not (bag or videos):
        return PlayerMedia(why="No picture: this page was served without one.")
    if reason := explain_hidden_pictures(recording):
        return PlayerMedia(why=f"No picture: {reason}")
    if bag:
        check_bag(recording, bag)
    stills = BagStills(bag, face_finder()) if bag else None
    media_start_ms = (find_origin_ns(recording) - recording.start_ns) / NS_PER_MS  # from the session's start
    return PlayerMedia(
        still_at=stills.at if stills and stills.topic else None,
        sound_of=partial(make_sound_piece, recording, bag) if bag and has_sound(bag) else None,
        video=Path(videos[0].path) if videos else None,
        video_offset_ms=media_start_ms - videos[0].offset_s * 1000 if videos else 0.0,
        why="No picture: the bag has no camera.",
    )
