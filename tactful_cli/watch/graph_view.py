"""What is known of a running graph: each line of its stream becomes the rows that it is worth."""

from collections import deque
from collections.abc import Iterator
from statistics import median

from norm_core.records.decision import Decision, Veto
from norm_core.records.flag import SocialFlag
from norm_core.records.json_codec import RecordError
from norm_core.records.outcome import Outcome
from norm_core.records.presence import Presence, PresenceState
from norm_core.records.provenance import Provenance
from norm_core.records.speech import RobotSpeech, Speaker, SpeechEdge, Utterance
from norm_core.records.status import MonitorStatus
from norm_core.runtime.time import ns_to_s
from norm_core.runtime.wording import count_of, in_words
from tactful_cli.graph_stream import GraphLine
from tactful_cli.watch.flag_view import LATENCIES, FlagView, count_open
from tactful_cli.watch.node_view import NodeHealthView, Tone, WatchRow

_NAMES = {Speaker.ROBOT: "robot", Speaker.USER: "person", Speaker.UNKNOWN: "somebody"}


class SpeechView:
    """What was said last, what is being said, and who is before the robot."""

    def __init__(self) -> None:
        self.partial = ""
        self.robot_speaks = False
        self.people = ""
        self._robot_text = ""

    def take_utterance(self, utterance: Utterance) -> Iterator[WatchRow]:
        """Take words; those that may still change are only kept."""
        if not utterance.final:
            if utterance.text:
                self.partial = f"{_NAMES[utterance.speaker]}: {utterance.text}"
            return
        self.partial = ""
        is_known = utterance.speaker is Speaker.ROBOT and bool(self._robot_text)
        if not is_known:  # what the microphone made of the robot's own words is told already, and better
            yield WatchRow(label=_NAMES[utterance.speaker], text=utterance.text, tone=Tone.SPEECH)

    def take_robot_speech(self, speech: RobotSpeech) -> Iterator[WatchRow]:
        """Take the start or the stop of the robot's speech. Its words can come with either."""
        self.robot_speaks = speech.state is SpeechEdge.START
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
        self.flags, self.nodes, self.speech = FlagView(), NodeHealthView(namespace), SpeechView()
        self.refused = self.lost = 0
        self._decision_ns: deque[int] = deque(maxlen=LATENCIES)
        self._problems: set[str] = set()

    def take(self, line: GraphLine) -> Iterator[WatchRow]:
        """Take a line of the stream; yield what a person is to read of it."""
        try:
            yield from self._take(line)
        except RecordError as error:
            yield from self._take_problem(f"{line.topic}: {error}")

    def take_time(self, now_ns: int) -> Iterator[WatchRow]:
        """Take that time passed."""
        return self.nodes.take_time(now_ns)

    def summary(self) -> list[str]:
        """Return a few lines: health, open flags, delays, losses, and what the nodes take."""
        flags = f"{count_open(self.flags.open)}, {count_of(self.flags.count, 'flag')} in all"
        delays = [
            f"a flag comes {self.flags.delay_s:.1f} s after its onset" if self.flags.delay_s is not None else "",
            f"a decision takes {_duration(round(median(self._decision_ns)))}" if self._decision_ns else "",
        ]
        lost = f"lost: {self.nodes.dropped} in the nodes, {self.lost} here; {self.refused} refused"
        median_delays = f"in the median, {' and '.join(filter(None, delays))}" if any(delays) else ""
        return list(filter(None, (f"{self.nodes.summary()}; {flags}", self.nodes.usage, median_delays, lost)))

    def _take(self, line: GraphLine) -> Iterator[WatchRow]:
        match line.read():
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
                if decision.provenance.latency:
                    self._decision_ns.append(decision.provenance.total_ns)
                yield decision_row(decision)
        if line.kind == "refused":
            yield from self._take_problem(f"{line.topic}: {line.record.get('problem')}")
        elif line.kind == "lost":
            count = int(line.record.get("count", 0))
            self.lost += count
            text = f"{count_of(count, 'message')} did not get here; the machine or this terminal is too slow"
            yield WatchRow(label="lost", text=text, tone=Tone.NOTE)

    def _take_problem(self, problem: str) -> Iterator[WatchRow]:
        """Tell each problem of messages once."""
        self.refused += 1
        if problem not in self._problems and len(self._problems) < LATENCIES:
            self._problems.add(problem)
            yield WatchRow(label="refused", text=problem, tone=Tone.NOTE)


def decision_row(decision: Decision) -> WatchRow:
    """Show what the selector recommends, what it vetoed and why."""
    details = [("asked", " ".join(filter(None, (decision.situation, decision.question))))]
    details += [("why", decision.explanation), ("trade-off", decision.trade_off)]
    details += [
        ("vetoed", f"{each.action}: {in_words(each.veto.value)}{', ' if each.veto_reason else ''}{each.veto_reason}")
        for each in decision.candidates
        if each.veto is not Veto.NONE
    ]
    text = f"{in_words(decision.outcome.value)}{_took(decision.provenance)}"
    if decision.outcome is Outcome.ANSWERED:
        index = decision.chosen_index
        odds = [f", probability {each.probability:.2f}" for each in decision.candidates if each.index == index]
        text = f"{decision.chosen or 'none of the above'}{''.join(odds)}{_took(decision.provenance)}"
    return WatchRow(
        label="decision",
        text=text,
        tone=Tone.GOOD if decision.outcome is Outcome.ANSWERED else Tone.NOTE,
        details=tuple((name, value) for name, value in details if value),
    )


def _took(provenance: Provenance) -> str:
    return f", after {_duration(provenance.total_ns)}" if provenance.total_ns else ""


def _duration(duration_ns: int) -> str:
    duration_s = ns_to_s(duration_ns)
    return f"{duration_s:.1f} s" if duration_s >= 1 else f"{duration_s * 1000:.0f} ms"
