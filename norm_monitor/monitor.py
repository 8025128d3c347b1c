"""The monitor: stamped records in, windows and flags out. No clock influences a decision."""

from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Self

from pydantic import Field

from norm_core import __version__
from norm_core.models.reader_folder import AUTO
from norm_core.records.episode import Episode, Query
from norm_core.records.flag import SocialFlag
from norm_core.records.json_codec import sha256_of
from norm_core.records.outcome import Outcome
from norm_core.records.provenance import Provenance
from norm_core.records.speech import RobotSpeech, Speaker, Utterance
from norm_core.records.status import Counter
from norm_core.records.window import ClosedWindow
from norm_core.runtime.artefact import resolve_artefact_path
from norm_core.runtime.config import NAMES_FILE, Config
from norm_core.runtime.time import BEFORE_ALL_NS, NS_PER_S, Clock, s_to_ns
from norm_core.streams.watermarks import UTTERANCES
from norm_monitor.assessment.cues import find_cues, load_custom_cues, source_sha256
from norm_monitor.assessment.finding import Finding
from norm_monitor.assessment.fusion import Fusion, NoteClosed
from norm_monitor.assessment.fusion_config import FusionConfig
from norm_monitor.assessment.reasons.every_reason import Reasons
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.assessment.unit import Unit, UnitJudgement, UnitKind, units_of
from norm_monitor.assessment.unit_facts import MeasuredUnit, measured_units
from norm_monitor.assessment.unit_model import UnitModel, shipped_unit_model
from norm_monitor.context.meaning import TextMatcher
from norm_monitor.context.memory import MemoryConfig
from norm_monitor.context.scene import History, Scene
from norm_monitor.judge.excerpt import UnitView
from norm_monitor.judge.judge import JudgeCalibration, JudgeConfig, NoteAnswer, NoteRequest
from norm_monitor.judge.judge_debts import JudgeDebts
from norm_monitor.judge.triggers import MAX_DUE, JudgeTriggers
from norm_monitor.windows.clock_skew import ClockSkew
from norm_monitor.windows.cutter import Entry, Purpose, Record, WindowConfig
from norm_monitor.windows.missing_sources import FirstSpeech, MissingReport, SpeechUnderWay, report_missing
from norm_monitor.windows.window_book import BookedWindow, WindowBook

ROBOT_MISSING = "nothing is heard of the robot, so nothing it says or leaves unsaid is flagged; name its speech topic"
# The judge of a replay, as the configuration names it.
REPLAYED_JUDGE = "replayed"
# An unidentified voice matters up to this long before a silence, as it may be the speech to answer.
_BEFORE_SILENCE_NS = 1 * NS_PER_S


class MonitorConfig(Config):
    """The monitor's configuration, one field per part."""

    windows: WindowConfig = WindowConfig()
    thresholds: str = Field(
        default="",
        description="YAML file of cues and thresholds; empty for the shipped one",
        json_schema_extra=NAMES_FILE,
    )
    cues: tuple[str, ...] = Field(
        default=(), description="custom cues, by the names of their entry points in the group tactful.cues"
    )
    reader: str = Field(
        default=AUTO,
        description="talk reader, by size or folder; auto for the largest that is set up, or none",
    )
    fusion: FusionConfig = FusionConfig()
    memory: MemoryConfig = MemoryConfig()
    judge: JudgeConfig = JudgeConfig()

    @classmethod
    def for_replay(
        cls,
        sources: Iterable[str],
        *,
        calls_per_hour: float = 0.0,
        fusion: FusionConfig | None = None,
        cues: Iterable[str] = (),
    ) -> Self:
        """Configure windows that wait for all sources of a recording; a lateness of 0 sets no limit."""
        return cls(
            windows=WindowConfig(sources=tuple(sources) or (UTTERANCES,), lateness_s=0),
            cues=tuple(cues),
            fusion=fusion or FusionConfig(),
            judge=JudgeConfig(model=REPLAYED_JUDGE if calls_per_hour else "", calls_per_hour=calls_per_hour),
        )

    def unit_model(self, matcher: TextMatcher) -> UnitModel:
        """Read the weights of units' facts, as fitted with what reads them; raise ConfigError if they are unusable."""
        path, limit_s = self.fusion.weights, self.fusion.answer_within_s
        model = (
            UnitModel.load(resolve_artefact_path(path)) if path else shipped_unit_model(has_reader=matcher.has_reader)
        )
        return model.with_answer_limit(limit_s) if limit_s else model

    def calibrated_fusion(self) -> FusionConfig:
        """Return the fusion with what the judge's calibration states; raise ConfigError if that is unusable."""
        if not (self.judge.model and self.judge.calibration):
            return self.fusion
        calibration = JudgeCalibration.load(resolve_artefact_path(self.judge.calibration), self.judge.model)
        return self.fusion.model_copy(
            update={"judge_weight": calibration.weight, "min_probability_judged": calibration.min_probability}
        )

    def table(self) -> ThresholdTable:
        """Read the table of cues with the entries of custom cues; raise ConfigError if one is unusable."""
        table = ThresholdTable.load(Path(self.thresholds)) if self.thresholds else ThresholdTable.shipped()
        return table.with_cues({name: cue.entry for name, cue in load_custom_cues(self.cues).items()})


