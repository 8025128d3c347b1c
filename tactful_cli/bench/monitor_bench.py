"""`tactful bench monitor`: score the monitor on scripted encounters, or its error flags on labelled bags."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.progress import track
from rich.table import Table as Shown

from norm_core.bags.reader import BagReader
from norm_core.engines.engine_factory import open_engine_by_name
from norm_core.models.manifest import Prices
from norm_core.records.json_codec import to_plain
from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.time import NS_PER_S, ReplayClock, WallClock, s_to_ns
from norm_core.runtime.watermarks import UTTERANCES
from norm_core.runtime.wording import count_of
from norm_monitor.context.meaning import EncoderMatcher, TextMatcher
from norm_monitor.cues.threshold_table import ThresholdTable
from norm_monitor.fusion.fusion import FusionConfig
from norm_monitor.fusion.unit_model import Sensitivity
from norm_monitor.judge.judge import Judge, JudgeConfig
from norm_monitor.judge.triggers import NO_CEILING
from norm_monitor.senses.speech.whisper import Whisper, WhisperConfig
from sim_replays.drivers.bag_driver import MONITORED, replay_monitor
from sim_replays.drivers.script_driver import monitor_from_sound, monitor_script
from sim_replays.monitor_bench.baselines import baselines, parts_by_cue
from sim_replays.monitor_bench.event_metrics import AT_S, EventSession, score_encounters, score_online
from sim_replays.monitor_bench.interval_metrics import IntervalAgreement, interval_agreement
from sim_replays.monitor_bench.judge_stand_in import Attend, JudgeStandIn, attend_nothing
from sim_replays.monitor_bench.labelled_recording import LabelledRecording, read_intervals, record_flags, session_of
from sim_replays.monitor_bench.sensed_cache import BenchSource, sense_encounter
from sim_replays.scenarios.encounter import Encounter, talk_name
from sim_replays.scenarios.library import encounters, encounters_in
from tactful_cli.bench.monitor_tables import NO_INTERVAL, show_judge, show_rows, show_scores
from tactful_cli.console import complain, err, print_json, print_table
from tactful_cli.flag_watch import NO_SUCH_TOPIC, FlagOptions, explain_missing_words, remarks_of
from tactful_cli.later_judge import LaterJudge

DEFAULT_SPLIT = "development"
BALANCED = f"monitor, {Sensitivity.BALANCED}"
DEADLINE_S = JudgeConfig().deadline_s  # of a live monitor


AttendOf = Callable[[Encounter], Attend]  # what attends to the monitor of each encounter


@record
class BenchInput:
    """The encounters to measure on, a shipped split or a folder, and where their words and sightings come from."""

    split: str = ""
    folder: Path | None = None
    limit: int = 0  # 0: all
    seed: int = 0
    source: BenchSource
    cache_folder: Path  # for what the senses made of sound

    @property
    def name(self) -> str:
        """The folder or the split."""
        return str(self.folder or self.split or DEFAULT_SPLIT)

    def read(self) -> tuple[Encounter, ...]:
        """Read the encounters."""
        read = encounters_in(self.folder) if self.folder else encounters(self.split or DEFAULT_SPLIT)
        return read[: self.limit or None]


def write_questions(talks: BenchInput, later: LaterJudge, prices: Prices | None) -> None:
    """Write the questions of a judge about the encounters."""
    _run_monitor(talks, talks.read(), load_meaning(), Sensitivity.BALANCED, lambda one: later.attend(talk_name(one)))
    later.conclude(prices)


def evaluate(
    talks: BenchInput,
    as_json: bool,
    *,
    model: str = "",
    later: LaterJudge | None = None,
) -> None:
    """Print the scores of the monitor beside its baselines, and with a judge: a model, or one that has answered."""
    if model and talks.source is BenchSource.AUDIO:
        raise TactfulError("--model: a model reads the words of the scripts; leave out --from audio, or --model")
    clock = WallClock()
    engine = open_engine_by_name(model, clock) if model else None  # a missing model fails at once
    chosen, meaning = talks.read(), load_meaning()
    by_sensitivity = {
        one: _run_monitor(talks, chosen, meaning, one)
        for one in (Sensitivity.BALANCED, Sensitivity.QUIET, Sensitivity.KEEN)  # the default comes first
    }
    sessions = by_sensitivity[Sensitivity.BALANCED]
    rows = {f"monitor, {one}": score_encounters(found) for one, found in by_sensitivity.items()}
    asked: dict[str, Any] = {}
    if engine:
        stand_in = JudgeStandIn(Judge(engine), clock)
        try:
            judged = _run_monitor(talks, chosen, meaning, Sensitivity.BALANCED, lambda one: stand_in)
        finally:
            engine.close()
        asked = _judge_figures(stand_in, model)
        rows[f"monitor and {model}"] = score_encounters(judged)
    if later:
        judged = _run_monitor(talks, chosen, meaning, Sensitivity.BALANCED, lambda one: later.attend(talk_name(one)))
        asked = _judge_figures(later.stand_in, later.model)
        rows[f"monitor and {later.model}"] = score_encounters(judged)
    parts = {name: score_encounters(found) for name, found in parts_by_cue(sessions).items()}
    weaker = {name: score_encounters(found) for name, found in baselines(sessions).items()}
    if as_json:
        scores: dict[str, Any] = to_plain(rows[BALANCED])
        found: dict[str, Any] = {
            "split": None if talks.folder else talks.name,
            "folder": str(talks.folder) if talks.folder else None,
            "encounters": len(chosen),
            "table": ThresholdTable.shipped().version,
            "from": talks.source.value,
            "reader": meaning.has_reader,
            "tolerance_s": AT_S,
            **scores,
            "sensitivities": {one.value: to_plain(rows[f"monitor, {one}"]) for one in by_sensitivity},
            "parts": {
                name: {"errors": to_plain(part.errors), "competences": to_plain(part.competences)}
                for name, part in parts.items()
            },
            "baselines": {name: to_plain(row) for name, row in weaker.items()},
        }
        if asked:
            found["judge"] = {**asked, **to_plain(rows[f"monitor and {asked['model']}"])}
        print_json(found)
        return
    show_scores(rows, parts, weaker)
    minutes = sum(session.truth.end_ns - session.truth.start_ns for session in sessions) / NS_PER_S / 60
    print(f"{count_of(len(chosen), 'encounter')} of {talks.name}, {minutes:.1f} minutes, from {talks.source.value}")
    print(f"read {'line by line by the talk reader' if meaning.has_reader else 'by sentences, without a talk reader'}")
    if len(chosen) == 1:
        print(NO_INTERVAL.format("encounter"))
    if asked:
        show_judge(asked)


def load_meaning() -> EncoderMatcher:
    """Load the shipped concepts, with a cache large enough for all encounters."""
    return EncoderMatcher.shipped(remembered=50_000)


def _judge_figures(asking: JudgeStandIn, model: str) -> dict[str, Any]:
    """Summarize the outcomes of the judge's questions."""
    return {
        "model": model,
        "units": len(asking.spent_s),
        "outcomes": dict(asking.outcomes),
        "reasons": dict(asking.reasons.most_common(3)),
        "latency_s": asking.latency_s(),
        "deadline_s": DEADLINE_S,
        "late": asking.late_count(s_to_ns(DEADLINE_S)),
    }


