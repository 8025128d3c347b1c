"""Facts that people said about themselves, stored by person and forgotten by policy. All times are stamps."""

from collections import Counter as Tally
from collections.abc import Iterable, Sequence

from pydantic import Field

from norm_core.records.presence import Engagement, Presence, PresenceState
from norm_core.records.record import record
from norm_core.records.status import Counter
from norm_core.runtime.config import Config
from norm_core.runtime.time import BEFORE_ALL_NS, NS_PER_S, s_to_ns
from norm_monitor.context.turns import Turn
from norm_monitor.context.wording import is_question, tokens

# The person in front of the robot, if people cannot be distinguished.
USER = "user"
# Maximum number of people; the facts of the one who spoke least recently are dropped first.
MAX_PERSONS = 32
# The newest presence identifies the speaker for so long.
_PRESENCE_VALID_NS = 5 * NS_PER_S
# A turn comes with every window of so long, and must not restore a forgotten fact.
_TURNS_REPEAT_NS = 600 * NS_PER_S
# Words of people about themselves.
_SELF_WORDS = {
    *("i", "i'm", "i've", "i'd", "i'll", "my", "me", "mine", "we", "we're", "our", "us"),
    "name",
    "name's",
    "我",
}


class MemoryConfig(Config):
    """The time for which facts about people are stored; after that, no cue can refer to them."""

    remember_s: float = Field(
        default=3600.0,
        ge=0,
        le=86400,
        description="how long to remember what people say about themselves; 0 for not at all",
    )
    remember_after_leaving_s: float = Field(
        default=30.0, ge=0, le=86400, description="how long to remember it once the person is out of sight"
    )
    max_facts: int = Field(
        default=50, ge=1, le=1000, description="maximum number of statements per person; the oldest are dropped"
    )


@record
class Fact:
    """A turn in which a person says something about themselves."""

    person_id: str
    turn: Turn


