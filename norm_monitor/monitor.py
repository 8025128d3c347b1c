"""The monitor: stamped records in, windows and flags out. No clock influences a decision."""

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Self

from pydantic import Field

from norm_core import __version__
from norm_core.engines.talk_reader import AUTO
from norm_core.records.episode import Episode, EpisodeEdge, Query
from norm_core.records.flag import SocialFlag
from norm_core.records.frame import Frame
from norm_core.records.json_codec import sha256_of
from norm_core.records.outcome import Outcome
from norm_core.records.presence import Presence
from norm_core.records.provenance import Provenance
from norm_core.records.speech import RobotSpeech, Speaker, Utterance
from norm_core.records.status import Counter
from norm_core.records.window import ClosedWindow, Window, closed_window, window_digest
from norm_core.runtime.artefact import artefact_path
from norm_core.runtime.config import NAMES_FILE, Config
from norm_core.runtime.time import BEFORE_ALL_NS, NS_PER_S, Clock, s_to_ns
from norm_core.streams.watermarks import UTTERANCES
from norm_monitor.assessment.cues import CueFunction, find_cues, source_sha256
from norm_monitor.assessment.finding import Finding, RequestWindowAt
from norm_monitor.assessment.fusion import Fusion, NoteClosed
from norm_monitor.assessment.fusion_config import FusionConfig
from norm_monitor.assessment.reasons.every_reason import Reasons
from norm_monitor.assessment.site_thresholds import SiteThresholds, made_with
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.assessment.unit import Unit, UnitJudgement, UnitKind, units_of
from norm_monitor.assessment.unit_facts import MeasuredUnit, measured_units
from norm_monitor.assessment.unit_model import UnitModel, shipped_unit_model
from norm_monitor.context.meaning import TextMatcher
from norm_monitor.context.memory import MemoryConfig
from norm_monitor.context.scene import History, Scene
from norm_monitor.judge.excerpt import UnitView
from norm_monitor.judge.judge import JudgeCalibration, JudgeConfig, NoteAnswer, NoteRequest
from norm_monitor.judge.triggers import MAX_DUE, JudgeTriggers, LateAnswers
from norm_monitor.windows.clock_skew import ClockSkew
from norm_monitor.windows.cutter import MOST_REQUESTED_WINDOWS, Entry, Record, WindowConfig
from norm_monitor.windows.missing_sources import MissingReport, report_missing

# If people speak this many utterances before the robot's first, the robot's speech source is taken to be missing.
UTTERANCES_BEFORE_ROBOT_IS_MISSING = 5
ROBOT_MISSING = "nothing is heard of the robot, so nothing it says or leaves unsaid is flagged; name its speech topic"
# The name under which a replay's own judge stands in the configuration.
REPLAYED_JUDGE = "replayed"
# How many answers of the judge are waited for at the end of the input.
MAX_OWED = 256
# How many closed windows wait for a consumer; beyond that, the oldest are dropped.
MOST_CLOSED = 256
# How many windows queries may request at once; the remaining requests are reserved for cues.
MOST_QUERIES = MOST_REQUESTED_WINDOWS // 2


