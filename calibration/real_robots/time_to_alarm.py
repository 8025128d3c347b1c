"""How soon a robot's planned errors are flagged: python -m calibration.real_robots.time_to_alarm --nodbot FOLDER.

The folder is NodBot's `HRI25_LBR/data`: the times of errors and reactions, and who spoke when. It has no transcript.
The robot's words are those of the study's script; a person's are one request for each kind of prompt that was coded.
"""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from calibration.command import run_command
from calibration.timed_talk import TimedTurn, make_talk_records, make_unlabelled_truth
from norm_core.records.flag import Polarity
from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import NS_PER_S, ns_to_s, s_to_ns
from norm_core.streams.watermarks import UTTERANCES
from norm_monitor.assessment.fusion_config import FusionConfig
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.assessment.unit_model import Sensitivity
from norm_monitor.context.meaning import EncoderMatcher
from norm_monitor.monitor import MonitorConfig
from scoring.intervals import draw_clusters, percentile_interval
from sim_replays.monitor_bench.event_metrics import Alarm
from sim_replays.monitor_bench.script_driver import run_monitor

_ERROR_WORDS = "Sorry, I do not understand."
_END_WORDS = "OK, I will call the researcher."
# What a person says, by the kind of prompt.
_PROMPTS = {
    "more specific/longer prompt": "Please call the researcher to come into this room.",
    "simpler prompt": "Researcher.",
    "swapping terms in prompt": "Get the experimenter.",
}
_PROMPT = "Call the researcher."
# Speech with a shorter gap is one turn, and a shorter segment is noise.
_MAX_GAP_S, _MIN_SEGMENT_S = 0.5, 0.2
# A flag whose onset is this close to an error's is about it.
_NEAR_S = 2.0
_TAIL_NS = 5 * NS_PER_S
_DRAWS = 1000

Rows = dict[str, list[dict[str, str]]]
Spans = Sequence[tuple[float, float]]


@record
class PlannedTalk:
    """A person's talk with a robot that errs on purpose, in seconds."""

    person: str
    turns: tuple[TimedTurn, ...]
    errors: tuple[tuple[float, float], ...]
    reactions: tuple[float, ...]
    end_s: float

    def delays_s(self, times_s: Sequence[float]) -> list[float | None]:
        """Return for each error how long after its start the first of these times comes, before the next error."""
        ends_s = [*(start_s for start_s, _ in self.errors[1:]), float("inf")]
        return [
            min((at_s - start_s for at_s in times_s if start_s < at_s < end_s), default=None)
            for (start_s, _), end_s in zip(self.errors, ends_s, strict=True)
        ]


def measure_time_to_alarm(
    nodbot: Annotated[Path, typer.Option(exists=True, file_okay=False, help="NodBot's folder HRI25_LBR/data.")],
    reader: Annotated[str, typer.Option(help="Folder of the talk reader; none: without one.")] = "none",
) -> None:
    """Print the seconds from each planned error to its flag, beside those to the person's first coded reaction."""
    talks = read_planned_talks(nodbot)
    table = Table("", "errors reached %", "seconds, median", "false alarms/h")
    table.add_row("first reaction", *_delays(talks, [talk.reactions for talk in talks]), "")
    hours = sum(talk.end_s for talk in talks) / 3600
    for sensitivity in track(list(Sensitivity), "running the monitor", console=Console(stderr=True)):
        flags = list(flag_talks(talks, reader, sensitivity))
        known_s = [[ns_to_s(alarm.known_ns) for alarm in alarms] for alarms in flags]
        false_per_hour = sum(map(_count_false, talks, flags)) / hours
        table.add_row(f"flag, {sensitivity}", *_delays(talks, known_s), f"{false_per_hour:.0f}")
        table.add_row(f"as many at random, {sensitivity}", *_delays_by_chance(talks, list(map(len, flags))), "")
    Console(highlight=False, width=160).print(table)
    print(f"{len(talks)} people, {sum(len(talk.errors) for talk in talks)} errors, {60 * hours:.0f} minutes")


def read_planned_talks(folder: Path) -> list[PlannedTalk]:
    """Read the talks of all people whose errors are timed."""
    names = "error_times", "speaker_diarization_all_audio", "filtered_annotations", "nodbot_annotations"
    errors, speech, prompts, reactions = (_read_rows(folder / f"{name}.csv") for name in names)
    if not set(errors) <= set(speech):
        raise TactfulError(f"{folder}: some people of error_times.csv have no speech; name NodBot's folder of data")
    return [
        _make_talk(person, _spans(errors[person]), speech[person], prompts.get(person, []), reactions.get(person, []))
        for person in sorted(errors, key=int)
    ]


def _read_rows(path: Path) -> Rows:
    """Read the rows of each person, whose number may stand in a name such as p20nodbot."""
    rows: Rows = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            rows.setdefault(row["participant_num"].removeprefix("p").removesuffix("nodbot"), []).append(row)
    return rows


def _spans(rows: Sequence[dict[str, str]]) -> list[tuple[float, float]]:
    return sorted((float(row["start"]), float(row["end"])) for row in rows)


