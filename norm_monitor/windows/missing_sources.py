"""The reasons for which windows close without some of their sources, with remedies."""

from collections.abc import Collection, Iterable

from norm_core.records.record import record
from norm_core.records.speech import RobotSpeech, Speaker, Utterance
from norm_core.runtime.time import BEFORE_ALL_NS
from norm_core.streams.watermarks import FRAMES, PRESENCE, UTTERANCES

# If people speak this many utterances before the robot's first, the robot's speech source is taken to be missing.
UTTERANCES_BEFORE_ROBOT_IS_MISSING = 5
_NODES = {FRAMES: ("camera",), PRESENCE: ("camera", "people"), UTTERANCES: ("ears",)}


@record
class MissingReport:
    """The problems of missing sources, and a note on what only shows in the flags."""

    problem: str = ""
    note: str = ""


def report_missing(
    missing: Iterable[str],
    received: Collection[str],
    *,
    speech_under_way: bool,
    active_nodes: Collection[str] | None = None,
    silent: Collection[str] = (),
) -> MissingReport:
    """Report on each missing source.

    `received` are the sources that sent anything so far, `silent` those that sent nothing lately. `active_nodes`
    are the nodes that are known to run; None if nothing is known about nodes, as in a replay.
    """
    problems, note = [], ""
    for source in dict.fromkeys((*missing, *silent)):
        nodes = _NODES[source]
        is_absent = active_nodes is not None and not set(nodes) & set(active_nodes)
        if source == UTTERANCES and speech_under_way and not is_absent and source not in silent:
            note = (
                "utterances: somebody talked on when the newest window closed, so it lacks the utterance; "
                "windows.lateness_s sets how long windows wait"
            )
        else:
            problems.append(
                f"{source}: {_describe_problem(source, source in received, is_absent, active_nodes is not None)}"
            )
    return MissingReport(problem="; ".join(problems), note=note)


def _describe_problem(source: str, is_received: bool, is_absent: bool, is_known: bool) -> str:
    """Say why a source is missing, and what to do."""
    nodes = _NODES[source]
    node = " or ".join(nodes)
    without = "and windows close without them"
    if is_absent:
        absent, article = ("neither camera nor people is", "one") if source == PRESENCE else (f"{node} is not", "it")
        return f"{absent} active, {without}; start {article}, or whatever publishes {source}"
    if not is_received:
        remedy = f"{node} is active: read its status" if is_known else f"start {node}, or read its status"
        return f"none has arrived, {without}; {remedy}"
    if source != UTTERANCES:
        return f"the newest are late, {without}; read the status of {node}"
    rest = "is slow or hears nothing" if is_known else "is slow or has stopped"
    remedy = f"read the status of {node}, or raise windows.lateness_s"
    return f"the newest are late, {without}, because {node} {rest}; {remedy}"


class FirstSpeech:
    """The first speech of the robot and of people, by stamps alone, so that the order of arrival does not matter."""

    def __init__(self) -> None:
        self._robot_ns: int | None = None
        self._people_end_ns: list[int] = []  # ends of people's first utterances

    def add(self, entry: object) -> None:
        """Take note of a record if it is speech."""
        if isinstance(entry, RobotSpeech) or (isinstance(entry, Utterance) and entry.speaker is Speaker.ROBOT):
            self._robot_ns = entry.stamp_ns if self._robot_ns is None else min(self._robot_ns, entry.stamp_ns)
        elif isinstance(entry, Utterance) and entry.final and entry.text:
            self._people_end_ns = sorted([*self._people_end_ns, entry.end_ns])[:UTTERANCES_BEFORE_ROBOT_IS_MISSING]

    @property
    def has_robot(self) -> bool:
        """Whether any speech of the robot has arrived."""
        return self._robot_ns is not None

    def lacks_robot(self, at_ns: int) -> bool:
        """Whether people had said several things by then, and the robot nothing."""
        is_several = len(self._people_end_ns) == UTTERANCES_BEFORE_ROBOT_IS_MISSING
        people_spoke = is_several and self._people_end_ns[-1] <= at_ns
        return people_spoke and (self._robot_ns is None or self._robot_ns > at_ns)


class SpeechUnderWay:
    """An utterance that has not ended, and whether the newest window closed without it."""

    def __init__(self) -> None:
        self.is_missing = False
        self._from_ns: int | None = None  # where it began
        self._mark_ns: int | None = None  # until when the latest mark says that nobody speaks
        self._closed_ns = BEFORE_ALL_NS  # where the newest window ended

    def add(self, utterance: Utterance) -> None:
        """Follow partial words, final words and marks of silence."""
        is_mark = not utterance.text and not utterance.final
        if (is_mark and utterance.start_ns == self._mark_ns) or (utterance.text and not utterance.final):
            self._from_ns = utterance.start_ns  # a mark is repeated while speech is under way
            self.is_missing |= self._from_ns < self._closed_ns
        elif utterance.final or utterance.start_ns > (self._from_ns or 0):
            self._from_ns = None  # it ended, or a mark of silence lies beyond it
        self._mark_ns = utterance.start_ns if is_mark else None

    def close_window(self, end_ns: int) -> None:
        """Note the end of the newest window."""
        self._closed_ns = end_ns
        self.is_missing = self._from_ns is not None and self._from_ns < end_ns