class PersonMemory:
    """Remember facts about people from repeated turns and presences; forget by stamps alone."""

    def __init__(self, config: MemoryConfig) -> None:
        self._remember_ns = s_to_ns(config.remember_s)
        self._after_leaving_ns = s_to_ns(config.remember_after_leaving_s)
        self._max_facts = config.max_facts
        self._tally: Tally[str] = Tally()
        self.reset()

    def reset(self) -> None:
        """Clear all facts, for example when a new timeline starts; the counters continue."""
        self._facts: dict[str, dict[str, Fact]] = {}  # by person and turn; the latest speaker is last
        self._unseen_since_ns: dict[str, int] = {}  # since when a person is out of sight
        self._tracked_by: dict[str, str] = {}  # the topic that lists a person
        self._forgotten_until_ns: dict[str, int] = {}  # until when a person's facts are forgotten
        self.last_speaker_id = USER  # for times in which nobody speaks
        self._all_forgotten_ns = BEFORE_ALL_NS  # until when the facts of everyone are forgotten
        self._seen_ns = BEFORE_ALL_NS  # the newest presence
        self._now_ns = BEFORE_ALL_NS

    @property
    def counters(self) -> tuple[Counter, ...]:
        """The number of facts that were dropped, by reason."""
        return tuple(Counter(name=name, count=count) for name, count in sorted(self._tally.items()))

    def facts(self, before_ns: int, person_id: str | None = None) -> tuple[Fact, ...]:
        """Return the facts of one person, or of everyone, from before a time, in time order."""
        people = self._facts.values() if person_id is None else [self._facts.get(person_id, {})]
        facts_before = [fact for facts in people for fact in facts.values() if fact.turn.start_ns < before_ns]
        return tuple(sorted(facts_before, key=lambda fact: (fact.turn.start_ns, fact.turn.turn_id)))

    def update(self, turns: Iterable[Turn], presences: Sequence[Presence], since_ns: int, now_ns: int) -> None:
        """Add the turns and presences of the last minutes; no turn that ended before `since_ns` is new or longer."""
        self._now_ns = max(self._now_ns, now_ns)
        steps: list[tuple[int, int, Turn | Presence]] = [
            (turn.end_ns, 1, turn) for turn in turns if not turn.is_robot and turn.end_ns >= since_ns
        ]
        steps += [(seen.stamp_ns, 0, seen) for seen in presences if seen.stamp_ns > self._seen_ns]
        for at_ns, _, entry in sorted(steps, key=lambda dated: dated[:2]):
            self._expire(at_ns)  # as if this were the end of the known input
            if isinstance(entry, Presence):
                self._add_presence(entry)
            else:
                self._add_turn(entry, person_of(entry, presences))
        self._expire(self._now_ns)

    def forget(self, until_ns: int) -> int:
        """Clear all facts, and learn none that was said until then; return the number of facts."""
        count = sum(len(facts) for facts in self._facts.values())
        self._all_forgotten_ns = max(self._all_forgotten_ns, until_ns)
        self._facts.clear()
        self._tally["facts_forgotten_on_request"] += count
        return count

    def _add_turn(self, turn: Turn, person_id: str) -> None:
        """Store a turn as a fact if its speaker tells something about themselves."""
        self.last_speaker_id = person_id
        if turn.end_ns > self._unseen_since_ns.get(person_id, turn.end_ns):
            del self._unseen_since_ns[person_id]  # the speaker is present
        if not is_self_disclosure(turn.text) or is_question(turn.text):
            return
        until_ns = max(self._all_forgotten_ns, self._forgotten_until_ns.get(person_id, self._all_forgotten_ns))
        if turn.start_ns <= until_ns:
            return
        for other in self._facts.values():
            other.pop(turn.turn_id, None)  # the speaker may be identified better by now
        facts = self._facts.pop(person_id, {})
        facts[turn.turn_id] = Fact(person_id=person_id, turn=turn)
        self._facts[person_id] = facts
        while len(facts) > self._max_facts:
            self._drop(person_id, min(facts.values(), key=lambda fact: fact.turn.start_ns), "over_limit")
        while len(self._facts) > MAX_PERSONS:
            self._drop_all(next(iter(self._facts)), "over_limit")

    def _add_presence(self, presence: Presence) -> None:
        """Drop the facts of people who are out of sight for too long."""
        self._seen_ns = presence.stamp_ns
        present_ids = {person.person_id for person in presence.persons}
        self._tracked_by.update(dict.fromkeys(present_ids, presence.source_topic))
        for person_id in list(self._facts):
            topic = self._tracked_by.get(person_id)
            if topic not in (None, presence.source_topic):
                continue
            if person_id in present_ids if topic else presence.state is PresenceState.PRESENT:
                self._unseen_since_ns.pop(person_id, None)
            elif (
                presence.stamp_ns - self._unseen_since_ns.setdefault(person_id, presence.stamp_ns)
                >= self._after_leaving_ns
            ):
                self._drop_all(person_id, "of_departed", presence.stamp_ns)

    def _expire(self, now_ns: int) -> None:
        """Drop the facts that are too old by then."""
        before_ns = now_ns - self._remember_ns
        for person_id, facts in list(self._facts.items()):
            for fact in [fact for fact in facts.values() if fact.turn.end_ns < before_ns]:
                self._drop(person_id, fact, "expired")
        self._facts = {person_id: facts for person_id, facts in self._facts.items() if facts}
        self._unseen_since_ns = {who: since_ns for who, since_ns in self._unseen_since_ns.items() if who in self._facts}
        repeats_from_ns = now_ns - _TURNS_REPEAT_NS
        self._forgotten_until_ns = {
            who: at_ns for who, at_ns in self._forgotten_until_ns.items() if at_ns >= repeats_from_ns
        }
        if len(self._tracked_by) > 2 * MAX_PERSONS:
            self._tracked_by = {who: topic for who, topic in self._tracked_by.items() if who in self._facts}

    def _drop(self, person_id: str, fact: Fact, why: str) -> None:
        """Drop one fact, and count it by a reason."""
        del self._facts[person_id][fact.turn.turn_id]
        self._forgotten_until_ns[person_id] = max(
            self._forgotten_until_ns.get(person_id, fact.turn.start_ns), fact.turn.start_ns
        )
        self._tally[f"facts_{why}"] += 1

    def _drop_all(self, person_id: str, why: str, until_ns: int | None = None) -> None:
        """Drop the facts of a person, and count them by a reason."""
        facts = self._facts.pop(person_id)
        newest_ns = max((fact.turn.start_ns for fact in facts.values()), default=self._all_forgotten_ns)
        self._forgotten_until_ns[person_id] = newest_ns if until_ns is None else until_ns
        self._unseen_since_ns.pop(person_id, None)
        self._tally[f"facts_{why}"] += len(facts)


def person_of(turn: Turn, presences: Sequence[Presence]) -> str:
    """Return the speaker or addressee of a turn: the only tracked person that fits, else the voice or the user."""
    ages_ns = ((turn.end_ns - presence.stamp_ns, presence) for presence in reversed(presences) if presence.persons)
    newest = next((presence for age_ns, presence in ages_ns if 0 <= age_ns <= _PRESENCE_VALID_NS), None)
    persons = newest.persons if newest else ()
    ids = [person.person_id for person in persons]
    engaged = [person.person_id for person in persons if person.engagement is Engagement.ENGAGED]
    if turn.speaker_id in ids or (turn.speaker_id and len(ids) != 1):
        return turn.speaker_id
    if len(ids) == 1:
        return ids[0]
    return engaged[0] if len(engaged) == 1 else USER


def is_self_disclosure(text: str) -> bool:
    """Whether the speaker may say something about themselves, by the first person or a name."""
    words = tokens(text)
    return not _SELF_WORDS.isdisjoint(words) or words[:2] == ("this", "is")
