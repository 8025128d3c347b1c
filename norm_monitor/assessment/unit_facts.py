"""Measure the facts of a unit: how its words read, its timing, and who was seen.

`MEASURES` is the table of facts: each name, how a flag words it, and the function here that measures it. The same
name is the key of its weights in unit_weights.json. `explain` in explanation.py shows both in a flag.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median_high

from norm_core.engines.talk_reader import TurnReading, find_latest_reading, to_log_odds
from norm_core.records.flag import YES_OR_NO, Attribute, Polarity
from norm_core.records.presence import Presence, PresenceState
from norm_core.records.record import record
from norm_core.runtime.time import NS_PER_S, ns_to_s
from norm_monitor.assessment.unit import Unit, UnitKind, find_report_of_earlier_work, units_of
from norm_monitor.context.exchange import Exchange
from norm_monitor.context.meaning import TextMatcher
from norm_monitor.context.scene import Scene, exchange_of
from norm_monitor.context.talk_lines import ANYBODY, talk_lines
from norm_monitor.context.turns import MAX_GAP_NS, Turn
from norm_monitor.context.wording import (
    accepts,
    announces_pause,
    corrects,
    has_open_question,
    is_backchannel,
    is_question,
    is_request,
    is_sign_of_work,
    is_unfinished,
    pleads_unclear,
    tokens,
)

# Raise it when a fact changes its meaning: weights that were fitted before no longer load.
FACTS_VERSION = "3"
# Longer absences count as this long.
LONGEST_S = 15.0
# Longer gaps in talk count as this long.
LONGEST_GAP_S = 60.0
# Number of answers from which a habit shows.
_HABIT_ANSWERS = 3
# Number of turns from which it shows whether the robot reports its work.
_HABIT_TURNS = 3
# A shorter pace counts as this one.
_SHORTEST_PACE_S = 0.5
# A time counts as at most this many paces.
_MAX_PACES = 30.0
# How long before a turn an arrival, a departure or a change of distance still belongs to it.
_NEAR_NS = 6 * NS_PER_S
# Where the time begins that is compared with this.
_EARLIER_NS = 12 * NS_PER_S
# How long after a turn what is seen still belongs to it.
_AFTER_NS = NS_PER_S
# How far before the units presence is read.
_LOOKED_BACK_NS = 60 * NS_PER_S
# Length of a pause after which no reaction is awaited.
_QUIET_NS = 4 * NS_PER_S
# How many turns on either side are neighbours.
_NEAREST = 12
_FAR_M = 2.0
# Length of a silence after which no answer is expected.
NO_ANSWER_NS = 5 * NS_PER_S
# The share of words that a repeated turn has in common with the first.
_SAME_SHARE = 0.6

Facts = Mapping[str, float]

# What each fact measures, and its unit, by the function that measures it.
MEASURES = {
    # _exchange_facts
    "text_error_log_odds": ("log odds of an error, by the words", ""),
    "text_competence_log_odds": ("log odds of a competence, by the words", ""),
    "text_error_log_odds_without_reaction": ("log odds of an error, by the words before any reaction", ""),
    "text_competence_log_odds_without_reaction": ("log odds of a competence, by the words before any reaction", ""),
    "encounter_model_error": ("score of an error, by the words, as learnt from encounters", ""),
    "encounter_model_competence": ("score of a competence, by the words, as learnt from encounters", ""),
    **{
        f"{source}_{polarity}_{attribute}": (
            f"score of {article} {polarity} of {attribute.value.replace('_', ' ')}, by the words{by}",
            "",
        )
        for source, by in (("text", ""), ("encounter_model", ", as learnt from encounters"))
        for article, polarity in (("an", Polarity.ERROR), ("a", Polarity.COMPETENCE))
        for attribute in Attribute
    },
    "known_after": ("turns heard after this one", "turns"),
    # _reader_facts
    **{
        f"reader_{name}{suffix}": (f"log odds {of}, by the talk reader{when}", "")
        for name, of in (
            ("error", "of an error"),
            ("competence", "of a competence"),
            ("held", "that people hold the turn against the robot"),
            ("good", "that people find the turn good"),
            *((str(attribute), f"of {attribute.value.replace('_', ' ')}") for attribute in Attribute),
        )
        for suffix, when in (("", ""), ("_at_once", ", as the turn ended"))
        if not suffix or name not in set(Attribute)
    },
    # _timing_facts
    "words": ("words of the turn", "words"),
    "duration_s": ("length of the turn", "s"),
    "gap_before_s": ("silence before the turn", "s"),
    "gap_after_s": ("silence after the turn", "s"),
    "after_person_s": ("time since the person's turn", "s"),
    "robot_silent_after_s": ("time until the robot speaks", "s"),
    "people_silent_after_s": ("time until a person speaks", "s"),
    "owed_silence_s": ("silence in which the robot owes an answer", "s"),
    "silence_s": ("silence after the person's words", "s"),
    "pause_at_work_s": ("silence after a sign that the robot is at work", "s"),
    "answers_so_far": ("answers of the robot so far", "answers"),
    "pace_s": ("how long the robot took to answer so far", "s"),
    "signs_of_work": ("share of the robot's turns so far that only say that it is at work", ""),
    "silent_by_pace": ("time until the robot speaks, against its time so far", ""),
    "answer_by_pace": ("time since the person's turn, against the robot's time so far", ""),
    "overlap_s": ("both voices at once", "s"),
    "after_robot": ("the robot spoke before", YES_OR_NO),
    "before_robot": ("the robot speaks next, or owes an answer", YES_OR_NO),
    "answered": ("somebody speaks after", YES_OR_NO),
    "opening": ("the robot has not spoken before", YES_OR_NO),
    "voices": ("people who talk", "people"),
    "words_before": ("words of the person before", "words"),
    "words_after": ("words of the person after", "words"),
    "another_person": ("another person speaks after than before", YES_OR_NO),
    # _form_facts
    "asks": ("the turn asks", YES_OR_NO),
    "requests": ("the turn requests", YES_OR_NO),
    "backchannel": ("the turn is a backchannel", YES_OR_NO),
    "unfinished": ("the turn is unfinished", YES_OR_NO),
    "announces_pause": ("the turn asks for time", YES_OR_NO),
    "person_asked": ("the person before asked", YES_OR_NO),
    "person_unfinished": ("the person before was not finished", YES_OR_NO),
    "person_asks_then": ("the person after asks", YES_OR_NO),
    "robot_asked": ("the robot's turn before asked", YES_OR_NO),
    "unclear": ("the turn says that something was not understood", YES_OR_NO),
    "person_corrects": ("the person then rejects or corrects something", YES_OR_NO),
    "person_says_again": ("share of the person's next words that were said before", ""),
    "says_again": ("share of the words that this speaker said just before", ""),
    # PresenceFacts.around
    "seen_share": ("share of the turn in which somebody is seen", ""),
    "away_share": ("share of the turn in which everybody looks away", ""),
    "absent_at_start_s": ("nobody seen, at its start, for", "s"),
    "absent_at_end_s": ("nobody seen, at its end, for", "s"),
    "away_at_start_s": ("everybody looking away, at its start, for", "s"),
    "away_at_end_s": ("everybody looking away, at its end, for", "s"),
    "nobody_seen_yet": ("nobody was seen before", YES_OR_NO),
    "seen_for_s": ("somebody seen for", "s"),
    "somebody_away": ("somebody looks away", YES_OR_NO),
    "faces": ("faces seen", "faces"),
    "faces_came": ("faces that came before the turn", "faces"),
    "faces_gone": ("faces that went before the turn", "faces"),
    "faces_came_during": ("faces that came during the turn", "faces"),
    "faces_gone_during": ("faces that went during the turn", "faces"),
    "faces_came_after": ("faces that came after the turn", "faces"),
    "faces_gone_after": ("faces that went after the turn", "faces"),
    "distance_m": ("distance", "m"),
    "came_nearer_m": ("the person or the robot came nearer by", "m"),
}
# Facts that compare the clocks of two sources.
TIMED_FACTS = frozenset(
    name
    for name, (_, unit) in MEASURES.items()
    if unit == "s"
    or name.endswith("_by_pace")
    or name.startswith(("faces_", "seen_share", "away_share", "nobody_seen", "somebody_away"))
)
# The facts that tell how long a person's words had no answer.
_FACTS_OF_AN_ANSWER_DUE = frozenset({"gap_after_s", "robot_silent_after_s", "silent_by_pace", "people_silent_after_s"})


@record
class MeasuredUnit:
    """A unit, the turn that it is or follows, and those of its facts that can be measured."""

    unit: Unit
    turn: Turn
    facts: Facts
    exchange: Exchange | None  # the robot's turn amid the words around it; None in a language that is not read
    settled: bool  # what follows the turn is known, or nothing followed for long
    turns_on: Turn | None = None  # the earlier turn that makes it read as an error to the talk reader
    asked: Turn | None = None  # a robot's turn: what a person said before it
    reaction: Turn | None = None  # and what a person said next

    @property
    def is_accepted(self) -> bool:
        """Whether the person plainly accepted a turn of the robot's."""
        return self.reaction is not None and not self.reaction.ongoing and accepts(self.reaction.text)


