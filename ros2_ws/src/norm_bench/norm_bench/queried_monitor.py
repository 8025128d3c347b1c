"""The monitor in a replay: queries and episodes end windows, and in a suite the judge answers queries."""

from typing import Any

from norm_nodes.monitor_node import MonitorNode, MonitorNodeConfig
from pydantic import Field

from norm_bench.drain import DrainReporter
from norm_bench.judge_queries import JudgeQueries
from norm_core.engines.engine_pool import EngineLease
from norm_core.records.episode import Episode, Query
from norm_core.records.frame import Frame
from norm_core.records.topics import EPISODES_TOPIC, FRAMES_TOPIC, QUERIES_TOPIC
from norm_core.runtime.config import ConfigError
from norm_core.streams.watermarks import FRAMES
from norm_monitor.judge.deployment_context import PictureRules
from norm_monitor.judge.judge import Judge
from sim_replays.suites.suite_questions import QuestionConfig, SuiteAnswerer


class SuiteConfig(QuestionConfig):
    """Whether and how the judge answers a suite's queries."""

    answers_queries: bool = Field(
        default=False, description="whether the judge answers only the questions of replayed suites"
    )


class QueriedMonitorConfig(MonitorNodeConfig):
    """The parameters of the monitor, and those of a suite."""

    suite: SuiteConfig = SuiteConfig()


class QueriedMonitor(DrainReporter[MonitorNodeConfig], MonitorNode):
    """Publish flags as the robot's monitor does, or answer a suite's queries with its judge."""

    config_model = QueriedMonitorConfig
    config: QueriedMonitorConfig
    _answerer: SuiteAnswerer | None = None
    _queries: JudgeQueries | None = None

    def lease_judge(self) -> EngineLease | None:
        """Lease the judge's engine. Raises ConfigError where queries are to be answered without one."""
        engine = super().lease_judge()
        if self.config.suite.answers_queries and engine is None:
            raise ConfigError("suite.answers_queries: a judge answers queries: name it in judge.model")
        return engine

    def build_judge(self, engine: EngineLease) -> Judge | None:
        """Build the answerer of queries in place of the judge, if the suite asks for it."""
        suite, self._answerer = self.config.suite, None
        if not suite.answers_queries:
            return super().build_judge(engine)
        if suite.images:
            self.state_pictures_held_back(engine)
        self._answerer = SuiteAnswerer(engine, suite.part(QuestionConfig), self.config.judge.part(PictureRules))
        return None

    def subscribe_senses(self) -> None:
        """Subscribe to queries and episodes too."""
        super().subscribe_senses()
        self._queries = JudgeQueries(self, self._answerer, self.config.suite.window_s) if self._answerer else None
        if self._queries and FRAMES not in self.config.windows.sources:
            self.listen_to(Frame, FRAMES_TOPIC, "kept frames, for queries")
        self.listen_to(Episode, EPISODES_TOPIC, "an episode's end is an event too")
        self.listen_to(Query, QUERIES_TOPIC, "an event, whose window ends at it")

    def receive(self, record: Any) -> None:
        """Pass records on, also to the answerer of queries, which alone gets queries, their episodes and frames."""
        if self._queries:
            self._queries.receive(record)
        if not self._queries or not isinstance(record, Episode | Query | Frame):
            super().receive(record)

    def awaits_senses(self) -> bool:
        """Await none where queries are answered: a suite has no robot."""
        return super().awaits_senses() and not self._queries

    def close(self) -> None:
        """End the answers to queries, then the rest."""
        if self._queries:
            self._queries.close(self.config.judge.deadline_s)
        super().close()
