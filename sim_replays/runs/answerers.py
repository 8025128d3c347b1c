"""Who answers a suite's questions: the selector about actions, the judge about talk; here, or as a node by name."""

from collections.abc import Mapping
from typing import Any, Protocol

from pydantic import Field

from action_selector.recall import Recall, answered
from action_selector.selector_factory import SelectorFiles, open_selector
from norm_core.engines.engine_factory import open_engine_by_name
from norm_core.engines.sentences.sentence_encoder import MODEL, SentenceEncoder
from norm_core.records.episode import Answer, Episode, Query
from norm_core.records.frame import Frame
from norm_core.records.speech import Utterance
from norm_core.runtime.recent_records import Recent
from norm_core.runtime.time import Clock
from norm_monitor.judge.suite_questions import QuestionConfig, Questioner

WINDOW_S = 15.0


class JudgeFiles(QuestionConfig):
    """The judge's settings and its model; the encoder answers where no other is named."""

    model: str = Field(default=MODEL, description="name of the model that is asked")


Files = SelectorFiles | JudgeFiles


class Answering(Protocol):
    """Takes what an episode holds, in its order, and answers its queries."""

    def take(self, record: Frame | Utterance | Episode) -> None: ...

    def answer(self, query: Query) -> Answer: ...


class SelectorAnswering:
    """The selector's node's own logic."""

    def __init__(self, files: SelectorFiles, clock: Clock) -> None:
        encoder = SentenceEncoder()
        engine = open_engine_by_name(files.model, clock) if files.model else None
        self._selector = open_selector(files, encoder, encoder.weights_sha256, engine)
        self._recall, self._clock = Recall(WINDOW_S), clock

    def take(self, record: Frame | Utterance | Episode) -> None:
        self._recall.take(record)

    def answer(self, query: Query) -> Answer:
        return answered(self._selector, self._recall, query, self._clock)[1]


class JudgeAnswering:
    """The monitor's node's own logic where it answers queries."""

    def __init__(self, files: JudgeFiles, clock: Clock) -> None:
        self._questioner = Questioner(open_engine_by_name(files.model, clock), files)
        self._recent, self._clock = Recent(files.query_window_s), clock

    def take(self, record: Frame | Utterance | Episode) -> None:
        self._recent.take(record)

    def answer(self, query: Query) -> Answer:
        return self._questioner.answer(query, *self._questioner.asked(query, self._recent, self._clock))


def open_answering(files: Files, clock: Clock) -> Answering:
    """Opens the model, which may take long."""
    return JudgeAnswering(files, clock) if isinstance(files, JudgeFiles) else SelectorAnswering(files, clock)


def node_of(files: Files) -> tuple[str, Mapping[str, Any]]:
    """The node that answers over DDS, and its parameters."""
    given = files.model_dump(mode="json", exclude_defaults=True)
    if isinstance(files, JudgeFiles):
        return "monitor", {**given, "model": files.model, "answers_queries": True}
    return "selector", {**given, "window_s": WINDOW_S}
