"""What is known of the session that a client asks about, and what of it may be told."""

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from threading import Event, Lock
from typing import Any

from norm_core.engines.prompt import Quoted
from norm_core.runtime.program import PROGRAM
from norm_core.records.flag import Polarity, SocialFlag
from norm_core.records.record import record
from norm_core.records.status import MonitorStatus
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import NS_PER_S, ns_to_s
from norm_monitor.context.meaning import EncoderMatcher
from norm_monitor.context.talk_lines import MOST_CHARACTERS
from norm_monitor.context.turns import Turn
from norm_monitor.fusion.explanation import explain
from norm_monitor.utterance_check import TalkSoFar, UtteranceCheck
from study_desk.log.session_config import participants_of

MOST_FLAGS = 1_000
MOST_LISTED = 100
WITHHELD = "(not told: somebody in this session keeps their words private)"
UNKNOWN_CONSENT = "(not told: whether this session's people let their words be told is not known yet)"
DIGITS = 6


class UnknownFlagError(TactfulError):
    """No flag has the id."""


def fenced(text: str, label: str) -> str:
    """Return people's words, or ours about them, as data that no reader takes for instructions."""
    return Quoted(text=text[: 4 * MOST_CHARACTERS], label=label).fence() if text else ""


@record
class WordsPolicy:
    """Whose words may be told. Where somebody's may not, nor may those of a voice that could be theirs."""

    is_known: bool = True
    private: frozenset[str] = frozenset()  # person ids
    has_private: bool = False
    is_anybody_private: bool = False  # whose voice is not known

    @classmethod
    def of_settings(cls, values: Mapping[str, Any]) -> "WordsPolicy":
        """Read the study settings of a monitor."""
        people = participants_of(values.get("study.participants") or (), (), values.get("study.no_words") or ())
        private = [one for one in people if not one.transcript]
        return cls(
            private=frozenset(person for one in private for person in one.person_ids),
            has_private=bool(private),
            is_anybody_private=any(not one.person_ids for one in private),
        )

    def withheld(self, person_id: str) -> str:
        """Return why the words of a person are not told, or nothing."""
        if not self.is_known:
            return UNKNOWN_CONSENT
        is_private = self.is_anybody_private or person_id in self.private or (self.has_private and not person_id)
        return WITHHELD if is_private else ""


