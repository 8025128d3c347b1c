"""Cache the senses' output for an encounter's synthetic sound and images."""

import shutil
from dataclasses import replace
from enum import StrEnum
from pathlib import Path

from norm_core.bags.reader import BagReader
from norm_core.records.frame import Frame
from norm_core.records.json_codec import RecordError, from_json, to_json
from norm_core.records.record import record
from norm_core.runtime.atomic_file import write_atomic
from norm_monitor.senses.speech.audio_front_end import HearingConfig
from norm_monitor.senses.speech.recognition import Recognizer
from norm_monitor.senses.speech.segmenter import SegmentConfig
from norm_monitor.windows.cutter import Entry
from sim_replays.drivers.bag_driver import BagSenses
from sim_replays.scenarios.encounter import Encounter
from sim_replays.scenarios.generate import GenerationConfig, generate, remove
from sim_replays.scenarios.records import AUDIO
from sim_replays.scenarios.truth import Truth

VERSION = 6  # of the senses' output; raise it to invalidate cached records


class BenchSource(StrEnum):
    """What the monitor is measured on: the script's records, or its speech through the ears."""

    SCRIPT = "script"
    AUDIO = "audio"


@record
class TimedRecord:
    """One record and its arrival time. Frames are stored without image bytes, which no cue reads."""

    at_ns: int
    entry: Entry


@record
class SensedEncounter:
    """The senses' output for an encounter, with labels at the times of the synthetic voices."""

    version: int = VERSION
    truth: Truth
    sources: tuple[str, ...]
    given: tuple[TimedRecord, ...]


def sense_encounter(encounter: Encounter, folder: Path, recognizer: Recognizer, seed: int = 0) -> SensedEncounter:
    """Read the encounter from the cache. On a miss, generate a bag, run the senses on it and remove it."""
    path = folder / f"{encounter.id}_{seed}.json"
    kept = _read(path)
    if kept and kept.version == VERSION and kept.truth.script_sha256 == encounter.sha256():
        return kept
    bag = folder / f"{encounter.id}_{seed}_bag"
    shutil.rmtree(bag, ignore_errors=True)  # left by an interrupted run
    made = generate(encounter, bag, GenerationConfig(seed=seed))
    try:
        new = sense_bag(made.bag, made.truth, recognizer if encounter.language == "en" else None)
    finally:
        remove(made.bag)
    write_atomic(path, to_json(new))
    return new


def sense_bag(bag: Path, truth: Truth, recognizer: Recognizer | None) -> SensedEncounter:
    """Run the senses on a bag. Without a recognizer, use the recorded utterances."""
    hearing = HearingConfig(segments=SegmentConfig(partial_every_s=0))
    with BagReader(bag) as reader:
        senses = BagSenses(reader, hearing, recognizer, AUDIO if recognizer else "")
        given = tuple(
            TimedRecord(at_ns=at_ns, entry=replace(entry, tile_jpeg=b"") if isinstance(entry, Frame) else entry)
            for at_ns, entry in senses.records()
            if isinstance(entry, Entry)
        )
        return SensedEncounter(truth=truth, sources=senses.sources, given=given)


def _read(path: Path) -> SensedEncounter | None:
    try:
        return from_json(SensedEncounter, path.read_text(encoding="utf-8"))
    except (FileNotFoundError, RecordError):
        return None
