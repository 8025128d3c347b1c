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

_FRAME_TOKENS = 8  # around a picture, such as <|vision_start|>
_WARM_UP_PICTURES = 4
_NO_TEMPLATE = (
    "has no chat template, so it gets its prompts as plain text, which a model made for chats understands worse; name "
    "an instruct model, or add the chat template to its files"
)
_NEEDED = ("torch", "transformers", "accelerate")

_log = logging.getLogger(__name__)


@record
class LoadedModel:
    """The parts of a model: tokenizer, forward pass, decoder of logits, and cache of pictures."""

    reader: "PromptTokenizer"
    runner: "ForwardPass"
    decider: "TokenDecoder"
    pictures: "PictureCache | None" = None


@record
class _Prefix:
    """The tokens shared by all questions, and the call whose usage counts them."""

    reading: "CachedTokens"
    paid_by: RequestContext
    expected: list[Question]
    scored: "dict[Question, tuple[int, torch.Tensor]]"  # the question's tokens and the logits after them


class TransformersBackend:
    """A checkpoint in a local folder; docs/reference/engines.md describes the arguments."""

    def __init__(
        self,
        folder: Path,
        *,
        gguf_file: str = "",
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
        if lacking := [name for name in _NEEDED if find_spec(name) is None]:
            raise EngineFailedError(
                f"the transformers engine needs {', '.join(lacking)}, and this environment has none; "
                f"install it with {format_install_command('transformers')}"
            )
        # Imported here: torch takes seconds, and the default environment lacks it.
        from norm_core.engines.transformers import forward_pass  # noqa: PLC0415
        from norm_core.engines.transformers.decoding import TokenDecoder  # noqa: PLC0415
        from norm_core.engines.transformers.loading import load_model  # noqa: PLC0415
        from norm_core.engines.transformers.picture_cache import open_cache  # noqa: PLC0415

        network, reader = load_model(folder, gguf_file=gguf_file, dtype=dtype, quantization=quantization, device=device)
        self._issues = () if reader.has_template else (f"{model or folder.name}: {_NO_TEMPLATE}",)
        decider = TokenDecoder(network, reader)
        context_tokens = context_tokens or decider.context_tokens
        share = (context_tokens or sys.maxsize) // (max_images or 1)
        if reader.sees:
            limit = picture_tokens + _FRAME_TOKENS if picture_tokens else share
            reader.limit_picture_tokens(_usual_picture(), limit)
        self._running = forward_pass
        self._loaded: LoadedModel | None = LoadedModel(
            reader=reader,
            runner=forward_pass.ForwardPass(network, context_tokens),
            decider=decider,
            pictures=open_cache(network, reader, picture_cache_mb),
        )
        self.model_info = ModelInfo(
            model=model or folder.name,
            engine="transformers",
            weights_sha256=weights_sha256,
            quantization=quantization,
            context_tokens=context_tokens,
            max_images=max_images if reader.sees else 0,
            max_options=decider.max_options,
            device="CPU" if network.device.type == "cpu" else str(network.device),
        )
        if network.device.type == "cuda":
            self.warm_up()

    def warm_up(self) -> None:
        """Ask and write once with as many pictures as the model takes, so that the first request loads no kernels."""
        max_images = self.model_info.max_images
        scene = Prompt(
            version="", parts=(_usual_picture(),) * (_WARM_UP_PICTURES if max_images is None else max_images)
        )
        questions = [Question(parts=(Text(text=f"{number}"),), options=("Yes.", "No.")) for number in range(8)]
        call = RequestContext(Deadline(WallClock()))
        try:
            with self.encoded(scene, call) as prefix:
                self.expect(prefix, questions)
                for question in questions:
                    self.score(prefix, question, call)
            self.generate(scene, call, schema=None, max_tokens=3, seed=0)
        except EngineError as error:
            _log.warning("%s: a prompt of %d pictures: %s", self.model_info.model, len(scene.parts), error)
        if (pictures := self.loaded().pictures) is not None:
            pictures.clear()

    @contextmanager
    def encoded(self, prefix: Prompt, call: RequestContext) -> Iterator[_Prefix]:
        """Read the prefix into a cache of its own, which ends with the block."""
        loaded = self.loaded()
        reading = self._running.CachedTokens()
        self._read(reading, loaded.reader.opening(prefix.parts, self._picture_reader(prefix.parts, call)), call)
        yield _Prefix(reading=reading, paid_by=call, expected=[], scored={})

    def expect(self, prefix: _Prefix, questions: Sequence[Question]) -> None:
        """Note the questions that will be scored, so that one pass can read several."""
        prefix.expected[:] = (question for question in questions if len(question.options) > 1)

    def score(self, prefix: _Prefix, question: Question, call: RequestContext) -> Sequence[float]:
        """Read the question and expected others after the prefix, and weigh the letters of its options."""
        call.enter_segment(ENCODE)
        if call is not prefix.paid_by:
            call.add_usage(cached_tokens=prefix.reading.tokens)
        if question not in prefix.scored:
            self._read_questions(prefix, question, call)
        call.enter_segment(DECODE)
        tokens, logits = prefix.scored.pop(question)
        call.add_usage(prompt_tokens=tokens)
        return self.loaded().decider.weigh(logits, len(question.options))

    def _read_questions(self, prefix: _Prefix, question: Question, call: RequestContext) -> None:
        """Read a question, and in the same pass the expected ones that fit into one step."""
        runner = self.loaded().runner
        group = {question: self._question_pieces(prefix, question, call)}
        index = prefix.expected.index(question) if question in prefix.expected else len(prefix.expected)
        for following in prefix.expected[index + 1 :]:
            try:
                pieces = self._question_pieces(prefix, following, call)
            except EngineError:
                continue  # its own answer reports the error
            if not runner.fit_one_pass([*group.values(), pieces]):
                break
            group[following] = pieces
        call.enter_segment(PREFILL)
        if len(group) > 1:
            try:
                logits = runner.read_branches(prefix.reading, [*group.values()], call)
            except ModelMemoryError:
                prefix.expected.clear()  # from now on, each alone
                group = {question: group[question]}
        if len(group) == 1:
            with prefix.reading.restored():
                logits = [runner.read(prefix.reading, group[question], call)]
        tokens = [sum(map(len, pieces)) for pieces in group.values()]
        prefix.scored.update(zip(group, zip(tokens, logits, strict=True), strict=True))

    def _question_pieces(self, prefix: _Prefix, question: Question, call: RequestContext) -> list["TokenSpan"]:
        loaded = self.loaded()
        parts = (*question.parts, Text(text=format_options(question.options)))
        pieces = loaded.reader.closing(parts, self._picture_reader(parts, call))
        loaded.runner.check_fits(prefix.reading.tokens + sum(map(len, pieces)))
        return pieces

    def generate(
        self, prompt: Prompt, call: RequestContext, *, schema: dict[str, Any] | None, max_tokens: int, seed: int
    ) -> str:
        """Write text; a prompt asks for JSON of `schema`, but nothing constrains the tokens."""
        loaded = self.loaded()
        call.enter_segment(ENCODE)
        request = Text(text=f"Answer with JSON of this schema and nothing else: {json.dumps(schema)}")
        opening = loaded.reader.opening(prompt.parts, self._picture_reader(prompt.parts, call))
        pieces = [*opening, *loaded.reader.closing((request,) if schema else ())]
        reading = self._running.CachedTokens()
        logits = self._read(reading, pieces, call)
        call.enter_segment(DECODE)
        write = partial(self._write, loaded, reading, logits, call, max_tokens=max_tokens, seed=seed)
        return self._running.free_memory(write)

    @property
    def health(self) -> EngineHealth:
        """An issue if the chat template is missing, and counters of the picture cache and of reads in chunks."""
        pictures = self._loaded.pictures if self._loaded else None
        chunked = self._loaded.runner.chunked_reads if self._loaded else 0
        chunk_counters = (Counter(name="reads_in_chunks", count=chunked),) if chunked else ()
        return EngineHealth(issues=self._issues, counters=(*(pictures.counters if pictures else ()), *chunk_counters))

    def close(self) -> None:
        """Drop the model and free the memory of the device."""
        self._loaded = None
        self._running.release_model()

    def loaded(self) -> LoadedModel:
        """Return the model's parts; raise EngineFailedError after `close`."""
        if self._loaded is None:
            raise EngineFailedError(f"{self.model_info.model} was closed; lease or open it again")
        return self._loaded

    def _picture_reader(self, parts: Sequence[Part], call: RequestContext) -> "ReadPicture | None":
        """Encode the pictures apart from the text, and return how to look them up; None if the family cannot."""
        if (pictures := self.loaded().pictures) is None:
            return None
        spans = pictures.spans([part for part in parts if isinstance(part, Image)], call.check)
        return lambda image: spans[image.sha256]

    def _read(self, reading: "CachedTokens", pieces: Sequence["TokenSpan"], call: RequestContext) -> Any:
        """Return the logits after the pieces; raise InvalidRequestError if they exceed the context."""
        runner = self.loaded().runner
        runner.check_fits(reading.tokens + sum(map(len, pieces)))
        call.add_usage(prompt_tokens=sum(map(len, pieces)))
        call.enter_segment(PREFILL)
        return runner.read(reading, pieces, call)

    @staticmethod
    def _write(
        loaded: LoadedModel, reading: "CachedTokens", logits: Any, call: RequestContext, *, max_tokens: int, seed: int
    ) -> str:
        tokens: list[int] = []
        dice = loaded.decider.dice(seed)
        max_tokens = min(max_tokens, loaded.runner.room(reading) + 1)
        step = loaded.runner.decoding(reading, max_tokens - 1, call)
        while True:
            token = loaded.decider.next(logits, dice)
            tokens.append(token)
            call.add_usage(completion_tokens=1)
            if loaded.decider.ends(token) or len(tokens) == max_tokens:
                return loaded.decider.text(tokens)
            call.check()
            logits = step(token)


def _usual_picture() -> Image:
    """Return a black picture of the camera's usual size."""
    return Image(jpeg=cv2.imencode(".jpg", np.zeros((336, 448, 3), np.uint8))[1].tobytes())
