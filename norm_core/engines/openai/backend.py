"""A model behind an OpenAI-compatible server (vLLM, llama-server and others), local or remote."""

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from norm_core.engines.engine import ServerStatus
from norm_core.engines.errors import EngineError, RefusedError, UnparsedError
from norm_core.engines.openai.client import OpenAIServer
from norm_core.engines.openai.reply import Completion, join_texts, make_answer_format, make_content, parse_completion
from norm_core.engines.options import OPTION_LETTERS, format_options, is_refusal, read_option, weigh_letters
from norm_core.engines.prompt import Prompt, Question
from norm_core.engines.reply import ModelInfo
from norm_core.engines.request_context import DECODE, PARSE, PREFILL, RequestContext
from norm_core.engines.settings import Answers, OpenAISettings
from norm_core.runtime.server_address import is_on_this_machine

# The messages of servers that do not constrain answers to a JSON schema.
_NO_SCHEMA = re.compile(r"response_format|json_schema|structured output", re.IGNORECASE)
# The messages of servers that do not return log-probabilities.
_NO_LOGPROBS = re.compile(r"log-?\s?prob", re.IGNORECASE)


class OpenAIBackend:
    """Send each question with its whole prefix, which the server may cache.

    The setting `extra` is added to every request: {"cache_prompt": False} makes llama-server reproducible, and
    {"chat_template_kwargs": {"enable_thinking": False}} stops a reasoning model from thinking first. None removes a
    field that a server does not take. `text_tokens` limits a reply that is read as text.
    """

    def __init__(
        self,
        server: OpenAIServer,
        model: str,
        *,
        settings: OpenAISettings = OpenAISettings(),  # noqa: B008  the settings are frozen
        max_images: int | None = None,
        context_tokens: int | None = None,
        quantization: str = "",
    ) -> None:
        self._server = server
        self._settings = settings
        self._answers = settings.answers
        self.model_info = ModelInfo(
            model=model,
            engine="openai",
            quantization=quantization,
            context_tokens=context_tokens,
            max_images=max_images,
            max_options=len(OPTION_LETTERS),
            on_this_machine=is_on_this_machine(server.url),
            device=server.url,
        )

    @contextmanager
    def encoded(self, prefix: Prompt, call: RequestContext) -> Iterator[list[dict[str, Any]]]:
        """Return the prefix as message content, with images as data URLs."""
        yield make_content(prefix.parts)

    def score(self, prefix: list[dict[str, Any]], question: Question, call: RequestContext) -> Sequence[float]:
        """Weigh the letters of the options by the log-probabilities of one token, or read the text of the reply."""
        answers = self._answers  # Another thread may change it meanwhile.
        if answers is Answers.TEXT:
            return self._score_text(prefix, question, call)
        letters = OPTION_LETTERS[: len(question.options)]
        content = [*prefix, *make_content(question.parts), {"type": "text", "text": format_options(question.options)}]
        fields = {"logprobs": True, "top_logprobs": self._settings.top_logprobs}
        call.enter_segment(PREFILL)
        try:
            top_tokens = self._ask(
                content, 1, fields | self._settings.guide.make_request_fields(letters), call
            ).read_first_token()
        except EngineError as error:
            if answers is not Answers.AUTO or not _NO_LOGPROBS.search(str(error)):
                raise
            self._answers = Answers.TEXT
            return self._score_text(prefix, question, call)
        return weigh_letters(top_tokens, letters)

    def _score_text(self, prefix: list[dict[str, Any]], question: Question, call: RequestContext) -> Sequence[float]:
        """Give all weight to the option that the text of the reply chooses."""
        options = format_options(question.options, reasons_first=self._settings.reasons_first)
        call.enter_segment(DECODE)
        content = [*prefix, *make_content(question.parts), {"type": "text", "text": options}]
        reply = self._ask(content, self._settings.text_tokens, {}, call)
        call.text = reply.text
        chosen_index = None if reply.is_cut else read_option(reply.text, question.options)
        if chosen_index is None and is_refusal(reply.text):
            raise RefusedError(f"the model declined: {reply.text:.200}")
        if chosen_index is None:
            limit = f", cut after {self._settings.text_tokens} tokens (settings: text_tokens)" if reply.is_cut else ""
            raise UnparsedError(f"the reply chooses no option{limit}: {reply.text:.200}")
        return [0.0 if index == chosen_index else -math.inf for index in range(len(question.options))]

    def generate(
        self, prompt: Prompt, call: RequestContext, *, schema: dict[str, Any] | None, max_tokens: int, seed: int
    ) -> str:
        """Ask for a chat completion; the server constrains it to `schema` where given."""
        fields: dict[str, Any] = {"temperature": 1 if seed else 0, "seed": seed}
        if self._answers is Answers.TEXT:  # A reasoning model writes a lot before its answer.
            max_tokens = max(max_tokens, self._settings.text_tokens)
        if schema is not None:
            fields["response_format"] = make_answer_format(schema)
        call.enter_segment(DECODE)
        content = make_content(prompt.parts)
        try:
            return self._ask(content, max_tokens, fields, call).text
        except EngineError as error:
            may_omit_schema = "response_format" in fields and self._answers is not Answers.LOGPROBS
            if not may_omit_schema or not _NO_SCHEMA.search(str(error)):
                raise
            return self._ask(content, max_tokens, {**fields, "response_format": None}, call).text

    @property
    def server_status(self) -> ServerStatus:
        """Whether the server can be reached."""
        return self._server.status

    def close(self) -> None:
        """Close the connections to the server."""
        self._server.close()

    def _ask(
        self, content: list[dict[str, Any]], max_tokens: int, fields: dict[str, Any], call: RequestContext
    ) -> Completion:
        message = {"role": "user", "content": join_texts(content)}
        body = {"model": self.model_info.model, "messages": [message], self._settings.tokens_field: max_tokens}
        body |= {"temperature": 0} | fields | self._settings.extra
        received = self._server.complete({name: value for name, value in body.items() if value is not None}, call)
        call.enter_segment(PARSE)
        return parse_completion(received, call)
