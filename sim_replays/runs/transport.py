"""Deliver a bag's items to the selector or the judge and collect answers, in this process or over DDS."""

import json
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, as_completed, wait
from contextlib import ExitStack
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Protocol, cast

from pydantic import Field

from action_selector.selector import Recommendation
from action_selector.selector_factory import SelectorFiles, open_selector
from norm_core.engines.backend import AnsweringModel
from norm_core.engines.openai.batch_server import BatchServer
from norm_core.engines.sentences.sentence_encoder import MODEL
from norm_core.records.decision import Decision
from norm_core.records.episode import Answer, Query
from norm_core.records.json_codec import from_json
from norm_core.records.record import record
from norm_core.runtime.config import Config
from norm_core.runtime.recent_records import RecentRecords
from norm_core.runtime.time import Clock, WallClock
from norm_monitor.judge.deployment_context import PictureRules
from norm_monitor.judge.suite_questions import QuestionConfig, SuiteAnswerer
from sim_replays.drivers.node_driver import TransportError, lines_of
from sim_replays.drivers.node_process import NodeProcess, claimed_domain
from sim_replays.runs.asked_model import AskedModel, AskedRequest, ModelOptions, open_asked_models
from sim_replays.runs.bare_answerer import BareAnswerer, BareAnswererConfig
from sim_replays.runs.items.item_bag import Record, episodes
from sim_replays.suites.target import SuiteError


class JudgeAnswererConfig(Config):
    """The judge's model and how it answers; the encoder answers where no other is named."""

    model: str = Field(default=MODEL, description="name of the model that is asked")
    suite: QuestionConfig = QuestionConfig()
    rules: PictureRules = PictureRules()


AnswererConfig = SelectorFiles | JudgeAnswererConfig | BareAnswererConfig


class Answerer(Protocol):
    """Processes an episode's records in order, and answers its queries."""

    def take(self, record: Record) -> Iterator[Answer | Recommendation]:
        """Yield the answers that are known after this record."""


class SelectorAnswerer:
    """The selector."""

    def __init__(self, files: SelectorFiles, clock: Clock, model: AnsweringModel | None = None) -> None:
        """Load the selector's files; `model` is the one that they name, if any."""
        self._selector = open_selector(files, clock, engine=model)

    def take(self, record: Record) -> Iterator[Recommendation]:
        """Decide the queries that are due after this record; a dropped one has no answer."""
        yield from map(self._selector.decide, self._selector.take(record))


class JudgeAnswerer:
    """The judge, with the logic by which the monitor node answers queries."""

    def __init__(self, files: JudgeAnswererConfig, clock: Clock, model: AnsweringModel) -> None:
        self._questioner = SuiteAnswerer(model, files.suite, files.rules)
        self._recent, self._clock = RecentRecords(files.suite.window_s), clock

    def take(self, record: Record) -> Iterator[Answer]:
        """Answer a query from the records before it; hold any other record."""
        if isinstance(record, Query):
            yield self._questioner.answer(record, *self._questioner.asked(record, self._recent, self._clock))
        else:
            self._recent.take(record)


def open_answerer(files: AnswererConfig, clock: Clock, model: AskedModel | None) -> Answerer:
    """Create the answerer that the files name; `model` is None where the selector has none."""
    if isinstance(files, BareAnswererConfig):
        return BareAnswerer(files, clock, cast(AskedModel, model))
    if isinstance(files, JudgeAnswererConfig):
        return JudgeAnswerer(files, clock, cast(AskedModel, model))
    return SelectorAnswerer(files, clock, model)


def node_of(files: AnswererConfig) -> tuple[str, Mapping[str, Any]]:
    """The node that answers over DDS, and its parameters. Raises SuiteError for a model alone."""
    if isinstance(files, BareAnswererConfig):
        raise SuiteError("--bare: asks the model alone, and no node is in it; add --transport direct")
    if isinstance(files, JudgeAnswererConfig):
        suite = files.suite.model_copy(update={"answers_queries": True})
        return "monitor", {
            "judge": {"model": files.model, **files.rules.model_dump(mode="json", exclude_defaults=True)},
            "suite": suite.model_dump(mode="json", exclude_defaults=True),
        }
    return "selector", files.model_dump(mode="json", exclude_defaults=True)


__all__ = ["Dds", "Direct", "TimedAnswer", "Transport", "TransportError", "open_answerer"]

MODEL_LOADED_WITHIN_S = 600.0


@record
class TimedAnswer:
    """One answer, its wall-clock duration, and the requests to the model that it took.

    `by_text` tells that an option was read from a reply's words and not from log-probabilities. The selector's decision
    is there unless the answer came over DDS.
    """

    answer: Answer
    took_s: float
    by_text: bool = False
    requests: tuple[AskedRequest, ...] = ()
    decision: Decision | None = None


