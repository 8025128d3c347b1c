"""Answer a suite's questions: the selector about actions, the judge about talk; in process or as a node."""

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from pydantic import Field

from action_selector.selector_factory import SelectorFiles, open_selector
from norm_core.engines.engine import Engine
from norm_core.engines.engine_factory import open_engine_by_name
from norm_core.engines.sentences.sentence_encoder import MODEL
from norm_core.records.episode import Answer, Query
from norm_core.runtime.config import Config
from norm_core.runtime.recent_records import RecentRecords
from norm_core.runtime.time import Clock
from norm_monitor.judge.deployment_context import PictureRules
from norm_monitor.judge.suite_questions import QuestionConfig, SuiteAnswerer
from sim_replays.runs.items.item_bag import Record


class JudgeAnswererConfig(Config):
    """The judge's model and how it answers; the encoder answers where no other is named."""

    model: str = Field(default=MODEL, description="name of the model that is asked")
    suite: QuestionConfig = QuestionConfig()
    rules: PictureRules = PictureRules()


AnswererConfig = SelectorFiles | JudgeAnswererConfig


class Answerer(Protocol):
    """Processes an episode's records in order, and answers its queries."""

    def take(self, record: Record) -> Iterator[Answer]:
        """Yield the answers that are known after this record."""


class SelectorAnswerer:
    """The selector."""

    def __init__(self, files: SelectorFiles, clock: Clock) -> None:
        """Load the selector's files, and the engine if a model is named."""
        engine = open_engine_by_name(files.model, clock) if files.model else None
        self._selector = open_selector(files, clock, engine=engine)

    def take(self, record: Record) -> Iterator[Answer]:
        """Decide the queries that are due after this record; a dropped one has no answer."""
        for due in self._selector.take(record):
            if answer := self._selector.decide(due).answer:
                yield answer


class JudgeAnswerer:
    """The judge, with the logic by which the monitor node answers queries."""

    def __init__(self, files: JudgeAnswererConfig, clock: Clock, engine: Engine | None = None) -> None:
        """Open the model that the files name, unless an engine is given."""
        engine = engine or open_engine_by_name(files.model, clock)
        self._questioner = SuiteAnswerer(engine, files.suite, files.rules)
        self._recent, self._clock = RecentRecords(files.suite.window_s), clock

    def take(self, record: Record) -> Iterator[Answer]:
        """Answer a query from the records before it; hold any other record."""
        if isinstance(record, Query):
            yield self._questioner.answer(record, *self._questioner.asked(record, self._recent, self._clock))
        else:
            self._recent.take(record)


def open_answerer(files: AnswererConfig, clock: Clock) -> Answerer:
    """Opens the model, which may take long."""
    return JudgeAnswerer(files, clock) if isinstance(files, JudgeAnswererConfig) else SelectorAnswerer(files, clock)


def node_of(files: AnswererConfig) -> tuple[str, Mapping[str, Any]]:
    """The node that answers over DDS, and its parameters."""
    if isinstance(files, JudgeAnswererConfig):
        suite = files.suite.model_copy(update={"answers_queries": True})
        return "monitor", {
            "judge": {"model": files.model, **files.rules.model_dump(mode="json", exclude_defaults=True)},
            "suite": suite.model_dump(mode="json", exclude_defaults=True),
        }
    return "selector", files.model_dump(mode="json", exclude_defaults=True)
