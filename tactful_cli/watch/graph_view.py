"""What is known of a running graph and its flags: each line of its stream becomes the rows that it is worth."""

from collections.abc import Iterator
from dataclasses import replace

from norm_core.records.decision import Decision, Veto
from norm_core.records.flag import FlagState, Polarity, SocialFlag
from norm_core.records.json_codec import RecordError
from norm_core.records.outcome import Outcome
from norm_core.records.presence import Presence, PresenceState
from norm_core.records.provenance import Provenance
from norm_core.records.record import record
from norm_core.records.speech import SPEAKER_NAMES, RobotSpeech, Speaker, SpeechEdge, Utterance
from norm_core.records.status import MonitorStatus
from norm_core.runtime.time import ns_to_s
from norm_core.runtime.wording import count_of, to_words
from norm_monitor.assessment.explanation import describe_measurement, describe_sum
from tactful_cli.graph_stream import GraphLine
from tactful_cli.talk_summary import TalkSummary
from tactful_cli.watch.node_view import NodeHealthView, Tone, WatchRow

# A monitor that has gone closes nothing; the oldest is then forgotten.
MAX_FLAGS = 1000
SHOWN_EVIDENCE = 3
MAX_PROBLEMS = 100


@record
class KnownFlag:
    """A flag with the number by which a person tells it from others."""

    number: int
    flag: SocialFlag
    rationale: str  # of the last state that was not withdrawn
    reasons: frozenset[str] = frozenset()  # already shown


class FlagView:
    """The flags that are not closed, numbered in the order of their appearance."""

    def __init__(self) -> None:
        self.count = 0
        self._known: dict[str, KnownFlag] = {}

    @property
    def open(self) -> list[KnownFlag]:
        """The flags that are open, in the order of their numbers."""
        shown = (open_flag for open_flag in self._known.values() if open_flag.flag.state is not FlagState.WITHDRAWN)
        return sorted(shown, key=lambda shown_flag: shown_flag.number)

    def take(self, flag: SocialFlag, *, shadow: bool = False) -> Iterator[WatchRow]:
        """Take one state of a flag."""
        before = self._known.pop(flag.event_id, None)
        if before is None:
            self.count += 1
        reasons = before.reasons if before else frozenset()
        is_withdrawn = flag.state is FlagState.WITHDRAWN
        shown_flag = KnownFlag(
            number=before.number if before else self.count,
            flag=flag,
            rationale=before.rationale if before and is_withdrawn else flag.rationale,
            reasons=reasons | {flag.rationale},
        )
        if flag.state is not FlagState.CLOSED:
            self._known[flag.event_id] = shown_flag
        if len(self._known) > MAX_FLAGS:
            del self._known[next(iter(self._known))]
        is_news = (
            before is None or before.flag.state is FlagState.WITHDRAWN or before.flag.polarity is not flag.polarity
        )
        if flag.state in {FlagState.CLOSED, FlagState.WITHDRAWN} and before:
            changes = [f"{attributes(flag)}, probability {flag.probability:.2f}"]
        elif is_news:
            changes = [_about(flag)]
        else:
            changes = list(_changes(before, flag)) if before else []
        if not changes:
            return
        name = f"#{shown_flag.number} {kind(flag)} {_state(flag, before)}{' in the shadow' if shadow else ''}"
        has_reason = is_news or flag.rationale not in reasons
        was = [("was", before.rationale)] if before and is_withdrawn else []
        yield WatchRow(
            label="flag",
            text=f"{name}: {', '.join(changes)}",
            tone=tone(flag),
            details=(*was, *_reasons(flag)) if has_reason else (),
        )

    def forget(self) -> Iterator[WatchRow]:
        """Drop the open flags: the monitor restarted and will not close them."""
        if self.open:
            numbers = ", ".join(f"#{shown_flag.number}" for shown_flag in self.open[:10])
            more = " and others" if len(self.open) > 10 else ""
            yield WatchRow(label="flag", text=f"{numbers}{more} without an end, as the monitor started anew")
        self._known.clear()


