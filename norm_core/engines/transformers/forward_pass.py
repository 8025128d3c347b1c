"""Forward passes of a transformers model, in interruptible steps and with a restorable cache."""

import gc
import inspect
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from math import ceil
from typing import Any, TypeVar

import torch
from transformers import DynamicCache

from norm_core.engines.errors import EngineError, InvalidRequestError, ModelMemoryError, is_out_of_memory
from norm_core.engines.request_context import RequestContext
from norm_core.engines.transformers.decoding import StaticDecoding
from norm_core.engines.transformers.picture_encoder import FAMILIES, join_embeddings
from norm_core.engines.transformers.prompt_tokens import TokenSpan, can_join, join_spans

T = TypeVar("T")

_log = logging.getLogger(__name__)

# The tokens between two deadline checks: about half a second with a small model on a CPU.
_CHUNK_TOKENS = {"cpu": 256, "cuda": 2048}
# Prompts of similar length share a graph. Its size depends only on the prompt, because it affects how kernels sum.
_STATIC_TOKENS = 1024
# Families that accept a custom mask; the tests compare each with one pass per question.
_TAKE_MASKS = FAMILIES | {"llama"}
# If memory runs out, a read is repeated in steps of a quarter, down to this length; shorter ones save nothing.
_MIN_CHUNK_TOKENS = 64


class CachedTokens:
    """The state after tokens were read: keys and values, image-token mask and next position."""

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
        """Drop the tokens that are read inside the block, even after an interruption."""
        pictured, position = self.pictured, self.position
        is_over = False
        try:
            yield
            is_over = True
        finally:
            if not (is_over and only_on_error):
                self.pictured, self.position = pictured, position
                if not self.tokens:
                    self.cache = DynamicCache()  # a cropped layer would keep its memory
                for layer in self.cache.layers:  # an interrupted step leaves some layers longer than others
                    if (excess := layer.get_seq_length() - self.tokens) > 0:
                        layer.crop(-excess)


