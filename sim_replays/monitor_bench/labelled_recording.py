"""A recording with labelled intervals, and the monitor's flags in it."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from norm_core.records.flag import Attribute, FlagState, Polarity, SocialFlag
from norm_core.records.record import record
from norm_core.records.speech import RobotSpeech, Speaker, Utterance
from norm_core.runtime.time import ReplayClock
from norm_monitor.context.turns import turns_of
from norm_monitor.monitor import Monitor
from norm_monitor.windows.cutter import Entry
from sim_replays.monitor_bench.event_metrics import Alarm, EventSession
from sim_replays.monitor_bench.labels_file import Interval, LabelClass
from sim_replays.scenarios.encounter import Basis
from sim_replays.scenarios.truth import TrueEvent, TrueTurn, Truth


@record
class RaisedFlag:
    """A flag in its final state, and the bag time it first appeared."""

    flag: SocialFlag
    known_ns: int


@record
class LabelledRecording:
    """The labels of a bag, and the flags in it."""

    name: str
    start_ns: int
    end_ns: int
    labels: tuple[Interval, ...]
    raised: tuple[RaisedFlag, ...]  # only errors, because competences are not labelled
    robot_turns: tuple[tuple[int, int], ...] = ()
    utterances: int = 0  # of people, with words


def record_flags(  # noqa: PLR0917
    name: str,
    bounds_ns: tuple[int, int],
    labels: tuple[Interval, ...],
    records: Iterable[tuple[int, Entry]],
    monitor: Monitor,
    clock: ReplayClock,
) -> LabelledRecording:
    """Run a monitor on a bag's records, and pair its flags with the labels."""
    first: dict[str, RaisedFlag] = {}
    heard: list[Utterance] = []
    edges: list[RobotSpeech] = []
    utterances = 0

    def note(flags: Iterable[SocialFlag]) -> None:
        for flag in flags:
            if flag.polarity is not Polarity.ERROR or flag.state is FlagState.WITHDRAWN:
                first.pop(flag.event_id, None)
            else:
                known = first.get(flag.event_id) or RaisedFlag(flag=flag, known_ns=clock.now_ns())
                first[flag.event_id] = replace(known, flag=flag)

    for now_ns, entry in records:
        clock.advance_to(max(now_ns, clock.now_ns()))
        if isinstance(entry, RobotSpeech):
            edges.append(entry)
        elif isinstance(entry, Utterance) and entry.final and entry.speaker is Speaker.ROBOT:
            heard.append(entry)
        elif isinstance(entry, Utterance) and entry.final and entry.text.strip():
            utterances += 1
        note(monitor.take(entry))
    note(monitor.end_input())
    turns = turns_of(heard, edges, bounds_ns[1])
    return LabelledRecording(
        name=name,
        start_ns=bounds_ns[0],
        end_ns=bounds_ns[1],
        labels=labels,
        raised=tuple(sorted(first.values(), key=lambda one: one.flag.onset_ns)),
        robot_turns=tuple((turn.start_ns, turn.end_ns) for turn in turns),
        utterances=utterances,
    )


def session_of(recording: LabelledRecording, label: LabelClass | None = None) -> EventSession:
    """Convert to a session for the onset measures. Any error flag may match any label.

    Without a class, overlapping labels become one event, such as a mistake and its rupture.
    """
    spans = [(one.onset_ns, one.offset_ns) for one in recording.labels if label in (None, one.label)]
    events = tuple(
        TrueEvent(
            polarity=Polarity.ERROR,
            attributes=tuple(Attribute),
            onset_ns=onset_ns,
            offset_ns=offset_ns,
            basis=Basis.UNDERSTANDING,  # the coder's basis is unknown, and no measure uses it
            evidence=(),
            rationale=label.value if label else "",
        )
        for onset_ns, offset_ns in join_recordings(spans)
    )
    turns = tuple(
        TrueTurn(turn_id=str(at), speaker=Speaker.ROBOT, speaker_id="", text="", start_ns=start_ns, end_ns=end_ns)
        for at, (start_ns, end_ns) in enumerate(recording.robot_turns)
    )
    alarms = tuple(Alarm.of(one.flag, one.known_ns) for one in recording.raised)
    truth = Truth(
        encounter_id=recording.name,
        language="",
        seed=0,
        start_ns=recording.start_ns,
        end_ns=recording.end_ns,
        turns=turns,
        events=events,
    )
    return EventSession(truth=truth, alarms=alarms)


def join_recordings(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merge overlapping spans."""
    joined: list[tuple[int, int]] = []
    for start_ns, end_ns in sorted(spans):
        if joined and start_ns < joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], end_ns)
        else:
            joined.append((start_ns, end_ns))
    return joined
