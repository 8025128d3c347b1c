"""The talk around what is judged, as the lines of a prompt: turns, silences and sightings, in the order of time.

A live unit and a segment of a suite differ in their bounds alone.
"""

from collections.abc import Iterator

from norm_core.engines.prompt import Part, Quoted
from norm_core.prompts.judge import MARK
from norm_core.prompts.transcript import pictures
from norm_core.records.flag import Evidence
from norm_core.records.frame import Frame
from norm_core.records.record import record
from norm_core.records.window import Window
from norm_core.runtime.time import NS_PER_S, ns_to_s
from norm_monitor.context.turns import Turn, turns_of
from norm_monitor.context.wording import is_chinese
from norm_monitor.judge.line_words import LABEL, NOBODY, line_words, silence_words, turn_words
from norm_monitor.judge.sightings import PresenceChange, sightings_of
from norm_monitor.units.unit import Unit, UnitKind
from norm_monitor.units.unit_view import UnitView
from norm_monitor.units.units_of_scene import SHORTEST_SILENCE_NS

# Frames are shown from so long before a unit until so long after it.
_FRAMES_BEFORE_NS, _FRAMES_AFTER_NS = 5 * NS_PER_S, 4 * NS_PER_S
_SAME_SIGHT_NS = NS_PER_S // 2
MOST_FACTS = 12


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
    """A talk with the bounds of what is judged: those of a unit, or those of a segment's turns."""

    turns: tuple[Turn, ...]
    sightings: tuple[PresenceChange, ...]
    frames: tuple[Frame, ...]
    known_until_ns: int
    start_ns: int
    end_ns: int
    unit: Unit | None = None  # None for a segment, which is judged as a whole
    facts: tuple[str, ...] = ()

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
            facts=_facts(view),
        )

    @classmethod
    def of_segment(cls, window: Window) -> "Excerpt":
        """Return the talk of a window, in which everything between the first and the last turn is judged."""
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
        shown = [turn.start_ns for turn in self.turns if turn.timed] + [one.at_ns for one in self.sightings]
        return min([*shown, *(frame.stamp_ns for frame in self.frames)], default=self.start_ns)

    def talk(self, locale: str) -> Quoted:
        """Return the talk as quoted text, a line for each turn, silence and sighting."""
        lines = sorted(self._lines(locale), key=lambda line: line.start_ns)
        text = "\n".join(self._written(line) for line in lines)
        return Quoted(text=text or NOBODY[locale], label=LABEL[locale])

    def pictures(self, most: int) -> tuple[Part, ...]:
        """Return at most so many frames, each after its time."""
        return pictures(self.frames, most, self.origin_ns)

    def _lines(self, locale: str) -> Iterator[Line]:
        lines = [*self._turn_lines(locale), *self._silence_lines(locale), *self._sighting_lines(locale)]
        if self.unit and not any(line.marked for line in lines):
            end_ns = self.end_ns if self.unit.offset_ns is not None else None
            lines.append(Line(start_ns=self.start_ns, end_ns=end_ns, words=line_words(self.unit, locale), marked=True))
        yield from lines

    def _turn_lines(self, locale: str) -> Iterator[Line]:
        for turn in self.turns:
            words = turn_words(turn, self.turns, locale)
            marked = self._is_judged(turn)
            yield Line(start_ns=turn.start_ns, end_ns=turn.end_ns, words=words, timed=turn.timed, marked=marked)

    def _is_judged(self, turn: Turn) -> bool:
        if self.unit is None:
            return True
        return Unit.of_turn(turn).unit_id == self.unit.unit_id

    def _silence_lines(self, locale: str) -> Iterator[Line]:
        """Yield the stretches in which nobody speaks, where the times of the talk are known."""
        silent_from_ns: int | None = None
        for turn in self.turns:
            if not turn.timed:
                silent_from_ns = None
                continue
            if silent_from_ns is not None and turn.start_ns - silent_from_ns >= SHORTEST_SILENCE_NS:
                yield self._silence(silent_from_ns, turn.start_ns, locale)
            silent_from_ns = max(silent_from_ns or turn.end_ns, turn.end_ns)
        ended = not any(turn.ongoing for turn in self.turns)
        if silent_from_ns is not None and ended and self.known_until_ns - silent_from_ns >= SHORTEST_SILENCE_NS:
            yield self._silence(silent_from_ns, None, locale)

    def _silence(self, start_ns: int, end_ns: int | None, locale: str) -> Line:
        lasts_ns = (self.known_until_ns if end_ns is None else end_ns) - start_ns
        if self.unit:
            marked = self.unit.kind is UnitKind.SILENCE and self.unit.onset_ns == start_ns
        else:
            marked = self.start_ns <= start_ns and end_ns is not None and end_ns <= self.end_ns
        words = silence_words(ns_to_s(lasts_ns), end_ns is None, locale)
        return Line(start_ns=start_ns, end_ns=start_ns + lasts_ns, words=words, marked=marked)

    def _sighting_lines(self, locale: str) -> Iterator[Line]:
        for one in self.sightings:
            if self.unit is None:
                marked = self.start_ns <= one.at_ns <= self.end_ns
            else:
                about = f"{UnitKind.SIGHTING}:{one.kind}:"
                is_near = abs(one.at_ns - self.unit.onset_ns) <= _SAME_SIGHT_NS
                marked = is_near and self.unit.unit_id.startswith(about)
            yield Line(start_ns=one.at_ns, end_ns=None, words=line_words(one, locale), marked=marked)

    def _written(self, line: Line) -> str:
        """Return a line with its mark and its time; untimed words have an order and no times."""
        start_s = ns_to_s(line.start_ns - self.origin_ns)
        until = "" if line.end_ns is None else f"-{ns_to_s(line.end_ns - self.origin_ns):.1f}"
        time = f"[{start_s:.1f}{until} s] " if line.timed else ""
        return f"{f'{MARK} ' * line.marked}{time}{line.words}"


def _facts(view: UnitView) -> tuple[str, ...]:
    """Return what the cues measured, without their verdict and in an order of its own."""
    facts: list[Evidence] = sorted(
        (fact for one in view.findings for fact in one.evidence if not fact.measure.startswith("probability")),
        key=lambda fact: (fact.start_ns, fact.measure, fact.value),
    )
    told = dict.fromkeys(f"{fact.measure}: {fact.value:g}{f' {fact.unit}' if fact.unit else ''}" for fact in facts)
    return tuple(told)[:MOST_FACTS]
