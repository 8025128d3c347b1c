"""The answerer of HSRI and VideoNorms, which asks the model of the judge.

Questions that the live judge asks too have its prompts. Options are scored, and texts are generated.
"""

from collections.abc import Sequence
from dataclasses import replace

from pydantic import BaseModel, Field

from norm_core import __version__
from norm_core.engines.engine import Engine
from norm_core.engines.prompt import Part, Prompt, Question, Text
from norm_core.engines.prompt_file import load_prompt_file
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
from norm_monitor.judge.transcript import choose_pictures, format_transcript

CHOICES = ("pre", "post", "rationale", "correction")
SEGMENT_TASKS = ("error3", "error2", "attributes", "multi", *CHOICES)
NORM_TASKS = ("adherence", "evidence", "norm")
TASKS = (*SEGMENT_TASKS, *NORM_TASKS)
CULTURES = {"us": "en", "cn": "zh"}  # by the style of a query, the language of its prompt
_SEGMENTS = load_prompt_file("segments", "sim_replays.suites")  # of human-robot talk, in the terms of HSRI
_CLIPS = load_prompt_file("clip_norms", "sim_replays.suites")  # about a norm, as in VideoNorms
_ATTRIBUTE_THRESHOLD = 0.5  # probability from which a segment has an attribute
_EMOTIONS_INDEX = list(Attribute).index(Attribute.EMOTIONS)


class QuestionConfig(Config):
    """How to answer the questions of replayed suites."""

    window_s: float = Field(
        default=15.0, gt=0, le=3600, description="seconds of an episode before a question that the model sees"
    )
    images: int = Field(default=16, ge=0, le=64, description="maximum number of pictures with a question")
    tokens: int = Field(default=200, ge=1, le=2000, description="maximum number of tokens of a generated text")
    tries: int = Field(default=3, ge=1, le=10, description="maximum number of attempts to get a valid text")


class NormEvidence(BaseModel):
    """The speech and the actions that show that a norm is kept or broken."""

    verbal: str = Field(min_length=1)
    nonverbal: str = Field(min_length=1)


class StatedNorm(BaseModel):
    """A norm in words."""

    norm: str = Field(min_length=1)


