"""Score error flags against labelled intervals: onsets, time to detection, false alarms and frames."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from norm_core.evaluation.f1 import f1_score
from norm_core.evaluation.intervals import percentiles
from norm_core.records.record import record
from norm_core.runtime.time import NS_PER_S, ns_to_s, s_to_ns
from sim_replays.monitor_bench.event_metrics import TOLERANCES_S, OnlineScores, match_alarms, score_online
from sim_replays.monitor_bench.labelled_recording import (
    Interval,
    LabelClass,
    LabelledRecording,
    RaisedFlag,
    join_recordings,
    session_of,
)

FRAME_NS = NS_PER_S // 10


@record
class ByClass:
    """The detection of one class of labels. Shares are in percent."""

    labels: int
    recall: dict[str, float]  # by onset tolerance, with one flag per label
    detected: float  # a flag overlaps it, however late
    time_to_detection_s: dict[str, float]
    frame_recall: float


@record
class Frames:
    """Labelled against flagged tenths of a second, in percent."""

    accuracy: float
    precision: float
    recall: float
    f1: float
    macro_f1: float


@record
class IntervalAgreement:
    """All measures over recordings, for errors only. `online` holds those of onsets."""

    online: OnlineScores
    by_class: dict[str, ByClass]
    frames: Frames
    false_alarms_per_hour_active: float  # while the robot speaks
    false_alarms_per_hour_idle: float
    duplicates_per_event: float


def interval_agreement(recordings: Sequence[LabelledRecording], at_s: float = 2.0) -> IntervalAgreement:
    """Compute every measure over the recordings, with `at_s` as the onset tolerance of pairs."""
    sessions = [session_of(one) for one in recordings]
    hits = [{alarm for _, alarm in match_alarms(session, at_s)} for session in sessions]
    false = [
        (one, raised)
        for one, hit in zip(recordings, hits, strict=True)
        for place, raised in enumerate(one.raised)
        if place not in hit
    ]
    active, idle = _false_alarms(recordings, false)
    return IntervalAgreement(
        online=score_online(sessions, None, at_s),
        by_class={
            label.value: _by_class(recordings, label, at_s)
            for label in LabelClass
            if any(one.label is label for recording in recordings for one in recording.labels)
        },
        frames=_frames(recordings),
        false_alarms_per_hour_active=active,
        false_alarms_per_hour_idle=idle,
        duplicates_per_event=_duplicates(recordings, at_s),
    )


def _by_class(recordings: Sequence[LabelledRecording], label: LabelClass, at_s: float) -> ByClass:
    sessions = [session_of(one, label) for one in recordings]
    count = sum(len(session.truth.events) for session in sessions)
    waits_s = []
    under = both = 0
    for one in recordings:
        shown, flagged = (
            _marked_frames(one, [(i.onset_ns, i.offset_ns) for i in one.labels if i.label is label]),
            _flagged(one),
        )
        under, both = under + int(shown.sum()), both + int((shown & flagged).sum())
        for interval in (i for i in one.labels if i.label is label):
            known = [r.known_ns for r in one.raised if _lies_over(r, interval, at_s, one.end_ns)]
            if known:
                waits_s.append(ns_to_s(min(known) - interval.onset_ns))
    return ByClass(
        labels=count,
        recall={f"{t:g}": 100 * sum(len(match_alarms(s, t)) for s in sessions) / count for t in TOLERANCES_S},
        detected=100 * len(waits_s) / count,
        time_to_detection_s=percentiles(waits_s),
        frame_recall=100 * both / under if under else 0.0,
    )


def _lies_over(raised: RaisedFlag, interval: Interval, at_s: float, end_ns: int) -> bool:
    """Whether a flag and a label overlap, or start within the tolerance."""
    onset_ns, offset_ns = _span(raised, end_ns)
    near = abs(onset_ns - interval.onset_ns) <= s_to_ns(at_s)
    return near or (onset_ns < interval.offset_ns and interval.onset_ns < offset_ns)


def _duplicates(recordings: Sequence[LabelledRecording], at_s: float) -> float:
    """Count the flags after the first that overlap the same label."""
    counts = [
        sum(_lies_over(r, interval, at_s, one.end_ns) for r in one.raised)
        for one in recordings
        for interval in one.labels
    ]
    detected = [count for count in counts if count]
    return sum(count - 1 for count in detected) / len(detected) if detected else 0.0


def _frames(recordings: Sequence[LabelledRecording]) -> Frames:
    lit = [_marked_frames(one, [(i.onset_ns, i.offset_ns) for i in one.labels]) for one in recordings]
    truth = np.concatenate(lit) if lit else np.zeros(0, bool)
    said = np.concatenate([_flagged(one) for one in recordings]) if lit else np.zeros(0, bool)
    both, wrongly, missed = int((truth & said).sum()), int((~truth & said).sum()), int((truth & ~said).sum())
    neither = len(truth) - both - wrongly - missed
    f1, f1_clean = (float(f1_score(hits, 2 * hits + wrongly + missed, scale=100)) for hits in (both, neither))
    return Frames(
        accuracy=_share(both + neither, len(truth)),
        precision=_share(both, both + wrongly),
        recall=_share(both, both + missed),
        f1=f1,
        macro_f1=(f1 + f1_clean) / 2,
    )


def _false_alarms(
    recordings: Sequence[LabelledRecording], false: Sequence[tuple[LabelledRecording, RaisedFlag]]
) -> tuple[float, float]:
    """Count false alarms per hour, with and without the robot speaking."""
    spoken_ns = sum(end_ns - start_ns for one in recordings for start_ns, end_ns in join_recordings(one.robot_turns))
    all_ns = sum(one.end_ns - one.start_ns for one in recordings)
    wrong = [
        any(start_ns <= raised.flag.onset_ns < end_ns for start_ns, end_ns in one.robot_turns) for one, raised in false
    ]
    hours, idle_hours = spoken_ns / NS_PER_S / 3600, (all_ns - spoken_ns) / NS_PER_S / 3600
    return (
        sum(wrong) / hours if hours else 0.0,
        (len(wrong) - sum(wrong)) / idle_hours if idle_hours > 0 else 0.0,
    )


def _flagged(recording: LabelledRecording) -> NDArray[np.bool_]:
    return _marked_frames(recording, [_span(raised, recording.end_ns) for raised in recording.raised])


def _marked_frames(recording: LabelledRecording, spans_ns: Iterable[tuple[int, int]]) -> NDArray[np.bool_]:
    """Mark the tenths of a second that start within a span. Each span marks at least one."""
    lit = np.zeros(-(-(recording.end_ns - recording.start_ns) // FRAME_NS), bool)
    for onset_ns, offset_ns in spans_ns:
        first = max(0, (onset_ns - recording.start_ns) // FRAME_NS)
        lit[first : max(first + 1, -(-(offset_ns - recording.start_ns) // FRAME_NS))] = True
    return lit


def _span(raised: RaisedFlag, end_ns: int) -> tuple[int, int]:
    flag = raised.flag
    return flag.onset_ns, max(end_ns, flag.onset_ns) if flag.offset_ns is None else flag.offset_ns


def _share(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0
