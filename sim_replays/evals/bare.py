"""A model alone as a solver: it is asked the prompt of the paper, and its reply is read or counted as unparsed."""

import base64
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal
from urllib.parse import urlsplit

from inspect_ai.model import (
    ChatMessageUser,
    Content,
    ContentImage,
    ContentText,
    GenerateConfig,
    Model,
    ModelOutput,
    get_model,
)
from inspect_ai.solver import Generate, Solver, TaskState, solver

from norm_core.engines.errors import UnparsedError
from norm_core.engines.options import OPTION_LETTERS, is_refusal, weigh_letters
from norm_core.records.episode import Query
from norm_core.records.frame import Frame
from norm_core.records.json_codec import to_plain
from norm_core.records.outcome import Outcome
from norm_core.records.record import record
from norm_monitor.judge.questions import forbid_face_reading
from sim_replays.evals.samples import (
    ANSWERS,
    LEFT_OUT,
    AskedSample,
    SampleAnswer,
    read_asked_sample,
    register_as_tactful,
)
from sim_replays.items.item_bag import make_frames
from sim_replays.items.run_config import RunItem
from sim_replays.items.target import Prediction, ReplyReading, SuiteError
from sim_replays.suites.suite import ParsedReply, Suite, find_suite

AnswerForm = Literal["text", "logprobs"]

# In a prompt: the option that was chosen in an earlier question of the same item.
_EARLIER_CHOICE = re.compile(r"\{chosen (\w+)\}")
_CUT = {"max_tokens", "model_length"}  # stop reasons
_FILTERED = "content_filter"  # a stop reason
_LOCAL_HOSTS = {"localhost", "127.0.0.1", "::1"}
_LOCAL_PROVIDERS = {"hf", "llama-cpp-python", "mockllm", "ollama", "vllm", "sglang"}
_TEMPERATURE_STEP = 0.2  # of a further attempt, as in the paper of VideoNorms
_TOP_LOGPROBS = 20
_AROUND_LETTER = " \"'()"  # what a token may have beside the letter of an option


@solver(name="tactful/bare")
@register_as_tactful
def bare(answers: AnswerForm = "text") -> Solver:
    """Ask the model each prompt of a sample alone; `answers=logprobs` also reports the probability of each option."""
    if answers not in {"text", "logprobs"}:
        raise SuiteError(f"answers={answers}: is unknown; name text or logprobs")

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        asked = read_asked_sample(state.metadata)
        model = get_model()
        suite = find_suite(asked.asking.suite)
        if asked.prompts is None:
            settings = ", ".join(suite.bare_settings) or "none"
            raise SuiteError(f"setting={asked.asking.setting}: is of the robot alone; a model alone has {settings}")
        frames = make_frames(asked.item, asked.asking, 0)
        if frames and not _may_see(model, asked):
            raise SuiteError(
                f"{model}: does not run on this machine, and pictures stay here; add -T pictures_may_leave=true, "
                "or choose a setting without pictures"
            )
        prompts = {query.task: query for query in asked.prompts.queries}
        state.store.set(LEFT_OUT, sorted({query.task for query in asked.item.queries} - set(prompts)))
        state.messages = []
        questioning = _Questioning(
            state=state, model=model, suite=suite, asked=asked, prompts=asked.prompts, frames=frames, form=answers
        )
        answer_by_task: dict[str, SampleAnswer] = {}
        for task, query in prompts.items():
            answer_by_task[task] = await questioning.ask(query, answer_by_task)
            state.store.set(ANSWERS, [to_plain(answer) for answer in answer_by_task.values()])
        return state

    return solve


