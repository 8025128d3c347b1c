"""Deliver a bag's items to the selector, the judge or a model alone and collect answers, here or over DDS."""

import json
import re
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, as_completed, wait
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Protocol, cast

from pydantic import BaseModel, Field

from action_selector.selector import Recommendation, SelectorFiles, open_selector
from norm_core import __version__
from norm_core.engines.engine import Engine
from norm_core.engines.prompt import Image, Part, Prompt, Text
from norm_core.engines.reply import Generation, provenance
from norm_core.engines.request_context import Deadline
from norm_core.engines.sentences.sentence_encoder import MODEL
from norm_core.records.decision import Decision
from norm_core.records.episode import Answer, Episode, EpisodeEdge, Query
from norm_core.records.frame import Frame
from norm_core.records.json_codec import from_plain
from norm_core.records.outcome import Outcome
from norm_core.records.record import record
from norm_core.records.window import window_digest
from norm_core.runtime.config import Config
from norm_core.runtime.recent_records import RecentRecords
from norm_core.runtime.time import Clock, ReplayClock, WallClock
from norm_monitor.judge.deployment_context import PictureRules
from norm_monitor.judge.questions import faces_aside_text
from norm_monitor.judge.transcript import pictures
from norm_monitor.replay.node_driver import TransportError, lines_of
from norm_monitor.replay.node_process import NodeProcess, claimed_domain
from sim_replays.items.item_bag import Record, episodes
from sim_replays.items.target import ReplyReading, SuiteError
from sim_replays.runs.asked_model import AskedModel, AskedRequest, ModelOptions, open_asked_models
from sim_replays.runs.random_model import RANDOM
from sim_replays.suites.suite import suite_called
from sim_replays.suites.suite_questions import QuestionConfig, SuiteAnswerer

WHOLE_S = 3600.0
# In a prompt: the option that was chosen in an earlier question of the same episode.
CHOSEN = re.compile(r"\{chosen (\w+)\}")


class BareAnswererConfig(Config):
    """A model asked alone, as a suite's paper asks it."""

    suite: str = Field(description="name or folder of the suite, which reads the replies")
    model: str = Field(description="name of the model that is asked")
    tokens: int = Field(default=1024, ge=1, le=32768, description="the longest reply")
    rules: PictureRules = PictureRules()


