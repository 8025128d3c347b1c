"""`tactful norms`: index scenes with a known right action."""

from pathlib import Path
from typing import Annotated

import typer

from action_selector.retrieval import PrecedentIndex, read_precedents
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from sim_replays.suites import egonormia
from tactful_cli.console import out
from tactful_cli.verb import group

app = group("Precedents: scenes whose right action is known.")


@app.callback()
def norms() -> None:
    """Index precedents."""


@app.command()
def index(
    scenes: Annotated[Path, typer.Argument(metavar="FILE", help="EgoNormia's JSON, or JSONL of precedents.")],
    folder: Annotated[Path, typer.Argument(metavar="INDEX", help="Folder to write the index into.")],
) -> None:
    """Index scenes by meaning. A JSONL line holds source, scene, action and optionally justification."""
    published = scenes.suffix == ".json"
    scenes_read = egonormia.precedents(*egonormia.read(scenes)) if published else read_precedents(scenes)
    encoder = SentenceEncoder()
    PrecedentIndex.of(scenes_read, encoder, encoder.weights_sha256).save(folder)
    out.print(f"{len(scenes_read)} precedents of {len({scene.source for scene in scenes_read})} sources in {folder}")
