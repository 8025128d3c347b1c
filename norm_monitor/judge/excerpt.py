"""The talk around what is judged, as the lines of a prompt: turns, silences and sightings, in the order of time.

A live unit and a segment of a suite differ in their bounds alone.
"""

from collections.abc import Iterable, Iterator
from enum import StrEnum

from norm_core.engines.prompt import Part, Quoted
from norm_core.records.flag import Evidence
from norm_core.records.frame import Frame
from norm_core.records.presence import Presence, PresenceState
from norm_core.records.record import record
from norm_core.records.window import Window
from norm_core.runtime.time import NS_PER_S, ns_to_s
from norm_monitor.assessment.unit import SHORTEST_SILENCE_NS, Unit, UnitKind
from norm_monitor.context.memory import is_self_disclosure
from norm_monitor.context.scene import Scene
from norm_monitor.context.turns import Turn, turns_of
from norm_monitor.context.wording import (
    announces_pause,
    has_open_question,
    is_chinese,
    is_question,
    is_request,
    is_unfinished,
)
from norm_monitor.judge.questions import MARK, fact
from norm_monitor.judge.transcript import SPEAKERS, pictures

# How much of the talk is shown; the unit's own turn is always within.
TALK_BEFORE_NS = 60 * NS_PER_S
MAX_TURNS_BEFORE, MAX_TURNS_AFTER = 20, 10
# How many earlier turns are shown: the first, often names, and the newest.
_FIRST_EARLIER, _NEWEST_EARLIER = 2, 6
# The bound of personal space in proxemics; who crosses it comes near.
NEAR_M = 1.2
LABEL = {"en": "transcript", "zh": "对话记录"}
NOBODY = {"en": "(nobody speaks)", "zh": "（没有人说话）"}
# A shorter overlap of two voices is the usual rush between turns.
_SHORTEST_OVERLAP_NS = NS_PER_S // 4
_SOMETHING = {"en": "something is seen", "zh": "看到了某种情况"}
_SILENCE = {"en": "({:.1f} s of silence{}{})", "zh": "（{2}沉默{0:.1f}秒{1}）"}
_SO_FAR = {"en": " so far", "zh": "，仍在继续"}
_ASKED = {"en": ", after {} asked", "zh": "{}提问之后"}
_BROKE_OFF = {"en": ", after {} broke off or asked for time", "zh": "{}话未说完或请求等待之后"}
_SPOKE = {"en": ", after {} spoke", "zh": "{}说话之后"}
_ASKED_BEFORE = {"en": "; {} asked {:.1f} s before and got no answer", "zh": "，{}在{:.1f}秒前提问而没有得到回答；"}
_EARLIER = {
    "en": "(earlier in the meeting, counted back from the part that is judged:)",
    "zh": "（此前，从被评判的部分往回算：）",
}
_BEFORE = {"en": "[{:.0f} s before] {}", "zh": "[{:.0f}秒前] {}"}
_LATER = {"en": "(and later:)", "zh": "（后来：）"}
_WHILE = {"en": "while {} speaks", "zh": "{}正在说话时"}
_GOES_ON = {"en": "goes on", "zh": "还在说"}
# Frames are shown from so long before a unit until so long after it.
_FRAMES_BEFORE_NS, _FRAMES_AFTER_NS = 5 * NS_PER_S, 4 * NS_PER_S
_SAME_SIGHT_NS = NS_PER_S // 2
MAX_FACTS, MAX_TALK_FACTS = 12, 40  # of a unit, and of a talk


@record
class UnitView:
    """A unit with everything known about it at the end of a window; `turns` include the unit's own turn."""

    unit: Unit
    window: Window  # its frames and presences are shown, and its digest is cited
    known_until_ns: int
    turns: tuple[Turn, ...]
    evidence: tuple[Evidence, ...] = ()  # what the cues measured
    earlier: tuple[Turn, ...] = ()  # what the memory holds of the talk before `turns`


