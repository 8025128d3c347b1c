"""Whether long silences are scored low: python -m calibration.real_robots.scored_exchanges --hazumi FOLDER.

In Hazumi1902, an agent that a person runs talks Japanese. Five outsiders scored each exchange, from the agent's words
until its next ones. The monitor judges timing alone in Japanese.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from pympi.Elan import Eaf
from rich.console import Console
from rich.progress import track

from calibration.command import run_command
from calibration.timed_talk import TimedTurn, make_talk_records, make_unlabelled_truth
from norm_core.records.flag import Polarity
from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import NS_PER_MS, NS_PER_S, ns_to_s
from norm_core.streams.watermarks import UTTERANCES
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.context.meaning import EncoderMatcher
from norm_monitor.monitor import MonitorConfig
from scoring.intervals import draw_clusters, percentile_interval
from scoring.ranking import ranking_measures
from sim_replays.monitor_bench.script_driver import run_monitor

# Only the start of a person's words is timed. Their length is that of the transcript, by a median regression of the
# time until the agent speaks on characters and on marks of a pause.
_MS_PER_CHARACTER, _MS_PER_PAUSE = 149, 970
_NO_REACTION_MS = 6000
_LOW, _MIDDLE, _HIGH = 3.5, 4.0, 4.5
_RULES_S = (2, 4, 8)
_DRAWS = 1000


@record
class ScoredExchange:
    """The agent's turn and, if it is timed, the person's; when the agent speaks next; the mean of five scores."""

    person: str
    turns: tuple[TimedTurn, ...]
    end_ns: int
    score: float

    @property
    def silence_s(self) -> float:
        """The silence after the person's words; 0 if they are not timed."""
        return ns_to_s(self.end_ns - self.turns[1].end_ns) if len(self.turns) > 1 else 0.0


def measure_silences(
    hazumi: Annotated[Path, typer.Option(exists=True, file_okay=False, help="Hazumi1902's folder.")],
    monitored: Annotated[int, typer.Option(min=1, help="How many of the people the monitor runs on.")] = 28,
) -> None:
    """Print how far silences tell exchanges scored low from those scored high, and the monitor's errors."""
    paths = sorted((hazumi / "dumpfiles").glob("*.csv"))
    if not paths:
        raise TactfulError(f"{hazumi}: has no dumpfiles/*.csv; name Hazumi1902's folder")
    people = [list(read_exchanges(path, hazumi / "elan" / f"{path.stem}.eaf")) for path in paths]
    timed = [exchange for own in people for exchange in own if len(exchange.turns) > 1]
    print(
        f"{len(people)} people, {len(timed)} exchanges, median silence {np.median([e.silence_s for e in timed]):.1f} s"
    )
    print("area, long silence:", _area(timed, [exchange.silence_s for exchange in timed]))
    print("area, short words: ", _area(timed, [-float(len(exchange.turns[1].text)) for exchange in timed]))
    matcher, some = EncoderMatcher.shipped("none"), people[:monitored]
    flagged = [pair for own in track(some, console=Console(stderr=True)) for pair in _flag(own, matcher)]
    for low, high in ((_MIDDLE, 8.0), (0.0, _LOW)):
        among = [(exchange, errors) for exchange, errors in flagged if low < exchange.score < high]
        hours = sum(ns_to_s(exchange.end_ns - exchange.turns[0].start_ns) for exchange, _ in among) / 3600
        rates = {f"silences of {rule_s} s": sum(e.silence_s >= rule_s for e, _ in among) / hours for rule_s in _RULES_S}
        rates["flags"] = sum(errors for _, errors in among) / hours
        print(f"scored {low} to {high}, {hours:.1f} h:", ", ".join(f"{rate:.1f}/h {of}" for of, rate in rates.items()))


def read_exchanges(path: Path, eaf: Path) -> Iterator[ScoredExchange]:
    """Read a person's exchanges: times and scores from a dump, words from ELAN."""
    annotations = Eaf(str(eaf))
    words, agent_words = (
        {start_ms: text for start_ms, _, text, *_ in annotations.get_annotation_data_for_tier(tier)}
        for tier in ("user_utterance", "sys_utterance")
    )
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        for row in csv.DictReader(file):
            names = "start(exchange)[ms]", "end(system)[ms]", "end(exchange)[ms]", "reaction"
            start_ms, agent_end_ms, end_ms, reaction_ms = (int(float(row[name])) for name in names)
            transcript = re.sub(r"\([A-Z]\s*([^)]*)\)", r"\1", words.get(start_ms, ""))  # (F ...) marks a filler
            text = re.sub(r"[\s|]", "", transcript)
            spans = [("", agent_words.get(start_ms, "").strip() or "…", start_ms, agent_end_ms)]
            from_ms = agent_end_ms + reaction_ms
            if text and reaction_ms < _NO_REACTION_MS and from_ms < end_ms:
                length_ms = _MS_PER_CHARACTER * len(text) + _MS_PER_PAUSE * transcript.count("|")
                spans.append(("person", text, from_ms, min(from_ms + length_ms, end_ms)))
            yield ScoredExchange(
                person=path.stem,
                turns=tuple(
                    TimedTurn(speaker_id=by, text=words, start_ns=at_ms * NS_PER_MS, end_ns=until_ms * NS_PER_MS)
                    for by, words, at_ms, until_ms in spans
                ),
                end_ns=end_ms * NS_PER_MS,
                score=float(np.mean([float(row[f"TS{n}"]) for n in range(1, 6)])),
            )


def _area(exchanges: Sequence[ScoredExchange], values: Sequence[float]) -> str:
    """Return the area under the curve for low exchanges against high ones, with its interval over people."""
    scores = np.array([exchange.score for exchange in exchanges])
    among, is_low = (scores < _LOW) | (scores > _HIGH), scores < _LOW
    people, places = np.unique([exchange.person for exchange in exchanges], return_inverse=True)
    drawn = np.vstack([np.arange(len(people)), draw_clusters(len(people), _DRAWS)])
    weights = np.array([np.bincount(row, minlength=len(people))[places] for row in drawn], float)
    areas = ranking_measures(np.array(values)[among], is_low[among], weights[:, among])[0]
    low, high = percentile_interval(areas[1:])
    return f"{areas[0]:.2f} [{low:.2f}, {high:.2f}] ({is_low.sum()} low of {among.sum()})"


def _flag(exchanges: Sequence[ScoredExchange], matcher: EncoderMatcher) -> Iterator[tuple[ScoredExchange, int]]:
    """Run the shipped monitor, without a reader, on a person's talk; yield the number of errors of each exchange."""
    start_ns, end_ns = exchanges[0].turns[0].start_ns, exchanges[-1].end_ns + 5 * NS_PER_S
    records = make_talk_records([turn for exchange in exchanges for turn in exchange.turns], start_ns, end_ns)
    truth = make_unlabelled_truth(exchanges[0].person, start_ns, end_ns)
    config = MonitorConfig.for_replay((UTTERANCES,))
    alarms = run_monitor(records, truth, config, matcher, ThresholdTable.shipped()).alarms
    onsets_ns = [alarm.onset_ns for alarm in alarms if alarm.polarity is Polarity.ERROR]
    for exchange in exchanges:
        yield exchange, sum(exchange.turns[0].start_ns <= onset_ns < exchange.end_ns for onset_ns in onsets_ns)


if __name__ == "__main__":
    run_command(measure_silences)
