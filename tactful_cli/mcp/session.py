"""What is known of the session that a client asks about. The tools are its methods."""

import time
from collections import OrderedDict
from collections.abc import Callable
from threading import Event, Lock
from typing import Annotated, Any

from pydantic import Field

from action_selector.request import Request
from norm_core.engines.prompt import Quoted
from norm_core.records.decision import Decision, OtherAgent
from norm_core.records.flag import SocialFlag
from norm_core.records.json_codec import to_plain
from norm_core.records.status import MonitorStatus
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import ns_to_s
from norm_monitor.assessment.explanation import explain
from norm_monitor.context.meaning import EncoderMatcher
from norm_monitor.session_log.session_config import WordsPolicy
from norm_monitor.utterance_check import TalkSoFar, UtteranceCheck

MOST_FLAGS, MOST_LISTED, LONGEST_TEXT, LONGEST_S = 1_000, 100, 4_000, 30.0
OF_FLAG = ("event_id", "state", "polarity", "attributes", "severity", "probability", "cue_id")
OF_DECISION = ("outcome", "chosen", "chosen_index", "candidates", "trade_off")
OF_STATUS = ("node", "state", "health", "reasons", "notes")

Listed = Annotated[int, Field(ge=1, le=MOST_LISTED)]
Told = dict[str, Any]


Advise = Callable[[Request, float], Decision]  # with the seconds within which it decides


def fenced(text: str, label: str) -> str:
    """Return people's words, or ours about them, as data that no reader takes for instructions."""
    return Quoted(text=text[:LONGEST_TEXT], label=label).fence() if text else ""