def unit_view(unit: Unit, scene: Scene, evidence: tuple[Evidence, ...] = ()) -> UnitView:
    """Return the view of a unit at the end of the scene's window."""
    before = [t for t in scene.turns if unit.onset_ns - TALK_BEFORE_NS <= t.end_ns and t.start_ns <= unit.onset_ns]
    after = [turn for turn in scene.turns if turn.start_ns > unit.onset_ns][:MAX_TURNS_AFTER]
    turns = (*before[-MAX_TURNS_BEFORE:], *after)
    return UnitView(
        unit=unit,
        window=scene.window,
        known_until_ns=scene.end_ns,
        turns=turns,
        evidence=evidence,
        earlier=_earlier(scene, turns[0]) if turns else (),
    )


def _earlier(scene: Scene, shown: Turn) -> tuple[Turn, ...]:
    """Return what people said of themselves before the shown talk, and the robot's opening and promises."""
    people = [fact.turn for fact in scene.facts_of_everyone(shown)]
    robots = [turn for turn in scene.robot_turns if turn.start_ns < shown.start_ns]
    promises = [turn for turn in robots[1:] if is_self_disclosure(turn.text) and not is_question(turn.text)]
    turns = sorted([*people, *robots[:1], *promises], key=lambda turn: (turn.start_ns, turn.turn_id))
    return (*turns[:_FIRST_EARLIER], *turns[_FIRST_EARLIER:][-_NEWEST_EARLIER:])


class SightingKind(StrEnum):
    """What was seen."""

    ANOTHER_COMING = "another_coming"
    COMING = "coming"
    LEAVING = "leaving"
    LOOKING_AWAY = "looking_away"
    LOOKING_BACK = "looking_back"
    COMING_NEAR = "coming_near"


# The kinds by how the cues name them.
_KINDS = {**{kind.value: kind for kind in SightingKind}, "too_near": SightingKind.COMING_NEAR}
# The order of changes at one instant.
_ORDER = tuple(SightingKind)


@record
class PresenceChange:
    """One change of who is there; `distance_m` is known for approaches alone."""

    at_ns: int
    kind: SightingKind
    person_id: str = ""
    distance_m: float | None = None


def sightings_of(presences: Iterable[Presence]) -> list[PresenceChange]:
    """Return the changes between successive presences of each source, in the order of time."""
    newest: dict[str, Presence] = {}
    changes: list[PresenceChange] = []
    for presence in sorted(presences, key=lambda presence: (presence.stamp_ns, presence.source_topic)):
        before = newest.get(presence.source_topic)
        newest[presence.source_topic] = presence
        if before is not None:
            changes += _changes(before, presence)
    return sorted(changes, key=lambda change: (change.at_ns, _ORDER.index(change.kind), change.person_id))


def _changes(before: Presence, now: Presence) -> Iterator[PresenceChange]:
    were_there, are_there = _are_there(before), _are_there(now)
    if were_there and not are_there:
        at_ns = now.stamp_ns if now.last_seen_ns is None else now.last_seen_ns
        yield PresenceChange(at_ns=at_ns, kind=SightingKind.LEAVING)
    elif are_there and not were_there:
        yield PresenceChange(at_ns=now.stamp_ns, kind=SightingKind.COMING)
    elif before.state is not PresenceState.LOST and _count(now) > max(1, _count(before)):
        yield PresenceChange(at_ns=now.stamp_ns, kind=SightingKind.ANOTHER_COMING)
    if now.away_since_ns is not None and before.away_since_ns != now.away_since_ns:
        yield PresenceChange(at_ns=now.away_since_ns, kind=SightingKind.LOOKING_AWAY)
    elif before.away_since_ns is not None and now.away_since_ns is None and now.state is PresenceState.PRESENT:
        yield PresenceChange(at_ns=now.stamp_ns, kind=SightingKind.LOOKING_BACK)
    distances_m = {person.person_id: person.distance_m for person in before.persons}
    for person in now.persons:
        earlier_m = distances_m.get(person.person_id)
        if person.distance_m is not None and earlier_m is not None and person.distance_m < NEAR_M <= earlier_m:
            yield PresenceChange(
                at_ns=now.stamp_ns,
                kind=SightingKind.COMING_NEAR,
                person_id=person.person_id,
                distance_m=person.distance_m,
            )