class Session:
    """The flags, the talk and the nodes of one session. One thread adds, others read."""

    def __init__(self, source: str, policy: WordsPolicy, stamp_ns: Callable[[], int] | None = None) -> None:
        """`stamp_ns` is the time of now; without one, a recording's talk stands where it ended."""
        self.source, self.policy, self.problem = source, policy, ""
        self.is_recording, self.read = stamp_ns is None, Event()  # set once a recording is read to its end
        self.talk = TalkSoFar()
        self.revision = 0  # rises with each state of a flag
        self._stamp_ns = stamp_ns or (lambda: self.talk.newest_ns)
        self._flags: OrderedDict[str, SocialFlag] = OrderedDict()
        self._statuses: dict[str, MonitorStatus] = {}
        self._check: UtteranceCheck | None = None
        self._lock = Lock()

    def take(self, taken: object) -> None:
        """Take a flag's state, speech, a presence or a heartbeat."""
        with self._lock:
            if isinstance(taken, SocialFlag):
                self._flags[taken.event_id] = taken
                self._flags.move_to_end(taken.event_id)
                self.revision += 1
                if len(self._flags) > MOST_FLAGS:
                    self._flags.popitem(last=False)
            elif isinstance(taken, MonitorStatus):
                self._statuses[taken.node] = taken
        self.talk.take(taken)

    def follow(self) -> None:
        """Load what reads ahead, and read the talk as far as it goes, so that a check reads one line."""
        if self._check is None:
            self._check = UtteranceCheck(EncoderMatcher.shipped())
        self._check.follow(self.talk, self._stamp_ns())

    def flags_since(self, since_s: float, limit: int) -> dict[str, Any]:
        """Return the flags that changed after a stamp, the oldest change first."""
        with self._lock:
            flags = [flag for flag in self._flags.values() if _seconds(flag.decision_ns) > since_s]
        chosen = sorted(flags, key=lambda flag: flag.decision_ns)[: max(1, min(limit, MOST_LISTED))]
        newest_s = _seconds(chosen[-1].decision_ns) if chosen else since_s
        return {
            "flags": [self._told(flag) for flag in chosen],
            "newest_s": newest_s,
            "left_out": len(flags) - len(chosen),
        }

    def explanation(self, event_id: str) -> dict[str, Any]:
        """Explain a flag. Raises UnknownFlagError."""
        with self._lock:
            flag = self._flags.get(event_id)
        if flag is None:
            raise UnknownFlagError(
                f"no flag has the event_id {event_id[:80]!r}; recent_flags lists those that are kept"
            )
        text = self._withheld(flag) or fenced(explain(flag), "explanation of a flag, with quoted words")
        return {**self._told(flag), "explanation": text}

    def lines(self, last: int) -> dict[str, Any]:
        """Return the last lines of the talk, numbered people apart."""
        turns = [turn for turn in self.talk.turns(self._stamp_ns()) if turn.text.strip()]
        chosen = turns[-max(1, min(last, MOST_LISTED)) :]
        return {"lines": [self._line(turn) for turn in chosen], "left_out": len(turns) - len(chosen)}

    def checked(self, text: str) -> dict[str, Any]:
        """Read what the robot is about to say. Raises TactfulError if it cannot be read."""
        if self._check is None:
            raise TactfulError("check_utterance: what reads is being loaded; ask again in a few seconds")
        began_s = time.perf_counter()
        read = self._check.check(text, self.talk, self._stamp_ns())
        return {
            "advised_against": read.is_advised_against,
            "error": read.probability[Polarity.ERROR],
            "competence": read.probability[Polarity.COMPETENCE],
            "advised_against_from": read.least_probability,
            "attributes": {name.value: value for name, value in read.attributes.items()},
            "reason": fenced(read.reason, "reason, with the words that were given"),
            "correction": read.correction,
            "read_by": read.read_by,
            "took_ms": round(1000 * (time.perf_counter() - began_s), 1),
        }

    def status(self) -> dict[str, Any]:
        """Return what is known of the source and of its nodes."""
        with self._lock:
            nodes = {
                name: {
                    "health": one.health.value,
                    "state": one.state.value,
                    "reasons": [fenced(reason, "reason") for reason in one.reasons],
                    "notes": list(one.notes),
                    "stamp_s": _seconds(one.stamp_ns),
                }
                for name, one in self._statuses.items()
            }
            flags = len(self._flags)
        private = self.policy.withheld("")
        return {
            "source": self.source,
            "problem": self.problem,
            "recording_is_read": self.read.is_set(),
            "nodes": nodes,
            "flags": flags,
            "words": private or "told, as data",
            "check_utterance_by": self._check.read_by if self._check else "",
            "now_s": _seconds(self._stamp_ns()),
            "remedy": "" if nodes or self.read.is_set() else f"no node was heard yet; start them with {PROGRAM} up",
        }

    def _line(self, turn: Turn) -> dict[str, Any]:
        who = "robot" if turn.is_robot else turn.speaker_id or "person"
        withheld = "" if turn.is_robot and self.policy.is_known else self.policy.withheld(turn.speaker_id)
        words = withheld or fenced(turn.text, "words of the robot" if turn.is_robot else "words of a person")
        return {"who": who, "start_s": _seconds(turn.start_ns), "end_s": _seconds(turn.end_ns), "words": words}

    def _withheld(self, flag: SocialFlag) -> str:
        return self.policy.withheld(flag.person_id)

    def _told(self, flag: SocialFlag) -> dict[str, Any]:
        quotes = dict.fromkeys(one.quote for one in flag.evidence if one.quote)
        withheld = self._withheld(flag)
        return {
            "event_id": flag.event_id,
            "state": flag.state.value,
            "polarity": flag.polarity.value,
            "attributes": [attribute.value for attribute in flag.attributes],
            "severity": flag.severity.value,
            "probability": round(flag.probability, 3),
            "cue": flag.cue_id,
            "onset_s": _seconds(flag.onset_ns),
            "decided_s": _seconds(flag.decision_ns),
            "reason": withheld or fenced(flag.rationale, "reason, with quoted words"),
            "quotes": [] if withheld else [fenced(quote, "words that were said") for quote in quotes],
            "correction": "" if withheld else fenced(flag.correction, "what to do instead"),
        }


def _seconds(stamp_ns: int) -> float:
    """Return a stamp as a program in any language reads it: a number of nanoseconds is too long for some."""
    return round(ns_to_s(stamp_ns), DIGITS)
