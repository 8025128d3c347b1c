"""The shipped encounters by split, and counts of their labels."""

from collections import Counter
from pathlib import Path

from norm_core.records.flag import Attribute, Polarity
from norm_core.runtime.config import load_config
from norm_core.runtime.data_files import shipped_file
from norm_core.runtime.errors import TactfulError
from sim_replays.scenarios.encounter import Encounter
from sim_replays.scenarios.timeline import TimelineError, lay_out

HERE = shipped_file("sim_replays.scenarios")
# Many hands have a folder for each writer. A wheel has only the first split.
SPLITS = tuple(split for split in ("development", "many_hands") if (HERE / split).is_dir())

MOST_SHOWN = 20  # faults


class ScenarioError(TactfulError, ValueError):
    """A scenario or split does not exist, or a file is invalid."""


def paths(split: str) -> tuple[Path, ...]:
    """List the files of a split by name."""
    if split not in SPLITS:
        raise ScenarioError(f"there is no split {split!r}; the splits are {', '.join(SPLITS)}")
    return tuple(sorted((HERE / split).rglob("*.yaml")))


def encounters(split: str) -> tuple[Encounter, ...]:
    """Read and check every encounter of a split."""
    return tuple(read(path) for path in paths(split))


def encounters_in(folder: Path) -> tuple[Encounter, ...]:
    """Read and check every encounter of a folder. The error lists the faults of all files."""
    if not folder.is_dir():
        raise ScenarioError(f"{folder}: is no folder; give a folder of encounters, one NAME.yaml each")
    found: list[Encounter] = []
    faults: list[str] = []
    for path in sorted(folder.glob("*.yaml")):
        try:
            found.append(read(path))
        except TactfulError as error:
            faults += str(error).splitlines()
    if faults:
        beyond = [f"{len(faults) - MOST_SHOWN} more faults"] if len(faults) > MOST_SHOWN else []
        raise ScenarioError("\n".join([*faults[:MOST_SHOWN], *beyond]))
    if not found:
        raise ScenarioError(f"{folder}: holds no *.yaml; write encounters, see docs/how-to/scenarios.md")
    return tuple(found)


def find(name: str) -> Path:
    """Find the file of an encounter in any split."""
    found = [path for split in SPLITS for path in paths(split) if path.stem == name]
    if not found:
        raise ScenarioError(f"there is no encounter {name!r}: `tactful scenarios` names them all")
    return found[0]


def read(path: Path) -> Encounter:
    """Read an encounter, and check its words, references and times."""
    encounter = load_config(Encounter, path)
    if encounter.id != path.stem:
        raise ScenarioError(f"{path}: its id is {encounter.id}; name the file {encounter.id}.yaml")
    try:
        lay_out(encounter)
    except TimelineError as error:
        raise ScenarioError(f"{path}: {str(error).removeprefix(f'{encounter.id}: ')}") from error
    return encounter


def event_counts(split: str) -> Counter[tuple[Attribute, Polarity]]:
    """Count labels by attribute and polarity. An event with two attributes counts twice."""
    return Counter(
        (attribute, event.polarity) for e in encounters(split) for event in e.events for attribute in event.attributes
    )


def shipped() -> tuple[Path, ...]:
    """List the shipped bags, with labels beside them. All come from the development split."""
    return tuple(sorted(path.parent for path in (HERE / "shipped").glob("*/metadata.yaml")))
