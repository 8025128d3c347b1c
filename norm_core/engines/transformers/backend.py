"""A backend for image-text-to-text and causal language models of transformers."""

import json
import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

from norm_core.engines.engine import EngineHealth
from norm_core.engines.errors import EngineError, EngineFailedError, ModelMemoryError
from norm_core.engines.options import format_options
from norm_core.engines.prompt import Image, Part, Prompt, Question, Text
from norm_core.engines.reply import ModelInfo
from norm_core.engines.request_context import DECODE, ENCODE, PREFILL, Deadline, RequestContext
from norm_core.records.record import record
from norm_core.records.status import Counter
from norm_core.runtime.extras import format_install_command
from norm_core.runtime.time import WallClock

if TYPE_CHECKING:
    import torch

    from norm_core.engines.transformers.decoding import TokenDecoder
    from norm_core.engines.transformers.forward_pass import CachedTokens, ForwardPass
    from norm_core.engines.transformers.picture_cache import PictureCache
    from norm_core.engines.transformers.prompt_tokens import PromptTokenizer, ReadPicture, TokenSpan

# The tokens around a picture, such as <|vision_start|>.
_FRAME_TOKENS = 8
# The number of pictures at warm-up for a model without a limit.
_WARM_UP_PICTURES = 4
_NO_TEMPLATE = (
    "has no chat template, so it gets its prompts as plain text, which a model made for chats understands worse; name "
    "an instruct model, or add the chat template to its files"
)
_REQUIRED_PACKAGES = ("torch", "transformers", "accelerate")

_log = logging.getLogger(__name__)


@record
class LoadedModel:
    """The parts of a model."""

    tokenizer: "PromptTokenizer"
    forward_pass: "ForwardPass"
    decoder: "TokenDecoder"
    picture_cache: "PictureCache | None" = None


@record
class _Prefix:
    """The tokens of a prefix, and the questions after it.

    The usage of `first_call` counts the tokens. `logits` maps a question that was read to the number of its tokens and
    the logits after them.
    """

    cached: "CachedTokens"
    first_call: RequestContext
    expected: list[Question]
    logits: "dict[Question, tuple[int, torch.Tensor]]"


