"""The selector role: records and requests in, decisions and answers out."""

import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pydantic import Field

from action_selector.candidates import SkillCatalogue
from action_selector.decider import Decider
from action_selector.house_rules import HouseRules
from action_selector.queries import TASKS, convert_query, extract_answer
from action_selector.request import Request
from action_selector.request_limits import shorten
from action_selector.retrieval import PrecedentIndex, read_precedents
from action_selector.selector_config import RequestConfig, SelectorConfig
from norm_core.engines.engine import Engine
from norm_core.engines.request_context import Deadline
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.engines.talk_reader import open_reader
from norm_core.health.health_log import HealthLog
from norm_core.models.reader_folder import AUTO
from norm_core.records.decision import Decision
from norm_core.records.episode import Answer, Episode, Query
from norm_core.records.frame import Frame
from norm_core.records.outcome import Outcome
from norm_core.records.presence import Presence
from norm_core.records.record import record
from norm_core.records.speech import Utterance
from norm_core.records.status import Health
from norm_core.runtime.config import LIVE_FILE, NAMES_FILE
from norm_core.runtime.time import Clock, ReplayClock, s_to_ns
from norm_core.streams.recent_records import RecentRecords
from norm_core.streams.watermarks import HeldQueries

SelectorRecord = Frame | Utterance | Presence | Episode | Query

PICTURES_HELD_BACK = (
    "selector: the model runs on another machine, so it is not shown images; "
    "set pictures_may_leave to true to send them"
)
# The health log names a fault of the reader for so long.
_READER_ISSUE_S = 60.0


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
    ) -> None:
        """Report outcomes and problems to the health log."""
        self._decider = decider
        self._clock = clock
        self._config = config or RequestConfig()
        self._health_log = health_log or HealthLog()
        self._recent = RecentRecords(self._config.window_s)
        self._held = HeldQueries(self._config.sources, s_to_ns(self._config.frames_every_s))

    def reconfigure(
        self, config: SelectorConfig, catalogue: SkillCatalogue | None = None, rules: HouseRules | None = None
    ) -> None:
        """Decide every further request by these settings, skills and rules, and by those alone."""
        self._decider = self._decider.with_settings(config, catalogue, rules)

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
        if isinstance(record, Episode):
            # The edge of an episode closes the queries before it.
            due = self.end_input()
            self._recent.add(record)
            return due
        if not isinstance(record, Query):
            self._recent.add(record)
        if isinstance(record, Frame) and not self._decider.shows_pictures:
            self._health_log.raise_issue("pictures", Health.DEGRADED, PICTURES_HELD_BACK)
        return [self._convert_due_query(query) for query in self._held.add(record)]

    def end_input(self) -> list[DueRequest]:
        """Return the waiting queries, because no more records will come."""
        return [self._convert_due_query(query) for query in self._held.release()]

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
        # `reconfigure` may replace the decider meanwhile.
        decider = self._decider
        try:
            decided = decider.decide(due.request, due.deadline, on_step)
        except MemoryError:
            return self._fail(due, "there is not enough memory; choose a smaller model or reader")
        except (RuntimeError, ValueError) as error:
            trace = traceback.format_exc().rstrip()
            return self._fail(due, f"{type(error).__name__}: {error}", f"please report this:\n{trace}")
        if due.deadline.is_cancelled:
            # The caller that cancelled the request has ended and counted it.
            return Recommendation(decision=decided.decision)
        if decided.reader_fault:
            self._health_log.count("decisions_without_reader")
            self._health_log.raise_issue(
                "reader", Health.DEGRADED, f"selector: {decided.reader_fault}", lasting_s=_READER_ISSUE_S
            )
        recommendation = self._recommend(due, decided.decision)
        reason = decider.explain_withheld(due.request)
        if not reason or decided.decision.outcome is Outcome.INVALID:
            return recommendation
        self._health_log.count("decisions_without_pictures")
        answer = recommendation.answer and replace(recommendation.answer, reason=recommendation.answer.reason or reason)
        return replace(recommendation, answer=answer)

    def decline(self, due: DueRequest, reason: str, outcome: Outcome = Outcome.FAILED) -> Recommendation:
        """Return a decision that chooses nothing, with the reason."""
        now_ns, deadline_ns = due.deadline.clock.now_ns(), due.deadline.deadline_ns
        decision = Decision(
            stamp_ns=now_ns,
            decision_id=f"{due.request.query_id}@{now_ns}",
            query_id=due.request.query_id,
            situation=shorten(due.request.situation),
            question=shorten(due.request.question),
            outcome=outcome,
            explanation=reason,
            deadline_ns=deadline_ns,
            decided_ns=now_ns,
        )
        return self._recommend(due, decision)

    def _fail(self, due: DueRequest, reason: str, remedy: str = "") -> Recommendation:
        """Report a decision that failed, and return one that chooses nothing."""
        text = "; ".join(filter(None, (f"selector: a decision failed: {reason}", remedy)))
        self._health_log.raise_issue("selector", Health.DEGRADED, text)
        return self.decline(due, reason)

    def _convert_due_query(self, query: Query) -> DueRequest:
        """Convert a query to a request. Without a deadline, the clock stays at the stamp of the query, for replays."""
        is_live = query.deadline_ns is not None
        clock = self._clock if is_live else ReplayClock(query.stamp_ns)
        window = self._recent.window(query.stamp_ns, clock.now_ns())
        request = convert_query(query, window, source=query.frame_id or query.episode_id)
        return DueRequest(request=request, deadline=Deadline(clock, query.deadline_ns), query=query)

    def _recommend(self, due: DueRequest, decision: Decision) -> Recommendation:
        self._health_log.count(f"decisions_{decision.outcome}")
        return Recommendation(decision=decision, answer=extract_answer(decision, due.query) if due.query else None)


