"""Ask a model alone: the suite's own prompt with the episode's pictures, and its reply read by the suite."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from pydantic import BaseModel, Field

from norm_core import __version__
from norm_core.engines.prompt import Image, Part, Prompt, Text
from norm_core.engines.reply import Generation, provenance
from norm_core.engines.request_context import Deadline
from norm_core.prompts.judge import faces_aside_text
from norm_core.prompts.transcript import pictures
from norm_core.records.episode import Answer, Episode, EpisodeEdge, Query
from norm_core.records.frame import Frame
from norm_core.records.outcome import Outcome
from norm_core.records.window import window_digest
from norm_core.runtime.config import Config
from norm_core.runtime.recent_records import RecentRecords
from norm_core.runtime.time import Clock, ReplayClock
from norm_monitor.judge.deployment_context import PictureRules
from sim_replays.runs.asked_model import AskedModel
from sim_replays.runs.items.item_bag import Record
from sim_replays.runs.random_model import RANDOM
from sim_replays.suites.replies import EXTRACTED, LENIENTLY
from sim_replays.suites.suite import suite_called

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

    def take(self, record: Record) -> Iterator[Answer]:
        """Answer a query; hold any other record of the episode."""
        if isinstance(record, Query):
            yield self._answer(record)
            return
        if isinstance(record, Episode) and record.state is EpisodeEdge.BEGIN:
            self._answers, self._skipped = {}, {}
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
        extracted = None
        if reading is None and reply.outcome is Outcome.ANSWERED and query.options and not query.several:
            extracted = self._model.extract(reply.text, query.options, deadline.from_now())
        if extracted is not None:
            reason = "; ".join(filter(None, (EXTRACTED, withheld)))
            return replace(answer, chosen=(extracted,), text=reply.text, reason=reason)
        if reading is None:
            if reply.outcome is not Outcome.ANSWERED:
                return replace(answer, reason=reply.reason)
            return replace(answer, outcome=Outcome.UNPARSED, reason=f"no answer in the reply {reply.text!r:.160}")
        reason = "; ".join(filter(None, ("" if reading.strict else LENIENTLY, withheld)))
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