class ForwardPass:
    """Read pieces into a CachedTokens. The model itself has no state between two calls."""

    def __init__(self, model: Any, context_tokens: int | None) -> None:
        self.model, self._context_tokens = model, context_tokens
        self.chunked_reads = 0
        self.is_static = self.captures_graphs = model.device.type == "cuda"
        self._static: StaticDecoding | None = None
        self._takes = set(inspect.signature(model.forward).parameters)
        # Positions in time, height and width, as the Qwen-VL families need them.
        self._rope_index: Any = getattr(getattr(model, "model", None), "get_rope_index", None)
        text = model.config.get_text_config()
        has_window = "sliding_attention" in (getattr(text, "layer_types", None) or ())
        self._window: int | None = text.sliding_window if has_window else None
        self._takes_masks = model.config.model_type in _TAKE_MASKS and text._attn_implementation == "sdpa"  # noqa: SLF001
        self.chunk_tokens = _CHUNK_TOKENS.get(model.device.type, _CHUNK_TOKENS["cuda"])

    def check_fits(self, tokens: int) -> None:
        """Raise InvalidRequestError if that many tokens exceed the context."""
        if self._context_tokens is not None and tokens > self._context_tokens:
            raise InvalidRequestError(
                f"the prompt has {tokens} tokens, and the context holds {self._context_tokens}; "
                "shorten it, or set context_tokens higher"
            )

    def room(self, reading: CachedTokens) -> int:
        """Return how many more tokens the context holds."""
        return (self._context_tokens or sys.maxsize) - reading.tokens

    def read(self, reading: CachedTokens, pieces: Sequence[TokenSpan], call: RequestContext) -> torch.Tensor:
        """Append pieces and return the logits of the next token; take smaller steps if memory runs out."""
        tokens = sum(map(len, pieces))
        chunk_tokens = min(self.chunk_tokens, tokens)
        while True:
            try:
                with reading.restored(only_on_error=True):
                    logits = free_memory(partial(self._read, reading, pieces, call, chunk_tokens))
            except ModelMemoryError:
                self._static = None
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
            logits = self._step(reading, [chunk])[-1]
        if logits is None:
            raise InvalidRequestError("the prompt is empty")
        return logits

    def fit_one_pass(self, branches: Sequence[Sequence[TokenSpan]]) -> bool:
        """Whether one step can read these continuations of a prefix."""
        spans = [span for branch in branches for span in branch]
        return self._takes_masks and sum(map(len, spans)) <= self.chunk_tokens and can_join(spans)

    def read_branches(
        self, reading: CachedTokens, branches: Sequence[Sequence[TokenSpan]], call: RequestContext
    ) -> Sequence[torch.Tensor]:
        """Return the logits after each continuation, all read in one pass and independently; append none."""
        call.check()
        with reading.restored():
            return free_memory(lambda: self._step(reading, [join_spans(branch) for branch in branches]))

    def decoding(self, reading: CachedTokens, tokens: int, call: RequestContext) -> Callable[[int], torch.Tensor]:
        """Return a function that reads one written token, for at most `tokens`; on a GPU, it replays a graph."""
        if self.is_static and self._takes_masks:
            try:
                step = free_memory(lambda: self.static_decoding(reading, tokens).step)
                reading.cache = DynamicCache()  # frees the copied original
                return step
            except (ModelMemoryError, RuntimeError) as error:  # RuntimeError: a graph cannot capture the pass
                self._static, self.is_static = None, isinstance(error, ModelMemoryError)
                _log.warning("tokens are written without a CUDA graph, more slowly: %s", error)
        return lambda token: self.read(reading, [TokenSpan.of_words(torch.tensor([[token]]))], call)

    def static_decoding(self, reading: CachedTokens, tokens: int) -> StaticDecoding:
        """Return the decoding over a copy of the cache with room for `tokens` more."""
        size = ceil((reading.tokens + tokens) / _STATIC_TOKENS) * _STATIC_TOKENS
        if self._static is None or self._static.size != size:
            self._static = None  # frees memory for the next
            axes = 3 if self._rope_index else None
            self._static = StaticDecoding(
                self.model, size, axes=axes, window=self._window, captures=self.captures_graphs
            )
        self._static.load(reading.cache, reading.position if self._rope_index else reading.tokens)
        return self._static

    def _step(self, reading: CachedTokens, branches: Sequence[TokenSpan]) -> Sequence[torch.Tensor]:
        """Append one span, or several that do not see one another, and return the last logits of each."""
        device, dtype = self.model.device, self.model.dtype
        tokens, chunk = reading.tokens, join_spans(branches)
        ids = chunk.ids.to(device)
        inputs = {
            name: value.to(device, dtype) if value.is_floating_point() else value.to(device)
            for name, value in chunk.features.items()
            if name in self._takes
        }
        reading.pictured = torch.cat([reading.pictured.to(device), chunk.pictured.to(device)], dim=-1)
        # In some families the tokens of an image attend in both directions; in others they have positions of their own.
        if "token_type_ids" in self._takes:
            inputs["token_type_ids"] = reading.pictured
        if self._rope_index:  # on the CPU, because it reads each number
            positions = [self._positions(branch) for branch in branches]
            inputs["position_ids"] = (torch.cat(positions, dim=-1) + reading.position).to(device)
            reading.position += int(positions[-1].max()) + 1
        lengths = torch.tensor([len(branch) for branch in branches], device=device)
        if len(branches) > 1:
            masks = self._masks(tokens, lengths, chunk.pictured[0].to(device))
            inputs["attention_mask"] = masks if "sliding_attention" in masks else masks["full_attention"]
            offsets = torch.cat([torch.arange(len(branch)) for branch in branches])
            inputs.setdefault("position_ids", (tokens + offsets)[None].to(device))
        ends = lengths.cumsum(0) - 1
        if "logits_to_keep" in self._takes:
            inputs["logits_to_keep"] = ends
        if chunk.embeddings:
            inputs["mm_encoder_outputs"] = join_embeddings(chunk.embeddings)
        with torch.inference_mode():
            output = self.model(input_ids=ids, past_key_values=reading.cache, use_cache=True, **inputs)
        # The copy to main memory waits for a GPU; without it, the deadline would be checked too early.
        logits = output.logits[0] if "logits_to_keep" in self._takes else output.logits[0, ends]
        return list(logits.float().cpu())

    def _positions(self, span: TokenSpan) -> torch.Tensor:
        grids = span.features.get("image_grid_thw")
        positions: torch.Tensor = self._rope_index(span.ids, mm_token_type_ids=span.pictured, image_grid_thw=grids)[0]
        return positions

    def _masks(self, tokens: int, lengths: torch.Tensor, pictured: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return the attention masks of the branches by the kind of a layer's attention."""
        branch = torch.repeat_interleave(lengths)
        index = torch.arange(len(branch), device=lengths.device)
        sees = index[:, None] >= index
        if "token_type_ids" in self._takes:  # all tokens of an image see one another
            image = (pictured.diff(prepend=pictured.new_zeros(1)) == 1).cumsum(0) * pictured
            sees |= (image[:, None] == image) & (image > 0)
        sees &= branch[:, None] == branch
        sees = torch.cat([sees.new_ones(len(branch), tokens), sees], dim=-1)[None, None]
        masks = {"full_attention": sees}
        if self._window is not None:
            after = tokens + index - (lengths.cumsum(0) - lengths)[branch]
            before = torch.arange(tokens, device=lengths.device)
            masks["sliding_attention"] = sees & (torch.cat([before, after]) > after[:, None] - self._window)
        return masks


def free_memory(step: Callable[[], T]) -> T:
    """Return the result of a step; if memory ran out, free the step's memory and raise ModelMemoryError."""
    try:
        return step()
    except EngineError:
        raise
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        reason = str(error).strip() or "no memory is left"
    # The traceback, which held the step's tensors, is gone only here.
    release_model()
    raise ModelMemoryError(
        f"out of memory: {reason}; stop what else uses the memory, name a smaller model, or quantize this one"
    )


def release_model() -> None:
    """Return unused memory to the system."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def _chunks(pieces: Sequence[TokenSpan], max_tokens: int) -> Iterator[TokenSpan]:
    """Regroup the tokens in steps of about `max_tokens`; split text anywhere, but never an image."""
    waiting: list[TokenSpan] = []
    for piece in (cut for whole in pieces for cut in _cut(whole, max_tokens)):
        if waiting and (sum(map(len, waiting)) + len(piece) > max_tokens or not can_join([*waiting, piece])):
            yield join_spans(waiting)
            waiting = []
        waiting.append(piece)
    if waiting:
        yield join_spans(waiting)


def _cut(piece: TokenSpan, max_tokens: int) -> list[TokenSpan]:
    if piece.features or piece.embeddings:
        return [piece]
    return [TokenSpan.of_words(ids) for ids in piece.ids.split(max_tokens, dim=-1)]
