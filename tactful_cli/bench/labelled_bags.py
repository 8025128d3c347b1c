"""`tactful bench monitor --bag BAG --labels FILE.csv`: score the monitor's error flags on labelled intervals."""

from collections.abc import Sequence
from pathlib import Path

from rich.table import Table as Shown

from norm_core.bags.reader import BagReader
from norm_core.records.json_codec import to_plain
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.time import ReplayClock, WallClock
from norm_core.runtime.watermarks import UTTERANCES
from sim_replays.drivers.bag_driver import MONITORED, replay_monitor
from sim_replays.monitor_bench.baselines import baselines
from sim_replays.monitor_bench.event_metrics import score_online
from sim_replays.monitor_bench.interval_metrics import IntervalAgreement, interval_agreement
from sim_replays.monitor_bench.labelled_recording import LabelledRecording, record_flags, session_of
from sim_replays.monitor_bench.labels_file import read_intervals
from tactful_cli.bench.monitor_tables import NO_INTERVAL, show_rows
from tactful_cli.console import complain, err, print_json, print_table
from tactful_cli.flag_watch import NO_SUCH_TOPIC, FlagOptions, explain_missing_words, remarks_of


def evaluate(bags: list[Path], labels: list[Path], options: FlagOptions, as_json: bool) -> None:
    """Print the measures over all bags. Give one label file per bag, in the same order.

    Raises TactfulError where nothing can be measured: no words or no labels in any bag.
    """
    if len(bags) != len(labels):
        raise TactfulError(
            f"{len(bags)} --bag and {len(labels)} --labels were given: name a file of labels for each bag"
        )
    recordings = [_recorded(bag, file, options) for bag, file in zip(bags, labels, strict=True)]
    _check(recordings)
    found = interval_agreement(recordings)
    sessions = [session_of(one) for one in recordings]
    rows = {"monitor": found.online, **{name: score_online(chosen) for name, chosen in baselines(sessions).items()}}
    if as_json:
        print_json(
            {
                "bags": [one.name for one in recordings],
                "labels": sum(len(one.labels) for one in recordings),
                "monitor": to_plain(found),
                "baselines": {name: to_plain(row) for name, row in rows.items() if name != "monitor"},
            }
        )
        return
    show_rows(rows, "labels")
    if len(recordings) == 1:
        print(NO_INTERVAL.format("recording"))
    _show(found)


def _recorded(bag: Path, file: Path, options: FlagOptions) -> LabelledRecording:
    with BagReader(bag, options.names) as reader:
        if reader.bounds_ns is None:
            raise TactfulError(f"{bag}: holds no message")
        if idle := options.names.idle(reader.recorded_topics):
            raise TactfulError(f"{bag} {NO_SUCH_TOPIC.format(idle[0])}")
        labels = read_intervals(file, *reader.bounds_ns)
        senses = options.senses(reader, str(bag))
        if UTTERANCES not in senses.sources:
            raise TactfulError(f"{bag}: {explain_missing_words(reader, senses)}")
        clock = ReplayClock()
        monitor = replay_monitor(senses.sources, clock)
        with err.status(f"running the monitor on {bag.name}"):
            watched = ((at_ns, record) for at_ns, record in senses.records() if isinstance(record, MONITORED))
            recording = record_flags(bag.name, reader.bounds_ns, labels, watched, monitor, clock, WallClock())
        remarks = [*remarks_of(reader, senses, monitor)]
        remarks += [] if recording.utterances else ["no word of a person was recognized in it"]
        remarks += [] if labels else [f"{file} has no label, so only its false flags count"]
        for remark in remarks:
            complain(f"{bag.name}: {remark}")
        return recording


def _check(recordings: Sequence[LabelledRecording]) -> None:
    """Raise TactfulError where a figure would only measure missing input."""
    names = ", ".join(one.name for one in recordings)
    if not any(one.utterances for one in recordings):
        raise TactfulError(
            f"{names}: no word of a person was recognized; check the sound with {PROGRAM} hear, --language, or name "
            "the recognizer's topic with --words-topic"
        )
    if not any(one.labels for one in recordings):
        raise TactfulError(f"{names}: no label lies in any bag; label one interval at least, one per line")


def _show(found: IntervalAgreement) -> None:
    shown = Shown("class", "labels", "recall at 0.5/1/2/5 s", "detected", "after p50 s", "tenths of seconds")
    for name, row in found.by_class.items():
        recall = "/".join(f"{value:.0f}" for value in row.recall.values())
        waits = f"{row.time_to_detection_s['p50']:.1f}" if row.time_to_detection_s else "-"
        shown.add_row(name, str(row.labels), recall, f"{row.detected:.0f}", waits, f"{row.frame_recall:.0f}")
    print_table(shown)
    frames = found.frames
    print(
        f"tenths of seconds: accuracy {frames.accuracy:.1f}, precision {frames.precision:.1f}, recall "
        f"{frames.recall:.1f}, F1 {frames.f1:.1f}, macro F1 {frames.macro_f1:.1f}"
    )
    print(
        f"false alarms an hour: {found.false_alarms_per_hour_active:.1f} of the robot's speech, "
        f"{found.false_alarms_per_hour_idle:.1f} of the rest"
    )
    print(f"flags beyond the first a label that has any: {found.duplicates_per_event:.2f}")
    print(f"known after the onset: {_listed(found.evidence_delay_s)}")
    print(f"computed in: {_listed(found.compute_s, 4)}")
    if found.brier is not None:
        print(f"probabilities: Brier {found.brier:.3f}, calibration error {found.expected_calibration_error:.3f}")
    print("recall and false alarms an hour from a probability of", end=" ")
    print(", ".join(f"{floor}: {recall:.0f} and {wrong:.1f}" for floor, (recall, wrong) in found.by_floor.items()))
    print(f"windows closed late: {found.windows_late:.1f} %")


def _listed(percentiles: dict[str, float], places: int = 1) -> str:
    return ", ".join(f"{name} {value:.{places}f} s" for name, value in percentiles.items()) or "none"