class SuiteAnswerer:
    """Answerer of one query at a time, from the window of its own episode alone.

    Where the deployment context forbids inferring emotions from pictures, questions about emotions get words alone.
    All others then tell the model to ignore feelings in faces. The reason of an answer names what was withheld.
    """

    def __init__(self, model: Engine, config: QuestionConfig, rules: PictureRules | None = None) -> None:
        self._model = model
        self._config = config
        self._rules = rules or PictureRules()
        self._config_sha256 = sha256_of((config.sha256(), self._rules.sha256()))

    def find_window(self, query: Query, recent: RecentRecords, clock: Clock) -> tuple[Window, Deadline]:
        """Return the window and the deadline of a query. Without a deadline, the clock stands still at its stamp."""
        deadline = Deadline(ReplayClock(query.stamp_ns) if query.deadline_ns is None else clock, query.deadline_ns)
        return recent.gather_episode(query.stamp_ns), deadline

    def answer(self, query: Query, window: Window, deadline: Deadline) -> Answer:
        """Answer a query; a choice is an index among the options of its task."""
        if fault := _find_fault(query):
            return self._make_answer(query, window, deadline, Outcome.INVALID, reason=fault)
        locale = CULTURES[query.style] if query.task in NORM_TASKS else "en"
        prefix = self._make_prefix(query, window, locale)
        texts = _CLIPS.texts[locale]
        if query.task == "norm":
            prompt = _ask(texts["specific"].format(query.question)).after(prefix)
            return self._write(query, window, deadline, prompt, StatedNorm)
        answer = self._choose(query, window, deadline, locale)
        if query.task != "evidence" or answer.outcome is not Outcome.ANSWERED:
            return answer
        prompt = _ask(texts["evidence"].format(query.question, texts["outcomes"][answer.chosen[0]])).after(prefix)
        written = self._write(query, window, deadline, prompt, NormEvidence)
        if written.outcome is not Outcome.ANSWERED:
            return written
        return replace(written, chosen=answer.chosen, probabilities=answer.probabilities)

    def _choose(self, query: Query, window: Window, deadline: Deadline, locale: str) -> Answer:
        scores = self._score_questions(query, window, deadline, locale)
        made_by = self._make_provenance(window, scores)
        if failed := next((score for score in scores if score.outcome is not Outcome.ANSWERED), None):
            return self._make_answer(query, window, deadline, failed.outcome, reason=failed.reason, made_by=made_by)
        if query.task == "attributes":
            probabilities = tuple(score.probabilities[0] for score in scores)
            chosen = tuple(
                index for index, probability in enumerate(probabilities) if probability >= _ATTRIBUTE_THRESHOLD
            )
            # The likeliest attribute is chosen if none is likely, as in the live judge.
            chosen = chosen or (probabilities.index(max(probabilities)),)
        else:
            probabilities = scores[0].probabilities
            chosen = (scores[0].best or 0,)
        return self._make_answer(query, window, deadline, chosen=chosen, probabilities=probabilities, made_by=made_by)

    def _score_questions(self, query: Query, window: Window, deadline: Deadline, locale: str) -> list[Scores]:
        """Return the scores of the questions of a query; those about emotions may be asked without pictures."""
        questions = _make_questions(query, locale)
        blind_indices = _find_emotion_questions(query) if self._must_ignore_faces(window) else ()
        sighted_indices = tuple(index for index in range(len(questions)) if index not in blind_indices)
        score_by_index: dict[int, Scores] = {}
        for indices, is_sighted in ((sighted_indices, True), (blind_indices, False)):
            if indices:
                prefix = self._make_prefix(query, window, locale, is_sighted=is_sighted)
                scores = self._model.ask_many(prefix, [questions[index] for index in indices], deadline.from_now())
                score_by_index |= dict(zip(indices, scores, strict=True))
        return [score_by_index[index] for index in range(len(questions))]

    @property
    def _max_images(self) -> int:
        """How many pictures the model may see."""
        return self._model.model_info.limit_images(self._rules.pictures_may_leave, self._config.images) or 0

    def _must_ignore_faces(self, window: Window) -> bool:
        """Return whether pictures are shown where nobody may infer emotions from them."""
        has_pictures = bool(self._max_images and window.frames)
        return has_pictures and not self._rules.deployment_context.allows_emotions_from_pictures

    def _find_withheld(self, query: Query, window: Window) -> str:
        """Return which pictures of a query were withheld and why; empty if none was."""
        model_info = self._model.model_info
        if window.frames and model_info.limit_images(True, self._config.images) and not self._max_images:
            return f"without its pictures, as the model {model_info.model} does not run on this machine"
        if _find_emotion_questions(query) and self._must_ignore_faces(window):
            context = self._rules.deployment_context
            return f"about emotions without pictures, as the deployment context {context} does not allow it"
        return ""

    def _make_prefix(self, query: Query, window: Window, locale: str, *, is_sighted: bool = True) -> Prompt:
        """Return the part that the questions of a query share: the transcript, and the pictures if `is_sighted`."""
        max_images = self._max_images if is_sighted else 0
        faces_aside = is_sighted and self._must_ignore_faces(window)
        if query.task not in NORM_TASKS:
            prompt = excerpt_prompt(Excerpt.of_segment(window), max_images, locale, faces_aside=faces_aside)
            if query.task == "error3":  # The live judge asks this question, word for word.
                return prompt
            return replace(prompt, version=prompt.version.replace(judge.VERSION, _SEGMENTS.version))
        parts: list[Part] = [Text(text=_CLIPS.texts[locale]["task"])]
        if faces_aside:
            parts.append(judge.forbid_face_reading(locale))
        if window.frames or window.utterances:  # Without records, "nobody speaks" would claim too much.
            parts += choose_pictures(window.frames, max_images, window.start_ns)
            parts.append(format_transcript(window.utterances, window.start_ns, locale))
        return Prompt(version=f"{_CLIPS.version}-{locale}{'-faces-aside' * faces_aside}", parts=tuple(parts))

    def _write(
        self, query: Query, window: Window, deadline: Deadline, prompt: Prompt, schema: type[BaseModel]
    ) -> Answer:
        """Return the first valid text of several attempts: greedy first, then with other seeds."""
        for seed in range(self._config.tries):
            generation = self._model.generate(
                prompt, schema, max_tokens=self._config.tokens, seed=seed, deadline=deadline.from_now()
            )
            if generation.outcome is not Outcome.UNPARSED:
                break
        made_by = replace(
            make_provenance(self._model.model_info, generation, window_digest=window_digest(window), seed=seed),
            config_sha256=self._config_sha256,
            software_version=__version__,
        )
        if generation.value is None:
            return self._make_answer(
                query, window, deadline, generation.outcome, reason=generation.reason, made_by=made_by
            )
        return self._make_answer(query, window, deadline, text=generation.value.model_dump_json(), made_by=made_by)

    def _make_provenance(self, window: Window, scores: list[Scores]) -> Provenance:
        made_by = make_provenance(self._model.model_info, scores[0], window_digest=window_digest(window))
        digests = [score.prompt_digest for score in scores]
        return replace(
            made_by,
            prompt_digest=digests[0] if len(digests) == 1 else sha256_of(digests),
            config_sha256=self._config_sha256,
            software_version=__version__,
        )

    def _make_answer(
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
            reason=reason or (self._find_withheld(query, window) if made_by else ""),
            provenance=made_by or Provenance(window_digest=window_digest(window), config_sha256=self._config_sha256),
        )