def measured_units(scene: Scene, matcher: TextMatcher, since_ns: int) -> Iterator[MeasuredUnit]:
    """Measure each unit that ends at `since_ns` or later. A silence has the facts of the person's turn before it."""
    turns = [turn for turn in scene.turns if turn.text.strip()]
    recent = (presence for presence in scene.presences if presence.stamp_ns >= since_ns - _LOOKED_BACK_NS)
    presence_facts, reader_facts = PresenceFacts(recent), _reader_facts(turns, scene, matcher)
    by_turn: dict[int, MeasuredUnit] = {}
    # By onset or end too, because a robot may use an id again.
    indices = {(turn.turn_id, at_ns): n for n, turn in enumerate(turns) for at_ns in (turn.start_ns, turn.end_ns)}
    for unit in units_of(scene, since_ns):
        index = indices.get((unit.of_id, unit.onset_ns))
        if index is None:
            continue
        near = _Neighbours(turns, index)
        if index not in by_turn:
            exchange = None
            if near.turn.is_robot and not near.turn.ongoing and not scene.other_language:
                exchange = exchange_of(scene, near.turn)
            by_reader, turns_on = reader_facts.get(index, ({}, None))
            by_turn[index] = MeasuredUnit(
                unit=unit,
                turn=near.turn,
                facts={
                    **_timing_facts(near, scene),
                    **_form_facts(near),
                    **presence_facts.around(near.turn),
                    **(_exchange_facts(exchange, matcher) if exchange else {}),
                    **by_reader,
                },
                exchange=exchange,
                settled=_is_settled(near, scene),
                asked=near.person_before,
                reaction=near.person_after,
                turns_on=turns_on,
            )
        measured = replace(by_turn[index], unit=_extend_silence(unit, near))
        if unit.kind is UnitKind.SILENCE:
            measured = replace(measured, facts=_find_facts_of_silence(measured, scene.end_ns))
        yield measured


