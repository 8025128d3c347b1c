"""The settings in a manifest, by engine."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from norm_core.runtime.config import Config


class TransformersSettings(Config):
    """Settings of the transformers engine."""

    device: str = Field("auto", pattern=r"^(auto|cpu|cuda(:\d+)?)$")
    dtype: str = "auto"
    picture_cache_mb: int = Field(64, ge=0, description="Memory for embeddings of pictures; 0 encodes each anew.")


class Guide(StrEnum):
    """The way to constrain the answer of a server to one of the letters."""

    NONE = "none"
    STRUCTURED_OUTPUTS = "structured_outputs"  # for vLLM 0.12 and later
    GRAMMAR = "grammar"  # for llama-server

    def make_request_fields(self, letters: Sequence[str]) -> dict[str, Any]:
        """Return the request fields for this constraint."""
        match self:
            case Guide.NONE:
                return {}
            case Guide.STRUCTURED_OUTPUTS:
                return {"structured_outputs": {"choice": list(letters)}}
            case Guide.GRAMMAR:
                return {"grammar": "root ::= " + " | ".join(f'"{letter}"' for letter in letters)}


class Answers(StrEnum):
    """The part of a reply that scores options."""

    LOGPROBS = "logprobs"
    TEXT = "text"  # The words of the reply, which choose one option without a probability.
    AUTO = "auto"  # Log-probabilities, then text after the first reply without them.


class OpenAISettings(Config):
    """Settings of a server; `model` is its name for the model, by default the name in the manifest."""

    model: str = ""
    api_key_variable: str = ""
    tries: int = Field(default=4, ge=1)
    stall_s: float = Field(default=60.0, gt=0)
    top_logprobs: int = Field(default=20, ge=1)
    guide: Guide = Guide.NONE
    extra: dict[str, Any] = Field(default_factory=dict)
    answers: Answers = Answers.LOGPROBS
    reasons_first: bool = False
    text_tokens: int = Field(default=1024, ge=1)
    tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