def _make_questions(query: Query, locale: str) -> list[Question]:
    """Return the questions with options of a query; those about a segment follow the prefix of the judge."""
    texts, clip_texts = _SEGMENTS.texts, _CLIPS.texts[locale]
    match query.task:
        case "error3":
            return [judge.ask_polarity()]
        case "error2":
            return [_ask(texts["is_error"], options=("yes", "no"))]
        case "attributes":
            known = Text(text=texts["known"][query.question])
            return [replace(question, parts=(known, *question.parts)) for question in judge.ask_attributes()]
        case "multi":
            several = texts["several"].format("; ".join(judge.list_meanings()))
            return [_ask(texts["known"][query.question], several, options=("yes", "no"))]
        case "adherence" | "evidence":
            return [_ask(clip_texts["kept"].format(query.question), options=clip_texts["outcomes"])]
        case _:
            return [_ask(texts["choices"][query.task], options=query.options)]


def _ask(*texts: str, options: Sequence[str] = ()) -> Question:
    return Question(parts=tuple(Text(text=text) for text in texts), options=tuple(options))


def _find_emotion_questions(query: Query) -> tuple[int, ...]:
    """Return the indices of the questions about emotions."""
    return {"attributes": (_EMOTIONS_INDEX,), "multi": (0,)}.get(query.task, ())


def _find_fault(query: Query) -> str:
    """Return why a query cannot be answered; empty if it can be."""
    if query.task not in TASKS:
        return f"task: the judge has no task {query.task!r}; name one of {', '.join(TASKS)}"
    if query.task in {"attributes", "multi"} and query.question not in _SEGMENTS.texts["known"]:
        return f"question: should be one of {', '.join(_SEGMENTS.texts['known'])}, the kind of the segment"
    if query.task in NORM_TASKS and (query.style not in CULTURES or not query.question.strip()):
        return f"question and style: should name a norm, or its category, and one of {', '.join(CULTURES)}"
    if query.task in CHOICES and len(query.options) < 2:
        return "options: there are fewer than two to choose from"
    return ""
