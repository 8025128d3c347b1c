"""The labels of a generated encounter, stored beside its bag and never in it."""

from pathlib import Path

from norm_core.records.flag import Attribute, Polarity
from norm_core.records.json_codec import RecordError, from_json, to_json
from norm_core.records.record import record
from norm_core.records.speech import Speaker
from norm_core.runtime.time import s_to_ns
from sim_replays.scenarios.encounter import Basis
from sim_replays.scenarios.library import ScenarioError
from sim_replays.scenarios.timeline import TimedEvent, Timeline


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


def truth_of(timeline: Timeline, start_ns: int, seed: int, script_sha256: str = "") -> Truth:
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
                speaker=Speaker.ROBOT if spoken.by_robot else Speaker.USER,
                speaker_id=spoken.speaker,
                text=spoken.text,
                start_ns=start_ns + s_to_ns(spoken.start_s),
                end_ns=start_ns + s_to_ns(spoken.end_s),
            )
            for spoken in timeline.spoken
        ),
        events=tuple(_event(event, start_ns) for event in timeline.events),
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


def _event(timed: TimedEvent, start_ns: int) -> TrueEvent:
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
