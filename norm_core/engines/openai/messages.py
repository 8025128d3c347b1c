"""Prompts as messages of a chat completion."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from norm_core.engines.prompt import Image, Part, plain_text


def user_message(parts: Sequence[Part]) -> dict[str, Any]:
    """Return a prompt's parts as the message of a chat completion, with images as data URLs."""
    return {"role": "user", "content": plain_content(content_of(parts))}


def answer_format(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the request field that constrains an answer to a JSON schema."""
    return {"type": "json_schema", "json_schema": {"name": schema.get("title", "answer"), "schema": schema}}


def content_of(parts: Sequence[Part]) -> list[dict[str, Any]]:
    """Return parts as message content."""
    return [_image(part) if isinstance(part, Image) else {"type": "text", "text": plain_text(part)} for part in parts]


def _image(image: Image) -> dict[str, Any]:
    url = "data:image/jpeg;base64," + base64.b64encode(image.jpeg).decode()
    return {"type": "image_url", "image_url": {"url": url}}


def plain_content(content: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """Return one text if there are no images, because some servers do not accept parts."""
    if all(item["type"] == "text" for item in content):
        return "\n".join(item["text"] for item in content)
    return content
