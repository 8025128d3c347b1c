"""The control text that a model's chat template adds around a user's message."""

from collections.abc import Callable, Mapping
from typing import Any

from norm_core.engines.errors import EngineFailedError

_WORDS = "@words@"
NO_TEMPLATE = (
    "has no chat template, so it gets its prompts as plain text, which a model made for chats understands worse; name "
    "an instruct model, or add the chat template to its files"
)


def chat_frame(render: Callable[[list[dict[str, Any]]], str]) -> tuple[str, str]:
    """Return the control text before and after the one message of a chat, which `render` makes from the template.

    Untrusted words are inserted between the two as plain text, so that no part of them is read as control text.
    """
    for content in (_WORDS, [{"type": "text", "text": _WORDS}]):
        before, found, after = render([{"role": "user", "content": content}]).partition(_WORDS)
        if found:
            return before, after
    raise EngineFailedError(
        "the model's chat template leaves the user's words out; name an instruct model, or correct the template"
    )


def template_renderer(
    template: str, *, bos: str, eos: str, options: Mapping[str, Any]
) -> Callable[[list[dict[str, Any]]], str]:
    """Return the template as a function of messages; without a template, return the words and a newline."""
    from llama_cpp.llama_chat_format import Jinja2ChatFormatter  # noqa: PLC0415  only where GGUF models are run

    if not template:
        return lambda messages: f"{bos}{messages[0]['content']}\n"
    formatter = Jinja2ChatFormatter(template, eos, bos)
    # Some templates insert the date, and an answer must not depend on the day.
    formatter.strftime_now = lambda _: "01 Jan 2025"
    return lambda messages: formatter(messages=messages, **options).prompt
