"""The identity of a model, and its replies."""

from functools import lru_cache
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from norm_core.engines.errors import UnparsedError
from norm_core.engines.options import strip_reasoning
from norm_core.records.outcome import Outcome
from norm_core.records.provenance import LatencySegment, Provenance
from norm_core.records.record import record

S = TypeVar("S", bound=BaseModel)


@record
class ModelInfo:
    """The identity and limits of a model; None means no limit."""

    model: str
    engine: str
    weights_sha256: str = ""
    quantization: str = ""
    context_tokens: int | None = None
    max_images: int | None = None
    max_options: int | None = None
    generates: bool = True
    on_this_machine: bool = True
    device: str = ""  # CPU, GPU, cuda:0 or the address of a server; empty if the model is not loaded

    def limit_images(self, pictures_may_leave: bool, max_count: int | None = None) -> int | None:
        """Return the number of images to show, at most `max_count`: 0 if they may not leave this machine."""
        if not (self.on_this_machine or pictures_may_leave):
            return 0
        return min((limit for limit in (self.max_images, max_count) if limit is not None), default=None)


@record
class Usage:
    """The numbers of tokens, images and retries, and of the chunks in which a prompt was read for lack of memory."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    images: int = 0
    retries: int = 0
    chunks: int = 0


@record
class Reply:
    """The fields that all replies share."""

    outcome: Outcome
    text: str = ""
    reason: str = ""
    usage: Usage = Usage()
    latency: tuple[LatencySegment, ...] = ()
    prompt_version: str = ""
    prompt_digest: str = ""


@record
class Scores(Reply):
    """A probability for each option, in the order asked; empty unless ANSWERED.

    `text` is the reply from which the option was read; empty where log-probabilities were read.
    """

    probabilities: tuple[float, ...] = ()

    @property
    def best(self) -> int | None:
        """The index of the likeliest option, the first on a tie; None unless ANSWERED."""
        return self.probabilities.index(max(self.probabilities)) if self.probabilities else None


@record
class Generation(Reply, Generic[S]):
    """Generated text, and the value in it if a schema was given."""

    value: S | None = None


def make_provenance(model_info: ModelInfo, reply: Reply, *, window_digest: str = "", seed: int = 0) -> Provenance:
    """Return the provenance of a flag or decision that rests on this reply."""
    return Provenance(
        window_digest=window_digest,
        prompt_digest=reply.prompt_digest,
        prompt_version=reply.prompt_version,
        model=model_info.model,
        weights_sha256=model_info.weights_sha256,
        quantization=model_info.quantization,
        seed=seed,
        latency=reply.latency,
    )


@lru_cache(maxsize=64)
def make_json_schema(schema: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema of an answer, cached because it takes milliseconds; the caller must not change it."""
    return schema.model_json_schema()


def parse_value(text: str, schema: type[S]) -> S:
    """Return the value in the text of a model. Raises UnparsedError unless the text holds JSON of the schema."""
    answer = strip_reasoning(text)
    try:
        try:
            return schema.model_validate_json(answer)
        except ValidationError:  # Models put words or a fence around the object.
            begin = answer.find("{")
            end = answer.rfind("}")
            if not 0 <= begin < end or (begin == 0 and end == len(answer) - 1):
                raise
            return schema.model_validate_json(answer[begin : end + 1])
    except ValidationError as error:
        first = error.errors()[0]
        location = ".".join(map(str, first["loc"])) or "the whole"
        raise UnparsedError(f"the answer is not JSON of the asked form: {location}: {first['msg']}") from None