def _are_there(presence: Presence) -> bool:
    """Whether anybody is in view; somebody who is lost for a moment counts until they have left."""
    return presence.state in {PresenceState.PRESENT, PresenceState.LOST}


def _count(presence: Presence) -> int:
    return max(len(presence.faces), len(presence.persons))


_SIGHTING_TEXTS = {
    "en": {
        SightingKind.COMING: "somebody comes into view",
        SightingKind.ANOTHER_COMING: "another person comes into view",
        SightingKind.LEAVING: "the person leaves",
        SightingKind.LOOKING_AWAY: "the person looks away from the robot",
        SightingKind.LOOKING_BACK: "the person looks at the robot again",
        SightingKind.COMING_NEAR: "the robot and a person are near each other",
    },
    "zh": {
        SightingKind.COMING: "有人出现",
        SightingKind.ANOTHER_COMING: "又有一人出现",
        SightingKind.LEAVING: "用户离开",
        SightingKind.LOOKING_AWAY: "用户把目光从机器人身上移开",
        SightingKind.LOOKING_BACK: "用户又看向机器人",
        SightingKind.COMING_NEAR: "机器人与人距离很近",
    },
}


def turn_words(turn: Turn, turns: Iterable[Turn], locale: str) -> str:
    """Return who speaks, over whom, and the words."""
    over = [] if not turn.timed else [other for other in turns if _is_spoken_over(turn, other)]
    remarks = [_WHILE[locale].format(_name(other, locale)) for other in over]
    if turn.ongoing:
        remarks.append(_GOES_ON[locale])
    remark = f" ({'; '.join(dict.fromkeys(remarks))})" if remarks else ""
    return f"{_name(turn, locale)}{remark}: {' '.join(turn.text.split())}"


def line_words(seen: PresenceChange | Unit, locale: str) -> str:
    """Word a sighting; a unit that no presence shows is worded by its id."""
    if isinstance(seen, PresenceChange):
        text = _SIGHTING_TEXTS[locale][seen.kind]
        if seen.distance_m is not None:
            text += f", {seen.distance_m:.1f} m"
    else:
        what = seen.unit_id.split(":")[1] if seen.kind is UnitKind.SIGHTING else ""
        text = _SIGHTING_TEXTS[locale][_KINDS[what]] if what in _KINDS else _SOMETHING[locale]
    return f"（{text}）" if locale == "zh" else f"({text})"


def _is_spoken_over(turn: Turn, other: Turn) -> bool:
    """Whether the other spoke already when this turn began, and both went on."""
    began_before = (other.start_ns, other.turn_id) < (turn.start_ns, turn.turn_id)
    return other.timed and began_before and turn.overlap_ns(other) >= _SHORTEST_OVERLAP_NS


def _name(turn: Turn, locale: str) -> str:
    return " ".join([SPEAKERS[locale][turn.speaker], *turn.speaker_id.split()])


@record
class Line:
    """One line of the talk; a line that only marks a time has no end."""

    start_ns: int
    end_ns: int | None
    words: str
    timed: bool = True
    marked: bool = False