def _find_facts_of_silence(measured: MeasuredUnit, known_ns: int) -> Facts:
    """Return the facts of the turn before a silence, and its length, which counts otherwise while the robot works."""
    unit, facts = measured.unit, measured.facts
    silent_s = _gap_s((unit.offset_ns or max(known_ns, unit.onset_ns)) - unit.onset_ns)
    if not measured.turn.is_robot:
        return {**facts, "silence_s": silent_s}
    own = {name: fact for name, fact in facts.items() if name not in _FACTS_OF_AN_ANSWER_DUE}
    return {**own, "pause_at_work_s": silent_s}


def _extend_silence(unit: Unit, near: "_Neighbours") -> Unit:
    """Extend a silence to the robot's answer if the person asks again before it."""
    following = near.after[0] if near.after else None
    asks_again = following and not following.is_robot and owes_answer(near.turn, following)
    if unit.kind is not UnitKind.SILENCE or not asks_again or near.robot_after is None:
        return unit
    if following and following.start_ns - unit.onset_ns >= NO_ANSWER_NS:
        return unit  # no answer came by then, so the silence ends with the second question
    return replace(unit, offset_ns=near.robot_after.start_ns)


class PresenceFacts:
    """Measure who was seen, and how near, over time."""

    def __init__(self, presences: Iterable[Presence]) -> None:
        presences = tuple(presences)
        self._seen = [presence for presence in presences if not presence.persons]
        self._stamps_ns = [presence.stamp_ns for presence in self._seen]
        near = [
            (presence.stamp_ns, [person.distance_m for person in presence.persons if person.distance_m is not None])
            for presence in presences
            if presence.persons
        ]
        self._near_m = [min(distances) for _, distances in near if distances]
        self._near_ns = [at_ns for at_ns, distances in near if distances]

    def around(self, turn: Turn) -> Facts:
        """Return who was seen around a turn; no facts where no source saw anything."""
        return {**self._faces(turn), **self._distances(turn)}

    def _faces(self, turn: Turn) -> Facts:
        before, at_end = self._at(turn.start_ns), self._at(turn.end_ns)
        if before is None or at_end is None:
            return {}
        during = self._between(turn.start_ns, max(turn.end_ns, turn.start_ns + _AFTER_NS)) or [before]
        earlier = self._between(turn.start_ns - _EARLIER_NS, turn.start_ns - _NEAR_NS)
        recent = self._between(turn.start_ns - _NEAR_NS, turn.start_ns)
        until_ns = turn.end_ns + _AFTER_NS
        counts = [len(presence.faces) for presence in self._between(turn.start_ns, until_ns)] or [len(before.faces)]
        later = [len(presence.faces) for presence in self._between(turn.end_ns, turn.end_ns + _NEAR_NS)] or counts[-1:]
        count = len(before.faces)
        return {
            "seen_share": _share(presence.state is PresenceState.PRESENT for presence in during),
            "away_share": _share(presence.away_since_ns is not None for presence in during),
            "absent_at_start_s": _absent_s(before, turn.start_ns),
            "absent_at_end_s": _absent_s(at_end, turn.end_ns),
            "away_at_start_s": _away_s(before, turn.start_ns),
            "away_at_end_s": _away_s(at_end, turn.end_ns),
            "nobody_seen_yet": float(before.state is not PresenceState.PRESENT and before.last_seen_ns is None),
            "seen_for_s": min(ns_to_s(turn.start_ns - before.since_ns), 60.0) if before.since_ns else 0.0,
            "somebody_away": float(any(face.looking_away for face in before.faces)),
            "faces": float(count),
            "faces_came": float(max(0, count - max((len(presence.faces) for presence in earlier), default=count))),
            "faces_gone": float(max(0, max((len(presence.faces) for presence in recent), default=count) - count)),
            "faces_came_during": float(max(counts) - count),
            "faces_gone_during": float(count - min(counts)),
            "faces_came_after": float(max(later) - counts[-1]),
            "faces_gone_after": float(counts[-1] - min(later)),
        }

    def _distances(self, turn: Turn) -> Facts:
        starts = bisect_left(self._near_ns, turn.start_ns - _NEAR_NS), bisect_right(self._near_ns, turn.start_ns)
        before = self._near_m[slice(*starts)]
        during = self._near_m[starts[1] : bisect_right(self._near_ns, turn.end_ns + _AFTER_NS)]
        if not before and not during:
            return {}
        nearest_m = min(before + during)
        return {
            "distance_m": min(nearest_m, _FAR_M),
            "came_nearer_m": max(0.0, before[0] - min(during)) if before and during else 0.0,
        }

    def _at(self, at_ns: int) -> Presence | None:
        index = bisect_right(self._stamps_ns, at_ns)
        return self._seen[index - 1] if index else None

    def _between(self, start_ns: int, end_ns: int) -> list[Presence]:
        return self._seen[bisect_left(self._stamps_ns, start_ns) : bisect_right(self._stamps_ns, end_ns)]


