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


@record
class Talks:
    """The encounters to measure on: a shipped split, or a folder."""

    split: str = ""
    folder: Path | None = None
    limit: int = 0  # 0: all
    seed: int = 0

    @property
    def name(self) -> str:
        """The folder or the split."""
        return str(self.folder or self.split or DEFAULT_SPLIT)

    def read(self) -> tuple[Encounter, ...]:
        """Read all encounters, without the limit."""
        return encounters_in(self.folder) if self.folder else encounters(self.split or DEFAULT_SPLIT)

    def head(self, count: int, table: ThresholdTable) -> dict[str, Any]:
        """Return the origin of a result, for JSON."""
        return {
            "split": None if self.folder else self.name,
            "folder": str(self.folder) if self.folder else None,
            "encounters": count,
            "table": table.version,
        }


@record
class SenseInput:
    """The source of words and sightings, and the cache of what the senses made of sound."""

    source: BenchSource
    cache_folder: Path


@record
class AddedJudge:
    """A judge model to add to the cues; none without a name."""

    model: str = ""
    calls_per_hour: float = NO_CEILING
    later: LaterJudge | None = None  # whose answers are there


@record
class _Attend:
    """What attends to the monitor of each encounter, and within which budget."""

    of: Callable[[Encounter], Attend]
    calls_per_hour: float


def write_questions(talks: Talks, senses: SenseInput, later: LaterJudge, prices: Prices | None) -> None:
    """Write the questions of a judge about the encounters."""
    chosen = talks.read()[: talks.limit or None]
    attend = _Attend(of=lambda one: later.attend(talk_name(one)), calls_per_hour=NO_CEILING)
    _run_monitor(chosen, load_meaning(), ThresholdTable.shipped(), talks.seed, senses, Sensitivity.BALANCED, attend)
    later.conclude(prices)


def evaluate(talks: Talks, senses: SenseInput, judge: AddedJudge, as_json: bool) -> None:
    """Print the scores of the monitor beside its baselines."""
    if judge.model and senses.source is BenchSource.AUDIO:
        raise TactfulError("--model: a model reads the words of the scripts; leave out --from audio, or --model")
    clock = WallClock()
    engine = open_engine_by_name(judge.model, clock) if judge.model else None  # a missing model fails at once
    chosen = talks.read()[: talks.limit or None]
    meaning, table = load_meaning(), ThresholdTable.shipped()
    by_sensitivity = {
        one: _run_monitor(chosen, meaning, table, talks.seed, senses, one)
        for one in (Sensitivity.BALANCED, Sensitivity.QUIET, Sensitivity.KEEN)  # the default comes first
    }
    sessions = by_sensitivity[Sensitivity.BALANCED]
    rows = {f"monitor, {one}": score_encounters(found) for one, found in by_sensitivity.items()}
    asked: dict[str, Any] = {}
    if engine:
        stand_in = JudgeStandIn(Judge(engine), clock)
        attend = _Attend(of=lambda one: stand_in, calls_per_hour=judge.calls_per_hour)
        try:
            judged = _run_monitor(chosen, meaning, table, talks.seed, senses, Sensitivity.BALANCED, attend)
        finally:
            engine.close()
        asked = _judge_figures(stand_in, judge.model)
        rows[f"monitor and {judge.model}"] = score_encounters(judged)
    if later := judge.later:
        attend = _Attend(of=lambda one: later.attend(talk_name(one)), calls_per_hour=NO_CEILING)
        judged = _run_monitor(chosen, meaning, table, talks.seed, senses, Sensitivity.BALANCED, attend)
        asked = _judge_figures(later.stand_in, later.model)
        rows[f"monitor and {later.model}"] = score_encounters(judged)
    parts = {name: score_encounters(found) for name, found in parts_by_cue(sessions).items()}
    weaker = {name: score_encounters(found) for name, found in baselines(sessions).items()}
    if as_json:
        scores: dict[str, Any] = to_plain(rows[BALANCED])
        found: dict[str, Any] = {
            **talks.head(len(chosen), table),
            "from": senses.source.value,
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
    print(f"{count_of(len(chosen), 'encounter')} of {talks.name}, {minutes:.1f} minutes, from {senses.source.value}")
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
    chosen: Sequence[Encounter],
    meaning: TextMatcher,
    table: ThresholdTable,
    seed: int,
    senses: SenseInput,
    sensitivity: Sensitivity,
    judged: _Attend | None = None,
) -> list[EventSession]:
    fusion = FusionConfig(sensitivity=sensitivity)
    attend_of, per_hour = (judged.of, judged.calls_per_hour) if judged else (lambda one: attend_nothing, 0.0)
    about = " and a judge" if judged else f", {sensitivity}"
    followed = track(chosen, f"running the monitor{about}", console=err)
    if senses.source is BenchSource.SCRIPT:
        return [monitor_script(one, meaning, table, seed, attend_of(one), per_hour, fusion=fusion) for one in followed]
    folder = senses.cache_folder
    folder.mkdir(parents=True, exist_ok=True)
    whisper = Whisper(WhisperConfig())
    return [
        monitor_from_sound(
            sense_encounter(one, folder, whisper, seed),
            meaning,
            table,
            attend_of(one),
            per_hour,
            fusion=fusion,
        )
        for one in followed
    ]
