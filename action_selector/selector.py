"""The selector role: its files opened, stamped records and requests in, decisions and answers out."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pydantic import Field

from action_selector.candidates import SkillCatalogue
from action_selector.choose.calibration import SelectorCalibration, made_with
from action_selector.decider import Decider
from action_selector.house_rules import HouseRules
from action_selector.request import (
    TASKS,
    RepairRequests,
    Request,
    RequestConfig,
    SelectorConfig,
    answer_of,
    repeated,
    request_of,
)
from action_selector.retrieval import PrecedentError, PrecedentIndex, read_precedents
from norm_core.engines.engine import Engine
from norm_core.engines.request_context import Deadline
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.engines.talk_reader import AUTO, open_reader
from norm_core.health.health_log import HealthLog
from norm_core.records.decision import Decision
from norm_core.records.episode import Answer, Episode, Query
from norm_core.records.flag import SocialFlag
from norm_core.records.frame import Frame
from norm_core.records.outcome import Outcome
from norm_core.records.presence import Presence
from norm_core.records.record import record
from norm_core.records.speech import Utterance
from norm_core.records.status import Health
from norm_core.runtime.artefact import resolve_artefact_path
from norm_core.runtime.config import LIVE_FILE, NAMES_FILE
from norm_core.runtime.time import Clock, ReplayClock, s_to_ns
from norm_core.streams.recent_records import RecentRecords
from norm_core.streams.watermarks import HeldQueries

SelectorRecord = Frame | Utterance | Presence | Episode | Query | SocialFlag

PICTURES_HELD_BACK = (
    "selector: the model runs on another machine, so it is shown no images; set pictures_may_leave to true to send them"
)


@record
class DueRequest:
    """A request that is due, its deadline and, if any, its query."""

    request: Request
    deadline: Deadline
    query: Query | None = None


@record
class Recommendation:
    """A decision on a request, and the answer to its query."""

    decision: Decision
    answer: Answer | None = None


class Selector:
    """Recommend the next action from what was recently seen and heard. It advises and never moves the robot.

    Call take(), end_input() and ask() from one thread: they return due requests at once. decide() takes as long as the
    model; a driver may give it a thread of its own.
    """

    def __init__(
        self,
        decider: Decider,
        clock: Clock,
        config: RequestConfig | None = None,
        health_log: HealthLog | None = None,
        repairs: RepairRequests | None = None,
    ) -> None:
        """Count outcomes in the health log, which also reports what prevents decisions. Flags need `repairs`."""
        self._decider, self._clock, self._config = decider, clock, config or RequestConfig()
        self._health_log = health_log or HealthLog()
        self._repairs = repairs
        self._recent = RecentRecords(self._config.window_s)
        self._held = HeldQueries(self._config.sources, s_to_ns(self._config.frames_every_s))

    def reconfigure(
        self, config: SelectorConfig, catalogue: SkillCatalogue | None = None, rules: HouseRules | None = None
    ) -> None:
        """Decide every further request by these settings, skills and rules, and by those alone."""
        self._decider = self._decider.replaced(config, catalogue, rules)
        if self._repairs:
            self._repairs.use(catalogue)

    def prepare(self) -> None:
        """Load the encoder ahead of the first request. Raises EngineError if that fails."""
        self._decider.prepare()

    def take(self, record: SelectorRecord) -> list[DueRequest]:
        """Add a record in order of arrival, and return the requests that are now due.

        A query with a deadline is due at once. Without one, it waits until its sources have passed its stamp. Ignores
        queries whose tasks belong to other roles.
        """
        if isinstance(record, Query) and record.task not in TASKS:
            return []
        if isinstance(record, SocialFlag):
            request = self._repairs.request_for(record) if self._repairs else None
            return [self.ask(request)] if request else []
        if isinstance(record, Episode):  # an episode's edge closes the queries before it
            due = self.end_input()
            self._recent.take(record)
            return due
        if not isinstance(record, Query):
            self._recent.take(record)
        if isinstance(record, Frame) and not self._decider.shows_pictures:
            self._health_log.raise_issue("pictures", Health.DEGRADED, PICTURES_HELD_BACK)
        return [self._due(query) for query in self._held.take(record)]

    def end_input(self) -> list[DueRequest]:
        """Return the waiting queries, as no more records will come."""
        return [self._due(query) for query in self._held.release()]

    def drop_queries(self) -> int:
        """Drop the waiting queries, and return their number."""
        return len(self._held.release())

    def ask(self, request: Request, deadline_ns: int | None = None) -> DueRequest:
        """Submit a request about the present moment. Without a deadline, the configured time limit applies."""
        now_ns = self._clock.now_ns()
        if deadline_ns is None:
            deadline_ns = now_ns + s_to_ns(self._config.longest_s)
        window = self._recent.window(now_ns, now_ns)
        return DueRequest(request=replace(request, window=window), deadline=Deadline(self._clock, deadline_ns))

    def decide(self, due: DueRequest, on_step: Callable[[str], None] | None = None) -> Recommendation:
        """Decide on any request. `on_step` receives the name of each step as it starts."""
        decider = self._decider  # `reconfigure` may replace it meanwhile
        try:
            decision = decider.decide(due.request, due.deadline, on_step)
        except (RuntimeError, ValueError, MemoryError) as error:
            reason = f"{type(error).__name__}: {error}"
            self._health_log.raise_issue(
                "selector", Health.DEGRADED, f"selector: a decision failed: {reason}; please report it"
            )
            return self.without_decision(due, reason)
        if due.deadline.is_cancelled:  # whoever cancelled the request ended it, and counted that
            return Recommendation(decision=decision)
        if fault := decider.reader_fault:
            self._health_log.count("decisions_without_reader")
            self._health_log.raise_issue("reader", Health.DEGRADED, f"selector: {fault}", lasting_s=60.0)
        recommendation = self._recommendation(due, decision)
        reason_withheld = decider.reason_withheld(due.request)
        if not reason_withheld or decision.outcome is Outcome.INVALID:
            return recommendation
        self._health_log.count("decisions_without_pictures")
        answer = recommendation.answer and replace(
            recommendation.answer, reason=recommendation.answer.reason or reason_withheld
        )
        return replace(recommendation, answer=answer)

    def without_decision(self, due: DueRequest, reason: str, outcome: Outcome = Outcome.FAILED) -> Recommendation:
        """Return a decision that chooses nothing, with the reason."""
        now_ns, deadline_ns = due.deadline.clock.now_ns(), due.deadline.deadline_ns
        decision = Decision(
            stamp_ns=now_ns,
            decision_id=f"{due.request.query_id}@{now_ns}",
            query_id=due.request.query_id,
            situation=repeated(due.request.situation),
            question=repeated(due.request.question),
            outcome=outcome,
            explanation=reason,
            deadline_ns=deadline_ns,
            decided_ns=now_ns,
        )
        return self._recommendation(due, decision)

    def _due(self, query: Query) -> DueRequest:
        """Convert a query to a request. Without a deadline, the clock stays at the query's stamp, as replays need."""
        is_live = query.deadline_ns is not None
        clock = self._clock if is_live else ReplayClock(query.stamp_ns)
        window = self._recent.window(query.stamp_ns, clock.now_ns())
        request = request_of(query, window, source=query.frame_id or query.episode_id)
        return DueRequest(request=request, deadline=Deadline(clock, query.deadline_ns), query=query)

    def _recommendation(self, due: DueRequest, decision: Decision) -> Recommendation:
        self._health_log.count(f"decisions_{decision.outcome}")
        return Recommendation(decision=decision, answer=answer_of(decision, due.query) if due.query else None)