class _Neighbours:
    """A turn, and the turns around it, the nearest first."""

    def __init__(self, turns: Sequence[Turn], index: int) -> None:
        self.turn = turns[index]
        self.before = turns[max(0, index - _NEAREST) : index][::-1]
        self.after = turns[index + 1 : index + 1 + _NEAREST]
        self.person_before = next((near for near in self.before if not near.is_robot), None)
        self.person_after = next((near for near in self.after if not near.is_robot), None)
        self.robot_before = next((near for near in self.before if near.is_robot), None)
        self.robot_after = next((near for near in self.after if near.is_robot), None)


def _is_settled(near: _Neighbours, scene: Scene) -> bool:
    """Whether the next turn seems over by its pauses, or nobody speaks for a while."""
    if near.turn.ongoing:
        return False
    due_ns = near.after[0].end_ns + MAX_GAP_NS if near.after else near.turn.end_ns + _QUIET_NS
    return scene.input_ended or due_ns < scene.end_ns


def _timing_facts(near: _Neighbours, scene: Scene) -> Facts:
    turn, known_ns = near.turn, max(scene.end_ns, near.turn.end_ns)
    owed = owes_answer(turn, near.after[0] if near.after else None)
    around = (*near.before, *near.after)
    voices = {near.speaker_id for near in (turn, *around) if not near.is_robot}
    facts = {
        "words": float(turn.word_count),
        "duration_s": ns_to_s(turn.end_ns - turn.start_ns),
        "gap_after_s": _gap_s((near.after[0].start_ns if near.after else known_ns) - turn.end_ns),
        "robot_silent_after_s": _gap_s((near.robot_after.start_ns if near.robot_after else known_ns) - turn.end_ns),
        "overlap_s": ns_to_s(sum(turn.overlap_ns(other) for other in around if other.is_robot is not turn.is_robot)),
        "after_robot": float(bool(near.before) and near.before[0].is_robot),
        "before_robot": float(owed or (bool(near.after) and near.after[0].is_robot)),
        "answered": float(bool(near.after)),
        "opening": float(near.robot_before is None),
        "voices": float(len(voices)),
        "words_before": float(near.person_before.word_count) if near.person_before else 0.0,
        "words_after": float(near.person_after.word_count) if near.person_after else 0.0,
    }
    if owed:
        facts["owed_silence_s"] = facts["gap_after_s"]
    elif turn.is_robot or not near.after or not near.after[0].is_robot:  # else it was the robot's turn to speak
        silent_ns = (near.person_after.start_ns if near.person_after else known_ns) - turn.end_ns
        facts["people_silent_after_s"] = _gap_s(silent_ns)
    if near.before:
        facts["gap_before_s"] = _gap_s(turn.start_ns - max(earlier.end_ns for earlier in near.before))
    answers_s = _answer_times_s(near.before)
    if answers_s:
        pace_s = _pace_s(answers_s)
        facts["answers_so_far"] = float(len(answers_s))
        facts["pace_s"] = pace_s
        facts["silent_by_pace"] = _paces(facts["robot_silent_after_s"], pace_s)
        if turn.is_robot and near.person_before:
            facts["answer_by_pace"] = _paces(ns_to_s(turn.start_ns - near.person_before.end_ns), pace_s)
    robot_turns = [near_turn for near_turn in (turn, *near.before) if near_turn.is_robot]
    if len(robot_turns) >= _HABIT_TURNS:
        facts["signs_of_work"] = _share(is_sign_of_work(robot_turn.text) for robot_turn in robot_turns)
    if near.person_before:
        facts["after_person_s"] = _gap_s(turn.start_ns - near.person_before.end_ns)
        if near.person_after:
            facts["another_person"] = float(near.person_before.speaker_id != near.person_after.speaker_id)
    return facts


