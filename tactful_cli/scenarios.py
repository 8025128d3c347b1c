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
from sim_replays.scenarios.library import SPLITS, ScenarioError, encounters, event_counts, find, paths, read
from sim_replays.scenarios.timeline import lay_out
from sim_replays.scenarios.voice import Speech
from tactful_cli.console import err, print_json, print_table
from tactful_cli.verb import AsJson, group

app = group("Scripted encounters with marked events: list them, check them, make bags of them.")

Out = Annotated[Path, typer.Option("--out", help="Folder to write the bags into.")]
Seed = Annotated[int, typer.Option(help="Random seed of gaps, loudness, noise and camera jitter.")]
FramesHz = Annotated[float, typer.Option(min=0, max=30, help="Camera images per second; 0: none.")]
SpeechBy = Annotated[Speech, typer.Option(help="Speech synthesizer.")]
Transcripts = Annotated[bool, typer.Option("--transcripts", help="Write utterances instead of sound.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite existing bags.")]


@app.command("list")
def list_all(as_json: AsJson = False) -> None:
    """List every encounter with its split, length and number of events."""
    rows = [_row(split, encounter) for split in SPLITS for encounter in encounters(split)]
    if as_json:
        print_json(rows)
        return
    table = Table("encounter", "split", "language", "length_s", "turns", "errors", "competences", "setting")
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    print_table(table)


@app.command()
def counts(as_json: AsJson = False) -> None:
    """Count the attributes in each split. An event with two attributes counts twice."""
    found = {split: event_counts(split) for split in SPLITS}
    rows = [
        {"attribute": attribute.value}
        | {f"{split} {polarity}": found[split][attribute, polarity] for split in SPLITS for polarity in Polarity}
        for attribute in Attribute
    ]
    if as_json:
        print_json(rows)
        return
    table = Table(*rows[0])
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    print_table(table)


@app.command()
def check(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="FILE", help="Script files; default: all shipped ones.")
    ] = None,
) -> None:
    """Check the keys, references and times of scripts."""
    chosen = files or [path for split in SPLITS for path in paths(split)]
    for path in chosen:
        read(path)
    print(f"{count_of(len(chosen), 'encounter')} without a fault")


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
    """Write one bag per encounter, with its labels in a separate file."""
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