def kind(flag: SocialFlag) -> str:
    """Return the polarity as a person tells it from afar."""
    return "ERROR" if flag.polarity is Polarity.ERROR else "competence"


def tone(flag: SocialFlag) -> Tone:
    """Return the style of a flag."""
    if flag.state is FlagState.WITHDRAWN:
        return Tone.PLAIN
    return Tone.BAD if flag.polarity is Polarity.ERROR else Tone.GOOD


def attributes(flag: SocialFlag) -> str:
    """Return the attributes in words."""
    return ", ".join(to_words(attribute.value) for attribute in flag.attributes)


def _state(flag: SocialFlag, before: KnownFlag | None) -> str:
    if flag.state is FlagState.UPDATED and before and before.flag.state is FlagState.WITHDRAWN:
        return "opened again"
    return flag.state.value


def _about(flag: SocialFlag) -> str:
    severity = f"{flag.severity.value}, " if flag.polarity is Polarity.ERROR else ""
    delay_s = ns_to_s(flag.decision_ns - flag.onset_ns)
    return f"{severity}{attributes(flag)}, probability {flag.probability:.2f}, {delay_s:.1f} s after its onset"


def _changes(before: KnownFlag, new: SocialFlag) -> Iterator[str]:
    """Yield what a person has not read yet; the order of attributes and a reason of before are no news."""
    old = before.flag
    if (was := f"{old.probability:.2f}") != (now := f"{new.probability:.2f}"):
        yield f"probability from {was} to {now}"
    if old.severity is not new.severity and new.polarity is Polarity.ERROR:
        yield f"severity from {old.severity.value} to {new.severity.value}"
    if set(old.attributes) != set(new.attributes):
        yield f"now about {attributes(new)}"
    if new.rationale not in before.reasons:
        yield "another reason"
    if old.offset_ns is None and new.offset_ns is not None:
        yield f"it lasted {ns_to_s(new.offset_ns - new.onset_ns):.1f} s"


def _reasons(flag: SocialFlag) -> Iterator[tuple[str, str]]:
    yield "why", flag.rationale
    # What was held against a threshold comes first, then what weighed most.
    shown = sorted(flag.evidence, key=lambda fact: (fact.threshold is None, -abs(fact.weight or 0.0)))[:SHOWN_EVIDENCE]
    rationale = flag.rationale
    for evidence in shown:
        text = describe_measurement(replace(evidence, quote="") if evidence.quote in rationale else evidence)
        yield "measured", text
        rationale += text  # a quote is read once
    if more := len(flag.evidence) - len(shown):
        yield "", f"and {count_of(more, 'more measurement')}"
    if total := describe_sum(flag):
        yield "sum", total
    if flag.correction and flag.state is not FlagState.WITHDRAWN:
        yield "instead", flag.correction


class SpeechView:
    """What was said, and who is before the robot."""

    def __init__(self) -> None:
        self.people = ""
        self._robot_text = ""

    def take_utterance(self, utterance: Utterance) -> Iterator[WatchRow]:
        """Show final words, except those of the robot that are known already."""
        is_known = utterance.speaker is Speaker.ROBOT and bool(self._robot_text)
        # The microphone also picks up the robot; its speech topic has already given these words, and more accurately.
        if utterance.final and not is_known:
            yield WatchRow(label=SPEAKER_NAMES[utterance.speaker], text=utterance.text, tone=Tone.SPEECH)

    def take_robot_speech(self, speech: RobotSpeech) -> Iterator[WatchRow]:
        """Take the start or the stop of the robot's speech. Its words can come with either."""
        if speech.text and not (speech.state is SpeechEdge.STOP and self._robot_text == speech.text):
            yield WatchRow(label="robot", text=speech.text)
        if speech.text or speech.state is SpeechEdge.START:
            self._robot_text = speech.text

    def take_presence(self, presence: Presence) -> Iterator[WatchRow]:
        """Take who is there. Somebody out of sight for a moment is no news."""
        if presence.state is PresenceState.LOST:
            return
        number = len(presence.persons) or len(presence.faces)
        people = count_of(number, "person", "people") if number else presence.state.value
        if people != self.people:
            self.people = people
            yield WatchRow(label="presence", text=people)


