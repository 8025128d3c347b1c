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
from norm_monitor.assessment.unit import MIN_SILENCE_NS, Unit, UnitKind
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
from norm_monitor.judge.questions import MARK, word_fact
from norm_monitor.judge.transcript import LABEL, NOBODY, SPEAKERS, choose_pictures


class SightingKind(StrEnum):
    """The kind of a sighting."""

    ANOTHER_COMING = "another_coming"
    COMING = "coming"
    LEAVING = "leaving"
    LOOKING_AWAY = "looking_away"
    LOOKING_BACK = "looking_back"
    COMING_NEAR = "coming_near"


# The kinds by the names that cues give them.
_KIND_BY_CUE = {**{kind.value: kind for kind in SightingKind}, "too_near": SightingKind.COMING_NEAR}
# The order of changes at one instant.
_KIND_ORDER = tuple(SightingKind)
# The words of a sighting, by language.
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
# The talk up to this long before a unit is shown.
TALK_BEFORE_NS = 60 * NS_PER_S
# The turn of the unit itself is always among them.
MAX_TURNS_BEFORE = 20
MAX_TURNS_AFTER = 10
# The first earlier turns are shown, as people often give their names there.
_MAX_FIRST_EARLIER = 2
# So are the newest of the earlier turns.
_MAX_NEWEST_EARLIER = 6
# The bound of personal space in proxemics; a person within it is near.
PERSONAL_SPACE_M = 1.2
# A shorter overlap of two voices is the usual rush between turns.
_MIN_OVERLAP_NS = NS_PER_S // 4
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
# Frames up to this long before a unit are shown.
_FRAMES_BEFORE_NS = 5 * NS_PER_S
# Frames up to this long after it are shown.
_FRAMES_AFTER_NS = 4 * NS_PER_S
# A sighting this near to the onset of a unit is that unit.
_MAX_SIGHTING_GAP_NS = NS_PER_S // 2
# Facts that are shown of a unit.
MAX_FACTS = 12
# Facts that are shown of a whole talk.
MAX_TALK_FACTS = 40


@record
class UnitView:
    """A unit with everything known about it at the end of a window; `turns` include the unit's own turn."""

    unit: Unit
    window: Window  # its frames and presences are shown, and its digest is cited
    known_until_ns: int
    turns: tuple[Turn, ...]
    evidence: tuple[Evidence, ...] = ()  # as the cues measured
    earlier: tuple[Turn, ...] = ()  # of the memory, before `turns`


def unit_view(unit: Unit, scene: Scene, evidence: tuple[Evidence, ...] = ()) -> UnitView:
    """Return the view of a unit at the end of the scene's window."""
    from_ns = unit.onset_ns - TALK_BEFORE_NS
    before = [turn for turn in scene.turns if from_ns <= turn.end_ns and turn.start_ns <= unit.onset_ns]
    after = [turn for turn in scene.turns if turn.start_ns > unit.onset_ns][:MAX_TURNS_AFTER]
    turns = (*before[-MAX_TURNS_BEFORE:], *after)
    return UnitView(
        unit=unit,
        window=scene.window,
        known_until_ns=scene.end_ns,
        turns=turns,
        evidence=evidence,
        earlier=_find_earlier_turns(scene, turns[0]) if turns else (),
    )


def _find_earlier_turns(scene: Scene, shown: Turn) -> tuple[Turn, ...]:
    """Return what people said of themselves before the shown talk, and the opening and promises of the robot."""
    people_turns = [fact.turn for fact in scene.facts_of_everyone(shown)]
    robot_turns = [turn for turn in scene.robot_turns if turn.start_ns < shown.start_ns]
    promises = [turn for turn in robot_turns[1:] if is_self_disclosure(turn.text) and not is_question(turn.text)]
    turns = sorted([*people_turns, *robot_turns[:1], *promises], key=lambda turn: (turn.start_ns, turn.turn_id))
    return (*turns[:_MAX_FIRST_EARLIER], *turns[_MAX_FIRST_EARLIER:][-_MAX_NEWEST_EARLIER:])


@record
class PresenceChange:
    """One change of the people in view; `distance_m` is known for approaches alone."""

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
            changes += _compare_presences(before, presence)
    return sorted(changes, key=lambda change: (change.at_ns, _KIND_ORDER.index(change.kind), change.person_id))