def _paces(waited_s: float, pace_s: float) -> float:
    return max(-_MAX_PACES, min(waited_s / pace_s, _MAX_PACES))


def _answer_times_s(before: Sequence[Turn]) -> list[float]:
    """Return how long the robot took for each of its answers, of turns with the nearest first."""
    return [
        ns_to_s(answer.start_ns - asked.end_ns)
        for place, (answer, asked) in enumerate(pairwise(before))
        if answer.is_robot and not asked.is_robot and find_report_of_earlier_work(before[place + 2 :], [answer]) is None
    ]


def _pace_s(answers_s: Sequence[float]) -> float:
    """Return how long the robot usually took to answer."""
    # One late answer of two is no habit yet; later, a robot that is quick with signs of work alone is still slow.
    usual_s = median_high(answers_s) if len(answers_s) >= _HABIT_ANSWERS else min(answers_s)
    return max(usual_s, _SHORTEST_PACE_S)


def owes_answer(turn: Turn, following: Turn | None) -> bool:
    """Whether a person asks something, and then the robot speaks, nobody does, or the person asks again."""
    if turn.is_robot or is_unfinished(turn.text) or announces_pause(turn.text):
        return False
    asks = has_open_question(turn.text) or is_request(turn.text)
    return asks and (following is None or following.is_robot or _asks_again(turn, following))


def _asks_again(turn: Turn, following: Turn) -> bool:
    """Whether a person who got no answer asks once more, calls ("Hello? I asked you something."), or repeats it."""
    if following.speaker_id != turn.speaker_id:
        return False
    words, again = set(tokens(turn.text)), set(tokens(following.text))
    return is_question(following.text) or (bool(again) and len(words & again) >= _SAME_SHARE * len(again))


