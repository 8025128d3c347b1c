"""`tactful study pack`: write packs for coders."""

from pathlib import Path
from typing import Annotated

import typer

from norm_core.records.json_codec import to_plain
from norm_core.runtime.wording import count_of
from norm_monitor.session_log.study_folder import Study
from study_desk.study.coding_pack import write_pack
from study_desk.verbs.arguments import StudyPath
from tactful_cli.console import print_json, remark, show
from tactful_cli.progress import show_progress
from tactful_cli.verb_options import AsJson

app = typer.Typer()


@app.command()
def pack(  # noqa: PLR0917
    folder: StudyPath,
    output: Annotated[Path, typer.Argument(metavar="OUT", help="New folder to write the pack into.")],
    coder: Annotated[str, typer.Option(help="Pseudonym of the coder.", show_default=False)],
    copy_media: Annotated[
        bool, typer.Option("--copy-media", help="Copy video and sound into the pack instead of linking them.")
    ] = False,
    media: Annotated[
        bool, typer.Option("--media", help="Make a video with sound from the bag of each session without media.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write what a coder needs to code blind in ELAN, BORIS or a table: speech, media, codebook and keys.

    The pack holds the sessions that the coder has yet to code. It shows no flags, conditions or work of others.
    """
    with show_progress("making videos") as update_progress:
        coding_pack = write_pack(
            Study(folder), coder, output, copy_media=copy_media, make_media=media, progress=update_progress
        )
    if as_json:
        print_json(to_plain(coding_pack))
        return
    show(f"{output}: {count_of(len(coding_pack.sessions), 'session')} for {coder}: {', '.join(coding_pack.sessions)}")
    remark(*coding_pack.remarks)