def _compare_presences(before: Presence, now: Presence) -> Iterator[PresenceChange]:
    """Yield the changes between two successive presences of a source."""
    were_there, are_there = _has_people(before), _has_people(now)
    if were_there and not are_there:
        at_ns = now.stamp_ns if now.last_seen_ns is None else now.last_seen_ns
        yield PresenceChange(at_ns=at_ns, kind=SightingKind.LEAVING)
    elif are_there and not were_there:
        yield PresenceChange(at_ns=now.stamp_ns, kind=SightingKind.COMING)
    elif before.state is not PresenceState.LOST and _count_people(now) > max(1, _count_people(before)):
        yield PresenceChange(at_ns=now.stamp_ns, kind=SightingKind.ANOTHER_COMING)
    if now.away_since_ns is not None and before.away_since_ns != now.away_since_ns:
        yield PresenceChange(at_ns=now.away_since_ns, kind=SightingKind.LOOKING_AWAY)
    elif before.away_since_ns is not None and now.away_since_ns is None and now.state is PresenceState.PRESENT:
        yield PresenceChange(at_ns=now.stamp_ns, kind=SightingKind.LOOKING_BACK)
    distances_m = {person.person_id: person.distance_m for person in before.persons}
    for person in now.persons:
        earlier_m = distances_m.get(person.person_id)
        if (
            person.distance_m is not None
            and earlier_m is not None
            and person.distance_m < PERSONAL_SPACE_M <= earlier_m
        ):
            yield PresenceChange(
                at_ns=now.stamp_ns,
                kind=SightingKind.COMING_NEAR,
                person_id=person.person_id,
                distance_m=person.distance_m,
            )


def _has_people(presence: Presence) -> bool:
    """Whether anybody is in view; somebody who is lost for a moment counts until they have left."""
    return presence.state in {PresenceState.PRESENT, PresenceState.LOST}


def _count_people(presence: Presence) -> int:
    """Return how many people are in view, by faces or by tracking."""
    return max(len(presence.faces), len(presence.persons))


def word_turn(turn: Turn, turns: Iterable[Turn], locale: str) -> str:
    """Word a turn: the speaker, the people who speak at the same time, and the words."""
    interrupted = [other for other in turns if turn.timed and _is_spoken_over(turn, other)]
    remarks = [_WHILE[locale].format(_name_speaker(other, locale)) for other in interrupted]
    if turn.ongoing:
        remarks.append(_GOES_ON[locale])
    remark = f" ({'; '.join(dict.fromkeys(remarks))})" if remarks else ""
    return f"{_name_speaker(turn, locale)}{remark}: {' '.join(turn.text.split())}"


def word_sighting(seen: PresenceChange | Unit, locale: str) -> str:
    """Word a sighting; a unit that no presence shows is worded by its id."""
    if isinstance(seen, PresenceChange):
        text = _SIGHTING_TEXTS[locale][seen.kind]
        if seen.distance_m is not None:
            text += f", {seen.distance_m:.1f} m"
    else:
        what = seen.unit_id.split(":")[1] if seen.kind is UnitKind.SIGHTING else ""
        text = _SIGHTING_TEXTS[locale][_KIND_BY_CUE[what]] if what in _KIND_BY_CUE else _SOMETHING[locale]
    return f"（{text}）" if locale == "zh" else f"({text})"


def _is_spoken_over(turn: Turn, other: Turn) -> bool:
    """Whether the other spoke already when this turn began, and both went on."""
    began_before = (other.start_ns, other.turn_id) < (turn.start_ns, turn.turn_id)
    return other.timed and began_before and turn.overlap_ns(other) >= _MIN_OVERLAP_NS


