"""`tactful norms`: index scenes with a known right action, and search them."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from action_selector.retrieve.precedents import PrecedentIndex, read_precedents
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.records.json_codec import to_plain
from sim_replays.suites import egonormia
from tactful_cli.console import out, print_json, print_table
from tactful_cli.verb import AsJson, group

app = group("Index scenes whose right action is known, and find those like a scene.")


@app.command()
def index(
    scenes: Annotated[Path, typer.Argument(metavar="FILE", help="EgoNormia's JSON, or JSONL of precedents.")],
    folder: Annotated[Path, typer.Argument(metavar="INDEX", help="Folder to write the index into.")],
) -> None:
    """Index scenes by meaning. A JSONL line holds source, scene, action and optionally justification."""
    published = scenes.suffix == ".json"
    found = egonormia.precedents(*egonormia.read(scenes)) if published else read_precedents(scenes)
    encoder = SentenceEncoder()
    PrecedentIndex.of(found, encoder, encoder.weights_sha256).save(folder)
    out.print(f"{len(found)} precedents of {len({one.source for one in found})} sources in {folder}")


@app.command()
def query(
    folder: Annotated[Path, typer.Argument(metavar="INDEX", help="Folder that `norms index` wrote.")],
    scene: Annotated[str, typer.Argument(help="Description of the scene.")],
    not_of: Annotated[
        str, typer.Option(help="Source whose precedents are excluded, such as the scene's own video.")
    ] = "",
    count: Annotated[int, typer.Option(min=1, max=50, help="Number of precedents to show.")] = 5,
    as_json: AsJson = False,
) -> None:
    """Show the precedents most similar to a scene, the most similar first."""
    found = PrecedentIndex.load(folder).query(scene, SentenceEncoder(), not_of=not_of, count=count)
    if as_json:
        print_json([{"cosine": cosine, **to_plain(precedent)} for precedent, cosine in found])
        return
    table = Table("cosine", "source", "scene", "right action")
    for precedent, cosine in found:
        shown = precedent.scene if len(precedent.scene) <= 100 else f"{precedent.scene[:99]}…"
        table.add_row(f"{cosine:.2f}", precedent.source, shown, precedent.action or "none of those offered")
    print_table(table)