class Monitor:
    """Run the cues over windows: one window ends at every step, and one after each record that a cue may wait for.

    The stages, from a record to flags:

    1. `take` gives a record to the windows, the history of the talk and the check of clocks, and requests a window at
       its end where a cue may wait for it.
    2. `_advance` moves a source's time on; `_close_windows` takes each window that this completes.
    3. `_process_window` measures the units of the window's scene, gives facts and findings to `Fusion`, and notes
       what to ask the judge; `units_to_judge` hands that out.
    4. `take_judgement` gives the judge's answers to `Fusion`; `notes_to_write` and `take_note` then bring the notes.
    5. `end_input` ends what is open; `closed_windows` returns the windows of all this.
    """

    def __init__(
        self,
        config: MonitorConfig,
        table: ThresholdTable,
        matcher: TextMatcher,
        clock: Clock,
        *,
        unit_model: UnitModel | None = None,
        note_closed: NoteClosed | None = None,
    ) -> None:
        """Load the custom cues; the table is that of the configuration.

        `unit_model` replaces the weights that the configuration names. `note_closed` gets each unit once it takes no
        more evidence.
        """
        self._table, self._matcher, self._clock = table, matcher, clock
        self._cues = tuple(cue.find for cue in load_custom_cues(config.cues).values())
        self._windows = WindowBook(config.windows)
        self._model = unit_model or config.unit_model(matcher)
        self._parts_sha256 = self._hash_parts(config)
        fusion = config.calibrated_fusion()
        self._calibrated = {
            "judge_weight": fusion.judge_weight,
            "min_probability_judged": fusion.min_probability_judged,
        }
        self._history = History(config.memory)
        self._skew = ClockSkew()
        # Windows wait without a limit where a recording is played in lockstep, whose pace is not that of time.
        self._is_paced = bool(config.windows.lateness_s)
        self._fusion = Fusion(fusion, self._model, note_closed)
        self._open_ns = s_to_ns(config.fusion.open_s)
        self._triggers = JudgeTriggers(_judge_budget(config))
        self._debts = JudgeDebts(self._triggers, self._fusion)
        self.expectation = ""
        self._config_sha256 = ""
        self.reconfigure(config)
        self.missing: tuple[str, ...] = ()  # the sources that the newest window had to do without
        self._other_language = ""  # of the newest window's talk, if its wording is not read
        self._newest_ns = BEFORE_ALL_NS
        self._first_speech = FirstSpeech()
        self._under_way = SpeechUnderWay()
        self._is_live = False
        self._has_ended = False

    def _hash_parts(self, config: MonitorConfig) -> dict[str, str | list[str]]:
        """Return the digests of all that decides and cannot change while the monitor runs."""
        return {
            "thresholds": self._table.sha256(),
            "unit_weights": self._model.sha256(),
            "meaning": self._matcher.sha256(),
            # lateness_s is left out: it shows in a window as its missing sources.
            "windows": config.windows.sha256(leave_out=("lateness_s",)),
            "memory": config.memory.sha256(),
            **({"cues": [source_sha256(cue) for cue in self._cues]} if self._cues else {}),
        }

    @property
    def counters(self) -> tuple[Counter, ...]:
        """The counters of windows, flags, judge triggers and memory."""
        parts = (self._windows.cutter, self._fusion, self._triggers, self._history.memory)
        counters = tuple(counter for part in parts for counter in part.counters)
        late_notes = self._debts.notes_after_close
        return (*counters, Counter(name="notes_after_close", count=late_notes)) if late_notes else counters

    def missing_report(
        self, active_nodes: Collection[str] | None = None, silent: Collection[str] = ()
    ) -> MissingReport:
        """Report why the newest window had to do without its missing sources, as `report_missing` does."""
        return report_missing(
            self.missing,
            self._windows.cutter.received_sources,
            speech_under_way=self._under_way.is_missing,
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
        return self._skew.describe_skew()

    @property
    def has_robot_speech(self) -> bool:
        """Whether any speech of the robot has arrived."""
        return self._first_speech.has_robot

    @property
    def is_robot_missing(self) -> bool:
        """Whether people said several things and no speech of the robot arrived."""
        return self._first_speech.lacks_robot(self._newest_ns)

    def reconfigure(self, config: MonitorConfig) -> list[SocialFlag]:
        """Use the live fields of a configuration from the next record on; return the open flags that this changes.

        These are the fields marked LIVE in `fusion` and `judge`; the others stay as they were at the start.
        """
        fusion = config.fusion.model_copy(update=self._calibrated)
        point = self._model.operating_points[fusion.sensitivity]
        self.expectation = point.expectation(fusion.sensitivity)
        self._config_sha256 = sha256_of({**self._parts_sha256, "fusion": fusion.sha256(leave_out=("weights",))})
        self._triggers.set_budget(_judge_budget(config))
        return self._fusion.reconfigure(fusion, self._clock.now_ns())

    def take(self, record: Record, received_ns: int | None = None) -> list[SocialFlag]:
        """Take a record, in order of arrival, and return the flags that are now decided.

        A query, or the end of an episode, requests a window that ends there; `closed_windows` returns it. Live, the
        receive time of a record shows whether clocks lie apart; what that holds back differs in a replay.
        """
        if isinstance(record, Query | Episode):
            self._windows.request_for(record)
            return []
        self._is_live |= received_ns is not None
        flags = self._close_if_ended(awaits_judge=False)
        mark = self._windows.watermarks.watermark_after(record)
        if mark and self._windows.cutter.jumps_back(*mark):
            flags += self._restart_timeline(*mark)
        self._add(record, received_ns)
        flags += self._advance(*mark) if mark else []
        if (text := _whole_text(record)) and not self._other_language:
            self._matcher.prepare(text)
        return flags

    def _restart_timeline(self, source: str, watermark_ns: int) -> list[SocialFlag]:
        """End what is open, as stamps jumped back, and begin anew; return the last flags of the old timeline."""
        flags = self.end_input()
        self._windows.restart(source, watermark_ns)
        flags += self._close_units(None)
        for part in (self._debts, self._history, self._fusion, self._triggers, self._skew):
            part.reset()
        self._newest_ns = watermark_ns
        self._first_speech = FirstSpeech()
        return flags

    def _add(self, record: Entry, received_ns: int | None) -> None:
        """Add a record to everything that follows the talk."""
        if isinstance(record, Utterance):
            self._under_way.add(record)
        elif isinstance(record, RobotSpeech):
            self._history.add_robot_speech(record)
        self._first_speech.add(record)
        self._skew.add(record, received_ns if self._is_paced else None)
        self._newest_ns = max(self._newest_ns, record.end_ns if isinstance(record, Utterance) else record.stamp_ns)
        self._windows.add(record)

    def end_input(self, *, awaits_judge: bool = True) -> list[SocialFlag]:
        """End the input, and return the flags of everything still open.

        The end does not count as silence: an omission is reported only if its time limit had passed. While the judge
        owes answers, the flags close with the last of them, or with the next record, unless nobody awaits it.
        """
        end_ns = self._windows.cutter.end_input()
        flags = self._close_windows(end_ns)
        self._has_ended = True
        flags += self._close_if_ended(awaits_judge=awaits_judge)
        self._windows.publish_last_queries(end_ns)
        return flags

    def close_flags(self) -> list[SocialFlag]:
        """Close all open flags now, and return them."""
        return self._close_units(None)

    def forget(self) -> int:
        """Forget everything that people and the robot said; return the number of facts about people.

        Units that take evidence are forgotten too; call `close_flags` first to get the last state of their flags.
        """
        self._fusion.reset()
        self._triggers.reset()
        self._debts.forget()
        self._matcher.forget()
        return self._history.forget(self._newest_ns)

    def closed_windows(self) -> list[ClosedWindow]:
        """Return the windows closed since the last call: on the grid, requested, or cited by a flag or the judge."""
        return self._windows.take_published()

    def units_to_judge(self, max_count: int = MAX_DUE) -> list[UnitView]:
        """Return units for the judge, without those that would show forgotten speech; the most useful come first.

        `take_judgement` is owed an answer about each of them, also where the judge fails. The others wait.
        """
        return self._debts.ask_units(max_count, self._history.forgotten_ns)

    def take_judgement(self, judgement: UnitJudgement) -> list[SocialFlag]:
        """Return the flags that the judge's answer changes; an outcome other than an answer is no evidence."""
        self._debts.settle_unit(judgement)
        flags: list[SocialFlag] = []
        if judgement.outcome is Outcome.ANSWERED and judgement.unit.onset_ns > self._history.forgotten_ns:
            cite = partial(self._provenance_of_judgement, judgement)
            flags = self._fusion.add_judgement(judgement, cite, self._clock.now_ns())
        return flags + self._close_if_ended()

    def notes_to_write(self, max_count: int = MAX_DUE) -> list[NoteRequest]:
        """Return flagged units whose note the judge is to write; `take_note` is owed its answer about each."""
        return self._debts.ask_notes(max_count)

    def take_note(self, answer: NoteAnswer) -> list[SocialFlag]:
        """Return the flag that gets the judge's note; without one, it keeps the words of the answer."""
        self._debts.settle_note(answer)
        unit, flag = answer.judgement.unit, None
        if answer.outcome is Outcome.ANSWERED and unit.onset_ns > self._history.forgotten_ns:
            self._debts.notes_after_close += not self._fusion.is_open(unit)
            flag = self._fusion.add_note(answer.judgement)
        return ([flag] if flag else []) + self._close_if_ended()

    def _close_if_ended(self, *, awaits_judge: bool = True) -> list[SocialFlag]:
        """Close all units after the end of the input, once the judge owes no answer or is not waited for."""
        if not self._has_ended or (awaits_judge and self._debts.are_open):
            return []
        self._has_ended = False
        return self._close_units(None)

    def _close_units(self, until_ns: int | None) -> list[SocialFlag]:
        """Close the units that take no more evidence, or all; return their final flags.

        Live, the flags of unanswered units are marked outside parity, as the pace of the judge decided about them.
        """
        unanswered = self._debts.unanswered
        flags = self._fusion.close(until_ns, unanswered if self._is_live else ())
        self._debts.drop_closed(unanswered)
        if self._is_live:
            self._triggers.drop(self._fusion.is_closed)
        return flags

    def _advance(self, source: str, watermark_ns: int) -> list[SocialFlag]:
        """Move the time of a source on; return the flags that this changes."""
        self._windows.cutter.advance(source, watermark_ns)
        flags = self._close_windows()
        # Where nothing happens, no window shows that time has passed.
        complete_ns = self._windows.cutter.complete_until_ns
        return flags if complete_ns is None else flags + self._close_units(complete_ns)

    def _close_windows(self, input_end_ns: int | None = None) -> list[SocialFlag]:
        """Process and publish the windows that can close; return the flags that this changes."""
        flags: list[SocialFlag] = []
        for booked in self._windows.closable_windows(input_end_ns):
            end_ns = booked.window.end_ns
            has_skew = bool(self._skew.describe_skew(end_ns))
            if has_skew:
                booked.window = replace(booked.window, late=True)
            flags += self._fusion.hold_timing(has_skew, end_ns, self._clock.now_ns())
            try:
                if end_ns == input_end_ns or self._windows.has_cues(booked):
                    flags += self._process_window(booked, input_ended=end_ns == input_end_ns)
            finally:  # publish the window even if a cue fails
                self._windows.publish(booked)
        return flags

    def _process_window(self, booked: BookedWindow, *, input_ended: bool) -> list[SocialFlag]:
        """Run the cues and weigh the units of a window's scene; return the flags that this changes."""
        window, now_ns, cite = booked.window, self._clock.now_ns(), partial(self._cite, booked)
        self.missing = window.missing
        self._under_way.close_window(window.end_ns)
        scene = self._history.scene(window, input_ended=input_ended, echoes=self._skew.find_echoes(window.end_ns))
        self._other_language = scene.other_language
        flags = self._close_units(window.end_ns)  # first, so that it does not matter how often the sources mark time
        reasons = Reasons(scene, self._table, self._matcher)
        self._fusion.begin_window(reasons)
        changed: list[SocialFlag | None] = []
        requested_ns = set[int]()
        # All cues first, so that one that fails leaves no finding of the others.
        for answer in list(find_cues(scene, self._table, self._matcher, self._cues)):
            if isinstance(answer, Finding):
                changed.append(self._fusion.add_finding(answer, cite, now_ns))
            else:
                requested_ns.add(answer.at_ns)
        changed += [self._fusion.add_facts(measured, cite, now_ns) for measured in self._measure(scene)]
        flags += [flag for flag in changed if flag]
        if (since_ns := self._fusion.oldest_open_ns) is not None:
            flags += self._fusion.track_ends(units_of(scene, since_ns), now_ns)
        if self._triggers.note_window(
            scene, self._fusion.findings, self._fusion.estimate_change_by_judge, reasons.find
        ):
            cite()  # the judge's answers cite the window
        for end_ns in sorted(requested_ns):
            if end_ns > window.end_ns:  # a cue that requests this window again would never end
                self._windows.cutter.request(end_ns, Purpose.CUE)
        return flags

    def _cite(self, booked: BookedWindow) -> Provenance:
        """Return the provenance of evidence from a window, by the present configuration."""
        return Provenance(
            window_digest=self._windows.cite(booked),
            config_sha256=self._config_sha256,
            software_version=__version__,
            window_late=booked.window.late,
        )

    def _provenance_of_judgement(self, judgement: UnitJudgement) -> Provenance:
        return replace(
            judgement.provenance,
            config_sha256=sha256_of([self._config_sha256, judgement.provenance.config_sha256]),
            software_version=__version__,
        )

    def _measure(self, scene: Scene) -> Iterable[MeasuredUnit]:
        """Yield the facts of the units that still take evidence, except of silences that may be none.

        A turn of the robot is also measured as it ends, before a reaction to it is known.
        """
        is_robot_missing = self._first_speech.lacks_robot(scene.window.end_ns)
        for measured in measured_units(scene, self._matcher, scene.window.end_ns - self._open_ns):
            is_turn = measured.unit.kind is UnitKind.ROBOT_TURN
            is_certain = is_turn or not (is_robot_missing or _may_robot_have_spoken(measured.unit, scene))
            if (measured.settled and is_certain) or (is_turn and not measured.turn.ongoing):
                yield measured


def _may_robot_have_spoken(unit: Unit, scene: Scene) -> bool:
    """Whether an unidentified voice within or after a unit may have been the robot's."""
    since_ns = unit.onset_ns - _BEFORE_SILENCE_NS
    return any(turn.speaker is Speaker.UNKNOWN and turn.end_ns >= since_ns for turn in scene.turns)


def _whole_text(record: Entry) -> str:
    """Return the words of a record that will not change; empty where there are none."""
    is_whole = isinstance(record, RobotSpeech) or (isinstance(record, Utterance) and record.final)
    return record.text if is_whole and isinstance(record, RobotSpeech | Utterance) else ""


def _judge_budget(config: MonitorConfig) -> float:
    return config.judge.calls_per_hour if config.judge.model else 0.0
