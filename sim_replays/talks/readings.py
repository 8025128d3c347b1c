"""How the monitor reads machine turns that people judged: by the words, or as a whole where the talk has times."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from norm_core.engines.talk_reader import latest_reading
from norm_core.records.flag import Polarity
from norm_core.records.record import record
from norm_core.records.speech import RobotSpeech, Speaker, SpeechEdge, Utterance
from norm_core.runtime.time import NS_PER_S, ReplayClock, ns_to_s, s_to_ns
from norm_core.runtime.watermarks import UTTERANCES
from norm_monitor.context.exchange import Exchange
from norm_monitor.context.meaning import TextMatcher
from norm_monitor.context.talk_lines import talk_lines
from norm_monitor.cues.threshold_table import ThresholdTable
from norm_monitor.fusion.fusion import ClosedUnit
from norm_monitor.monitor import Monitor, MonitorConfig
from norm_monitor.senses.robot_voice.robot_speech_adapter import estimate_duration_ns
from norm_monitor.senses.speech.silence_marks import marks_of_script
from norm_monitor.units.unit import UnitKind
from sim_replays.talks.talk_file import Answers, JudgedTurn, Talk, TalkTurn, judged_turns

Array = NDArray[np.float64]
_SOURCE = "talk"
_MARK_NS = NS_PER_S // 2
# How long the input goes on after the last turn: as long as a reaction is waited for.
_TAIL_NS = 5 * NS_PER_S
# What is read where the reading has to do without the rest: the turn, or what people say next.
PARTS: tuple[Callable[[Exchange], Exchange], ...] = (
    lambda exchange: Exchange(before="", said=exchange.said),
    lambda exchange: Exchange(before="", said="", after=exchange.after),
)
CONTROLS = ("length", "turn_alone", "next_words_alone")


@record
class CorpusReading:
    """The judged turns of a corpus and, for each, the probability of an error, as read in several ways."""

    name: str
    talks: int
    by: str  # words, words and times, or answers
    turns: tuple[JudgedTurn, ...]
    with_reaction: Array
    at_once: Array
    controls: Mapping[str, Array]
    unanswered: int = 0
    has_reader: bool = False  # whether a talk reader was loaded


def read_corpora(
    talks: Iterable[Talk],
    matcher: TextMatcher,
    table: ThresholdTable,
    answers: Answers | None = None,
    show: Callable[[Sequence[Talk], str], Iterable[Talk]] = lambda talks, name: talks,
) -> list[CorpusReading]:
    """Read the judged turns of each corpus that has any; `show` shows the progress through its talks.

    Several corpora of one family, such as dbdc3-cic, are also put together.
    """
    by_corpus: dict[str, list[Talk]] = {}
    for talk in talks:
        by_corpus.setdefault(talk.corpus, []).append(talk)
    families: dict[str, list[CorpusReading]] = {}
    for name, every in by_corpus.items():
        part = _read(name, every, matcher, table, answers, show)
        families.setdefault(name.split("-")[0], []).extend([part] if part.turns else [])
    readings: list[CorpusReading] = []
    for family, parts in families.items():
        readings += [_together(family, parts)] if len(parts) > 1 and family not in by_corpus else []
        readings += parts
    return readings


def _read(  # noqa: PLR0917
    name: str,
    talks: Sequence[Talk],
    matcher: TextMatcher,
    table: ThresholdTable,
    answers: Answers | None,
    show: Callable[[Sequence[Talk], str], Iterable[Talk]],
) -> CorpusReading:
    has_times = answers is None and all(turn.start_s is not None for talk in talks for turn in talk.turns)
    turns: list[JudgedTurn] = []
    rows: list[tuple[float, ...]] = []
    unanswered = 0

    def read(exchange: Exchange) -> float:
        return matcher.read(exchange).probability[Polarity.ERROR]

    for talk in show(talks, name):
        own = list(judged_turns(talk))
        held = _held(talk, matcher) if own and answers is None else []
        whole = iter(monitor_reading(talk, matcher, table) if has_times and own else ())
        for judged in own:
            answer = None if answers is None else answers.get((judged.talk_id, judged.number))
            if answers is not None and answer is None:
                unanswered += 1
                continue
            later = next(whole, None)
            if held:
                at_once, held_later = held[judged.number - 1]
                later = held_later if later is None else later
            else:
                at_once = read(replace(judged.exchange, after="", then="")) if answer is None else answer
            if later is None:
                later = read(judged.exchange) if answer is None else answer
            turns.append(judged)
            rows.append(
                (later, at_once, float(len(judged.turn.text)), *(read(part(judged.exchange)) for part in PARTS))
            )
    columns = np.array(rows, float).reshape(-1, 2 + len(CONTROLS)).T
    return CorpusReading(
        name=name,
        talks=len(talks),
        by="answers"
        if answers is not None
        else f"{'words and times' if has_times else 'words'}{', by the talk reader' if matcher.has_reader else ''}",
        has_reader=matcher.has_reader,
        turns=tuple(turns),
        with_reaction=columns[0],
        at_once=columns[1],
        controls=dict(zip(CONTROLS, columns[2:], strict=True)),
        unanswered=unanswered,
    )


def _held(talk: Talk, matcher: TextMatcher) -> list[tuple[float, float]]:
    """Return for each machine turn how likely people hold it against the machine, at once and with what follows."""
    turns = [turn for turn in talk.turns if turn.text.strip()]
    lines = tuple(talk_lines(("" if turn.is_machine else turn.by, turn.text) for turn in turns))
    readings = matcher.read_talk(lines)
    found = []
    for place, (turn, reading) in enumerate(zip(turns, readings, strict=False)):
        if turn.is_machine:
            found.append((reading.turns[0].fault, latest_reading(readings, place).fault))
    return found


def _together(family: str, parts: Sequence[CorpusReading]) -> CorpusReading:
    return CorpusReading(
        name=family,
        talks=sum(part.talks for part in parts),
        by=" or ".join(dict.fromkeys(part.by for part in parts)),
        turns=tuple(one for part in parts for one in part.turns),
        with_reaction=np.concatenate([part.with_reaction for part in parts]),
        at_once=np.concatenate([part.at_once for part in parts]),
        controls={name: np.concatenate([part.controls[name] for part in parts]) for name in parts[0].controls},
        unanswered=sum(part.unanswered for part in parts),
        has_reader=any(part.has_reader for part in parts),
    )


def lay_out(talk: Talk, gap_s: float) -> Talk:
    """Give the turns of a talk without times a start, a gap after the turn before has been said."""
    if any(turn.start_s is not None for turn in talk.turns):
        return talk
    at_s, turns = 0.0, []
    for turn in talk.turns:
        turns.append(turn.model_copy(update={"start_s": at_s}))
        at_s += ns_to_s(estimate_duration_ns(turn.text)) + gap_s
    return talk.model_copy(update={"turns": tuple(turns)})


def monitor_reading(talk: Talk, matcher: TextMatcher, table: ThresholdTable) -> list[float | None]:
    """Run the monitor on a talk whose turns all have times; return the probability of each judged turn, as it closes.

    A silence that a machine's turn ends counts as that turn's, and turns that follow at once are one. A turn lasts as
    long as its words take to say, and at most until the next one starts.
    """
    spoken = [turn for turn in talk.turns if turn.text.strip()]
    starts = [s_to_ns(turn.start_s or 0.0) for turn in spoken]
    ends = [start + estimate_duration_ns(turn.text) for start, turn in zip(starts, spoken, strict=True)]
    for place, (_, following) in enumerate(pairwise(starts)):
        ends[place] = max(starts[place], min(ends[place], following))
    utterances: list[Utterance] = []
    given: list[tuple[int, Utterance | RobotSpeech]] = []
    for place, (turn, start_ns, end_ns) in enumerate(zip(spoken, starts, ends, strict=True)):
        if turn.is_machine:
            given += [
                (at_ns, RobotSpeech(stamp_ns=at_ns, speech_id=f"r{place}", state=edge, text=turn.text))
                for at_ns, edge in ((start_ns, SpeechEdge.START), (end_ns, SpeechEdge.STOP))
            ]
        else:
            utterances.append(_utterance(place, turn, start_ns, end_ns))
            given.append((end_ns, utterances[-1]))
    given += marks_of_script(utterances, min(starts, default=0), max(ends, default=0) + _TAIL_NS, _MARK_NS, _SOURCE)
    closed: list[ClosedUnit] = []
    config, clock = MonitorConfig.for_replay((UTTERANCES,)), ReplayClock()
    monitor = Monitor(config, table, matcher, clock, note_closed=closed.append)
    for at_ns, entry in sorted(given, key=lambda pair: (pair[0], not isinstance(pair[1], RobotSpeech))):
        clock.advance_to(max(at_ns, clock.now_ns()))
        monitor.take(entry)
    monitor.end_input()
    model = config.unit_model(matcher)
    likely: dict[int, float] = {}
    for one in closed:
        said_ns = one.unit.offset_ns if one.unit.kind is UnitKind.SILENCE else one.unit.onset_ns
        if one.unit.kind in {UnitKind.ROBOT_TURN, UnitKind.SILENCE} and said_ns is not None:
            likely[said_ns] = max(likely.get(said_ns, 0.0), one.assessment(model).likely[Polarity.ERROR])
    onsets = sorted(likely)
    places = [bisect_right(onsets, s_to_ns(one.turn.start_s or 0.0)) for one in judged_turns(talk)]
    return [likely[onsets[place - 1]] if place else None for place in places]


def _utterance(place: int, turn: TalkTurn, start_ns: int, end_ns: int) -> Utterance:
    return Utterance(
        stamp_ns=start_ns,
        utterance_id=f"u{place}",
        speaker=Speaker.USER,
        speaker_id=turn.by,
        text=turn.text,
        start_ns=start_ns,
        end_ns=end_ns,
        source_topic=_SOURCE,
    )