class TransformersBackend:
    """A checkpoint in a local folder; docs/reference/engines.md describes the arguments."""

    def __init__(
        self,
        folder: Path,
        *,
        model: str = "",
        dtype: str = "auto",
        quantization: str = "",
        device: str = "auto",
        context_tokens: int | None = None,
        max_images: int | None = None,
        picture_tokens: int | None = None,
        weights_sha256: str = "",
        picture_cache_mb: int = 64,
    ) -> None:
        """Load the checkpoint. Raises EngineFailedError if torch or transformers is not installed."""
        if missing_packages := [name for name in _REQUIRED_PACKAGES if find_spec(name) is None]:
            raise EngineFailedError(
                f"the transformers engine needs {', '.join(missing_packages)}; "
                f"install them with {format_install_command('transformers')}"
            )
        # Imported here: torch takes seconds, and the default environment lacks it.
        from norm_core.engines.transformers import forward_pass  # noqa: PLC0415
        from norm_core.engines.transformers.decoding import TokenDecoder  # noqa: PLC0415
        from norm_core.engines.transformers.loading import load_model  # noqa: PLC0415
        from norm_core.engines.transformers.picture_cache import open_cache  # noqa: PLC0415

        model_network, tokenizer = load_model(folder, dtype=dtype, quantization=quantization, device=device)
        self._issues = () if tokenizer.has_template else (f"{model or folder.name}: {_NO_TEMPLATE}",)
        decoder = TokenDecoder(model_network, tokenizer)
        context_tokens = context_tokens or decoder.context_tokens
        max_picture_tokens = (context_tokens or sys.maxsize) // (max_images or 1)
        if picture_tokens:
            max_picture_tokens = picture_tokens + _FRAME_TOKENS
        if tokenizer.has_vision:
            tokenizer.limit_picture_tokens(_make_usual_picture(), max_picture_tokens)
        self._forward_pass_module = forward_pass
        self._loaded: LoadedModel | None = LoadedModel(
            tokenizer=tokenizer,
            forward_pass=forward_pass.ForwardPass(model_network, context_tokens),
            decoder=decoder,
            picture_cache=open_cache(model_network, tokenizer, picture_cache_mb),
        )
        self.model_info = ModelInfo(
            model=model or folder.name,
            engine="transformers",
            weights_sha256=weights_sha256,
            quantization=quantization,
            context_tokens=context_tokens,
            max_images=max_images if tokenizer.has_vision else 0,
            max_options=decoder.max_options,
            device="CPU" if model_network.device.type == "cpu" else str(model_network.device),
        )
        if model_network.device.type == "cuda":
            self.warm_up()

    def warm_up(self) -> None:
        """Ask and write once with as many pictures as the model takes, so that the first request loads no kernels."""
        max_images = self.model_info.max_images
        scene = Prompt(
            version="", parts=(_make_usual_picture(),) * (_WARM_UP_PICTURES if max_images is None else max_images)
        )
        questions = [Question(parts=(Text(text=f"{index}"),), options=("Yes.", "No.")) for index in range(8)]
        call = RequestContext(Deadline(WallClock()))
        try:
            with self.encoded(scene, call) as prefix:
                self.expect(prefix, questions)
                for question in questions:
                    self.score(prefix, question, call)
            self.generate(scene, call, schema=None, max_tokens=3, seed=0)
        except EngineError as error:
            _log.warning("%s: a prompt of %d pictures: %s", self.model_info.model, len(scene.parts), error)
        if (picture_cache := self.loaded().picture_cache) is not None:
            picture_cache.clear()

    @contextmanager
    def encoded(self, prefix: Prompt, call: RequestContext) -> Iterator[_Prefix]:
        """Read the prefix into a cache of its own, which is dropped at the end of the block."""
        cached = self._forward_pass_module.CachedTokens()
        read_picture = self._encode_pictures(prefix.parts, call)
        self._read(cached, self.loaded().tokenizer.tokenize_opening(prefix.parts, read_picture), call)
        yield _Prefix(cached=cached, first_call=call, expected=[], logits={})

    def expect(self, prefix: _Prefix, questions: Sequence[Question]) -> None:
        """Note the questions that will be scored, so that one pass can read several."""
        prefix.expected[:] = (question for question in questions if len(question.options) > 1)

    def score(self, prefix: _Prefix, question: Question, call: RequestContext) -> Sequence[float]:
        """Read the question and expected others after the prefix, and weigh the letters of its options."""
        call.enter_segment(ENCODE)
        if call is not prefix.first_call:
            call.add_usage(cached_tokens=prefix.cached.token_count)
        if question not in prefix.logits:
            self._read_questions(prefix, question, call)
        call.enter_segment(DECODE)
        token_count, logits = prefix.logits.pop(question)
        call.add_usage(prompt_tokens=token_count)
        return self.loaded().decoder.weigh_letters(logits, len(question.options))

    def _read_questions(self, prefix: _Prefix, question: Question, call: RequestContext) -> None:
        """Read a question, and in the same pass the expected ones that fit into one step."""
        forward_pass = self.loaded().forward_pass
        group = {question: self._tokenize_question(prefix, question, call)}
        index = prefix.expected.index(question) if question in prefix.expected else len(prefix.expected)
        for following in prefix.expected[index + 1 :]:
            try:
                spans = self._tokenize_question(prefix, following, call)
            except EngineError:
                continue  # The answer of that question will report the error.
            if not forward_pass.can_read_in_one_pass([*group.values(), spans]):
                break
            group[following] = spans
        call.enter_segment(PREFILL)
        if len(group) > 1:
            try:
                logits = forward_pass.read_branches(prefix.cached, [*group.values()], call)
            except ModelMemoryError:
                # From now on, each question is read alone.
                prefix.expected.clear()
                group = {question: group[question]}
        if len(group) == 1:
            with prefix.cached.restored():
                logits = [forward_pass.read(prefix.cached, group[question], call)]
        token_counts = [sum(map(len, spans)) for spans in group.values()]
        prefix.logits.update(zip(group, zip(token_counts, logits, strict=True), strict=True))

    def _tokenize_question(self, prefix: _Prefix, question: Question, call: RequestContext) -> list["TokenSpan"]:
        loaded = self.loaded()
        parts = (*question.parts, Text(text=format_options(question.options)))
        spans = loaded.tokenizer.tokenize_closing(parts, self._encode_pictures(parts, call))
        loaded.forward_pass.check_fits(prefix.cached.token_count + sum(map(len, spans)))
        return spans

    def generate(
        self, prompt: Prompt, call: RequestContext, *, schema: dict[str, Any] | None, max_tokens: int, seed: int
    ) -> str:
        """Write text; the prompt asks for JSON of `schema`, but nothing constrains the tokens."""
        loaded = self.loaded()
        call.enter_segment(ENCODE)
        request = Text(text=f"Answer with JSON of this schema and nothing else: {json.dumps(schema)}")
        opening = loaded.tokenizer.tokenize_opening(prompt.parts, self._encode_pictures(prompt.parts, call))
        spans = [*opening, *loaded.tokenizer.tokenize_closing((request,) if schema else ())]
        cached = self._forward_pass_module.CachedTokens()
        logits = self._read(cached, spans, call)
        call.enter_segment(DECODE)
        write = partial(self._write, loaded, cached, logits, call, max_tokens=max_tokens, seed=seed)
        return self._forward_pass_module.free_memory(write)

    @property
    def health(self) -> EngineHealth:
        """An issue if the chat template is missing, and counters of the picture cache and of reads in chunks."""
        picture_cache = self._loaded.picture_cache if self._loaded else None
        chunked_count = self._loaded.forward_pass.chunked_read_count if self._loaded else 0
        counters = picture_cache.counters if picture_cache else ()
        if chunked_count:
            counters = (*counters, Counter(name="reads_in_chunks", count=chunked_count))
        return EngineHealth(issues=self._issues, counters=counters)

    def close(self) -> None:
        """Drop the model and free the memory of the device."""
        self._loaded = None
        self._forward_pass_module.release_model()

    def loaded(self) -> LoadedModel:
        """Return the parts of the model. Raises EngineFailedError after `close`."""
        if self._loaded is None:
            raise EngineFailedError(f"{self.model_info.model} was closed; lease or open it again")
        return self._loaded

    def _encode_pictures(self, parts: Sequence[Part], call: RequestContext) -> "ReadPicture | None":
        """Encode the pictures apart from the text, and return a function that finds each; None if the family cannot."""
        if (picture_cache := self.loaded().picture_cache) is None:
            return None
        spans = picture_cache.get_spans([part for part in parts if isinstance(part, Image)], call.check)
        return lambda image: spans[image.sha256]

    def _read(self, cached: "CachedTokens", spans: Sequence["TokenSpan"], call: RequestContext) -> Any:
        """Return the logits after the spans. Raises InvalidRequestError if they exceed the context."""
        forward_pass = self.loaded().forward_pass
        token_count = sum(map(len, spans))
        forward_pass.check_fits(cached.token_count + token_count)
        call.add_usage(prompt_tokens=token_count)
        call.enter_segment(PREFILL)
        return forward_pass.read(cached, spans, call)

    @staticmethod
    def _write(
        loaded: LoadedModel, cached: "CachedTokens", logits: Any, call: RequestContext, *, max_tokens: int, seed: int
    ) -> str:
        tokens: list[int] = []
        random_source = loaded.decoder.make_random_source(seed)
        max_tokens = min(max_tokens, loaded.forward_pass.count_free_tokens(cached) + 1)
        read_token = loaded.forward_pass.start_decoding(cached, max_tokens - 1, call)
        while True:
            token = loaded.decoder.choose_token(logits, random_source)
            tokens.append(token)
            call.add_usage(completion_tokens=1)
            if loaded.decoder.is_end(token) or len(tokens) == max_tokens:
                return loaded.decoder.write_text(tokens)
            call.check()
            logits = read_token(token)


def _make_usual_picture() -> Image:
    """Return a black picture of the camera's usual size."""
    return Image(jpeg=cv2.imencode(".jpg", np.zeros((336, 448, 3), np.uint8))[1].tobytes())
