"""`tactful study assign, pack`: who codes what, and what a coder gets."""

from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE
from rich.table import Table

from norm_core.records.json_codec import to_plain
from norm_core.runtime.wording import count_of
from study_desk.study.assignment import assign
from study_desk.study.coding_pack import write_pack
from study_desk.study.study_folder import Study
from tactful_cli.bag.arguments import progress
from tactful_cli.console import err, print_json, print_table
from tactful_cli.study.folder import StudyPath
from tactful_cli.verb import AsJson

app = typer.Typer()


@app.command("assign")
def assign_(
    folder: StudyPath,
    twice: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Share of the sessions that two coders code; default: as in study.yaml."),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Random seed; default: as in study.yaml.")] = None,
    as_json: AsJson = False,
) -> None:
    """Draw who codes the sessions that name no coders, balanced by condition and coder, and write it to study.yaml.

    Sessions with coders are never drawn again.
    """
    found = assign(Study(folder), twice=twice, seed=seed)
    if as_json:
        print_json(to_plain(found))
        return
    table = Table(box=SIMPLE, padding=(0, 1, 0, 0))
    for name in ("session", "coders", "drawn"):
        table.add_column(name, overflow="fold")
    for session, coders in found.coders.items():
        table.add_row(session, ", ".join(coders), "now" if session in found.drawn else "before")
    print_table(table)
    loads = ", ".join(f"{coder}: {load}" for coder, load in found.loads.items())
    print(f"{count_of(len(found.drawn), 'session')} drawn with seed {found.seed}; sessions by coder: {loads}")


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
    """Write what a coder needs to code blind in ELAN or BORIS: speech, media, codebook and keys.

    The pack holds the sessions that the coder owes. Nothing in it tells flags, conditions or the work of others.
    """
    with progress("making videos") as tell:
        found = write_pack(Study(folder), coder, output, copy_media=copy_media, make_media=media, progress=tell)
    if as_json:
        print_json(to_plain(found))
        return
    print(f"{output}: {count_of(len(found.sessions), 'session')} for {coder}: {', '.join(found.sessions)}")
    for remark in found.remarks:
        err.print(remark, markup=False, soft_wrap=True)
