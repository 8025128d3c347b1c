"""Feed the monitor with scripted encounters, as records that the senses would give."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby

from norm_core.records.flag import FlagState, SocialFlag
from norm_core.records.presence import Person, Presence
from norm_core.records.speech import RobotSpeech, Utterance
from norm_core.runtime.time import NS_PER_S, ReplayClock
from norm_core.runtime.watermarks import UTTERANCES
from norm_monitor.context.meaning import TextMatcher
from norm_monitor.cues.threshold_table import ThresholdTable
from norm_monitor.fusion.fusion import FusionConfig, NoteClosed
from norm_monitor.monitor import Monitor, MonitorConfig
from norm_monitor.senses.faces.presence_tracker import PresenceTracker
from norm_monitor.senses.speech.silence_marks import marks_of_script
from norm_monitor.windows.cutter import Entry
from sim_replays.monitor_bench.event_metrics import Alarm, EventSession
from sim_replays.monitor_bench.judge_stand_in import Attend, attend_nothing
from sim_replays.monitor_bench.sensed_cache import SensedEncounter
from sim_replays.scenarios.encounter import Encounter
from sim_replays.scenarios.generate import PERSONS, START_NS, records
from sim_replays.scenarios.records import AUDIO, Senses
from sim_replays.scenarios.truth import Truth

_MARK_NS = NS_PER_S // 2


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
    given, truth = records_of_script(encounter, seed)
    config = MonitorConfig.for_replay((UTTERANCES,), calls_per_hour=calls_per_hour, fusion=fusion)
    return _flagged(given, truth, config, meaning, table, attend, note_closed)


def records_of_script(
    encounter: Encounter, seed: int = 0, marks_every_ns: int = _MARK_NS, start_ns: int = START_NS
) -> tuple[list[tuple[int, Entry]], Truth]:
    """Return each record with its arrival time, including silence marks, and the labels."""
    senses, truth = records(encounter, seed, start_ns)
    entries: list[Entry] = [*senses.utterances, *senses.robot_speech, *senses.presences, *_tracked(senses)]
    return _with_silence(entries, truth, marks_every_ns), truth


def monitor_from_sound(
    sensed: SensedEncounter,
    meaning: TextMatcher,
    table: ThresholdTable,
    attend: Attend = attend_nothing,
    calls_per_hour: float = 0.0,
    *,
    fusion: FusionConfig | None = None,
    note_closed: NoteClosed | None = None,
) -> EventSession:
    """Run the monitor on what ears and camera made of an encounter's sound and images."""
    given = [(one.at_ns, one.entry) for one in sensed.given]
    config = MonitorConfig.for_replay(sensed.sources, calls_per_hour=calls_per_hour, fusion=fusion)
    return _flagged(given, sensed.truth, config, meaning, table, attend, note_closed)


def _flagged(  # noqa: PLR0917
    given: Iterable[tuple[int, Entry]],
    truth: Truth,
    config: MonitorConfig,
    meaning: TextMatcher,
    table: ThresholdTable,
    attend: Attend,
    note_closed: NoteClosed | None,
) -> EventSession:
    clock = ReplayClock()
    monitor = Monitor(config, table, meaning, clock, note_closed=note_closed)
    first: dict[str, tuple[SocialFlag, int]] = {}

    def note(flags: Iterable[SocialFlag]) -> None:
        for flag in (*flags, *attend(monitor)):
            _, known_ns = first.get(flag.event_id, (flag, clock.now_ns()))
            first[flag.event_id] = flag, known_ns

    for given_ns, entry in given:
        clock.advance_to(max(given_ns, clock.now_ns()))
        note(monitor.take(entry))
    note(monitor.end_input())
    alarms = tuple(
        Alarm.of(flag, known_ns) for flag, known_ns in first.values() if flag.state is not FlagState.WITHDRAWN
    )
    withdrawn = tuple(flag.polarity for flag, _ in first.values() if flag.state is FlagState.WITHDRAWN)
    return EventSession(truth=truth, alarms=alarms, withdrawn=withdrawn)


def _with_silence(entries: list[Entry], truth: Truth, marks_every_ns: int) -> list[tuple[int, Entry]]:
    """Order the entries by arrival and add silence marks at a steady rate. An utterance arrives at its end."""
    said = [entry for entry in entries if isinstance(entry, Utterance)]
    given = [(e.end_ns if isinstance(e, Utterance) else e.stamp_ns, e) for e in entries]
    marks = marks_of_script(said, truth.start_ns, truth.end_ns + 1, marks_every_ns, AUDIO)
    return sorted([*given, *marks], key=lambda pair: (pair[0], not isinstance(pair[1], RobotSpeech)))


def _tracked(senses: Senses) -> Iterator[Presence]:
    """Yield the distance of each person, like the robot's own recognizers."""
    tracker = PresenceTracker()
    for stamp_ns, told in groupby(senses.distances, key=lambda distance: distance.stamp_ns):
        persons = tuple(Person(person_id=one.person_id, distance_m=one.distance_m) for one in told)
        yield replace(tracker.step(stamp_ns, PERSONS, [False] * len(persons)), persons=persons)
