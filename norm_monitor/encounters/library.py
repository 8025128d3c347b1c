"""The labels of an encounter, which lie beside its bag, and the shipped encounters."""

from pathlib import Path

from norm_core.files.data_files import shipped_file
from norm_core.records.flag import Attribute, Polarity
from norm_core.records.json_codec import RecordError, from_json, to_json
from norm_core.records.record import record
from norm_core.records.speech import Speaker
from norm_core.runtime.config import load_config
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import s_to_ns
from norm_monitor.encounters.encounter import Basis, Encounter
from norm_monitor.encounters.timeline import TimedEvent, Timeline, TimelineError, lay_out

HERE = shipped_file("norm_monitor.encounters")
# The folders of encounters. A wheel has the first one alone; many_hands has a folder for each writer.
SPLITS = tuple(split for split in ("development", "many_hands") if (HERE / split).is_dir())

# The number of faults that an error lists.
MAX_FAULTS = 20


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


def load_folder(folder: Path) -> tuple[Encounter, ...]:
    """Read and check every encounter of a folder. The error lists the faults of all files."""
    if not folder.is_dir():
        raise ScenarioError(f"{folder}: is not a folder; give a folder of encounters, one NAME.yaml each")
    encounters: list[Encounter] = []
    faults: list[str] = []
    for path in sorted(folder.glob("*.yaml")):
        try:
            encounters.append(read(path))
        except TactfulError as error:
            faults += str(error).splitlines()
    if faults:
        more = [f"{len(faults) - MAX_FAULTS} more faults"] if len(faults) > MAX_FAULTS else []
        raise ScenarioError("\n".join([*faults[:MAX_FAULTS], *more]))
    if not encounters:
        raise ScenarioError(f"{folder}: holds no *.yaml; write encounters, see docs/how-to/scenarios.md")
    return tuple(encounters)


def find(name: str) -> Path:
    """Find the file of an encounter in any split."""
    matching = [path for split in SPLITS for path in paths(split) if path.stem == name]
    if not matching:
        raise ScenarioError(f"there is no encounter {name!r}: `tactful scenarios` names them all")
    return matching[0]


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


def shipped() -> tuple[Path, ...]:
    """List the shipped bags, with labels beside them. All come from the development split."""
    return tuple(sorted(path.parent for path in (HERE / "shipped").glob("*/metadata.yaml")))


@record
class Stretch:
    """An interval of a bag's time."""

    start_ns: int
    end_ns: int


@record
class TrueTurn:
    """What was said in a generated bag, by whom and when."""

    turn_id: str
    speaker: Speaker
    speaker_id: str
    text: str
    start_ns: int
    end_ns: int


@record
class TrueEvent:
    """A labelled event. Matching uses onset_ns, polarity and a shared attribute."""

    polarity: Polarity
    attributes: tuple[Attribute, ...]
    onset_ns: int
    offset_ns: int
    basis: Basis
    evidence: tuple[Stretch, ...]
    rationale: str
    correction: str = ""


@record
class Truth:
    """The labels of one generated encounter."""

    encounter_id: str
    language: str
    seed: int
    start_ns: int
    end_ns: int
    turns: tuple[TrueTurn, ...]
    events: tuple[TrueEvent, ...] = ()
    script_sha256: str = ""


def make_truth(timeline: Timeline, start_ns: int, seed: int, script_sha256: str = "") -> Truth:
    """Make the labels of a timeline that starts at `start_ns`."""
    return Truth(
        encounter_id=timeline.encounter_id,
        language=timeline.language,
        seed=seed,
        start_ns=start_ns,
        end_ns=start_ns + s_to_ns(timeline.length_s),
        turns=tuple(
            TrueTurn(
                turn_id=spoken.turn_id,
                speaker=Speaker.ROBOT if spoken.is_by_robot else Speaker.USER,
                speaker_id=spoken.speaker,
                text=spoken.text,
                start_ns=start_ns + s_to_ns(spoken.start_s),
                end_ns=start_ns + s_to_ns(spoken.end_s),
            )
            for spoken in timeline.spoken
        ),
        events=tuple(_make_event(event, start_ns) for event in timeline.events),
        script_sha256=script_sha256,
    )


def truth_path(bag: Path) -> Path:
    """The path of a bag's labels."""
    return bag.with_name(f"{bag.name}.truth.json")


def write_truth(bag: Path, truth: Truth) -> None:
    """Write the labels beside a bag."""
    truth_path(bag).write_text(f"{to_json(truth)}\n", encoding="utf-8")


def read_truth(bag: Path) -> Truth:
    """Read the labels beside a bag."""
    path = truth_path(bag)
    try:
        return from_json(Truth, path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, RecordError) as error:
        raise ScenarioError(f"{path}: cannot be read as the truth of {bag.name}: {error}") from error


def _make_event(timed: TimedEvent, start_ns: int) -> TrueEvent:
    marked = timed.marked
    return TrueEvent(
        polarity=marked.polarity,
        attributes=marked.attributes,
        onset_ns=start_ns + s_to_ns(timed.onset_s),
        offset_ns=start_ns + s_to_ns(timed.offset_s),
        basis=marked.basis,
        evidence=tuple(
            Stretch(start_ns=start_ns + s_to_ns(begin_s), end_ns=start_ns + s_to_ns(end_s))
            for begin_s, end_s in timed.evidence_s
        ),
        rationale=marked.rationale,
        correction=marked.correction,
    )
