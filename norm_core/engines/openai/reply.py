"""Prompts as messages of a chat completion, and its answer."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from norm_core.engines.errors import EngineFailedError, RefusedError
from norm_core.engines.prompt import Image, Part, write_part
from norm_core.engines.request_context import RequestContext


def make_user_message(parts: Sequence[Part]) -> dict[str, Any]:
    """Return the parts of a prompt as the message of a chat completion, with images as data URLs."""
    return {"role": "user", "content": join_texts(make_content(parts))}


def make_answer_format(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the request field that constrains an answer to a JSON schema."""
    return {"type": "json_schema", "json_schema": {"name": schema.get("title", "answer"), "schema": schema}}


def make_content(parts: Sequence[Part]) -> list[dict[str, Any]]:
    """Return parts as the content of a message."""
    return [
        _make_image_content(part) if isinstance(part, Image) else {"type": "text", "text": write_part(part)}
        for part in parts
    ]


def _make_image_content(image: Image) -> dict[str, Any]:
    url = "data:image/jpeg;base64," + base64.b64encode(image.jpeg).decode()
    return {"type": "image_url", "image_url": {"url": url}}


def join_texts(content: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """Return one text if there are no images, because some servers accept only a text."""
    if all(item["type"] == "text" for item in content):
        return "\n".join(item["text"] for item in content)
    return content


class _LikelyToken(BaseModel):
    token: str
    logprob: float


class TokenLogprob(_LikelyToken):
    """One token of an answer, with the likeliest alternatives."""

    top_logprobs: list[_LikelyToken] = []


class _Logprobs(BaseModel):
    content: list[TokenLogprob] | None = None


class _Message(BaseModel):
    content: str | None = None
    refusal: str | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None


class _PromptTokenDetails(BaseModel):
    cached_tokens: int | None = None


class _TokenCounts(BaseModel):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: _PromptTokenDetails | None = None


class Completion(BaseModel):
    """A chat completion; fields that are not read are not validated."""

    choices: list[_Choice] = Field(min_length=1)
    model: str = ""
    usage: _TokenCounts | None = None

    @property
    def text(self) -> str:
        """The text of the first choice, empty if the server sent none."""
        return self.choices[0].message.content or ""

    @property
    def tokens(self) -> tuple[TokenLogprob, ...]:
        """The tokens of the first choice; none if the server sent no log-probabilities."""
        logprobs = self.choices[0].logprobs
        return tuple(logprobs.content or ()) if logprobs else ()

    @property
    def is_cut(self) -> bool:
        """Whether the server stopped the first choice at its limit of tokens."""
        return self.choices[0].finish_reason == "length"

    def read_first_token(self) -> list[tuple[str, float]]:
        """Return the likeliest first tokens, each once, with their log-probabilities.

        Raises EngineFailedError if the server sent none.
        """
        if not self.tokens:
            raise EngineFailedError(
                "the server returned no log-probabilities, from which options are scored; allow them there, or set "
                "settings.answers to text"
            )
        first = self.tokens[0]
        return list({token.token: token.logprob for token in [first, *first.top_logprobs]}.items())


def parse_completion(content: bytes, call: RequestContext) -> Completion:
    """Parse the reply of a server, and add its tokens to the usage of `call`.

    Raises EngineFailedError for another form, and RefusedError if the model or a filter declined.
    """
    try:
        reply = Completion.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        location = ".".join(map(str, first["loc"])) or "the whole"
        raise EngineFailedError(
            f"the answer is not a chat completion: {location}: {first['msg']}: {content[:80]!r}; check that the "
            "address is that of an OpenAI-compatible API"
        ) from None
    if usage := reply.usage:
        cached = (usage.prompt_tokens_details and usage.prompt_tokens_details.cached_tokens) or 0
        call.add_usage(
            prompt_tokens=usage.prompt_tokens - cached, cached_tokens=cached, completion_tokens=usage.completion_tokens
        )
    choice = reply.choices[0]
    if choice.message.refusal:
        raise RefusedError(f"the model declined: {choice.message.refusal:.200}")
    if choice.finish_reason == "content_filter":
        raise RefusedError("the content filter of the server withheld the answer")
    return reply
