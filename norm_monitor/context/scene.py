"""The input of a cue: a window, and the turns and people of the minutes before it."""

from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import cached_property
from typing import TypeVar

from norm_core.records.presence import Presence
from norm_core.records.speech import RobotSpeech, Speaker, Timing, Utterance
from norm_core.records.window import Window
from norm_core.runtime.time import BEFORE_ALL_NS, NS_PER_S
from norm_monitor.context.exchange import Exchange
from norm_monitor.context.language import other_language
from norm_monitor.context.memory import USER, Fact, MemoryConfig, PersonMemory, person_of
from norm_monitor.context.turns import Turn, turns_of

HISTORY_NS = 300 * NS_PER_S
MAX_ENTRIES = 2_000
# With more utterances before the robot's first report, its reports may have begun late, and the voices stay unknown.
MAX_BEFORE_ROBOT = 4

K = TypeVar("K")
V = TypeVar("V", Utterance, RobotSpeech, Presence)


class Scene:
    """Turns and presences up to the end of a window. A cue need only look at events within the window."""

    def __init__(  # noqa: PLR0917
        self,
        window: Window,
        until_ns: int,
        turns: tuple[Turn, ...],
        presences: tuple[Presence, ...],
        memory: PersonMemory,
        input_ended: bool = False,
    ) -> None:
        """Hold what is known until `until_ns`; no cue may report an omission after that.

        If the input has ended, its last turn is over, and no silence follows it.
        """
        self.window, self.end_ns, self.turns, self.presences = window, until_ns, turns, presences
        self.input_ended = input_ended
        self._memory = memory

    @property
    def start_ns(self) -> int:
        """The window's start."""
        return self.window.start_ns

    @cached_property
    def robot_turns(self) -> tuple[Turn, ...]:
        """The robot's turns."""
        return tuple(turn for turn in self.turns if turn.is_robot)

    @cached_property
    def user_turns(self) -> tuple[Turn, ...]:
        """The turns of everyone except the robot."""
        return tuple(turn for turn in self.turns if not turn.is_robot)

    @cached_property
    def other_language(self) -> str:
        """The language of the people or of the robot if its wording is not read; else empty."""
        return other_language(self.user_turns, self.end_ns) or other_language(self.robot_turns, self.end_ns)

    @cached_property
    def recent(self) -> tuple[Turn, ...]:
        """The turns that overlap the window."""
        return tuple(turn for turn in self.turns if turn.end_ns >= self.start_ns)

    def facts_of_addressee(self, robot: Turn) -> tuple[Fact, ...]:
        """Return the earlier facts of the person to whom the robot speaks."""
        user = self.user_turn_before(robot)
        person_id = person_of(user or robot, self.presences)
        if user is None and person_id == USER:
            person_id = self._memory.last_speaker_id
        return self._memory.facts(robot.start_ns, person_id)

    def facts_of_everyone(self, robot: Turn) -> tuple[Fact, ...]:
        """Return the facts of everyone from before the robot's turn."""
        return self._memory.facts(robot.start_ns)

    def next_robot_turn(self, turn: Turn) -> Turn | None:
        """Return the robot's first turn that starts after this turn."""
        return next((r for r in self.robot_turns if r.start_ns > turn.start_ns), None)

    def next_user_turn(self, turn: Turn) -> Turn | None:
        """Return a person's first turn that starts after this turn."""
        return next((u for u in self.user_turns if u.start_ns > turn.start_ns), None)

    def robot_turn_before(self, turn: Turn) -> Turn | None:
        """Return the robot's last turn that started before this turn."""
        return next((r for r in reversed(self.robot_turns) if r.start_ns < turn.start_ns), None)

    def user_turn_before(self, turn: Turn) -> Turn | None:
        """Return a person's last turn that started before this turn."""
        return next((u for u in reversed(self.user_turns) if u.start_ns < turn.start_ns), None)


