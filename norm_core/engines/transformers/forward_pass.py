"""Forward passes of a transformers model, in interruptible steps and with a restorable cache."""

import gc
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from math import ceil
from typing import Any, TypeVar

import torch
from transformers import DynamicCache

from norm_core.engines.errors import EngineError, InvalidRequestError, ModelMemoryError, is_out_of_memory
from norm_core.engines.request_context import RequestContext
from norm_core.engines.transformers.picture_encoder import join_embeddings
from norm_core.engines.transformers.prompt_tokens import TokenSpan

T = TypeVar("T")

# Tokens between two deadline checks: about half a second of a small model on a CPU.
_CHUNK_TOKENS = {"cpu": 256, "cuda": 2048}
# Where memory is short, a reading is tried again in steps of a quarter; shorter ones save nothing.
_MIN_CHUNK_TOKENS = 64


class CachedTokens:
    """The tokens a model has read: keys and values, image-token mask and next position."""

    def __init__(self) -> None:
        # Without the config each layer stores everything, so that layers with a sliding window can be cropped too.
        self.cache = DynamicCache()
        self.pictured = torch.zeros((1, 0), dtype=torch.long)
        self.position = 0

    @property
    def tokens(self) -> int:
        """The number of tokens read, those of images included."""
        return int(self.pictured.shape[-1])

    @contextmanager
    def restored(self, *, only_on_error: bool = False) -> Iterator[None]:
        """Drop everything read inside the block, even after an interruption."""
        pictured, position = self.pictured, self.position
        is_over = False
        try:
            yield
            is_over = True
        finally:
            if not (is_over and only_on_error):
                self._crop(int(pictured.shape[-1]))
                self.pictured, self.position = pictured, position

    def _crop(self, tokens: int) -> None:
        if not tokens:
            self.cache = DynamicCache()  # a cropped layer would hold its memory
        for layer in self.cache.layers:  # an interrupted step leaves some layers longer than others
            if (excess := layer.get_seq_length() - tokens) > 0:
                layer.crop(-excess)


class ForwardPass:
    """Read pieces into a CachedTokens. The model itself holds nothing between two calls."""

    def __init__(self, model: Any, context_tokens: int | None) -> None:
        self.model, self._context_tokens = model, context_tokens
        self.chunked_reads = 0
        self._takes = set(inspect.signature(model.forward).parameters)
        # Positions in time, height and width, as the Qwen-VL families need them.
        self._rope_index = getattr(getattr(model, "model", None), "get_rope_index", None)
        self.chunk_tokens = _CHUNK_TOKENS.get(model.device.type, _CHUNK_TOKENS["cuda"])

    def check_fits(self, tokens: int) -> None:
        """Raise if that many tokens exceed the context."""
        if self._context_tokens is not None and tokens > self._context_tokens:
            raise InvalidRequestError(
                f"the prompt has {tokens} tokens, and the context holds {self._context_tokens}; "
                "shorten it, or set context_tokens higher"
            )

    def room(self, reading: CachedTokens) -> int | None:
        """Return how many more tokens the context holds; None without a limit."""
        return None if self._context_tokens is None else self._context_tokens - reading.tokens

    def read(self, reading: CachedTokens, pieces: Sequence[TokenSpan], call: RequestContext) -> torch.Tensor:
        """Append pieces and return the logits of the next token; take smaller steps where memory runs out."""
        tokens = sum(map(len, pieces))
        chunk_tokens = min(self.chunk_tokens, tokens)
        while True:
            try:
                with reading.restored(only_on_error=True):
                    logits = free_memory(partial(self._read, reading, pieces, call, chunk_tokens))
            except ModelMemoryError:
                chunk_tokens //= 4
                if chunk_tokens < _MIN_CHUNK_TOKENS:
                    raise
            else:
                if chunk_tokens < min(self.chunk_tokens, tokens):
                    call.add_usage(chunks=ceil(tokens / chunk_tokens))
                    self.chunked_reads += 1
                return logits

    def _read(
        self, reading: CachedTokens, pieces: Sequence[TokenSpan], call: RequestContext, chunk_tokens: int
    ) -> torch.Tensor:
        logits = None
        for chunk in _chunks(pieces, chunk_tokens):
            call.check()
            logits = self._step(reading, chunk)
        if logits is None:
            raise InvalidRequestError("the prompt is empty")
        return logits

    def _step(self, reading: CachedTokens, chunk: TokenSpan) -> torch.Tensor:
        device, dtype = self.model.device, self.model.dtype
        ids = chunk.ids.to(device)
        inputs = {
            name: value.to(device, dtype) if value.is_floating_point() else value.to(device)
            for name, value in chunk.features.items()
            if name in self._takes
        }
        pictured = chunk.pictured.to(device)
        reading.pictured = torch.cat([reading.pictured.to(device), pictured], dim=-1)
        # In some families an image's tokens attend in both directions, and in others they have their own positions.
        if "token_type_ids" in self._takes:
            inputs["token_type_ids"] = reading.pictured
        if self._rope_index:
            grids = inputs.get("image_grid_thw")
            positions, _ = self._rope_index(ids, mm_token_type_ids=pictured, image_grid_thw=grids)
            inputs["position_ids"] = positions + reading.position
            reading.position += int(positions.max()) + 1
        if "logits_to_keep" in self._takes:
            inputs["logits_to_keep"] = 1
        if chunk.embeddings:
            inputs["mm_encoder_outputs"] = join_embeddings(chunk.embeddings)
        with torch.inference_mode():
            output = self.model(input_ids=ids, past_key_values=reading.cache, use_cache=True, **inputs)
        # Copied to the processor's memory, which also waits for a GPU: else the deadline would be checked too early.
        logits: torch.Tensor = output.logits[0, -1].float().cpu()
        return logits