class SelectorFiles(SelectorConfig):
    """The selector's settings and the paths of its files. An empty path means no file."""

    model: str = Field(default="", description="name of the model that is asked; empty for likeness alone")
    reader: str = Field(
        default=AUTO,
        description="talk reader that reads candidates where no model is asked and no calibration is named: its size "
        "or folder; auto takes the smallest that is set up, none takes none",
    )
    skills: str = Field(
        default="", description="YAML catalogue of the robot's skills; empty for none", json_schema_extra=LIVE_FILE
    )
    house_rules: str = Field(
        default="",
        description="YAML file of house rules; empty for none; set it again to read an edited file",
        json_schema_extra=LIVE_FILE,
    )
    precedents_index: str = Field(
        default="",
        description="JSONL file of precedents, or an index of them; empty for none",
        json_schema_extra=NAMES_FILE,
    )

    def catalogue(self) -> SkillCatalogue | None:
        """Read the skills. Raises ConfigError where the file is unusable."""
        return SkillCatalogue.read(Path(self.skills).expanduser()) if self.skills else None

    def rules(self) -> HouseRules | None:
        """Read the house rules. Raises ConfigError where the file is unusable."""
        return HouseRules.read(Path(self.house_rules).expanduser()) if self.house_rules else None


def open_selector(
    files: SelectorFiles,
    clock: Clock,
    *,
    engine: Engine | None = None,
    requests: RequestConfig | None = None,
    health_log: HealthLog | None = None,
) -> Selector:
    """Read every file and create the selector. Raises a TactfulError that names the first unusable file."""
    encoder = SentenceEncoder()
    weights_sha256 = encoder.weights_sha256
    index = Path(files.precedents_index).expanduser() if files.precedents_index else None
    precedents = None
    if index and index.suffix == ".jsonl":
        precedents = PrecedentIndex.of(read_precedents(index), encoder, weights_sha256)
    elif index:
        precedents = PrecedentIndex.load(index)
    if precedents and precedents.weights_sha256 not in {"", weights_sha256}:
        raise PrecedentError(f"{index}: was made with another encoder; name the JSONL file of its precedents")
    calibration = None
    if files.calibration:
        needed = made_with(files, weights_sha256, engine.model_info if engine else None)
        calibration = SelectorCalibration.load(resolve_artefact_path(files.calibration), needed)
    skills = files.catalogue()
    decider = Decider(
        encoder,
        files,
        engine=engine,
        catalogue=skills,
        rules=files.rules(),
        precedents=precedents,
        calibration=calibration,
        reader=None if engine or calibration else open_reader(files.reader),
    )
    repairs = RepairRequests(skills) if requests and requests.repair.on_error_flags else None
    return Selector(decider, clock, requests, health_log, repairs)
