"""`tactful scenarios`: scripted encounters with labelled events, and bags made from them."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import track
from rich.table import Table

from norm_core.records.flag import Polarity
from norm_core.runtime.wording import count_of
from norm_monitor.encounters.encounter import Encounter
from norm_monitor.encounters.generate import GenerationConfig, generate, remove
from norm_monitor.encounters.library import SPLITS, ScenarioError, encounters, find, read
from norm_monitor.encounters.timeline import lay_out
from tactful_cli.console import err, print_json, print_table, show
from tactful_cli.verb_options import make_app

app = make_app()


@app.command()
def scenarios(  # noqa: PLR0917
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME", help="Encounters or script files.")] = None,
    split: Annotated[str, typer.Option(help=f"All encounters of a split: {' or '.join(SPLITS)}.")] = "",
    folder: Annotated[Path | None, typer.Option("--out", help="Folder to write the bags into.")] = None,
    seed: Annotated[int, typer.Option(help="Random seed of gaps, loudness, noise and camera jitter.")] = 0,
    frames_hz: Annotated[float, typer.Option(min=0, max=30, help="Camera images per second; 0: none.")] = 2.0,
    transcripts: Annotated[bool, typer.Option("--transcripts", help="Write utterances instead of sound.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing bags.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Without a name: print only JSON.")] = False,
) -> None:
    """Make bags of scripted encounters, with their labels beside them. Without a name or a split, list them all."""
    if not (names or split):
        _list_all(as_json=as_json)
        return
    if folder is None:
        raise ScenarioError("scenarios: --out is missing; name the folder to write the bags into")
    chosen = [read(Path(name) if name.endswith(".yaml") else find(name)) for name in names or []]
    chosen += encounters(split) if split else ()
    config = GenerationConfig(seed=seed, frames_hz=frames_hz, transcripts=transcripts)
    present = [encounter.id for encounter in chosen if (folder / encounter.id).exists()]
    if present and not force:
        raise ScenarioError(f"{folder}: holds {', '.join(present)} already; remove it, or give --force")
    for encounter in track(chosen, "making bags", console=err):
        bag = folder / encounter.id
        remove(bag)
        generated = generate(encounter, bag, config)
        show(f"{bag}: {count_of(generated.message_count, 'message')}, {count_of(len(generated.truth.events), 'event')}")


def _list_all(*, as_json: bool) -> None:
    rows = [_row(split, encounter) for split in SPLITS for encounter in encounters(split)]
    if as_json:
        print_json({"encounters": rows})
        return
    table = Table(*rows[0])
    for row in rows:
        table.add_row(*map(str, row.values()))
    print_table(table)


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