def use_threads(count: int) -> None:
    """Set the threads of the whole process, as torch does; beside busy processes one is often faster than two."""
    torch.set_num_threads(count)


def free_memory(step: Callable[[], T]) -> T:
    """Return the result of a step; if memory ran out, free all that the step held and raise ModelMemoryError."""
    try:
        return step()
    except EngineError:
        raise
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        reason = str(error).strip() or "no memory is left"
    # Only here is the traceback gone that held the step's tensors.
    release_model()
    raise ModelMemoryError(
        f"out of memory: {reason}; stop what else uses the memory, name a smaller model, or quantize this one"
    )


def release_model() -> None:
    """Return unused memory to the system."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def _chunks(pieces: Sequence[TokenSpan], most_tokens: int) -> Iterator[TokenSpan]:
    """Regroup the tokens in steps of about `most_tokens`; split words anywhere, but never an image."""
    waiting: list[TokenSpan] = []
    for piece in (cut for whole in pieces for cut in _cut(whole, most_tokens)):
        if waiting and (sum(map(len, waiting)) + len(piece) > most_tokens or not _have_same_shape([*waiting, piece])):
            yield _merged(waiting)
            waiting = []
        waiting.append(piece)
    if waiting:
        yield _merged(waiting)


def _cut(piece: TokenSpan, most_tokens: int) -> list[TokenSpan]:
    if piece.features or piece.embeddings:
        return [piece]
    return [TokenSpan.of_words(ids) for ids in piece.ids.split(most_tokens, dim=-1)]


def _have_same_shape(pieces: Sequence[TokenSpan]) -> bool:
    """Whether the images' features have the same shape except for their count."""
    pictured = [(piece.features, _count_dimension(piece.features)) for piece in pieces if piece.features]
    shapes = [{name: value.shape[along + 1 :] for name, value in features.items()} for features, along in pictured]
    return all(shape == shapes[0] for shape in shapes)


def _count_dimension(features: dict[str, torch.Tensor]) -> int:
    """Return the dimension that counts images: the Idefics families put a batch dimension before it."""
    return 1 if "pixel_values" in features and features["pixel_values"].ndim == 5 else 0


def _merged(pieces: Sequence[TokenSpan]) -> TokenSpan:
    pictured = [piece.features for piece in pieces if piece.features]
    return TokenSpan(
        ids=torch.cat([piece.ids for piece in pieces], dim=-1),
        pictured=torch.cat([piece.pictured for piece in pieces], dim=-1),
        features={
            name: torch.cat([features[name] for features in pictured], dim=_count_dimension(pictured[0]))
            for name in (pictured[0] if pictured else ())
        },
        embeddings=tuple(embedding for piece in pieces for embedding in piece.embeddings),
    )