MONITOR = "monitor"


class GraphView:
    """Speech, flags, decisions and nodes of one namespace."""

    def __init__(self, namespace: str) -> None:
        self.flags = FlagView()
        self.nodes = NodeHealthView(namespace)
        self.speech = SpeechView()
        self.talk = TalkSummary()
        self._problems: set[str] = set()

    def take(self, line: GraphLine) -> Iterator[WatchRow]:
        """Take a line of the stream; yield what a person is to read of it."""
        try:
            yield from self._take(line)
        except RecordError as error:
            yield from self._take_problem(f"{line.topic}: {error}")

    def _take(self, line: GraphLine) -> Iterator[WatchRow]:
        record = line.read()
        self.talk.add_record(record)
        match record:
            case SocialFlag() as flag:
                yield from self.flags.take(flag, shadow="/shadow/" in line.topic)
            case MonitorStatus() as status:
                if self.nodes.name_of(status) == MONITOR and self.nodes.is_restart(status):
                    yield from self.flags.forget()
                yield from self.nodes.take(status, line.arrival_ns)
            case Utterance() as utterance:
                yield from self.speech.take_utterance(utterance)
            case RobotSpeech() as speech:
                yield from self.speech.take_robot_speech(speech)
            case Presence() as presence:
                yield from self.speech.take_presence(presence)
            case Decision() as decision:
                yield decision_row(decision)
        if line.kind == "refused":
            yield from self._take_problem(f"{line.topic}: {line.record.get('problem')}")
        elif line.kind == "lost":
            count = int(line.record.get("count", 0))
            text = f"{count_of(count, 'message')} did not get here; the machine or this terminal is too slow"
            yield WatchRow(label="lost", text=text, tone=Tone.NOTE)

    def _take_problem(self, problem: str) -> Iterator[WatchRow]:
        """Tell each problem of messages once."""
        if problem not in self._problems and len(self._problems) < MAX_PROBLEMS:
            self._problems.add(problem)
            yield WatchRow(label="refused", text=problem, tone=Tone.NOTE)


def decision_row(decision: Decision) -> WatchRow:
    """Show what the selector recommends, what it vetoed and why."""
    details = [("asked", " ".join(filter(None, (decision.situation, decision.question))))]
    details += [("why", decision.explanation), ("trade-off", decision.trade_off)]
    for candidate in decision.candidates:
        if candidate.veto is not Veto.NONE:
            veto = ", ".join(filter(None, (to_words(candidate.veto.value), candidate.veto_reason)))
            details.append(("vetoed", f"{candidate.action.rstrip('.')}: {veto}"))
    text = f"{to_words(decision.outcome.value)}{_took(decision.provenance)}"
    if decision.outcome is Outcome.ANSWERED:
        index = decision.chosen_index
        odds = [
            f", probability {candidate.probability:.2f}"
            for candidate in decision.candidates
            if candidate.index == index
        ]
        text = f"{decision.chosen.rstrip('.') or 'none of the above'}{''.join(odds)}{_took(decision.provenance)}"
    return WatchRow(
        label="decision",
        text=text,
        tone=Tone.GOOD if decision.outcome is Outcome.ANSWERED else Tone.NOTE,
        details=tuple((name, value) for name, value in details if value),
    )


def _took(provenance: Provenance) -> str:
    took_s = ns_to_s(provenance.total_ns)
    duration = f"{took_s:.1f} s" if took_s >= 1 else f"{took_s * 1000:.0f} ms"
    return f", after {duration}" if provenance.total_ns else ""
