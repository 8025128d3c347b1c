"""Options that several verbs of `tactful bag` share."""

from pathlib import Path
from typing import Annotated

import typer

from norm_monitor.privacy.blur import NoFacePolicy

BagPath = Annotated[Path, typer.Argument(metavar="BAG", help="Folder of a rosbag2 bag, or one .mcap or .db3 file.")]
NoFace = Annotated[
    NoFacePolicy, typer.Option(help="What to do with an image without a detected face: blur, leave or drop it.")
]
ConsentingVoices = Annotated[
    list[str] | None,
    typer.Option(metavar="ID", help="Id in the transcript of a person who consented to sound. Repeatable."),
]