class Transport(Protocol):
    """Play a bag, and yield the answers as they come."""

    def play(self, bag: Path, wanted: Collection[str]) -> Iterator[TimedAnswer]:
        """Ask only the queries with these ids. Skips episodes without any of them."""
        ...


class Direct:
    """Run the node's own logic in this process, message by message, without DDS."""

    def __init__(
        self,
        files: AnswererConfig,
        clock: Clock | None = None,
        *,
        answerer: Answerer | None = None,
        options: ModelOptions | None = None,
        batch: BatchServer | None = None,
    ) -> None:
        """Open the answerer and the model that the files name, unless an answerer is given."""
        clock, options = clock or WallClock(), options or ModelOptions()
        self._asks_more = True
        self._answering: list[tuple[Answerer, AskedModel | None]]
        if answerer or not files.model:
            self._answering = [(answerer or open_answerer(files, clock, None), None)]
        else:
            models = open_asked_models(files.model, clock, options, batch)
            self._answering = [(open_answerer(files, clock, model), model) for model in models]

    def ask_no_more(self) -> None:
        """Let `play` end after the episodes that are under way."""
        self._asks_more = False

    def play(
        self, bag: Path, wanted: Collection[str], spans_ns: Sequence[tuple[int, int]] = ()
    ) -> Iterator[TimedAnswer]:
        """Yield the answers to the wanted queries, of parts of the bag where `spans_ns` names them.

        Episodes without a wanted query are left out.
        """
        self._asks_more = True
        asked = (episode for episode in episodes(bag, spans_ns) if any(_is_asked(entry, wanted) for entry in episode))
        if len(self._answering) == 1:
            for episode in asked:
                yield from self._answers(episode, wanted, *self._answering[0])
                if not self._asks_more:
                    return
            return
        free: SimpleQueue[tuple[Answerer, AskedModel | None]] = SimpleQueue()
        for answering in self._answering:
            free.put(answering)

        def answers(episode: Sequence[Record]) -> list[TimedAnswer]:
            answering = free.get()
            try:
                return list(self._answers(episode, wanted, *answering))
            finally:
                free.put(answering)

        with ThreadPoolExecutor(len(self._answering)) as pool:
            running: set[Future[list[TimedAnswer]]] = set()
            try:
                for episode in asked:
                    running.add(pool.submit(answers, episode))
                    if len(running) >= len(self._answering):
                        done, running = wait(running, return_when=FIRST_COMPLETED)
                        for future in done:
                            yield from future.result()
                    if not self._asks_more:
                        break
                for future in as_completed(running):
                    yield from future.result()
            finally:  # where the run ends early, nothing goes on
                for _, model in self._answering:
                    if model and any(not future.done() for future in running):
                        model.cancel()

    def _answers(
        self, episode: Sequence[Record], wanted: Collection[str], answerer: Answerer, model: AskedModel | None
    ) -> Iterator[TimedAnswer]:
        for entry in episode:
            if isinstance(entry, Query) and entry.query_id not in wanted:
                if isinstance(answerer, BareAnswerer):
                    answerer.skip(entry)
                continue
            began_s = time.perf_counter()
            for given in answerer.take(entry):
                answer, decision = (given, None) if isinstance(given, Answer) else (given.answer, given.decision)
                if not answer:
                    continue
                requests = model.end_question(answer.query_id) if model else ()
                yield TimedAnswer(
                    answer=answer,
                    took_s=time.perf_counter() - began_s,
                    by_text=any(request.is_read_from_text for request in requests),
                    requests=requests,
                    decision=decision,
                )


def _is_asked(entry: Record, wanted: Collection[str]) -> bool:
    return isinstance(entry, Query) and entry.query_id in wanted


class Dds:
    """Run the answering node in one process, and a player of the bag in another.

    The player waits for every acknowledgement and answer.
    """

    def __init__(self, files: AnswererConfig, domain_id: int | None = None) -> None:
        self._node, self._parameters = node_of(files)
        self._domain_id = domain_id

    def play(self, bag: Path, wanted: Collection[str]) -> Iterator[TimedAnswer]:
        """Yield the answers to the wanted queries as the node publishes them. Raises TransportError."""
        with ExitStack() as stack:
            domain_id = self._domain_id
            if domain_id is None:
                domain_id = stack.enter_context(claimed_domain())
            parameters = {self._node: self._parameters}
            node = stack.enter_context(
                NodeProcess([self._node], parameters, domain_id, start_timeout_s=MODEL_LOADED_WITHIN_S)
            )
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tactful-")))
            (folder / "wanted.json").write_text(json.dumps(sorted(wanted)), encoding="utf-8")
            player = [sys.executable, "-m", "norm_nodes.item_player"]
            command = [*player, str(bag), str(folder / "wanted.json"), self._node]
            for line in lines_of(command, domain_id, [node]):
                yield TimedAnswer(answer=from_json(Answer, json.dumps(line["answer"])), took_s=line["took_s"])