def _form_facts(near: _Neighbours) -> Facts:
    before, after, robot, text = near.person_before, near.person_after, near.robot_before, near.turn.text
    asked, own_before = (before, robot) if near.turn.is_robot else (near.turn, before)
    facts = {
        name: _shared_words(now.text, earlier.text)
        for name, now, earlier in (("person_says_again", after, asked), ("says_again", near.turn, own_before))
        if now and earlier
    }
    return facts | {
        "asks": float(is_question(text)),
        "requests": float(is_request(text)),
        "backchannel": float(is_backchannel(text)),
        "unfinished": float(is_unfinished(text)),
        "announces_pause": float(announces_pause(text)),
        "person_asked": float(before is not None and is_question(before.text)),
        "person_unfinished": float(before is not None and is_unfinished(before.text)),
        "person_asks_then": float(after is not None and is_question(after.text)),
        "robot_asked": float(robot is not None and is_question(robot.text)),
        "unclear": float(pleads_unclear(text)),
        "person_corrects": float(after is not None and corrects(after.text)),
    }


def _shared_words(text: str, earlier: str) -> float:
    words = set(tokens(text))
    return len(words & set(tokens(earlier))) / len(words) if words else 0.0


def _exchange_facts(exchange: Exchange, matcher: TextMatcher) -> Facts:
    now, alone = matcher.read(exchange), matcher.read(replace(exchange, after="", then=""))
    facts = {"known_after": float(exchange.stage)}
    for polarity in Polarity:
        facts[f"text_{polarity}_log_odds"] = to_log_odds(now.probability[polarity])
        facts[f"text_{polarity}_log_odds_without_reaction"] = to_log_odds(alone.probability[polarity])
        facts[f"encounter_model_{polarity}"] = now.seen.get(polarity, 0.0)
        for attribute, score in now.scores.get(polarity, {}).items():
            facts[f"text_{polarity}_{attribute}"] = score
        for attribute, score in now.seen_scores.get(polarity, {}).items():
            facts[f"encounter_model_{polarity}_{attribute}"] = score
    return facts


def _reader_facts(turns: Sequence[Turn], scene: Scene, matcher: TextMatcher) -> dict[int, tuple[Facts, Turn | None]]:
    """Return the talk reader's facts about the robot's turns, by index, each with the turn that an error depends on.

    A turn is read as it ended, and again with the two lines after it.
    """
    if scene.other_language or not matcher.has_reader:
        return {}
    indices = [index for index, turn in enumerate(turns) if not turn.ongoing]
    finished = [turns[index] for index in indices]
    readings = matcher.read_talk(read_lines(finished))
    facts: dict[int, tuple[Facts, Turn | None]] = {}
    for line, (index, turn) in enumerate(zip(indices, finished, strict=True)):
        if turn.is_robot and readings:
            latest, at_once, back = (
                find_latest_reading(readings, line),
                readings[line].turns[0],
                readings[line].cause_distance,
            )
            facts_of_turn = {
                **{f"reader_{name}": to_log_odds(value) for name, value in _probabilities(latest).items()},
                **{f"reader_{name}_at_once": to_log_odds(value) for name, value in _probabilities(at_once).items()},
                **{f"reader_{name}": to_log_odds(value) for name, value in latest.attributes.items()},
            }
            # None if the turn is no longer in the history.
            facts[index] = facts_of_turn, finished[line - back] if 0 < back <= line else None
    return facts


def read_lines(turns: Iterable[Turn]) -> tuple[str, ...]:
    """Return turns as the lines of a talk reader."""
    return tuple(talk_lines(("" if turn.is_robot else turn.speaker_id or ANYBODY, turn.text) for turn in turns))


def _probabilities(reading: TurnReading) -> dict[str, float]:
    by_polarity = {str(polarity): probability for polarity, probability in reading.polarity.items()}
    return {**by_polarity, "held": reading.held_against, "good": reading.good}


def _absent_s(presence: Presence, at_ns: int) -> float:
    if presence.state is PresenceState.PRESENT:
        return 0.0
    return LONGEST_S if presence.last_seen_ns is None else min(ns_to_s(at_ns - presence.last_seen_ns), LONGEST_S)


def _away_s(presence: Presence, at_ns: int) -> float:
    return 0.0 if presence.away_since_ns is None else min(ns_to_s(at_ns - presence.away_since_ns), LONGEST_S)


def _gap_s(gap_ns: int) -> float:
    return max(-LONGEST_S, min(ns_to_s(gap_ns), LONGEST_GAP_S))


def _share(flags: Iterator[bool]) -> float:
    every = list(flags)
    return sum(every) / len(every)
