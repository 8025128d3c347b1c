"""`tactful scenarios`: scripted encounters with labelled events, and bags made from them."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import track
from rich.table import Table

from norm_core.records.flag import Attribute, Polarity
from norm_core.runtime.wording import count_of
from sim_replays.scenarios.encounter import Encounter
from sim_replays.scenarios.generate import GenerationConfig, generate, remove
from sim_replays.scenarios.library import SPLITS, ScenarioError, encounters, event_counts, find, read
from sim_replays.scenarios.timeline import lay_out
from sim_replays.scenarios.voice import Speech
from tactful_cli.console import err, print_json, print_table
from tactful_cli.verb import AsJson, group

app = group("Scripted encounters with marked events: list them, make bags of them.")

Out = Annotated[Path, typer.Option("--out", help="Folder to write the bags into.")]
Seed = Annotated[int, typer.Option(help="Random seed of gaps, loudness, noise and camera jitter.")]
FramesHz = Annotated[float, typer.Option(min=0, max=30, help="Camera images per second; 0: none.")]
SpeechBy = Annotated[Speech, typer.Option(help="Speech synthesizer.")]
Transcripts = Annotated[bool, typer.Option("--transcripts", help="Write utterances instead of sound.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite existing bags.")]


@app.command("list")
def list_all(as_json: AsJson = False) -> None:
    """List every encounter, and count the attributes in each split. An event with two attributes counts twice."""
    rows = [_row(split, encounter) for split in SPLITS for encounter in encounters(split)]
    counts = {split: event_counts(split) for split in SPLITS}
    attributes = [
        {"attribute": attribute.value}
        | {f"{split} {polarity}": counts[split][attribute, polarity] for split in SPLITS for polarity in Polarity}
        for attribute in Attribute
    ]
    if as_json:
        print_json({"encounters": rows, "attributes": attributes})
        return
    for shown in (rows, attributes):
        table = Table(*shown[0])
        for row in shown:
            table.add_row(*map(str, row.values()))
        print_table(table)


@app.command("generate")
def make(  # noqa: PLR0917
    folder: Out,
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME", help="Encounters or script files.")] = None,
    split: Annotated[str, typer.Option(help=f"All encounters of a split: {' or '.join(SPLITS)}.")] = "",
    seed: Seed = 0,
    frames_hz: FramesHz = 2.0,
    speech: SpeechBy = Speech.FLITE,
    transcripts: Transcripts = False,
    force: Force = False,
) -> None:
    """Check the scripts, then write one bag per encounter, with its labels in a separate file."""
    chosen = [read(Path(name) if name.endswith(".yaml") else find(name)) for name in names or []]
    chosen += encounters(split) if split else ()
    if not chosen:
        raise ScenarioError("scenarios: nothing is named; name encounters, or a split with --split")
    config = GenerationConfig(seed=seed, frames_hz=frames_hz, speech=None if transcripts else speech)
    present = [encounter.id for encounter in chosen if (folder / encounter.id).exists()]
    if present and not force:
        raise ScenarioError(f"{folder}: holds {', '.join(present)} already; remove it, or give --force")
    for encounter in track(chosen, "making bags", console=err):
        bag = folder / encounter.id
        remove(bag)
        made = generate(encounter, bag, config)
        print(f"{bag}: {count_of(made.message_count, 'message')}, {count_of(len(made.truth.events), 'event')}")


def _row(split: str, encounter: Encounter) -> dict[str, Any]:
    polarities = [event.polarity for event in encounter.events]
    return {
        "encounter": encounter.id,
        "split": split,
        "language": encounter.language,
        "length_s": round(lay_out(encounter).length_s, 1),
        "turns": len(encounter.turns),
        "errors": polarities.count(Polarity.ERROR),
        "competences": polarities.count(Polarity.COMPETENCE),
        "setting": encounter.setting,
    }
