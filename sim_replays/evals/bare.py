"""A model alone as a solver: the paper's prompt, and a reply that is read or counted as unparsed."""

import base64
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal
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
from norm_monitor.judge.questions import forbid_face_reading
from sim_replays.evals.samples import ANSWERS, LEFT_OUT, AskedSample, SampleAnswer, asked_in, tactful
from sim_replays.items.item_bag import frames_of
from sim_replays.items.target import Prediction, ReplyReading, SuiteError
from sim_replays.suites.suite import Reading, Suite, suite_called

ReplyForm = Literal["text", "logprobs"]
# In a prompt: the option that was chosen in an earlier question of the same item.
_CHOSEN = re.compile(r"\{chosen (\w+)\}")
_CUT = {"max_tokens", "model_length"}
_HERE = {"localhost", "127.0.0.1", "::1"}
_LOCAL_PROVIDERS = {"hf", "llama-cpp-python", "mockllm", "ollama", "vllm", "sglang"}
_HOTTER_BY = 0.2  # a further try, as VideoNorms' paper has it
_MOST_LIKELY = 20


@solver(name="tactful/bare")
@tactful
def bare(answers: ReplyForm = "text") -> Solver:
    """Ask the model each prompt of a sample alone; `answers=logprobs` also reports the probability of each option."""
    if answers not in {"text", "logprobs"}:
        raise SuiteError(f"answers={answers}: name text or logprobs")

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        asked, model = asked_in(state.metadata), get_model()
        suite = suite_called(asked.asking.suite)
        if asked.prompts is None:
            raise SuiteError(
                f"setting={asked.asking.setting}: is of the robot alone; a model alone has "
                f"{', '.join(suite.bare_settings) or 'none'}"
            )
        prompts = {query.task: query for query in asked.prompts.queries}
        state.store.set(LEFT_OUT, sorted({query.task for query in asked.item.queries} - set(prompts)))
        frames = frames_of(asked.item, asked.asking, 0)
        if frames and not _may_see(model, asked):
            raise SuiteError(
                f"{model}: does not run on this machine, and pictures stay here: add -T pictures_may_leave=true, "
                "or choose a setting without pictures"
            )
        state.messages = []
        by_task: dict[str, SampleAnswer] = {}
        for query in prompts.values():
            by_task[query.task] = await _answer(state, model, suite, asked, query, frames, by_task, answers)
            state.store.set(ANSWERS, [to_plain(answer) for answer in by_task.values()])
        return state

    return solve


async def _answer(  # noqa: PLR0917
    state: TaskState,
    model: Model,
    suite: Suite,
    asked: AskedSample,
    query: Query,
    frames: Sequence[Frame],
    by_task: dict[str, SampleAnswer],
    form: ReplyForm,
) -> SampleAnswer:
    assert asked.prompts
    item, orders = asked.item.item or asked.item.id, asked.prompts.orders
    blank = Prediction(id=item, task=query.task, outcome=Outcome.UNPARSED)
    text = query.question
    for task in _CHOSEN.findall(text):
        earlier = by_task[task].prediction
        if earlier.outcome is not Outcome.ANSWERED:
            reason = f"its prompt states the answer to {task}, which is {earlier.outcome}: {earlier.reason}"
            return SampleAnswer(prediction=replace(blank, outcome=earlier.outcome, reason=reason))
        offered = next(other for other in asked.prompts.queries if other.task == task)
        place = orders[offered.query_id].index(earlier.chosen[0])
        text = text.replace(f"{{chosen {task}}}", offered.options[place] or "None")
    content, withheld = _pictures(suite, asked, query, frames)
    message = ChatMessageUser(content=[*content, ContentText(text=text)])
    reading, tries = None, 0
    base = model.config.temperature or 0.0
    for tries in range(suite.tries):
        config = GenerateConfig(temperature=base + _HOTTER_BY * tries) if tries else GenerateConfig()
        if form == "logprobs":
            config = config.merge(GenerateConfig(logprobs=True, top_logprobs=_MOST_LIKELY))
        output = await model.generate([message], config=config)
        state.messages += [message, output.message]
        state.output = output
        reading = None if output.stop_reason in _CUT else suite.forms[query.style](query, output.completion)
        if reading or output.stop_reason == "content_filter":
            break
    is_whole = output.stop_reason not in {*_CUT, "content_filter"}
    details = {"served_by": output.model, "tries": tries + 1, "reply": output.completion if is_whole else ""}
    probabilities = _probabilities(model, query, output, reading) if form == "logprobs" else None
    if probabilities:
        by_place = dict(zip(orders[query.query_id], probabilities, strict=True))
        details["probabilities"] = [by_place[place] for place in range(len(probabilities))]
    return SampleAnswer(
        prediction=_prediction(blank, output, reading, orders, query, withheld), cached=_is_cached(), details=details
    )