class SelectorFiles(SelectorConfig):
    """The settings of the selector and the paths of its files. An empty path means no file."""

    model: str = Field(default="", description="model to ask; empty for none")
    reader: str = Field(
        default=AUTO,
        description="talk reader for candidates if there is no model, by size or folder; auto for the largest that is "
        "set up, or none",
    )
    skills: str = Field(
        default="", description="YAML catalogue of the robot's skills; empty for none", json_schema_extra=LIVE_FILE
    )
    house_rules: str = Field(
        default="",
        description="YAML file of house rules; empty for none; set it again after you edit the file",
        json_schema_extra=LIVE_FILE,
    )
    precedents_index: str = Field(
        default="",
        description="JSONL file of precedents; empty for none",
        json_schema_extra=NAMES_FILE,
    )

    def read_catalogue(self) -> SkillCatalogue | None:
        """Read the skills. Raises ConfigError if the file is unusable."""
        return SkillCatalogue.read(Path(self.skills).expanduser()) if self.skills else None

    def read_rules(self) -> HouseRules | None:
        """Read the house rules. Raises ConfigError if the file is unusable."""
        return HouseRules.read(Path(self.house_rules).expanduser()) if self.house_rules else None


def open_selector(
    files: SelectorFiles,
    clock: Clock,
    *,
    engine: Engine | None = None,
    requests: RequestConfig | None = None,
    health_log: HealthLog | None = None,
) -> Selector:
    """Read every file and create the selector. Raises TactfulError if a file is unusable."""
    encoder = SentenceEncoder()
    precedents: PrecedentIndex | None = None
    if files.precedents_index:
        precedents = PrecedentIndex.build(read_precedents(Path(files.precedents_index).expanduser()), encoder)
    decider = Decider(
        encoder,
        files,
        engine=engine,
        catalogue=files.read_catalogue(),
        rules=files.read_rules(),
        precedents=precedents,
        reader=None if engine else open_reader(files.reader),
    )
    return Selector(decider, clock, requests, health_log)
