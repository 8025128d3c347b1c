"""Ask the judge's model the questions of a replayed suite: HSRI and VideoNorms.

Identical questions have the live judge's prompts. Options are scored, and texts are generated.
"""

from dataclasses import replace

from pydantic import BaseModel, Field

from norm_core import __version__
from norm_core.engines.engine import Engine
from norm_core.engines.prompt import Prompt, Question, Text
from norm_core.engines.reply import Scores, make_provenance
from norm_core.engines.request_context import Deadline
from norm_core.records.episode import Answer, Query
from norm_core.records.flag import Attribute
from norm_core.records.json_codec import sha256_of
from norm_core.records.outcome import Outcome
from norm_core.records.provenance import Provenance
from norm_core.records.window import Window, window_digest
from norm_core.runtime.config import Config
from norm_core.runtime.time import Clock, ReplayClock
from norm_core.streams.recent_records import RecentRecords
from norm_monitor.judge import questions as judge
from norm_monitor.judge.deployment_context import PictureRules
from norm_monitor.judge.excerpt import Excerpt
from norm_monitor.judge.judge import excerpt_prompt
from sim_replays.suites import clip_norms, segments

CHOICES = ("pre", "post", "rationale", "correction")
SEGMENT_TASKS = ("error3", "error2", "attributes", "multi", *CHOICES)
NORM_TASKS = ("adherence", "evidence", "norm")
TASKS = (*SEGMENT_TASKS, *NORM_TASKS)
CULTURES = {"us": "en", "cn": "zh"}
_LEAST_ATTRIBUTE = 0.5
_EMOTIONS = list(Attribute).index(Attribute.EMOTIONS)


class QuestionConfig(Config):
    """How to answer the questions of replayed suites."""

    window_s: float = Field(
        default=15.0, gt=0, le=3600, description="how much of an episode, up to the question, the question is about"
    )
    images: int = Field(default=16, ge=0, le=64, description="the most pictures with a question")
    tokens: int = Field(default=200, ge=1, le=2000, description="the longest generated text")
    tries: int = Field(default=3, ge=1, le=10, description="the most attempts to get a valid text")


class NormEvidence(BaseModel):
    """What shows that a norm is kept or broken."""

    verbal: str = Field(min_length=1)
    nonverbal: str = Field(min_length=1)


class StatedNorm(BaseModel):
    """A norm in words."""

    norm: str = Field(min_length=1)