def _run_monitor(
    talks: BenchInput,
    chosen: Sequence[Encounter],
    meaning: TextMatcher,
    sensitivity: Sensitivity,
    attend_of: AttendOf | None = None,
) -> list[EventSession]:
    """Run the monitor on each encounter, with what attends to it, if anything does."""
    table, fusion = ThresholdTable.shipped(), FusionConfig(sensitivity=sensitivity)
    about = " and a judge" if attend_of else f", {sensitivity}"
    per_hour = NO_CEILING if attend_of else 0.0
    attend_of = attend_of or (lambda one: attend_nothing)
    followed = track(chosen, f"running the monitor{about}", console=err)
    if talks.source is BenchSource.SCRIPT:
        return [
            monitor_script(one, meaning, table, talks.seed, attend_of(one), per_hour, fusion=fusion) for one in followed
        ]
    talks.cache_folder.mkdir(parents=True, exist_ok=True)
    whisper = Whisper(WhisperConfig())
    return [
        monitor_from_sound(
            sense_encounter(one, talks.cache_folder, whisper, talks.seed), meaning, table, attend_of(one), per_hour,
            fusion=fusion,
        )
        for one in followed
    ]  # fmt: skip


def evaluate_bags(bags: list[Path], labels: list[Path], options: FlagOptions, as_json: bool) -> None:
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
            recording = record_flags(bag.name, reader.bounds_ns, labels, watched, monitor, clock)
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
    shown = Shown("class", "labels", "recall at 0.5/1/2/5 s", "detected", "after p50 s")
    for name, row in found.by_class.items():
        recall = "/".join(f"{value:.0f}" for value in row.recall.values())
        waits = f"{row.time_to_detection_s['p50']:.1f}" if row.time_to_detection_s else "-"
        shown.add_row(name, str(row.labels), recall, f"{row.detected:.0f}", waits)
    print_table(shown)
    latency = ", ".join(f"{name} {value:.1f} s" for name, value in found.online.latency_s.items())
    print(f"known after the onset: {latency or 'none'}")
