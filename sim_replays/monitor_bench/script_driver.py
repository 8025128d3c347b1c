"""Runs of the monitor on encounters: on the records of their scripts, or on the output of the senses, with a cache."""

import shutil
from collections.abc import Iterable, Iterator
from dataclasses import replace
from enum import StrEnum
from itertools import groupby
from pathlib import Path

from norm_core.bags.reader import BagReader
from norm_core.files.atomic_file import write_atomic
from norm_core.records.flag import FlagState, SocialFlag
from norm_core.records.frame import Frame
from norm_core.records.json_codec import RecordError, from_json, to_json
from norm_core.records.presence import Person, Presence
from norm_core.records.record import record
from norm_core.records.speech import RobotSpeech, Utterance
from norm_core.runtime.time import NS_PER_S, ReplayClock
from norm_core.streams.watermarks import UTTERANCES
from norm_monitor.assessment.fusion import NoteClosed
from norm_monitor.assessment.fusion_config import FusionConfig
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.context.meaning import TextMatcher
from norm_monitor.encounters.encounter import Encounter
from norm_monitor.encounters.generate import (
    AUDIO,
    PERSONS,
    START_NS,
    GenerationConfig,
    Senses,
    generate,
    records,
    remove,
)
from norm_monitor.encounters.library import Truth
from norm_monitor.monitor import Monitor, MonitorConfig
from norm_monitor.replay.bag_driver import BagSenses
from norm_monitor.replay.judge_stand_in import Attend, attend_nothing
from norm_monitor.senses.faces.presence_tracker import PresenceTracker
from norm_monitor.senses.speech.audio_front_end import HearingConfig
from norm_monitor.senses.speech.recognition import Recognizer
from norm_monitor.senses.speech.silence_marks import make_script_marks
from norm_monitor.windows.cutter import Entry
from sim_replays.monitor_bench.event_metrics import Alarm, EventSession

VERSION = 6  # of the output of the senses; raise it to invalidate cached records
_MARK_PERIOD_NS = NS_PER_S // 2  # of silence marks


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

    @property
    def records(self) -> tuple[tuple[int, Entry], ...]:
        """Each record with its arrival time, as the monitor takes it."""
        return tuple((timed.at_ns, timed.entry) for timed in self.given)


def sense_encounter(encounter: Encounter, folder: Path, recognizer: Recognizer, seed: int = 0) -> SensedEncounter:
    """Read the encounter from the cache. On a miss, generate a bag, run the senses on it and remove it."""
    path = folder / f"{encounter.id}_{seed}.json"
    sensed = _read_cache(path)
    if sensed and sensed.version == VERSION and sensed.truth.script_sha256 == encounter.sha256():
        return sensed
    bag = folder / f"{encounter.id}_{seed}_bag"
    shutil.rmtree(bag, ignore_errors=True)  # left by an interrupted run
    generated = generate(encounter, bag, GenerationConfig(seed=seed))
    try:
        new = sense_bag(generated.bag, generated.truth, recognizer if encounter.language == "en" else None)
    finally:
        remove(generated.bag)
    write_atomic(path, to_json(new))
    return new


def sense_bag(bag: Path, truth: Truth, recognizer: Recognizer | None) -> SensedEncounter:
    """Run the senses on a bag. Without a recognizer, use the recorded utterances."""
    hearing = HearingConfig(partial_every_s=0)
    with BagReader(bag) as reader:
        senses = BagSenses(reader, hearing, recognizer, AUDIO if recognizer else "")
        records = tuple(
            TimedRecord(at_ns=at_ns, entry=replace(entry, tile_jpeg=b"") if isinstance(entry, Frame) else entry)
            for at_ns, entry in senses.records()
            if isinstance(entry, Entry)
        )
        return SensedEncounter(truth=truth, sources=senses.sources, given=records)


def _read_cache(path: Path) -> SensedEncounter | None:
    try:
        return from_json(SensedEncounter, path.read_text(encoding="utf-8"))
    except (FileNotFoundError, RecordError):
        return None


def monitor_script(  # noqa: PLR0917
    encounter: Encounter,
    meaning: TextMatcher,
    table: ThresholdTable,
    seed: int = 0,
    attend: Attend = attend_nothing,
    calls_per_hour: float = 0.0,
    *,
    fusion: FusionConfig | None = None,
    note_closed: NoteClosed | None = None,
) -> EventSession:
    """Run the monitor on an encounter's scripted records. Makes no sound or image."""
    records, truth = make_script_records(encounter, seed)
    config = MonitorConfig.for_replay((UTTERANCES,), calls_per_hour=calls_per_hour, fusion=fusion)
    return run_monitor(records, truth, config, meaning, table, attend, note_closed)


def make_script_records(
    encounter: Encounter, seed: int = 0, marks_every_ns: int = _MARK_PERIOD_NS, start_ns: int = START_NS
) -> tuple[list[tuple[int, Entry]], Truth]:
    """Return each record with its arrival time, including silence marks, and the labels."""
    senses, truth = records(encounter, seed, start_ns)
    entries: list[Entry] = [*senses.utterances, *senses.robot_speech, *senses.presences, *_track_distances(senses)]
    return _add_silence_marks(entries, truth, marks_every_ns), truth


def run_monitor(  # noqa: PLR0917
    records: Iterable[tuple[int, Entry]],
    truth: Truth,
    config: MonitorConfig,
    meaning: TextMatcher,
    table: ThresholdTable,
    attend: Attend = attend_nothing,
    note_closed: NoteClosed | None = None,
) -> EventSession:
    """Run the monitor on records by arrival, and return its alarms beside the labels."""
    clock = ReplayClock()
    monitor = Monitor(config, table, meaning, clock, note_closed=note_closed)
    newest_by_id: dict[str, tuple[SocialFlag, int]] = {}  # with the time at which it became known

    def note_flags(flags: Iterable[SocialFlag]) -> None:
        for flag in (*flags, *attend(monitor)):
            _, known_ns = newest_by_id.get(flag.event_id, (flag, clock.now_ns()))
            newest_by_id[flag.event_id] = flag, known_ns

    for arrival_ns, entry in records:
        clock.advance_to(max(arrival_ns, clock.now_ns()))
        note_flags(monitor.take(entry))
    note_flags(monitor.end_input())
    alarms = tuple(
        Alarm.of(flag, known_ns) for flag, known_ns in newest_by_id.values() if flag.state is not FlagState.WITHDRAWN
    )
    return EventSession(truth=truth, alarms=alarms)


def _add_silence_marks(entries: list[Entry], truth: Truth, marks_every_ns: int) -> list[tuple[int, Entry]]:
    """Order the entries by arrival and add silence marks at a steady rate. An utterance arrives at its end."""
    utterances = [entry for entry in entries if isinstance(entry, Utterance)]
    records = [(e.end_ns if isinstance(e, Utterance) else e.stamp_ns, e) for e in entries]
    marks = make_script_marks(utterances, truth.start_ns, truth.end_ns + 1, marks_every_ns, AUDIO)
    return sorted([*records, *marks], key=lambda pair: (pair[0], not isinstance(pair[1], RobotSpeech)))


def _track_distances(senses: Senses) -> Iterator[Presence]:
    """Yield the distance of each person, like the robot's own recognizers."""
    tracker = PresenceTracker()
    for stamp_ns, distances in groupby(senses.distances, key=lambda distance: distance.stamp_ns):
        persons = tuple(Person(person_id=distance.person_id, distance_m=distance.distance_m) for distance in distances)
        yield replace(tracker.step(stamp_ns, PERSONS, [False] * len(persons)), persons=persons)