@record
class Excerpt:
    """A talk with the bounds of the part to judge: a unit, or all turns of a segment."""

    turns: tuple[Turn, ...]
    sightings: tuple[PresenceChange, ...]
    frames: tuple[Frame, ...]
    known_until_ns: int
    start_ns: int
    end_ns: int
    unit: Unit | None = None  # None for a segment, which is judged as a whole
    evidence: tuple[Evidence, ...] = ()  # what the cues measured
    earlier: tuple[Turn, ...] = ()

    @classmethod
    def of_unit(cls, view: UnitView) -> "Excerpt":
        """Return the talk of a unit's view, with the frames around the unit."""
        unit = view.unit
        end_ns = view.known_until_ns if unit.offset_ns is None else unit.offset_ns
        from_ns, until_ns = unit.onset_ns - _FRAMES_BEFORE_NS, end_ns + _FRAMES_AFTER_NS
        around = tuple(frame for frame in view.window.frames if from_ns <= frame.stamp_ns <= until_ns)
        return cls(
            turns=view.turns,
            sightings=tuple(sightings_of(view.window.presences)),
            frames=around or view.window.frames,
            known_until_ns=view.known_until_ns,
            start_ns=unit.onset_ns,
            end_ns=max(end_ns, unit.onset_ns),
            unit=unit,
            evidence=view.evidence,
            earlier=view.earlier,
        )

    @classmethod
    def of_segment(cls, window: Window) -> "Excerpt":
        """Return the talk of a window, whose first to last turn are judged."""
        turns = turns_of(window.utterances, window.robot_speech, window.end_ns)
        return cls(
            turns=turns,
            sightings=tuple(sightings_of(window.presences)),
            frames=window.frames,
            known_until_ns=window.end_ns,
            start_ns=min((turn.start_ns for turn in turns), default=window.start_ns),
            end_ns=max((turn.end_ns for turn in turns), default=window.end_ns),
        )

    @property
    def locale(self) -> str:
        """The language of most turns: en or zh."""
        return "zh" if 2 * sum(is_chinese(turn.text) for turn in self.turns) > len(self.turns) else "en"

    @property
    def origin_ns(self) -> int:
        """The time from which the prompt counts: the first thing shown."""
        shown = [turn.start_ns for turn in self.turns if turn.timed] + [sighting.at_ns for sighting in self.sightings]
        return min([*shown, *(frame.stamp_ns for frame in self.frames)], default=self.start_ns)

    @property
    def facts(self) -> tuple[str, ...]:
        """The cues' measurements in words, with their times and without a verdict, in order of time."""
        evidence = sorted(
            (entry for entry in self.evidence if not entry.measure.startswith("probability")),
            key=lambda entry: (entry.start_ns, entry.measure, entry.value),
        )
        is_timed = all(turn.timed for turn in self.turns)
        words = []
        for entry in evidence:
            measured = fact(entry.measure, entry.value, entry.unit, self.locale)
            line = Line(start_ns=entry.start_ns, end_ns=entry.end_ns, words=measured, timed=is_timed)
            words.append(self._text_of(line))
        return tuple(dict.fromkeys(words))[: MAX_FACTS if self.unit else MAX_TALK_FACTS]

    def talk(self, locale: str) -> Quoted:
        """Return the talk as quoted text, a line for each turn, silence and sighting."""
        return self.quoted(((line, MARK * line.marked) for line in self.lines(locale)), locale)

    def quoted(self, lines: Iterable[tuple[Line, str]], locale: str) -> Quoted:
        """Return lines with their marks as quoted text, after the earlier turns of the meeting."""
        in_order = sorted(lines, key=lambda pair: pair[0].start_ns)
        texts = [*self._earlier_lines(locale), *(self._text_of(line, mark) for line, mark in in_order)]
        return Quoted(text="\n".join(texts) or NOBODY[locale], label=LABEL[locale])

    def lines(self, locale: str) -> list[Line]:
        """Return a line for each turn, silence and sighting, and for a unit that none of them shows."""
        lines = [*self._turn_lines(locale), *self._silence_lines(locale), *self._sighting_lines(locale)]
        if self.unit and not any(line.marked for line in lines):
            end_ns = self.end_ns if self.unit.offset_ns is not None else None
            lines.append(Line(start_ns=self.start_ns, end_ns=end_ns, words=line_words(self.unit, locale), marked=True))
        return lines

    def pictures(self, max_count: int) -> tuple[Part, ...]:
        """Return at most `max_count` frames, each after its time."""
        return pictures(self.frames, max_count, self.origin_ns)

    def _turn_lines(self, locale: str) -> Iterator[Line]:
        for turn in self.turns:
            words = turn_words(turn, self.turns, locale)
            marked = self.unit is None or Unit.of_turn(turn).unit_id == self.unit.unit_id
            yield Line(start_ns=turn.start_ns, end_ns=turn.end_ns, words=words, timed=turn.timed, marked=marked)

    def _earlier_lines(self, locale: str) -> list[str]:
        lines = [
            _BEFORE[locale].format(ns_to_s(self.start_ns - turn.start_ns), turn_words(turn, (), locale))
            for turn in self.earlier
        ]
        return [_EARLIER[locale], *lines, _LATER[locale]] if lines else []

    def _silence_lines(self, locale: str) -> Iterator[Line]:
        """Yield the silences of a talk whose times are known."""
        last: Turn | None = None  # who spoke until the silence
        question: Turn | None = None  # whose question the robot has not answered
        for turn in self.turns:
            if not turn.timed:
                last = None
                continue
            if last and turn.start_ns - last.end_ns >= SHORTEST_SILENCE_NS:
                yield self._silence(last, question, turn.start_ns, locale)
            if not turn.is_robot and (has_open_question(turn.text) or is_request(turn.text)):
                question = turn
            elif turn.is_robot or (question and turn.speaker_id != question.speaker_id):
                question = None  # the speaker may have answered
            last = turn if last is None or turn.end_ns >= last.end_ns else last
        ended = not any(turn.ongoing for turn in self.turns)
        if last and ended and self.known_until_ns - last.end_ns >= SHORTEST_SILENCE_NS:
            yield self._silence(last, question, None, locale)

    def _silence(self, last: Turn, question: Turn | None, end_ns: int | None, locale: str) -> Line:
        start_ns = last.end_ns
        lasts_ns = (self.known_until_ns if end_ns is None else end_ns) - start_ns
        if self.unit:
            marked = self.unit.kind is UnitKind.SILENCE and self.unit.onset_ns == start_ns
        else:
            marked = self.start_ns <= start_ns and end_ns is not None and end_ns <= self.end_ns
        broke_off = not last.is_robot and (is_unfinished(last.text) or announces_pause(last.text))
        did = _ASKED if last is question else _BROKE_OFF if broke_off else _SPOKE
        after = did[locale].format(_name(last, locale))
        if question and last is not question:
            after += _ASKED_BEFORE[locale].format(_name(question, locale), ns_to_s(start_ns - question.end_ns))
        words = _SILENCE[locale].format(ns_to_s(lasts_ns), _SO_FAR[locale] if end_ns is None else "", after)
        return Line(start_ns=start_ns, end_ns=start_ns + lasts_ns, words=words, marked=marked)

    def _sighting_lines(self, locale: str) -> Iterator[Line]:
        for sighting in self.sightings:
            if self.unit is None:
                marked = self.start_ns <= sighting.at_ns <= self.end_ns
            else:
                about = f"{UnitKind.SIGHTING}:{sighting.kind}:"
                is_near = abs(sighting.at_ns - self.unit.onset_ns) <= _SAME_SIGHT_NS
                marked = is_near and self.unit.unit_id.startswith(about)
            yield Line(start_ns=sighting.at_ns, end_ns=None, words=line_words(sighting, locale), marked=marked)

    def _text_of(self, line: Line, mark: str = "") -> str:
        """Return a line with its mark and its time; untimed words have an order and no times."""
        start_s = ns_to_s(line.start_ns - self.origin_ns)
        until = "" if line.end_ns is None else f"-{ns_to_s(line.end_ns - self.origin_ns):.1f}"
        time = f"[{start_s:.1f}{until} s] " if line.timed else ""
        return f"{mark}{' ' * bool(mark)}{time}{line.words}"