class History:
    """The records of the last minutes, without duplicates, bounded in time and number."""

    def __init__(self, memory: MemoryConfig | None = None) -> None:
        self.memory = PersonMemory(memory or MemoryConfig())
        self.forgotten_ns = BEFORE_ALL_NS
        self._robot_first_ns: int | None = None  # the first report of the robot's speech
        self._utterances: dict[str, Utterance] = {}
        self._robot_speech: dict[tuple[str, str, int], RobotSpeech] = {}
        self._presences: dict[tuple[int, str], Presence] = {}

    def add_robot_speech(self, edge: RobotSpeech) -> None:
        """Add a start or stop of the robot's speech, however late: without its stop, the robot would speak on."""
        if edge.stamp_ns > self.forgotten_ns:
            key = edge.speech_id, edge.state, edge.stamp_ns
            earlier = self._robot_speech.get(key, edge)
            self._robot_speech[key] = max(earlier, edge, key=lambda statement: (len(statement.text), statement.text))

    def scene(self, window: Window, *, input_ended: bool = False, echoes: Collection[str] = ()) -> Scene:
        """Add a window, and return the scene at its end, without the utterances that are echoes of the robot."""
        self._utterances.update((u.utterance_id, u) for u in window.utterances if u.stamp_ns > self.forgotten_ns)
        for edge in window.robot_speech:
            self.add_robot_speech(edge)
        reported_ns = [s.stamp_ns for s in window.robot_speech if s.stamp_ns < window.end_ns]
        if reported_ns and self._robot_first_ns is None:
            self._robot_first_ns = min(reported_ns)
        self._presences.update(((p.stamp_ns, p.source_topic), p) for p in window.presences)
        _drop_old(self._utterances, window.end_ns - HISTORY_NS)
        _drop_old(self._robot_speech, window.end_ns - HISTORY_NS)
        _drop_old(self._presences, window.end_ns - HISTORY_NS)
        until_ns = _known_until_ns(window)
        turns = turns_of(
            _identify(
                [u for u in self._utterances.values() if u.start_ns < window.end_ns and u.utterance_id not in echoes],
                self._robot_first_ns,
            ),
            (s for s in self._robot_speech.values() if s.stamp_ns < window.end_ns),
            until_ns,
        )
        presences = sorted(
            (p for p in self._presences.values() if p.stamp_ns < window.end_ns), key=lambda p: p.stamp_ns
        )
        self.memory.update(turns, presences, window.start_ns, window.end_ns)
        return Scene(window, until_ns, turns, tuple(presences), self.memory, input_ended)

    def reset(self) -> None:
        """Clear everything, for example when a new timeline starts."""
        self.memory.reset()
        self.forgotten_ns = BEFORE_ALL_NS
        self._robot_first_ns = None
        self._utterances.clear()
        self._robot_speech.clear()
        self._presences.clear()

    def forget(self, until_ns: int) -> int:
        """Forget everything that people and the robot said up to a time; return the number of facts about people."""
        self.forgotten_ns = until_ns
        self._utterances.clear()
        self._robot_speech.clear()
        return self.memory.forget(until_ns)


def _identify(utterances: list[Utterance], robot_first_ns: int | None) -> Iterable[Utterance]:
    """Attribute the unknown voices before the robot's first report to people: its reports cover its own voice."""
    if robot_first_ns is None:
        return utterances
    unknown = {
        u.utterance_id
        for u in utterances
        if u.speaker is Speaker.UNKNOWN
        and u.end_ns <= robot_first_ns
        and not u.late
        and u.timing is not Timing.ABSENT
        and u.text
    }
    if len(unknown) > MAX_BEFORE_ROBOT:
        return utterances
    return [replace(u, speaker=Speaker.USER) if u.utterance_id in unknown else u for u in utterances]


def _known_until_ns(window: Window) -> int:
    """Return until when the input is known: without a source, silence after the last record means nothing."""
    if not window.missing:
        return window.end_ns
    ends = [u.end_ns for u in window.utterances]
    ends += [edge.stamp_ns for edge in window.robot_speech] + [seen.stamp_ns for seen in window.presences]
    return max(min(max(ends, default=window.start_ns) + 1, window.end_ns), window.start_ns + 1)


def _drop_old(entries: dict[K, V], before_ns: int) -> None:
    old: list[K] = [key for key, entry in entries.items() if entry.stamp_ns < before_ns]
    for key in [*old, *list(entries)[: max(0, len(entries) - MAX_ENTRIES)]]:
        entries.pop(key, None)


def exchange_of(scene: Scene, robot: Turn) -> Exchange:
    """Return the robot's turn with all that people said between its previous and its next turn."""
    earlier, later = scene.robot_turn_before(robot), scene.next_robot_turn(robot)
    since_ns, until_ns = earlier.start_ns if earlier else 0, later.start_ns if later else scene.window.end_ns
    return Exchange(
        before=_words(turn for turn in scene.user_turns if since_ns <= turn.start_ns < robot.start_ns),
        said=robot.text,
        after=_words(turn for turn in scene.user_turns if robot.start_ns <= turn.start_ns < until_ns),
        then=later.finished_text.strip() if later else "",
        earlier=earlier.text if earlier else "",
        opening=earlier is None,
    )


def _words(turns: Iterable[Turn]) -> str:
    return " ".join(turn.text for turn in turns if turn.text.strip())