def _make_talk(
    person: str,
    errors: list[tuple[float, float]],
    speech: Sequence[dict[str, str]],
    prompts: Sequence[dict[str, str]],
    reactions: Sequence[dict[str, str]],
) -> PlannedTalk:
    by_voice = {
        voice: _join([span for row in speech if row["speaker"] == voice for span in _spans([row])])
        for voice in ("participant", "nodbot")
    }
    own = [span for span in by_voice["nodbot"] if not any(_overlap(span, error) for error in errors)]
    spoken = [("person", _words_of(span, prompts), span) for span in by_voice["participant"]]
    spoken += [("", _ERROR_WORDS, span) for span in errors]
    spoken += [("", _END_WORDS, span) for span in own if span[0] > errors[-1][1]]
    turns = [
        TimedTurn(speaker_id=speaker, text=text, start_ns=s_to_ns(start_s), end_ns=s_to_ns(end_s))
        for speaker, text, (start_s, end_s) in sorted(spoken, key=lambda turn: turn[2])
    ]
    return PlannedTalk(
        person=person,
        turns=tuple(turns),
        errors=tuple(errors),
        reactions=tuple(start_s for start_s, _ in _spans(reactions)),
        end_s=ns_to_s(max(turn.end_ns for turn in turns)),
    )


def _join(spans: Spans) -> list[tuple[float, float]]:
    """Join segments with short gaps, and drop the shortest."""
    joined: list[tuple[float, float]] = []
    for start_s, end_s in sorted(spans):
        if joined and start_s - joined[-1][1] < _MAX_GAP_S:
            joined[-1] = joined[-1][0], max(end_s, joined[-1][1])
        else:
            joined.append((start_s, end_s))
    return [span for span in joined if span[1] - span[0] >= _MIN_SEGMENT_S]


def _overlap(span: tuple[float, float], other: tuple[float, float]) -> bool:
    return span[0] < other[1] and other[0] < span[1]


def _words_of(span: tuple[float, float], prompts: Sequence[dict[str, str]]) -> str:
    labels = " ".join(row["labels"] for row in prompts if _overlap(span, _spans([row])[0]))
    return next((words for kind, words in _PROMPTS.items() if kind in labels), _PROMPT)


def flag_talks(talks: Sequence[PlannedTalk], reader: str, sensitivity: Sensitivity) -> Iterator[list[Alarm]]:
    """Run the shipped monitor on each talk, and yield its flags of errors."""
    meaning, table = EncoderMatcher.shipped(reader, remembered=50_000), ThresholdTable.shipped()
    config = MonitorConfig.for_replay((UTTERANCES,), fusion=FusionConfig(sensitivity=sensitivity))
    for talk in talks:
        end_ns = s_to_ns(talk.end_s) + _TAIL_NS
        records = make_talk_records(talk.turns, 0, end_ns)
        session = run_monitor(records, make_unlabelled_truth(talk.person, 0, end_ns), config, meaning, table)
        yield [alarm for alarm in session.alarms if alarm.polarity is Polarity.ERROR]


def _count_false(talk: PlannedTalk, alarms: Sequence[Alarm]) -> int:
    return sum(
        not any(start_s - _NEAR_S <= ns_to_s(alarm.onset_ns) <= end_s + _NEAR_S for start_s, end_s in talk.errors)
        for alarm in alarms
    )


def _summarize(delays_s: Sequence[Sequence[float | None]]) -> tuple[float, float]:
    """Return the share of errors that are reached, in percent, and the median delay of these."""
    every = [delay_s for talk in delays_s for delay_s in talk]
    reached = [delay_s for delay_s in every if delay_s is not None]
    return 100 * len(reached) / max(1, len(every)), float(np.median(reached)) if reached else float("nan")


def _delays(talks: Sequence[PlannedTalk], times_s: Sequence[Sequence[float]]) -> list[str]:
    """Return the share of errors that any of the times reaches and the median delay, with intervals over people."""
    delays_s = [talk.delays_s(times) for talk, times in zip(talks, times_s, strict=True)]
    drawn = [_summarize([delays_s[index] for index in row]) for row in draw_clusters(len(talks), _DRAWS)]
    cells = []
    for value, draws, digits in zip(_summarize(delays_s), zip(*drawn, strict=True), (0, 1), strict=True):
        low, high = percentile_interval([draw for draw in draws if not np.isnan(draw)] or [value])
        cells.append(f"{value:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]")
    return cells


def _delays_by_chance(talks: Sequence[PlannedTalk], counts: Sequence[int]) -> list[str]:
    """Return the means of both figures where each talk has as many flags, at times drawn evenly over it."""
    chance = np.random.default_rng(0)
    drawn = [
        _summarize(
            [talk.delays_s(list(chance.uniform(0, talk.end_s, n))) for talk, n in zip(talks, counts, strict=True)]
        )
        for _ in range(_DRAWS)
    ]
    medians_s = [median_s for _, median_s in drawn if not np.isnan(median_s)] or [float("nan")]
    return [f"{np.mean([share for share, _ in drawn]):.0f}", f"{np.mean(medians_s):.1f}"]


if __name__ == "__main__":
    run_command(measure_time_to_alarm)
