"""The input of a cue: a window, and the turns and people of the minutes before it."""

import unicodedata
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import TypeVar

from norm_core.records.presence import Presence
from norm_core.records.record import record
from norm_core.records.speech import RobotSpeech, Speaker, Timing, Utterance
from norm_core.records.window import Window
from norm_core.runtime.time import BEFORE_ALL_NS, NS_PER_S
from norm_monitor.context.exchange import Exchange
from norm_monitor.context.memory import USER, Fact, MemoryConfig, PersonMemory, person_of
from norm_monitor.context.turns import Turn, turns_of
from norm_monitor.context.wording import is_chinese, tokens

# The languages of the examples, the wording cues and the exchange classifier.
READ = ("en", "zh")
OTHER = "another language"
# The talk that counts, and the letters without which no talk is in another language.
_LATELY_NS = 120 * NS_PER_S
_LEAST_LETTERS = 24
# Words of grammar; none of the second list is an English word.
_ENGLISH_WORDS = """
the a an of to in on at for with from and or but is are was were be been am do does did have has had i you he she it we
they me my your his her our their this that these those not no yes what where when who how why can could will would
should there here please if so
"""
_OTHER_WORDS = """
der das und ist nicht ich sie wir ein eine einen mit auf für von zu dem den sind haben kann wie wo aber auch es
le les une est et je vous nous dans pour avec pas que qui sur au du des ce où mais
el los las una y en por para con lo se usted está dónde pero como muy yo
il gli di che è un per non sono mi dove ma della io os uma um não eu você onde mas em da
het een niet ik van dat waar maar zijn och att det som jag är inte var på med og ikke jeg er til af hvor
nie jest się na czy gdzie ale że bir ve bu için nerede değil ben
"""
_ENGLISH = frozenset(_ENGLISH_WORDS.split())
_OTHER = frozenset(_OTHER_WORDS.split()) - _ENGLISH


def other_language(turns: Sequence[Turn], until_ns: int) -> str:
    """Return the language of the last two minutes of these turns if its wording is not read; empty if it is.

    A turn's stated language counts. Otherwise its words decide: another script than Latin or Chinese is another
    language, and so are Latin words of which two or more are foreign words of grammar, more than twice the English
    ones. Turns that tell nothing, such as names, count for no language. The talk is in another language where these
    turns have more letters than those in English or Chinese, and at least 24: a foreign word or a short fragment in
    an English talk changes nothing.
    """
    letters = {"": 0, "other": 0}
    name = ""
    for turn in turns:
        if turn.end_ns < until_ns - _LATELY_NS:
            continue
        language = turn.locale.replace("_", "-").split("-")[0].lower() or language_of(turn.text)
        if not language:
            continue
        is_read = language in READ
        letters["" if is_read else "other"] += letter_count(turn.text)
        name = name if is_read else language
    return name if letters["other"] >= _LEAST_LETTERS and letters["other"] > letters[""] else ""


@lru_cache(maxsize=8192)
def language_of(text: str) -> str:
    """Return en, zh, another language, or nothing where the words do not tell."""
    scripts = [_script_of(letter) for letter in text if letter.isalpha()]
    foreign = sum(script not in {"LATIN", "CJK"} for script in scripts)
    if foreign * 4 > len(scripts):
        return OTHER
    if is_chinese(text):
        return "zh"
    words = tokens(text)
    english, other = (sum(word in lexicon for word in words) for lexicon in (_ENGLISH, _OTHER))
    if other >= 2 and other > 2 * english:
        return OTHER
    return "en" if english else ""


def _script_of(letter: str) -> str:
    return unicodedata.name(letter, "").split(" ")[0]


@lru_cache(maxsize=8192)
def letter_count(text: str) -> int:
    """Count the letters; one of Chinese, Japanese or Korean counts as three."""
    dense = {"CJK", "HIRAGANA", "KATAKANA", "HANGUL"}
    return sum(3 if _script_of(letter) in dense else 1 for letter in text if letter.isalpha())


K = TypeVar("K")
V = TypeVar("V", Utterance, RobotSpeech, Presence)

HISTORY_NS = 300 * NS_PER_S
MOST_ENTRIES = 2_000
# With more utterances before the robot's first report, its reports may have begun late, and the voices stay unknown.
MOST_BEFORE_ROBOT = 4


class Scene:
    """Turns and presences up to the window's end. A cue need only look at events within the window."""

    def __init__(  # noqa: PLR0917
        self,
        window: Window,
        until_ns: int,
        turns: tuple[Turn, ...],
        presences: tuple[Presence, ...],
        memory: PersonMemory,
        input_ended: bool = False,
    ) -> None:
        """Nothing is known after `until_ns`, so that no cue may report an omission there.

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
            person_id = self._memory.heard_last
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
    """The contents of the last minutes' windows, without duplicates, bounded in time and number."""

    def __init__(self, memory: MemoryConfig | None = None) -> None:
        self.memory = PersonMemory(memory or MemoryConfig())
        self.forgotten_ns = BEFORE_ALL_NS
        self._robot_first_ns: int | None = None  # the first report of the robot's speech
        self._utterances: dict[str, Utterance] = {}
        self._robot_speech: dict[tuple[str, str, int], RobotSpeech] = {}
        self._presences: dict[tuple[int, str], Presence] = {}

    def add_robot_speech(self, edge: RobotSpeech) -> None:
        """Add a start or stop of the robot's speech, however late: a stop that is lost leaves the robot speaking."""
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
    if len(unknown) > MOST_BEFORE_ROBOT:
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
    aged: list[K] = [key for key, entry in entries.items() if entry.stamp_ns < before_ns]
    for key in [*aged, *list(entries)[: max(0, len(entries) - MOST_ENTRIES)]]:
        entries.pop(key, None)


@record
class ExchangeContext:
    """A robot turn between the robot's previous and next turn; `then` is None while the robot still speaks."""

    before: tuple[Turn, ...]  # what people said since the robot's previous turn
    robot: Turn
    after: tuple[Turn, ...]
    then: Turn | None
    exchange: Exchange


def exchange_context(scene: Scene, robot: Turn) -> ExchangeContext:
    """Return the robot's turn with everything known that people said before and after it."""
    earlier, later = scene.robot_turn_before(robot), scene.next_robot_turn(robot)
    until_ns = later.start_ns if later else scene.window.end_ns
    before = tuple(u for u in scene.user_turns if (earlier.start_ns if earlier else 0) <= u.start_ns < robot.start_ns)
    after = tuple(u for u in scene.user_turns if robot.start_ns <= u.start_ns < until_ns)
    then = None if later is None or later.ongoing or not later.text.strip() else later
    return ExchangeContext(
        before=before,
        robot=robot,
        after=after,
        then=then,
        exchange=Exchange(
            before=_words(before),
            said=robot.text,
            after=_words(after),
            then=then.text if then else "",
            earlier=earlier.text if earlier else "",
            opening=earlier is None,
        ),
    )


def _words(turns: Iterable[Turn]) -> str:
    return " ".join(turn.text for turn in turns if turn.text.strip())