class MonitorConfig(Config):
    """The monitor's configuration, one field per part."""

    windows: WindowConfig = WindowConfig()
    thresholds: str = Field(
        default="", description="YAML table of cues; empty for the shipped one", json_schema_extra=NAMES_FILE
    )
    reader: str = Field(
        default=AUTO,
        description="talk reader, by size or folder; auto: the smallest that is set up, none: no reader",
    )
    fusion: FusionConfig = FusionConfig()
    memory: MemoryConfig = MemoryConfig()
    judge: JudgeConfig = JudgeConfig()

    @classmethod
    def for_replay(
        cls, sources: Iterable[str], *, calls_per_hour: float = 0.0, fusion: FusionConfig | None = None
    ) -> Self:
        """Configure windows that wait for all sources of a recording; a lateness of 0 sets no limit."""
        return cls(
            windows=WindowConfig(sources=tuple(sources) or (UTTERANCES,), lateness_s=0),
            fusion=fusion or FusionConfig(),
            judge=JudgeConfig(model=REPLAYED_JUDGE if calls_per_hour else "", calls_per_hour=calls_per_hour),
        )

    def unit_model(self, matcher: TextMatcher) -> UnitModel:
        """Read the weights of units' facts, as fitted with what reads them; raise ConfigError if they are unusable."""
        if self.fusion.weights:
            return UnitModel.load(artefact_path(self.fusion.weights))
        return shipped_unit_model(matcher.reader_size)

    def calibrated_fusion(self) -> FusionConfig:
        """Return the fusion with what the judge's calibration states; raise ConfigError if that is unusable."""
        if not (self.judge.model and self.judge.calibration):
            return self.fusion
        calibration = JudgeCalibration.load_for(artefact_path(self.judge.calibration), self.judge.model)
        return self.fusion.model_copy(
            update={"judge_weight": calibration.weight, "min_probability_judged": calibration.min_probability}
        )

    def site_thresholds(self, model: UnitModel, table: ThresholdTable, matcher: TextMatcher) -> SiteThresholds | None:
        """Read the site's own thresholds if they are named; raise ConfigError if they are for another monitor."""
        if not self.fusion.operating_point:
            return None
        judge = self.judge.model if self.judge.model != REPLAYED_JUDGE else ""
        path = artefact_path(self.fusion.operating_point)
        return SiteThresholds.load(path, made_with(model, table, matcher, judge))

    def table(self) -> ThresholdTable:
        """Read the table of cues; raise ConfigError if it is unusable."""
        return ThresholdTable.of(Path(self.thresholds)) if self.thresholds else ThresholdTable.shipped()


@dataclass
class _CitedWindow:
    """A window that flags may cite, and its digest once one does."""

    window: Window
    digest: str = ""
    is_closed: bool = False  # a window that is cited late is published then