@record
class _Questioning:
    """A model that is asked the prompts of one sample."""

    state: TaskState
    model: Model
    suite: Suite
    asked: AskedSample
    prompts: RunItem
    frames: Sequence[Frame]
    form: AnswerForm

    async def ask(self, query: Query, earlier: Mapping[str, SampleAnswer]) -> SampleAnswer:
        """Ask one prompt, again and hotter while no answer is read; `earlier` are the answers by task."""
        item = self.asked.item.item or self.asked.item.id
        blank = Prediction(id=item, task=query.task, outcome=Outcome.UNPARSED)
        text = query.question
        for task in _EARLIER_CHOICE.findall(text):
            prediction = earlier[task].prediction
            if prediction.outcome is not Outcome.ANSWERED:
                reason = f"its prompt states the answer to {task}, which is {prediction.outcome}: {prediction.reason}"
                return SampleAnswer(prediction=replace(blank, outcome=prediction.outcome, reason=reason))
            text = text.replace(f"{{chosen {task}}}", self._find_chosen_option(prediction))
        content, withheld = self._select_pictures(query)
        message = ChatMessageUser(content=[*content, ContentText(text=text)])
        parsed = None
        attempt = 0
        for attempt in range(self.suite.max_tries):
            output = await self.model.generate([message], config=self._make_config(attempt))
            self.state.messages += [message, output.message]
            self.state.output = output
            if output.stop_reason not in _CUT:
                parsed = self.suite.reply_parsers[query.style](query, output.completion)
            if parsed or output.stop_reason == _FILTERED:
                break
        is_whole = output.stop_reason not in {*_CUT, _FILTERED}
        order = self.prompts.orders[query.query_id]
        details: dict[str, Any] = {
            "tries": attempt + 1,
            "reply": output.completion if is_whole else "",
        }
        if self.form == "logprobs":
            probabilities = _read_probabilities(self.model, query, output, parsed)
            if probabilities:
                by_dataset_index = dict(zip(order, probabilities, strict=True))
                details["probabilities"] = [by_dataset_index[index] for index in range(len(probabilities))]
        prediction = _make_prediction(blank, output, parsed, order, withheld)
        return SampleAnswer(prediction=prediction, cached=_is_cached(), details=details)

    def _find_chosen_option(self, prediction: Prediction) -> str:
        """Return the text of the option that was chosen in an earlier question."""
        query = next(query for query in self.prompts.queries if query.task == prediction.task)
        index = self.prompts.orders[query.query_id].index(prediction.chosen[0])
        return query.options[index] or "None"

    def _make_config(self, attempt: int) -> GenerateConfig:
        config = GenerateConfig()
        if attempt:
            config.temperature = (self.model.config.temperature or 0.0) + _TEMPERATURE_STEP * attempt
        if self.form == "logprobs":
            config.logprobs = True
            config.top_logprobs = _TOP_LOGPROBS
        return config

    def _select_pictures(self, query: Query) -> tuple[list[Content], str]:
        """Return the pictures of a prompt, and what was withheld and why."""
        context = self.asked.rules.deployment_context
        if not self.frames:
            return [], ""
        if query.task in self.suite.emotion_tasks and not context.allows_emotions_from_pictures:
            return [], f"about emotions without pictures, as the deployment context {context} does not allow it"
        content: list[Content] = [
            ContentImage(image=f"data:image/jpeg;base64,{base64.b64encode(frame.tile_jpeg).decode()}")
            for frame in self.frames
        ]
        if self.suite.answered_by == "judge" and not context.allows_emotions_from_pictures:
            locale = "zh" if re.search("[\u4e00-\u9fff]", query.question) else "en"
            content.insert(0, ContentText(text=forbid_face_reading(locale).text))
        return content, ""


def _make_prediction(
    blank: Prediction, output: ModelOutput, parsed: ParsedReply | None, order: Sequence[int], withheld: str
) -> Prediction:
    """Complete the prediction of a question, in the dataset's own order of options."""
    reply = output.completion
    is_filtered = output.stop_reason == _FILTERED
    if parsed is None or is_filtered:
        reason = f"no answer in the reply {reply!r:.160}"
        if output.stop_reason in _CUT:
            reason = f"the reply was cut at its longest; raise --max-tokens: {reason}"
            return replace(blank, outcome=Outcome.UNPARSED, reason=reason)
        is_refused = is_filtered or is_refusal(reply)
        return replace(blank, outcome=Outcome.REFUSED if is_refused else Outcome.UNPARSED, reason=reason)
    return replace(
        blank,
        outcome=Outcome.ANSWERED,
        chosen=tuple(sorted(order[index] for index in parsed.chosen)),
        text=parsed.text,
        reason=withheld,
        reading=None if parsed.is_strict else ReplyReading.LENIENT,
    )


def _read_probabilities(
    model: Model, query: Query, output: ModelOutput, parsed: ParsedReply | None
) -> list[float] | None:
    """Return the probability of each offered option, from the tokens where the reply states its letter."""
    logprobs = output.choices[0].logprobs if output.choices else None
    if logprobs is None or not any(token.top_logprobs for token in logprobs.content):
        raise SuiteError(f"{model}: gives no log-probabilities; leave -T answers=logprobs out, or name another model")
    if parsed is None or len(parsed.chosen) != 1 or query.style not in {"letter", "json_letter"}:
        return None
    letters = OPTION_LETTERS[: len(query.options)]
    for token in reversed(logprobs.content):
        if token.token.strip(_AROUND_LETTER) == letters[parsed.chosen[0]] and token.top_logprobs:
            logprob_by_token = [(other.token.strip(_AROUND_LETTER), other.logprob) for other in token.top_logprobs]
            try:
                weights = [math.exp(weight) for weight in weigh_letters(logprob_by_token, letters)]
            except UnparsedError:
                return None
            return [weight / sum(weights) for weight in weights]
    return None


def _is_cached() -> bool:
    """Return whether the last reply is of an earlier run (--cache)."""
    from inspect_ai.event import ModelEvent  # noqa: PLC0415
    from inspect_ai.log import transcript  # noqa: PLC0415

    calls = [event for event in transcript().events if isinstance(event, ModelEvent)]
    return bool(calls) and calls[-1].cache == "read"


def _may_see(model: Model, asked: AskedSample) -> bool:
    """Return whether pictures may go to a model: one on this machine, or any that somebody allowed them for."""
    host = urlsplit(model.api.base_url or "").hostname
    provider = str(model).partition("/")[0]
    is_local = host in _LOCAL_HOSTS if host else provider in _LOCAL_PROVIDERS
    return is_local or asked.rules.pictures_may_leave