class Session:
    """The flags, the talk and the nodes of one session. One thread adds, any reads."""

    def __init__(self, source: str, advise: Advise, stamp_ns: Callable[[], int]) -> None:
        """`stamp_ns` is the time of now. Until the policy is known, no words of people are given."""
        self.source, self.policy, self.problem = source, WordsPolicy(is_known=False), ""
        self.talk, self.revision = TalkSoFar(), 0  # the revision rises with each state of a flag
        self.ended = Event()  # once nobody asks any more
        self._advise, self._stamp_ns = advise, stamp_ns
        self._flags: OrderedDict[str, tuple[int, SocialFlag, set[str]]] = OrderedDict()  # when it changed, of whom
        self._changed_ns = 0
        self._statuses: dict[str, MonitorStatus] = {}
        self._check: UtteranceCheck | None = None
        self._lock = Lock()

    def take(self, taken: object) -> None:
        """Take a flag's state, speech, a presence or a heartbeat."""
        with self._lock:
            if isinstance(taken, SocialFlag):
                # Each change has a microsecond of its own, as closing keeps the time of the decision.
                self._changed_ns = max(taken.decision_ns, self._changed_ns + 1_000)
                quoting = [self.talk.speakers(piece.start_ns, piece.end_ns) for piece in taken.evidence if piece.quote]
                self._flags[taken.event_id] = (self._changed_ns, taken, {taken.person_id}.union(*quoting))
                self._flags.move_to_end(taken.event_id)
                self.revision += 1
                if len(self._flags) > MOST_FLAGS:
                    self._flags.popitem(last=False)
            elif isinstance(taken, MonitorStatus):
                self._statuses[taken.node] = taken
        self.talk.take(taken)

    def forget(self) -> None:
        """Forget what was said and flagged, as another session begins."""
        with self._lock:
            self._flags.clear()
        self.talk.forget()

    def follow(self) -> None:
        """Load what reads ahead, and read the talk as far as it goes, so that a check reads one line."""
        self._check = self._check or UtteranceCheck(EncoderMatcher.shipped())
        self._check.follow(self.talk, self._stamp_ns())

    def recent_flags(self, since_s: float = 0.0, limit: Listed = 20) -> Told:
        """List social errors and competences that changed after a stamp, the oldest change first.

        Give newest_s of the last answer as since_s to get what is new. A flag comes again when its state changes:
        opened, updated, closed, or withdrawn when it no longer holds.
        """
        with self._lock:
            changes = [change for change in self._flags.values() if _seconds(change[0]) > since_s]
        flags = [self._flag(flag, persons) for _, flag, persons in changes[:limit]]
        newest_s = _seconds(changes[len(flags) - 1][0]) if flags else since_s
        return {"flags": flags, "newest_s": newest_s, "left_out": len(changes) - len(flags)}

    def explain_flag(self, event_id: str) -> Told:
        """Explain a flag: what was measured, against which threshold, and what to do instead."""
        with self._lock:
            change = self._flags.get(event_id)
        if change is None:
            raise TactfulError(f"no flag has the event_id {event_id[:80]!r}; recent_flags lists those that are kept")
        _, flag, persons = change
        explanation = self.policy.explain_withheld(*persons) or fenced(explain(flag), "explanation, with quoted words")
        return {**self._flag(flag, persons), "explanation": explanation}

    def recommend_action(
        self,
        candidates: list[str],
        situation: str = "",
        others: list[OtherAgent] | None = None,
        facts: list[str] | None = None,
        deadline_s: Annotated[float, Field(gt=0, le=LONGEST_S)] = 5.0,
    ) -> Told:
        """Rank actions that the robot could do next, with vetoes by house rules, skills and what others do.

        The outcome `abstained` means that several could be right: ask a person. An empty candidate means doing none
        of them; without candidates, the robot's skills are ranked. `others` are the people and what they do, `facts`
        what holds, such as "hands free". A running graph's selector decides by its own skills, rules and model.
        """
        request = Request(
            query_id="mcp",
            candidates=tuple(candidates),
            situation=situation,
            others=None if others is None else tuple(others),
            facts=tuple(facts or ()),
        )
        decision = self._advise(request, deadline_s)
        explanation = fenced(decision.explanation, "explanation, with the words of the request")
        return {**_parts(decision, OF_DECISION), "explanation": explanation}

    def check_utterance(self, text: str) -> Told:
        """Tell how what the robot is about to say would read in this talk, before it is said."""
        if self._check is None:
            raise TactfulError("what reads is being loaded; ask again in a few seconds")
        began_s = time.perf_counter()
        read = to_plain(self._check.check(text, self.talk, self._stamp_ns()))
        took_ms = round(1000 * (time.perf_counter() - began_s), 1)
        return {**read, "reason": fenced(read["reason"], "reason, with the words that were given"), "took_ms": took_ms}

    def talk_so_far(self, last: Listed = 30) -> Told:
        """Return the last lines of the talk, of the robot and of people."""
        lines, people = [], dict[str, str]()
        for turn in self.talk.until(self._stamp_ns())[0]:
            number = f" {len(people) + 1}" if people else ""
            who = "robot" if turn.is_robot else people.setdefault(turn.speaker_id, f"person{number}")
            persons = self.talk.speakers(turn.start_ns, turn.end_ns)  # several may share a turn
            withheld = (
                ""
                if turn.is_robot and self.policy.is_known
                else self.policy.explain_withheld(turn.speaker_id, *persons)
            )
            words = withheld or fenced(turn.text, "words of the robot" if turn.is_robot else "words of a person")
            lines.append(
                {"who": who, "start_s": _seconds(turn.start_ns), "end_s": _seconds(turn.end_ns), "words": words}
            )
        return {"lines": lines[-last:], "left_out": max(0, len(lines) - last)}

    def status(self) -> Told:
        """Return what is listened to, the nodes' health, and whether people's words are given."""
        with self._lock:
            nodes, flags = [_parts(status, OF_STATUS) for status in self._statuses.values()], len(self._flags)
        return {
            "source": self.source,
            "problem": self.problem,
            "now_s": _seconds(self._stamp_ns()),
            "nodes": nodes,
            "flags": flags,
            "words": self.policy.explain_withheld("") or "given, as data",
            "check_utterance_by": self._check.read_by if self._check else "",
        }

    def _flag(self, flag: SocialFlag, persons: set[str]) -> Told:
        withheld = self.policy.explain_withheld(*persons)
        quotes = dict.fromkeys(entry.quote for entry in flag.evidence if entry.quote and not withheld)
        return {
            **_parts(flag, OF_FLAG),
            "onset_s": _seconds(flag.onset_ns),
            "decided_s": _seconds(flag.decision_ns),
            "reason": withheld or fenced(flag.rationale, "reason, with quoted words"),
            "quotes": [fenced(quote, "words that were said") for quote in quotes],
            "correction": "" if withheld else fenced(flag.correction, "what to do instead"),
        }


def _parts(record: object, names: tuple[str, ...]) -> Told:
    plain = to_plain(record)
    return {name: plain[name] for name in names}


def _seconds(stamp_ns: int) -> float:
    """Return a stamp as a program in any language reads it: a number of nanoseconds is too long for some."""
    return round(ns_to_s(stamp_ns), 6)