def _name_speaker(turn: Turn, locale: str) -> str:
    """Return the name of a speaker in a prompt."""
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
    evidence: tuple[Evidence, ...] = ()  # as the cues measured
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
        """The measurements of cues in words, with their times and without a verdict, in order of time."""
        evidence = sorted(
            (entry for entry in self.evidence if not entry.measure.startswith("probability")),
            key=lambda entry: (entry.start_ns, entry.measure, entry.value),
        )
        is_timed = all(turn.timed for turn in self.turns)
        words = []
        for entry in evidence:
            measured = word_fact(entry.measure, entry.value, entry.unit, self.locale)
            line = Line(start_ns=entry.start_ns, end_ns=entry.end_ns, words=measured, timed=is_timed)
            words.append(self._format_line(line))
        return tuple(dict.fromkeys(words))[: MAX_FACTS if self.unit else MAX_TALK_FACTS]

    def talk(self, locale: str) -> Quoted:
        """Return the talk as quoted text, a line for each turn, silence and sighting."""
        return self.quoted(((line, MARK * line.marked) for line in self.lines(locale)), locale)

    def quoted(self, lines: Iterable[tuple[Line, str]], locale: str) -> Quoted:
        """Return lines with their marks as quoted text, after the earlier turns of the meeting."""
        in_order = sorted(lines, key=lambda pair: pair[0].start_ns)
        texts = [*self._word_earlier_turns(locale), *(self._format_line(line, mark) for line, mark in in_order)]
        return Quoted(text="\n".join(texts) or NOBODY[locale], label=LABEL[locale])

    def lines(self, locale: str) -> list[Line]:
        """Return a line for each turn, silence and sighting, and for a unit that none of them shows."""
        lines = [*self._word_turns(locale), *self._find_silences(locale), *self._word_sightings(locale)]
        if self.unit and not any(line.marked for line in lines):
            end_ns = self.end_ns if self.unit.offset_ns is not None else None
            lines.append(
                Line(start_ns=self.start_ns, end_ns=end_ns, words=word_sighting(self.unit, locale), marked=True)
            )
        return lines

    def pictures(self, max_count: int) -> tuple[Part, ...]:
        """Return at most `max_count` frames, each after its time."""
        return choose_pictures(self.frames, max_count, self.origin_ns)

    def _word_turns(self, locale: str) -> Iterator[Line]:
        """Yield a line for each turn."""
        for turn in self.turns:
            words = word_turn(turn, self.turns, locale)
            marked = self.unit is None or Unit.of_turn(turn).unit_id == self.unit.unit_id
            yield Line(start_ns=turn.start_ns, end_ns=turn.end_ns, words=words, timed=turn.timed, marked=marked)

    def _word_earlier_turns(self, locale: str) -> list[str]:
        """Return the lines of the earlier turns between two headings, if there are any."""
        lines = [
            _BEFORE[locale].format(ns_to_s(self.start_ns - turn.start_ns), word_turn(turn, (), locale))
            for turn in self.earlier
        ]
        return [_EARLIER[locale], *lines, _LATER[locale]] if lines else []

    def _find_silences(self, locale: str) -> Iterator[Line]:
        """Yield a line for each silence of a talk whose times are known."""
        last: Turn | None = None  # who spoke until the silence
        question: Turn | None = None  # whose question the robot has not answered
        for turn in self.turns:
            if not turn.timed:
                last = None
                continue
            if last and turn.start_ns - last.end_ns >= MIN_SILENCE_NS:
                yield self._word_silence(last, question, turn.start_ns, locale)
            if not turn.is_robot and (has_open_question(turn.text) or is_request(turn.text)):
                question = turn
            elif turn.is_robot or (question and turn.speaker_id != question.speaker_id):
                question = None  # the speaker may have answered
            last = turn if last is None or turn.end_ns >= last.end_ns else last
        is_over = not any(turn.ongoing for turn in self.turns)
        if last and is_over and self.known_until_ns - last.end_ns >= MIN_SILENCE_NS:
            yield self._word_silence(last, question, None, locale)

    def _word_silence(self, last: Turn, question: Turn | None, end_ns: int | None, locale: str) -> Line:
        """Return the line of a silence: how long it lasts, and after which words."""
        start_ns = last.end_ns
        lasts_ns = (self.known_until_ns if end_ns is None else end_ns) - start_ns
        if self.unit:
            marked = self.unit.kind is UnitKind.SILENCE and self.unit.onset_ns == start_ns
        else:
            marked = self.start_ns <= start_ns and end_ns is not None and end_ns <= self.end_ns
        has_broken_off = not last.is_robot and (is_unfinished(last.text) or announces_pause(last.text))
        action = _ASKED if last is question else _BROKE_OFF if has_broken_off else _SPOKE
        after = action[locale].format(_name_speaker(last, locale))
        if question and last is not question:
            after += _ASKED_BEFORE[locale].format(_name_speaker(question, locale), ns_to_s(start_ns - question.end_ns))
        words = _SILENCE[locale].format(ns_to_s(lasts_ns), _SO_FAR[locale] if end_ns is None else "", after)
        return Line(start_ns=start_ns, end_ns=start_ns + lasts_ns, words=words, marked=marked)

    def _word_sightings(self, locale: str) -> Iterator[Line]:
        """Yield a line for each sighting."""
        for sighting in self.sightings:
            if self.unit is None:
                marked = self.start_ns <= sighting.at_ns <= self.end_ns
            else:
                about = f"{UnitKind.SIGHTING}:{sighting.kind}:"
                is_near = abs(sighting.at_ns - self.unit.onset_ns) <= _MAX_SIGHTING_GAP_NS
                marked = is_near and self.unit.unit_id.startswith(about)
            yield Line(start_ns=sighting.at_ns, end_ns=None, words=word_sighting(sighting, locale), marked=marked)

    def _format_line(self, line: Line, mark: str = "") -> str:
        """Return a line with its mark and its time; untimed words have an order and no times."""
        start_s = ns_to_s(line.start_ns - self.origin_ns)
        until = "" if line.end_ns is None else f"-{ns_to_s(line.end_ns - self.origin_ns):.1f}"
        time = f"[{start_s:.1f}{until} s] " if line.timed else ""
        return f"{mark}{' ' * bool(mark)}{time}{line.words}"
