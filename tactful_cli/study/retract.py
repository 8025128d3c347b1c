"""`tactful study retract`: take a coding back."""

from typing import Annotated

import typer

from norm_core.records.json_codec import to_plain
from norm_core.runtime.time import WallClock
from norm_core.runtime.wording import count_of
from study_desk.study.retract_coding import retract_coding
from tactful_cli.console import err, print_json
from tactful_cli.study.logs import LogPath
from tactful_cli.verb import AsJson

app = typer.Typer()


@app.command()
def retract(
    log: LogPath,
    coder: Annotated[str, typer.Option(help="Pseudonym of the coder whose coding to take back.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Take a coder's coding back, such as one imported under the wrong coder. The log keeps it, and nothing counts it.

    The session is then owed by its coders again, and the coder can be imported anew.
    """
    found = retract_coding(log, coder, WallClock())
    if as_json:
        print_json(to_plain(found))
        return
    labels = count_of(found.labels, "label")
    print(f"{found.session}: coding by {coder} taken back: {labels}, which the log keeps\nhead {found.head}")
    if found.consensus:
        err.print(
            f"{count_of(found.consensus, 'event')} of the consensus hold an opinion of {coder}: settle them again in "
            "the coding page",
            markup=False,
        )