class BareAnswerer:
    """Answer each query from the model's reply to exactly the query's prompt and its episode's pictures."""

    def __init__(self, config: BareAnswererConfig, clock: Clock, model: AskedModel) -> None:
        self._config, self._clock, self._model = config, clock, model
        self._suite = suite_called(config.suite)
        self._config_sha256 = config.sha256()
        self._recent = RecentRecords(WHOLE_S)
        self._answers: dict[str, tuple[Query, Answer]] = {}
        self._skipped: dict[str, Query] = {}
        self.readings: dict[str, ReplyReading] = {}  # of this episode's replies without the asked form, by query

    def take(self, record: Record) -> Iterator[Answer]:
        """Answer a query; hold any other record of the episode."""
        if isinstance(record, Query):
            yield self._answer(record)
            return
        if isinstance(record, Episode) and record.state is EpisodeEdge.BEGIN:
            self._answers, self._skipped, self.readings = {}, {}, {}
        self._recent.take(record)

    def skip(self, query: Query) -> None:
        """Hold a query that was answered before, because a later prompt may name its answer."""
        self._skipped[query.task] = query

    def _answer(self, query: Query) -> Answer:
        if query.task not in self._answers:
            self._answers[query.task] = query, self._read(query)
        return self._answers[query.task][1]

    def _read(self, query: Query) -> Answer:
        answer = Answer(
            stamp_ns=query.stamp_ns,
            query_id=query.query_id,
            episode_id=query.episode_id,
            task=query.task,
            outcome=Outcome.INVALID,
        )
        text = query.question
        for task in CHOSEN.findall(text):
            earlier = self._skipped.get(task) or self._answers[task][0]
            chosen = self._answer(earlier)
            if chosen.outcome is not Outcome.ANSWERED:
                reason = f"its prompt states the answer to {task}, which is {chosen.outcome}: {chosen.reason}"
                return replace(answer, outcome=chosen.outcome, reason=reason)
            text = text.replace(f"{{chosen {task}}}", earlier.options[chosen.chosen[0]] or "None")
        window = self._recent.within_episode(query.stamp_ns)
        images, withheld = self._images(query, window.frames)
        if window.frames and not images and not self._asks_words_alone(query):
            return replace(answer, reason=withheld)
        version = f"{self._suite.name}-{query.task}-bare"
        if self._model.model_info.engine == RANDOM:  # which draws for each question, also where prompts are equal
            version = f"{version}-{query.query_id}"
        prompt = Prompt(version=version, parts=(*images, Text(text=text)))
        deadline = Deadline(
            ReplayClock(query.stamp_ns) if query.deadline_ns is None else self._clock, query.deadline_ns
        )
        reading, seed = None, 0
        for seed in range(self._suite.tries):
            reply: Generation[BaseModel] = self._model.generate(
                prompt, max_tokens=self._config.tokens, seed=seed, deadline=deadline.from_now()
            )
            reading = self._suite.forms[query.style](query, reply.text) if reply.outcome is Outcome.ANSWERED else None
            if reading or reply.outcome not in {Outcome.ANSWERED, Outcome.UNPARSED}:
                break
        answer = replace(
            answer,
            outcome=reply.outcome,
            provenance=replace(
                provenance(self._model.model_info, reply, window_digest=window_digest(window), seed=seed),
                config_sha256=self._config_sha256,
                software_version=__version__,
            ),
        )
        if reading is None:
            if reply.outcome is not Outcome.ANSWERED:
                return replace(answer, reason=reply.reason)
            return replace(answer, outcome=Outcome.UNPARSED, reason=f"no answer in the reply {reply.text!r:.160}")
        if not reading.strict:
            self.readings[query.query_id] = ReplyReading.LENIENT
        reason = "; ".join(filter(None, (self.readings.get(query.query_id), withheld)))
        return replace(answer, chosen=reading.chosen, text=reading.text or reply.text, reason=reason)

    def _asks_words_alone(self, query: Query) -> bool:
        """Whether a question about emotions may not be asked over pictures."""
        allowed = self._config.rules.deployment_context.allows_emotions_from_pictures
        return query.task in self._suite.about_emotions and not allowed

    def _images(self, query: Query, frames: Sequence[Frame]) -> tuple[tuple[Part, ...], str]:
        """Return the pictures of a prompt, and what was withheld and why."""
        rules, model_info = self._config.rules, self._model.model_info
        if not frames:
            return (), ""
        if self._asks_words_alone(query):
            context = rules.deployment_context
            return (), f"about emotions without pictures, as the deployment context {context} does not allow it"
        most = model_info.most_images(rules.pictures_may_leave, len(frames)) or 0
        if not most:
            cause = "does not run on this machine: add --pictures-may-leave"
            if model_info.most_images(pictures_may_leave=True, wanted=1) == 0:
                cause = "takes no pictures: choose a setting without them"
            return (), f"its pictures cannot be shown, as the model {model_info.model} {cause}"
        shown = tuple(part for part in pictures(tuple(frames), most, 0) if isinstance(part, Image))
        withheld = f"{most} of {len(frames)} pictures, as the model takes no more" if most < len(frames) else ""
        if self._suite.answered_by == "judge" and not rules.deployment_context.allows_emotions_from_pictures:
            locale = "zh" if re.search("[\u4e00-\u9fff]", query.question) else "en"
            return (faces_aside_text(locale), *shown), withheld
        return shown, withheld


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

    def __init__(self, files: SelectorFiles, clock: Clock, model: Engine | None = None) -> None:
        """Load the selector's files; `model` is the one that they name, if any."""
        self._selector = open_selector(files, clock, engine=model)

    def take(self, record: Record) -> Iterator[Recommendation]:
        """Decide the queries that are due after this record; a dropped one has no answer."""
        yield from map(self._selector.decide, self._selector.take(record))


class JudgeAnswerer:
    """The judge, with the logic by which the monitor node answers queries."""

    def __init__(self, files: JudgeAnswererConfig, clock: Clock, model: Engine) -> None:
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
        return "monitor", {
            "judge": {"model": files.model, **files.rules.model_dump(mode="json", exclude_defaults=True)},
            "suite": {"answers_queries": True, **files.suite.model_dump(mode="json", exclude_defaults=True)},
        }
    return "selector", files.model_dump(mode="json", exclude_defaults=True)


__all__ = ["Dds", "Direct", "TimedAnswer", "Transport", "TransportError", "open_answerer"]

MODEL_LOADED_WITHIN_S = 600.0


@record
class TimedAnswer:
    """One answer, its wall-clock duration, and the requests to the model that it took.

    `by_text` tells that an option was read from a reply's words and not from log-probabilities, `reading` that a reply
    had not the asked form. The selector's decision is there unless the answer came over DDS.
    """

    answer: Answer
    took_s: float
    by_text: bool = False
    reading: ReplyReading | None = None
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
    ) -> None:
        """Open the answerer and the model that the files name, unless an answerer is given."""
        clock, options = clock or WallClock(), options or ModelOptions()
        self._asks_more = True
        self._answering: list[tuple[Answerer, AskedModel | None]]
        if answerer or not files.model:
            self._answering = [(answerer or open_answerer(files, clock, None), None)]
        else:
            models = open_asked_models(files.model, clock, options)
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
            for reply in answerer.take(entry):
                answer, decision = (reply, None) if isinstance(reply, Answer) else (reply.answer, reply.decision)
                if not answer:
                    continue
                requests = model.end_question(answer.query_id) if model else ()
                yield TimedAnswer(
                    answer=answer,
                    took_s=time.perf_counter() - began_s,
                    by_text=any(request.is_read_from_text for request in requests),
                    reading=answerer.readings.get(answer.query_id) if isinstance(answerer, BareAnswerer) else None,
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
            player = [sys.executable, "-m", "norm_bench.item_player"]
            command = [*player, str(bag), str(folder / "wanted.json"), self._node]
            for line in lines_of(command, domain_id, [node]):
                yield TimedAnswer(answer=from_plain(Answer, line["answer"]), took_s=line["took_s"])