def _prediction(  # noqa: PLR0917
    blank: Prediction,
    output: ModelOutput,
    reading: Reading | None,
    orders: Mapping[str, tuple[int, ...]],
    query: Query,
    withheld: str,
) -> Prediction:
    reply = output.completion
    if reading is None or output.stop_reason == "content_filter":
        refused = output.stop_reason == "content_filter" or is_refusal(reply)
        cut = "the reply was cut at its longest; raise --max-tokens: " if output.stop_reason in _CUT else ""
        reason = f"{cut}no answer in the reply {reply!r:.160}"
        return replace(blank, outcome=Outcome.REFUSED if refused and not cut else Outcome.UNPARSED, reason=reason)
    chosen = tuple(sorted(orders[query.query_id][place] for place in reading.chosen))
    return replace(
        blank,
        outcome=Outcome.ANSWERED,
        chosen=chosen,
        text=reading.text,
        reason=withheld,
        reading=None if reading.strict else ReplyReading.LENIENT,
    )


def _probabilities(model: Model, query: Query, output: ModelOutput, reading: Reading | None) -> list[float] | None:
    """Return the probability of each option, from the tokens where the reply states its letter."""
    logprobs = output.choices[0].logprobs if output.choices else None
    if logprobs is None or not any(token.top_logprobs for token in logprobs.content):
        raise SuiteError(f"{model}: gives no log-probabilities; leave -T answers=logprobs out, or name another model")
    if reading is None or len(reading.chosen) != 1 or query.style not in {"letter", "json_letter"}:
        return None
    letters = OPTION_LETTERS[: len(query.options)]
    for token in reversed(logprobs.content):
        if token.token.strip(" \"'()") == letters[reading.chosen[0]] and token.top_logprobs:
            likely = [(other.token.strip(" \"'()"), other.logprob) for other in token.top_logprobs]
            try:
                weights = [math.exp(weight) for weight in weigh_letters(likely, letters)]
            except UnparsedError:
                return None
            return [weight / sum(weights) for weight in weights]
    return None


def _is_cached() -> bool:
    """Whether the last reply is of an earlier run (--cache)."""
    from inspect_ai.event import ModelEvent  # noqa: PLC0415
    from inspect_ai.log import transcript  # noqa: PLC0415

    calls = [event for event in transcript().events if isinstance(event, ModelEvent)]
    return bool(calls) and calls[-1].cache == "read"


def _may_see(model: Model, asked: AskedSample) -> bool:
    """Whether pictures may go to a model: one on this machine, or any that somebody allowed them for."""
    host, provider = urlsplit(model.api.base_url or "").hostname, str(model).partition("/")[0]
    is_here = host in _HERE if host else provider in _LOCAL_PROVIDERS
    return is_here or asked.rules.pictures_may_leave


def _pictures(suite: Suite, asked: AskedSample, query: Query, frames: Sequence[Frame]) -> tuple[list[Content], str]:
    """Return the pictures of a prompt, and what was withheld and why."""
    context = asked.rules.deployment_context
    if not frames:
        return [], ""
    if query.task in suite.about_emotions and not context.allows_emotions_from_pictures:
        return [], f"about emotions without pictures, as the deployment context {context} does not allow it"
    shown: list[Content] = [
        ContentImage(image=f"data:image/jpeg;base64,{base64.b64encode(frame.tile_jpeg).decode()}") for frame in frames
    ]
    if suite.answered_by == "judge" and not context.allows_emotions_from_pictures:
        locale = "zh" if re.search("[\u4e00-\u9fff]", query.question) else "en"
        return [ContentText(text=forbid_face_reading(locale).text), *shown], ""
    return shown, ""