class SuiteAnswerer:
    """Answer one query at a time, from its own episode's window alone.

    If the context forbids inferring emotions from pictures, questions about emotions get words only, and all other
    questions tell the model to ignore feelings in faces. The answer's reason names what was withheld.
    """

    def __init__(self, model: Engine, config: QuestionConfig, rules: PictureRules | None = None) -> None:
        self._model, self._config, self._rules = model, config, rules or PictureRules()
        self._config_sha256 = sha256_of((config.sha256(), self._rules.sha256()))

    def asked(self, query: Query, recent: RecentRecords, clock: Clock) -> tuple[Window, Deadline]:
        """Return the window and deadline of a query; without a deadline the clock stands still at its stamp."""
        deadline = Deadline(ReplayClock(query.stamp_ns) if query.deadline_ns is None else clock, query.deadline_ns)
        return recent.gather_episode(query.stamp_ns), deadline

    def answer(self, query: Query, window: Window, deadline: Deadline) -> Answer:
        """Answer any query; a choice is an index into the task's options."""
        if fault := _fault(query):
            return self._told(query, window, deadline, Outcome.INVALID, reason=fault)
        locale = CULTURES[query.style] if query.task in NORM_TASKS else "en"
        prefix = self._prefix(query, window, locale)
        if query.task == "norm":
            prompt = clip_norms.specific_norm(prefix, query.question, locale)
            return self._written(query, window, deadline, prompt, StatedNorm)
        answer = self._scored(query, window, deadline, locale)
        if query.task != "evidence" or answer.outcome is not Outcome.ANSWERED:
            return answer
        is_kept = answer.chosen == (0,)
        written = self._written(
            query, window, deadline, clip_norms.evidence(prefix, query.question, is_kept, locale), NormEvidence
        )
        if written.outcome is not Outcome.ANSWERED:
            return written
        return replace(written, chosen=answer.chosen, probabilities=answer.probabilities)

    def _scored(self, query: Query, window: Window, deadline: Deadline, locale: str) -> Answer:
        scores = self._scores(query, window, deadline, locale)
        made_by = self._made_by(window, scores)
        if failed := next((score for score in scores if score.outcome is not Outcome.ANSWERED), None):
            return self._told(query, window, deadline, failed.outcome, reason=failed.reason, made_by=made_by)
        if query.task == "attributes":
            probabilities = tuple(score.probabilities[0] for score in scores)
            chosen = tuple(place for place, p in enumerate(probabilities) if p >= _LEAST_ATTRIBUTE)
            # As in the live judge, choose the likeliest attribute if none is likely.
            chosen = chosen or (probabilities.index(max(probabilities)),)
        else:
            probabilities, chosen = scores[0].probabilities, (scores[0].best or 0,)
        return self._told(query, window, deadline, chosen=chosen, probabilities=probabilities, made_by=made_by)

    def _scores(self, query: Query, window: Window, deadline: Deadline, locale: str) -> list[Scores]:
        """Return the scores of a query's questions, in order."""
        questions = _questions(query, locale)
        apart = _about_emotions(query) if self._leaves_faces_aside(window) else ()
        scores: dict[int, Scores] = {}
        for places in (tuple(place for place in range(len(questions)) if place not in apart), apart):
            if places:
                prefix = self._prefix(query, window, locale, sighted=places != apart)
                asked = self._model.ask_many(prefix, [questions[place] for place in places], deadline.from_now())
                scores |= dict(zip(places, asked, strict=True))
        return [scores[place] for place in range(len(questions))]

    @property
    def _images(self) -> int:
        return self._model.model_info.limit_images(self._rules.pictures_may_leave, self._config.images) or 0

    def _leaves_faces_aside(self, window: Window) -> bool:
        """Whether pictures are shown in a context that forbids inferring emotions from them."""
        shown = bool(self._images and window.frames)
        return shown and not self._rules.deployment_context.allows_emotions_from_pictures

    def _held_back(self, query: Query, window: Window) -> str:
        """Return which pictures of a query were withheld and why; empty if none were."""
        model_info = self._model.model_info
        if window.frames and model_info.limit_images(True, self._config.images) and not self._images:
            return f"without its pictures, as the model {model_info.model} does not run on this machine"
        if _about_emotions(query) and self._leaves_faces_aside(window):
            context = self._rules.deployment_context
            return f"about emotions without pictures, as the deployment context {context} does not allow it"
        return ""

    def _prefix(self, query: Query, window: Window, locale: str, *, sighted: bool = True) -> Prompt:
        images = self._images if sighted else 0
        faces_aside = sighted and self._leaves_faces_aside(window)
        if query.task not in NORM_TASKS:
            prompt = excerpt_prompt(Excerpt.of_segment(window), images, locale, faces_aside=faces_aside)
            if query.task == "error3":  # the live judge's own question, word for word
                return prompt
            return replace(prompt, version=prompt.version.replace(judge.VERSION, segments.VERSION))
        prompt = clip_norms.prefix(window, images, locale, faces_aside=faces_aside)
        if window.frames or window.utterances:
            return prompt
        # No records exist: "nobody speaks" would claim too much.
        return replace(prompt, parts=tuple(part for part in prompt.parts if isinstance(part, Text)))

    def _written(
        self, query: Query, window: Window, deadline: Deadline, prompt: Prompt, form: type[BaseModel]
    ) -> Answer:
        """Return the first valid text: greedy first, then with other seeds, which the provenance contains."""
        for seed in range(self._config.tries):
            written = self._model.generate(
                prompt, form, max_tokens=self._config.tokens, seed=seed, deadline=deadline.from_now()
            )
            if written.outcome is not Outcome.UNPARSED:
                break
        made_by = replace(
            make_provenance(self._model.model_info, written, window_digest=window_digest(window), seed=seed),
            config_sha256=self._config_sha256,
            software_version=__version__,
        )
        if written.value is None:
            return self._told(query, window, deadline, written.outcome, reason=written.reason, made_by=made_by)
        return self._told(query, window, deadline, text=written.value.model_dump_json(), made_by=made_by)

    def _made_by(self, window: Window, scores: list[Scores]) -> Provenance:
        made_by = make_provenance(self._model.model_info, scores[0], window_digest=window_digest(window))
        digests = [score.prompt_digest for score in scores]
        return replace(
            made_by,
            prompt_digest=digests[0] if len(digests) == 1 else sha256_of(digests),
            config_sha256=self._config_sha256,
            software_version=__version__,
        )

    def _told(
        self,
        query: Query,
        window: Window,
        deadline: Deadline,
        outcome: Outcome = Outcome.ANSWERED,
        *,
        chosen: tuple[int, ...] = (),
        probabilities: tuple[float, ...] = (),
        text: str = "",
        reason: str = "",
        made_by: Provenance | None = None,
    ) -> Answer:
        return Answer(
            stamp_ns=deadline.clock.now_ns(),
            query_id=query.query_id,
            episode_id=query.episode_id,
            task=query.task,
            outcome=outcome,
            chosen=chosen,
            probabilities=probabilities,
            text=text,
            reason=reason or (self._held_back(query, window) if made_by else ""),
            provenance=made_by or Provenance(window_digest=window_digest(window), config_sha256=self._config_sha256),
        )


def _questions(query: Query, locale: str) -> list[Question]:
    match query.task:
        case "error3":
            return [judge.ask_polarity()]
        case "error2":
            return [segments.is_error()]
        case "attributes":
            return segments.attributes(query.question)
        case "multi":
            return [segments.several(query.question)]
        case "adherence" | "evidence":
            return [clip_norms.is_kept(query.question, locale)]
        case _:
            return [segments.choice(query.task, query.options)]


def _about_emotions(query: Query) -> tuple[int, ...]:
    """Return the indices of the questions about emotions."""
    return {"attributes": (_EMOTIONS,), "multi": (0,)}.get(query.task, ())


def _fault(query: Query) -> str:
    """Return why a query cannot be answered; empty if it can."""
    if query.task not in TASKS:
        return f"the judge has no task {query.task!r}: it has {', '.join(TASKS)}"
    if query.task in {"attributes", "multi"} and query.question not in segments.KINDS:
        return f"question: should be one of {', '.join(segments.KINDS)}, which the stretch was marked as"
    if query.task in NORM_TASKS and (query.style not in CULTURES or not query.question.strip()):
        return f"question and style: should name a norm, or its category, and one of {', '.join(CULTURES)}"
    if query.task in CHOICES and len(query.options) < 2:
        return "options: there are fewer than two to choose from"
    return ""
