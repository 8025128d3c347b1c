"""`tactful bench monitor`: score the monitor on scripted encounters with the measures of online detection."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.progress import track

from norm_core.engines.engine_factory import open_engine_by_name
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.models.manifest import Prices
from norm_core.records.json_codec import to_plain
from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import NS_PER_S, WallClock, s_to_ns
from norm_core.runtime.wording import count_of
from norm_monitor.context.meaning import Concepts, EncoderMatcher, TextMatcher
from norm_monitor.cues.threshold_table import ThresholdTable
from norm_monitor.fusion.fusion import FusionConfig
from norm_monitor.fusion.unit_model import Sensitivity
from norm_monitor.judge.judge import Judge, JudgeConfig
from norm_monitor.judge.triggers import NO_CEILING
from norm_monitor.senses.speech.whisper import Whisper, WhisperConfig
from sim_replays.drivers.script_driver import monitor_from_sound, monitor_script
from sim_replays.monitor_bench.baselines import baselines, parts_by_cue
from sim_replays.monitor_bench.event_metrics import AT_S, EventSession, score_encounters
from sim_replays.monitor_bench.judge_stand_in import Attend, JudgeStandIn, attend_nothing
from sim_replays.monitor_bench.sensed_cache import BenchSource, sense_encounter
from sim_replays.scenarios.encounter import Encounter, talk_name
from sim_replays.scenarios.library import encounters, encounters_in
from tactful_cli.bench.monitor_tables import NO_INTERVAL, show_judge, show_scores
from tactful_cli.console import err, print_json
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
    calls_per_hour: float = NO_CEILING,
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
            judged = _run_monitor(talks, chosen, meaning, Sensitivity.BALANCED, lambda one: stand_in, calls_per_hour)
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
    if len(chosen) == 1:
        print(NO_INTERVAL.format("encounter"))
    if asked:
        show_judge(asked)


def load_meaning() -> EncoderMatcher:
    """Load the shipped concepts, with a cache large enough for all encounters."""
    return EncoderMatcher(SentenceEncoder(remembered=50_000), Concepts.shipped())


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


def _run_monitor(  # noqa: PLR0917
    talks: BenchInput,
    chosen: Sequence[Encounter],
    meaning: TextMatcher,
    sensitivity: Sensitivity,
    attend_of: AttendOf | None = None,
    per_hour: float = NO_CEILING,
) -> list[EventSession]:
    """Run the monitor on each encounter, with what attends to it within a budget, if anything does."""
    table, fusion = ThresholdTable.shipped(), FusionConfig(sensitivity=sensitivity)
    about = " and a judge" if attend_of else f", {sensitivity}"
    if attend_of is None:
        attend_of, per_hour = (lambda one: attend_nothing), 0.0
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
