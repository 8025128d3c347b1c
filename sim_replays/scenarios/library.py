"""The encounters that come with the project, by split, and what is marked in them."""

from collections import Counter
from pathlib import Path

from norm_core.records.flag import Attribute, Polarity
from norm_core.runtime.config import load_config
from norm_core.runtime.data_files import shipped_file
from norm_core.runtime.errors import TactfulError
from sim_replays.scenarios.encounter import Basis, Encounter
from sim_replays.scenarios.timeline import lay_out

HERE = shipped_file("sim_replays.scenarios")
SPLITS = tuple(split for split in ("development", "held_out") if (HERE / split).is_dir())  # a wheel has the first alone


class ScenarioError(TactfulError, ValueError):
    """A scenario or split that is not there, or a file that is not what its name says."""


def paths(split: str) -> tuple[Path, ...]:
    """The files of a split, by name."""
    if split not in SPLITS:
        raise ScenarioError(f"there is no split {split!r}; the splits are {', '.join(SPLITS)}")
    return tuple(sorted((HERE / split).glob("*.yaml")))


def encounters(split: str) -> tuple[Encounter, ...]:
    """Every encounter of a split, checked."""
    return tuple(read(path) for path in paths(split))


def find(name: str) -> Path:
    """The file of the encounter so called, in whichever split."""
    found = [path for split in SPLITS for path in paths(split) if path.stem == name]
    if not found:
        raise ScenarioError(f"there is no encounter {name!r}: `tactful scenarios list` names them all")
    return found[0]


def read(path: Path) -> Encounter:
    """The encounter in a file; its words, references and times are all checked."""
    encounter = load_config(Encounter, path)
    if encounter.id != path.stem:
        raise ScenarioError(f"{path}: its id is {encounter.id}; name the file {encounter.id}.yaml")
    lay_out(encounter)
    return encounter


def event_counts(split: str) -> Counter[tuple[Attribute, Polarity]]:
    """How often each attribute is marked with each polarity; an event of two attributes counts for both."""
    return Counter(
        (attribute, event.polarity) for e in encounters(split) for event in e.events for attribute in event.attributes
    )


def basis_counts(split: str) -> Counter[Basis]:
    """How many events rest on what."""
    return Counter(event.basis for encounter in encounters(split) for event in encounter.events)


def shipped() -> tuple[Path, ...]:
    """The bags that come with the project, each with its truth beside it; all are of the development split."""
    return tuple(sorted(path.parent for path in (HERE / "shipped").glob("*/metadata.yaml")))