class Monitor:
    """Run the cues over windows: one window ends at every step, and one after each record that a cue may wait for.

    The stages, from a record to flags:

    1. `take` gives a record to the windows, the history of the talk and the check of clocks, and requests a window at
       its end where a cue may wait for it.
    2. `_advance` moves a source's time on; `_flags_of_closing` takes each window that this completes.
    3. `_process_window` measures the units of the window's scene, gives facts and what is seen to `Fusion`, and notes
       what the judge is to be asked; `units_to_judge` hands that out.
    4. `take_judgement` gives the judge's answers to `Fusion`; `notes_to_write` and `take_note` then bring the notes.
    5. `end_input` ends what is open; `closed_windows` returns the windows of all this.
    """

    def __init__(
        self,
        config: MonitorConfig,
        table: ThresholdTable,
        matcher: TextMatcher,
        clock: Clock,
        cues: Sequence[CueFunction] = (),
        *,
        unit_model: UnitModel | None = None,
        note_closed: NoteClosed | None = None,
    ) -> None:
        """Add the custom cues to the shipped ones; each id that they report needs an entry in the table.

        A cue decides by its arguments alone. The hash in a flag covers its file and its entry in the table.
        `unit_model` replaces the weights that the configuration names. `note_closed` gets each unit once it takes no
        more evidence.
        """
        self._cutter, self._watermarks = config.windows.cutter(), config.windows.watermarks()
        self._table, self._matcher, self._clock = table, matcher, clock
        self._cues = tuple(cues)
        self._model = unit_model or config.unit_model(matcher)
        self._site = config.site_thresholds(self._model, table, matcher)
        fusion = config.calibrated_fusion()
        self._calibrated = {
            "judge_weight": fusion.judge_weight,
            "min_probability_judged": fusion.min_probability_judged,
        }
        self._sha256_of_parts: dict[str, str | list[str]] = {
            "thresholds": table.sha256(),
            "unit_weights": self._model.sha256(),
            "meaning": matcher.sha256(),
            # lateness_s is left out: it shows in a window as its missing sources.
            "windows": config.windows.sha256(leave_out=("lateness_s",)),
            "memory": config.memory.sha256(),
            **({"cues": [source_sha256(cue) for cue in self._cues]} if cues else {}),
            **({"operating_point": self._site.sha256()} if self._site else {}),
        }
        self._history = History(config.memory)
        self._newest_ns = BEFORE_ALL_NS
        self._skew = ClockSkew()
        self._reasons = Reasons(table, matcher)
        self._fusion = Fusion(fusion, self._model, note_closed, self._site, self._reasons.of)
        self._open_ns = s_to_ns(config.fusion.open_s)
        self._triggers = JudgeTriggers(_judge_budget(config))
        self._late_answers = LateAnswers()
        self.reconfigure(config)
        self._presence: tuple[object, ...] = ()
        self._robot_first_ns: int | None = None
        self._people_end_ns: list[int] = []  # ends of people's first utterances
        self.missing: tuple[str, ...] = ()  # the sources that the newest window had to do without
        self._closed_ns = BEFORE_ALL_NS  # where the newest window ended
        self._lacks_speech_under_way = False  # whether it lacks an utterance that had not ended when it closed
        self._other_language = ""  # of the newest window's talk, if its wording is not read
        self._partial_from_ns: int | None = None  # where the utterance under way began
        self._marked_ns: int | None = None  # until when the latest mark says that nobody speaks
        self._cue_ends: set[int] = set()  # ends of windows that cues asked for
        self._query_ends: set[int] = set()  # ends of windows that queries asked for
        self._queries_refused = 0
        self._owed: dict[str, UnitView | None] = {}  # what the judge was asked about, oldest first, until forgotten
        self._notes: dict[str, NoteRequest] = {}  # for units that may yet be flagged
        self._notes_owed: dict[str, None] = {}
        self._notes_after_close = 0
        self._timed_out: deque[str] = deque(maxlen=MAX_OWED)  # units without an answer in time
        self._is_live = False
        self._has_ended = False
        self._closed: deque[ClosedWindow] = deque(maxlen=MOST_CLOSED)

    @property
    def counters(self) -> tuple[Counter, ...]:
        """The counters of windows, flags, judge triggers and memory."""
        parts = (self._cutter, self._fusion, self._triggers, self._history.memory)
        counters = tuple(counter for part in parts for counter in part.counters)
        if self._queries_refused:
            counters += (Counter(name="queries_refused", count=self._queries_refused),)
        if self._notes_after_close:
            counters += (Counter(name="notes_after_close", count=self._notes_after_close),)
        return counters

    def missing_report(
        self, active_nodes: Collection[str] | None = None, silent: Collection[str] = ()
    ) -> MissingReport:
        """Report why the newest window had to do without its missing sources, as `report_missing` does."""
        return report_missing(
            self.missing,
            self._cutter.received_sources,
            speech_under_way=self._lacks_speech_under_way,
            active_nodes=active_nodes,
            silent=silent,
        )

    @property
    def language_reason(self) -> str:
        """Why the wording of the newest window is not read, and what to do; empty where it is."""
        if not self._other_language:
            return ""
        return (
            f"language: the talk is in {self._other_language}, so wording and exchanges are not judged, only timing "
            "and sight; if this is wrong, state en or zh as the locale of speech"
        )

    @property
    def clocks_reason(self) -> str:
        """Which sources' clocks lie apart, so that timing raises no flag, and what to do; empty where none do."""
        return self._skew.reason()

    @property
    def late_answers_reason(self) -> str:
        """Why many answers of the judge change nothing, and what to do; empty where few come too late."""
        return self._late_answers.reason

    @property
    def hears_robot(self) -> bool:
        """Whether any robot speech has arrived."""
        return self._robot_first_ns is not None

    @property
    def robot_is_missing(self) -> bool:
        """Whether people said several things and the robot's speech never arrived."""
        return self._is_robot_missing(self._newest_ns)

    def reconfigure(self, config: MonitorConfig) -> list[SocialFlag]:
        """Use the live fields of a configuration from the next record on; return the open flags that this changes.

        These are the fields marked LIVE in `fusion` and `judge`; the others stay as they were at the start.
        """
        fusion = config.fusion.model_copy(update=self._calibrated)
        point = self._model.operating_points[fusion.sensitivity]
        self.expectation = self._site.expectation if self._site else point.expectation(fusion.sensitivity)
        self._config_sha256 = sha256_of(
            {**self._sha256_of_parts, "fusion": fusion.sha256(leave_out=("weights", "operating_point"))}
        )
        self._triggers.set_budget(_judge_budget(config))
        return self._fusion.reconfigure(fusion, self._clock.now_ns())

    def take(self, record: Record, received_ns: int | None = None) -> list[SocialFlag]:
        """Take a record, in order of arrival, and return the flags that are now decided.

        A query, or the end of an episode, requests a window that ends there; `closed_windows` returns it. Live, the
        time when a record was received tells whether clocks lie apart; what that holds back stands outside parity.
        """
        if isinstance(record, Query | Episode):
            self._request_query_window(record)
            return []
        self._is_live |= received_ns is not None
        flags = self._close_if_ended(owed=False)
        mark = self._watermarks.of(record)
        if mark and self._cutter.jumps_back(*mark):
            flags += self.end_input()
            self._closed.extend(map(closed_window, self._cutter.advance(*mark)))
            self._cue_ends.clear()
            self._query_ends.clear()
            flags += self._close(None)
            for answers in (self._owed, self._notes, self._notes_owed):
                answers.clear()
            for part in (self._history, self._fusion, self._triggers, self._skew):
                part.reset()
            self._newest_ns = mark[1]
            self._robot_first_ns, self._people_end_ns = None, []
        if isinstance(record, Utterance):
            self._track_partial(record)
        elif isinstance(record, RobotSpeech):
            self._history.take_robot_speech(record)
        self._track_speaker(record)
        self._skew.take(record, received_ns)
        self._newest_ns = max(self._newest_ns, record.end_ns if isinstance(record, Utterance) else record.stamp_ns)
        if not isinstance(record, Utterance) or record.final:
            self._cutter.add(record)
        at_ns = self._cue_end_of(record)
        if at_ns is not None and not (isinstance(record, RobotSpeech) and self._cutter.is_past(at_ns)):
            self._request_cue_window(at_ns)
        flags += self._advance(*mark) if mark else []
        is_whole = isinstance(record, RobotSpeech) or (isinstance(record, Utterance) and record.final)
        text = record.text if is_whole and isinstance(record, RobotSpeech | Utterance) else ""
        if text and not self._other_language:
            self._matcher.match(text, "greeting")  # encodes it, so that its window need not wait for that
        return flags

    def end_input(self, *, awaits_judge: bool = True) -> list[SocialFlag]:
        """End the input, and return the flags of everything still open.

        The end does not count as silence: an omission is reported only if its time limit had passed. While the judge
        owes answers, the flags close with the last of them, or with the next record, unless nobody awaits it.
        """
        end_ns = self._cutter.end_input()
        flags = self._flags_of_closing(end_ns)
        self._has_ended = True
        flags += self._close_if_ended(owed=awaits_judge)
        for query_ns in sorted(self._query_ends):  # those after the end, which no watermark will pass
            self._closed.append(closed_window(self._cutter.cut(query_ns, input_end_ns=end_ns)))
        self._query_ends.clear()
        return flags

    def close_flags(self) -> list[SocialFlag]:
        """Close all open flags now, and return them."""
        return self._close(None)

    def forget(self) -> int:
        """Forget everything that people and the robot said; return the number of facts about people.

        Units that take evidence are forgotten too; call `close_flags` first to get the last state of their flags.
        """
        self._fusion.reset()
        self._triggers.reset()
        self._owed = dict.fromkeys(self._owed)
        self._notes.clear()
        self._matcher.forget()
        return self._history.forget(self._newest_ns)

    def closed_windows(self) -> list[ClosedWindow]:
        """Return the windows closed since the last call: on the grid, requested, or cited by a flag or the judge."""
        windows = list(self._closed)
        self._closed.clear()
        return windows

    def units_to_judge(self, max_count: int = MAX_DUE) -> list[UnitView]:
        """Return units for the judge, without those that would show forgotten speech; the most useful come first.

        Each of them is owed an answer through `take_judgement`, also where the judge fails. The others wait.
        """
        views = [view for view in self._triggers.take(max_count) if view.window.start_ns > self._history.forgotten_ns]
        self._owed |= {view.unit.unit_id: view for view in views}
        for unit_id in list(self._owed)[:-MAX_OWED]:  # a judge that never answers
            del self._owed[unit_id]
        return views

    def notes_to_write(self, max_count: int = MAX_DUE) -> list[NoteRequest]:
        """Return flagged units whose note the judge is to write; `take_note` is owed its answer about each."""
        ids = self._unwritten[:max_count]
        self._notes_owed |= dict.fromkeys(ids)
        return [self._notes.pop(unit_id) for unit_id in ids]

    def take_note(self, answer: NoteAnswer) -> list[SocialFlag]:
        """Return the flag that gets the judge's note; without one, it keeps the words of the answer."""
        unit = answer.judgement.unit
        self._notes_owed.pop(unit.unit_id, None)
        if answer.outcome is Outcome.TIMED_OUT:
            self._timed_out.append(unit.unit_id)
        flag = None
        if answer.outcome is Outcome.ANSWERED and unit.onset_ns > self._history.forgotten_ns:
            self._notes_after_close += not self._fusion.is_open(unit)
            flag = self._fusion.add_note(answer.judgement)
        return ([flag] if flag else []) + self._close_if_ended()

    @property
    def _unwritten(self) -> list[str]:
        """The units with a flag that lacks the judge's note."""
        return [name for name, request in self._notes.items() if self._fusion.is_flagged_by_judge(request.view.unit)]

    def take_judgement(self, judgement: UnitJudgement) -> list[SocialFlag]:
        """Return the flags that the judge's answer changes; an outcome other than an answer is no evidence."""
        view = self._owed.pop(judgement.unit.unit_id, None)
        if view and judgement.awaits_note:
            self._notes[judgement.unit.unit_id] = NoteRequest(view=view, judgement=judgement)
        if judgement.outcome is Outcome.TIMED_OUT:
            self._timed_out.append(judgement.unit.unit_id)
        flags: list[SocialFlag] = []
        if judgement.outcome is Outcome.ANSWERED and judgement.unit.onset_ns > self._history.forgotten_ns:
            self._late_answers.add(self._fusion.is_closed(judgement.unit))
            cite = partial(self._provenance_of_judgement, judgement)
            flags = self._fusion.add_judgement(judgement, cite, self._clock.now_ns())
        return flags + self._close_if_ended()

    def _close_if_ended(self, *, owed: bool = True) -> list[SocialFlag]:
        """Close all units after the end of the input, once the judge owes no answer or is not waited for."""
        if not self._has_ended or (owed and (self._owed or self._triggers.due or self._unwritten or self._notes_owed)):
            return []
        self._has_ended = False
        return self._close(None)

    def _close(self, until_ns: int | None) -> list[SocialFlag]:
        """Close units. Live, those that the judge's pace left without an answer are marked outside parity."""
        unwritten = self._unwritten
        awaited = (*self._owed, *self._timed_out, *self._triggers.due, *unwritten, *self._notes_owed)
        flags = self._fusion.close(until_ns, awaited if self._is_live else ())
        self._notes = {name: note for name, note in self._notes.items() if self._fusion.is_open(note.view.unit)}
        self._notes_after_close += sum(name not in self._notes for name in unwritten)
        if self._is_live:
            self._triggers.drop(self._fusion.is_closed)
        return flags

    def _track_partial(self, utterance: Utterance) -> None:
        is_mark = not utterance.text and not utterance.final
        if (is_mark and utterance.start_ns == self._marked_ns) or (utterance.text and not utterance.final):
            self._partial_from_ns = utterance.start_ns  # a mark that comes again is held by speech under way
            self._lacks_speech_under_way |= self._speaks_in_closed_window()
        elif utterance.final or utterance.start_ns > (self._partial_from_ns or 0):
            self._partial_from_ns = None  # it ended, or a mark of silence lies beyond it
        self._marked_ns = utterance.start_ns if is_mark else None

    def _speaks_in_closed_window(self) -> bool:
        return self._partial_from_ns is not None and self._partial_from_ns < self._closed_ns

    def _track_speaker(self, entry: Entry) -> None:
        if isinstance(entry, RobotSpeech) or (isinstance(entry, Utterance) and entry.speaker is Speaker.ROBOT):
            first_ns = self._robot_first_ns
            self._robot_first_ns = entry.stamp_ns if first_ns is None else min(first_ns, entry.stamp_ns)
        elif isinstance(entry, Utterance) and entry.final and entry.text:
            self._people_end_ns = sorted([*self._people_end_ns, entry.end_ns])[:UTTERANCES_BEFORE_ROBOT_IS_MISSING]

    def _is_robot_missing(self, at_ns: int) -> bool:
        """Decide by stamps alone, independent of the order of arrival."""
        people_spoke = (
            len(self._people_end_ns) == UTTERANCES_BEFORE_ROBOT_IS_MISSING and self._people_end_ns[-1] <= at_ns
        )
        return people_spoke and (self._robot_first_ns is None or self._robot_first_ns > at_ns)

    def _advance(self, source: str, watermark_ns: int) -> list[SocialFlag]:
        self._cutter.advance(source, watermark_ns)
        flags = self._flags_of_closing()
        # Where nothing happens, no window tells that time has passed.
        complete_ns = self._cutter.complete_until_ns
        return flags if complete_ns is None else flags + self._close(complete_ns)

    def _flags_of_closing(self, input_end_ns: int | None = None) -> list[SocialFlag]:
        flags: list[SocialFlag] = []
        for closable in self._cutter.closable_windows(input_end_ns):
            skew = self._skew.reason(closable.end_ns)
            window = replace(closable, late=True) if skew else closable
            flags += self._fusion.hold_timing(bool(skew), closable.end_ns, self._clock.now_ns())
            ended = window.end_ns == input_end_ns
            on_grid = self._cutter.is_on_grid(window.end_ns)
            queried = window.end_ns in self._query_ends
            looked = on_grid or ended or window.end_ns in self._cue_ends
            self._cue_ends.discard(window.end_ns)
            self._query_ends.discard(window.end_ns)
            sha256 = ""
            try:
                if looked:
                    window_flags, again_ns, sha256 = self._process_window(window, input_ended=ended)
                    flags += window_flags
                    for at_ns in again_ns:
                        if at_ns > window.end_ns:  # a cue that asks for this window again would never end
                            self._request_cue_window(at_ns)
            finally:  # publish the window even if a cue fails
                if on_grid or queried or sha256:
                    self._closed.append(closed_window(window, sha256))
        return flags

    def _request_cue_window(self, end_ns: int) -> None:
        if self._cutter.ask(end_ns):
            self._cue_ends.add(end_ns)

    def _request_query_window(self, record: Query | Episode) -> None:
        """Request the window that ends at a query, or at an episode's end."""
        if isinstance(record, Episode) and record.state is not EpisodeEdge.END:
            return
        end_ns = record.stamp_ns if isinstance(record, Query) else record.end_ns
        if len(self._query_ends) >= MOST_QUERIES and end_ns not in self._query_ends:
            self._queries_refused += 1
        elif self._cutter.ask(end_ns):
            self._query_ends.add(end_ns)

    def _process_window(self, window: Window, *, input_ended: bool) -> tuple[list[SocialFlag], set[int], str]:
        """Run the cues, and return flags, the ends of the windows that cues ask for, and the digest if one is cited."""
        self.missing, self._closed_ns = window.missing, window.end_ns
        self._lacks_speech_under_way = self._speaks_in_closed_window()
        scene = self._history.scene(window, input_ended=input_ended, echoes=self._skew.echoes(window.end_ns))
        self._other_language = scene.other_language
        flags = self._close(window.end_ns)  # first, so that it does not matter how often the sources mark time
        self._reasons.scene = scene
        answers = list(find_cues(scene, self._table, self._matcher, self._cues))
        findings = [finding for finding in answers if isinstance(finding, Finding)]
        again_ns = {again.at_ns for again in answers if isinstance(again, RequestWindowAt)}
        cited = _CitedWindow(window)
        cite = partial(self._cite, cited)
        now_ns = self._clock.now_ns()
        changed = [self._fusion.add_finding(finding, cite, now_ns) for finding in findings]
        changed += [self._fusion.add_facts(measured, cite, now_ns) for measured in self._measured(scene)]
        flags += [flag for flag in changed if flag]
        if (since_ns := self._fusion.oldest_open_ns) is not None:
            flags += self._fusion.track_ends(units_of(scene, since_ns), now_ns)
        if self._triggers.note_window(scene, self._fusion.findings, self._fusion.change_by_judge, self._reasons.of):
            cite()  # the judge's answers cite the window
        cited.is_closed = True
        return flags, again_ns, cited.digest

    def _cite(self, cited: _CitedWindow) -> Provenance:
        """Return the provenance of what a window showed, by the config of now."""
        if not cited.digest:  # once per window, and only if a flag cites it: it takes longer than most cues
            cited.digest = window_digest(cited.window)
            if cited.is_closed:
                self._closed.append(closed_window(cited.window, cited.digest))
        return Provenance(
            window_digest=cited.digest,
            config_sha256=self._config_sha256,
            software_version=__version__,
            window_late=cited.window.late,
        )

    def _provenance_of_judgement(self, judgement: UnitJudgement) -> Provenance:
        return replace(
            judgement.provenance,
            config_sha256=sha256_of([self._config_sha256, judgement.provenance.config_sha256]),
            software_version=__version__,
        )

    def _measured(self, scene: Scene) -> Iterable[MeasuredUnit]:
        """Return the facts of the units that still take evidence, except of silences that may be none.

        A turn of the robot's is also measured as it ends, before a reaction to it is known.
        """
        robot_is_missing = self._is_robot_missing(scene.window.end_ns)
        for measured_unit in measured_units(scene, self._matcher, scene.window.end_ns - self._open_ns):
            is_turn = measured_unit.unit.kind is UnitKind.ROBOT_TURN
            may_be = is_turn or not (robot_is_missing or _robot_may_have_broken(measured_unit.unit, scene))
            if (measured_unit.settled and may_be) or (is_turn and not measured_unit.turn.ongoing):
                yield measured_unit

    def _cue_end_of(self, entry: Entry) -> int | None:
        """Return the end of the window that a record calls for, if any; ends are exclusive."""
        match entry:
            case Utterance():
                return entry.end_ns + 1 if entry.final else None
            case RobotSpeech():
                return entry.stamp_ns + 1
            case Presence():
                before, self._presence = self._presence, (entry.state, entry.away_since_ns)
                return entry.stamp_ns + 1 if before != self._presence else None
            case Frame():
                return None


# How long before a silence an unidentified voice still matters: it may be the speech to answer.
_BEFORE_NS = 1 * NS_PER_S


def _robot_may_have_broken(unit: Unit, scene: Scene) -> bool:
    """Whether an unidentified voice within or after a unit may have been the robot's."""
    return any(turn.speaker is Speaker.UNKNOWN and turn.end_ns >= unit.onset_ns - _BEFORE_NS for turn in scene.turns)


def _judge_budget(config: MonitorConfig) -> float:
    return config.judge.calls_per_hour if config.judge.model else 0.0
