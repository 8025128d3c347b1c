"""A model behind an OpenAI-compatible server (vLLM, llama-server and others), local or remote."""

import base64
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import Any

from norm_core.engines.engine_health import ServerStatus
from norm_core.engines.openai.address import is_on_this_machine
from norm_core.engines.openai.client import OpenAIServer
from norm_core.engines.openai.reply import Reply, parse_reply
from norm_core.engines.option_letters import OPTION_LETTERS, letter_options
from norm_core.engines.option_tokens import letter_weights
from norm_core.engines.prompt import Image, Part, Prompt, Question, plain_text
from norm_core.engines.reply import ModelInfo
from norm_core.engines.request_context import DECODE, PARSE, PREFILL, RequestContext


class Guide(StrEnum):
    """How to constrain a server's answer to one of the letters."""

    NONE = "none"
    STRUCTURED_OUTPUTS = "structured_outputs"  # vLLM 0.12 and later
    GUIDED_CHOICE = "guided_choice"  # older vLLM
    GRAMMAR = "grammar"  # llama-server

    def request_fields(self, letters: Sequence[str]) -> dict[str, Any]:
        """Return the request fields for this constraint."""
        match self:
            case Guide.NONE:
                return {}
            case Guide.STRUCTURED_OUTPUTS:
                return {"structured_outputs": {"choice": list(letters)}}
            case Guide.GUIDED_CHOICE:
                return {"guided_choice": list(letters)}
            case Guide.GRAMMAR:
                return {"grammar": "root ::= " + " | ".join(f'"{letter}"' for letter in letters)}


class OpenAIBackend:
    """Send each question with its whole prefix, which the server may cache.

    `extra` is added to every request: {"cache_prompt": False} makes llama-server reproducible, and
    {"chat_template_kwargs": {"enable_thinking": False}} stops a reasoning model from thinking first.
    """

    def __init__(
        self,
        server: OpenAIServer,
        model: str,
        *,
        top_logprobs: int = 20,
        guide: Guide = Guide.NONE,
        max_images: int | None = None,
        context_tokens: int | None = None,
        weights_sha256: str = "",
        quantization: str = "",
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        self._server, self._top_logprobs, self._guide, self._extra = server, top_logprobs, guide, dict(extra or {})
        self.model_info = ModelInfo(
            model=model,
            engine="openai",
            weights_sha256=weights_sha256,
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
        yield _content(prefix.parts)

    def score(self, prefix: list[dict[str, Any]], question: Question, call: RequestContext) -> Sequence[float]:
        """Ask for one token with log-probabilities, and weigh the letters of the options."""
        letters = OPTION_LETTERS[: len(question.options)]
        content = [*prefix, *_content(question.parts), {"type": "text", "text": letter_options(question.options)}]
        asked = {"max_tokens": 1, "temperature": 0, "logprobs": True, "top_logprobs": self._top_logprobs}
        call.enter_segment(PREFILL)
        reply = self._ask(content, asked | self._guide.request_fields(letters), call)
        return letter_weights(reply.first_token(), letters)

    def generate(
        self, prompt: Prompt, call: RequestContext, *, schema: dict[str, Any] | None, max_tokens: int, seed: int
    ) -> str:
        """Ask for a chat completion; the server constrains it to `schema` where given."""
        asked: dict[str, Any] = {"max_tokens": max_tokens, "temperature": 1 if seed else 0, "seed": seed}
        if schema is not None:
            named = {"name": schema.get("title", "answer"), "schema": schema}
            asked["response_format"] = {"type": "json_schema", "json_schema": named}
        call.enter_segment(DECODE)
        return self._ask(_content(prompt.parts), asked, call).text

    @property
    def server_status(self) -> ServerStatus:
        """Whether the server can be reached."""
        return self._server.status

    def close(self) -> None:
        """Close the connections to the server."""
        self._server.close()

    def _ask(self, content: list[dict[str, Any]], asked: dict[str, Any], call: RequestContext) -> Reply:
        message = {"role": "user", "content": _plain(content)}
        body = {"model": self.model_info.model, "messages": [message], **asked, **self._extra}
        received = self._server.complete(body, call)
        call.enter_segment(PARSE)
        return parse_reply(received, call)


def _content(parts: Sequence[Part]) -> list[dict[str, Any]]:
    return [_image(part) if isinstance(part, Image) else {"type": "text", "text": plain_text(part)} for part in parts]


def _image(image: Image) -> dict[str, Any]:
    url = "data:image/jpeg;base64," + base64.b64encode(image.jpeg).decode()
    return {"type": "image_url", "image_url": {"url": url}}


def _plain(content: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """Return one text if there are no images, because some servers do not accept parts."""
    if all(item["type"] == "text" for item in content):
        return "\n".join(item["text"] for item in content)
    return content
