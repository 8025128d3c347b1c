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

# The tokens between two deadline checks: about half a second with a small model on a CPU.
_CHUNK_TOKENS = {"cpu": 256, "cuda": 2048}
# The size of a fixed cache is a multiple of this, so that prompts of similar length share a graph. It depends only on
# the prompt, because it affects the order of sums.
_STATIC_TOKENS = 1024
# Families that accept a custom mask; the tests compare each with one pass per question.
_MASKABLE_FAMILIES = FAMILIES | {"llama"}
# If memory runs out, a read is repeated in steps of a quarter, down to this length; shorter ones save nothing.
_MIN_CHUNK_TOKENS = 64

_log = logging.getLogger(__name__)


class CachedTokens:
    """The state after some tokens: keys and values, a mask of the image tokens, and the next position."""

    def __init__(self) -> None:
        # Without the config each layer stores everything, so that layers with a sliding window can be cropped too.
        self.cache = DynamicCache()
        self.pictured = torch.zeros((1, 0), dtype=torch.long)
        self.position = 0

    @property
    def token_count(self) -> int:
        """The number of tokens, with those of images."""
        return int(self.pictured.shape[-1])

    @contextmanager
    def restored(self, *, only_on_error: bool = False) -> Iterator[None]:
        """Drop the tokens that are read inside the block, even after an interruption."""
        pictured = self.pictured
        position = self.position
        has_ended = False
        try:
            yield
            has_ended = True
        finally:
            if not (has_ended and only_on_error):
                self.pictured = pictured
                self.position = position
                if not self.token_count:
                    self.cache = DynamicCache()  # A cropped layer would keep its memory.
                # An interrupted step leaves some layers longer than others.
                for layer in self.cache.layers:
                    if (excess := layer.get_seq_length() - self.token_count) > 0:
                        layer.crop(-excess)


class ForwardPass:
    """Read spans of tokens into a CachedTokens. The model has no state between two calls."""

    def __init__(self, model: Any, context_tokens: int | None) -> None:
        self.model = model
        self._context_tokens = context_tokens
        self.chunked_read_count = 0
        # Whether written tokens are read over a cache of fixed size, and in a CUDA graph.
        self.is_static = model.device.type == "cuda"
        self.captures_graphs = self.is_static
        self._static: StaticDecoding | None = None
        self._input_names = set(inspect.signature(model.forward).parameters)
        # Positions in time, height and width, as the Qwen-VL families need them.
        self._rope_index: Any = getattr(getattr(model, "model", None), "get_rope_index", None)
        text_config = model.config.get_text_config()
        has_window = "sliding_attention" in (getattr(text_config, "layer_types", None) or ())
        self._window: int | None = text_config.sliding_window if has_window else None
        self._accepts_masks = (
            model.config.model_type in _MASKABLE_FAMILIES and text_config._attn_implementation == "sdpa"  # noqa: SLF001
        )
        self.chunk_tokens = _CHUNK_TOKENS.get(model.device.type, _CHUNK_TOKENS["cuda"])

    def check_fits(self, token_count: int) -> None:
        """Raise InvalidRequestError if that many tokens exceed the context."""
        if self._context_tokens is not None and token_count > self._context_tokens:
            raise InvalidRequestError(
                f"the prompt has {token_count} tokens, and the context holds {self._context_tokens}; "
                "shorten it, or set context_tokens higher"
            )

    def count_free_tokens(self, cached: CachedTokens) -> int:
        """Return the number of tokens that still fit into the context."""
        return (self._context_tokens or sys.maxsize) - cached.token_count

    def read(self, cached: CachedTokens, spans: Sequence[TokenSpan], call: RequestContext) -> torch.Tensor:
        """Append the spans and return the logits of the next token; take smaller steps if memory runs out."""
        token_count = sum(map(len, spans))
        chunk_tokens = min(self.chunk_tokens, token_count)
        while True:
            try:
                with cached.restored(only_on_error=True):
                    logits = free_memory(partial(self._read, cached, spans, call, chunk_tokens))
            except ModelMemoryError:
                self._static = None
                chunk_tokens //= 4
                if chunk_tokens < _MIN_CHUNK_TOKENS:
                    raise
            else:
                if chunk_tokens < min(self.chunk_tokens, token_count):
                    call.add_usage(chunks=ceil(token_count / chunk_tokens))
                    self.chunked_read_count += 1
                return logits

    def _read(
        self, cached: CachedTokens, spans: Sequence[TokenSpan], call: RequestContext, chunk_tokens: int
    ) -> torch.Tensor:
        logits = None
        for chunk in _regroup(spans, chunk_tokens):
            call.check()
            logits = self._run_step(cached, [chunk])[-1]
        if logits is None:
            raise InvalidRequestError("the prompt is empty")
        return logits

    def can_read_in_one_pass(self, branches: Sequence[Sequence[TokenSpan]]) -> bool:
        """Whether one step can read these continuations of a prefix."""
        spans = [span for branch in branches for span in branch]
        return self._accepts_masks and sum(map(len, spans)) <= self.chunk_tokens and can_join(spans)

    def read_branches(
        self, cached: CachedTokens, branches: Sequence[Sequence[TokenSpan]], call: RequestContext
    ) -> Sequence[torch.Tensor]:
        """Return the logits after each continuation, all read in one pass and independently; append none."""
        call.check()
        with cached.restored():
            return free_memory(lambda: self._run_step(cached, [join_spans(branch) for branch in branches]))

    def start_decoding(
        self, cached: CachedTokens, max_tokens: int, call: RequestContext
    ) -> Callable[[int], torch.Tensor]:
        """Return a function that reads one written token, at most `max_tokens` times; on a GPU, it replays a graph."""
        if self.is_static and self._accepts_masks:
            try:
                read_token = free_memory(lambda: self.make_static_decoding(cached, max_tokens).read_token)
                cached.cache = DynamicCache()  # The copy replaces it, so its memory is freed.
                return read_token
            except (
                ModelMemoryError,
                RuntimeError,
            ) as error:  # A graph that cannot capture the pass raises RuntimeError.
                self._static = None
                self.is_static = isinstance(error, ModelMemoryError)
                _log.warning("tokens are written without a CUDA graph, more slowly: %s", error)
        return lambda token: self.read(cached, [TokenSpan.of_words(torch.tensor([[token]]))], call)

    def make_static_decoding(self, cached: CachedTokens, max_tokens: int) -> StaticDecoding:
        """Return the decoding over a copy of the cache with room for `max_tokens` more."""
        size = ceil((cached.token_count + max_tokens) / _STATIC_TOKENS) * _STATIC_TOKENS
        if self._static is None or self._static.size != size:
            self._static = None  # frees its memory for the new one
            axes = 3 if self._rope_index else None
            self._static = StaticDecoding(
                self.model, size, axes=axes, window=self._window, captures=self.captures_graphs
            )
        self._static.load(cached.cache, cached.position if self._rope_index else cached.token_count)
        return self._static

    def _run_step(self, cached: CachedTokens, branches: Sequence[TokenSpan]) -> Sequence[torch.Tensor]:
        """Append one span, or several that do not see one another, and return the last logits of each."""
        device = self.model.device
        dtype = self.model.dtype
        earlier_count = cached.token_count
        chunk = join_spans(branches)
        ids = chunk.ids.to(device)
        inputs = {
            name: value.to(device, dtype) if value.is_floating_point() else value.to(device)
            for name, value in chunk.features.items()
            if name in self._input_names
        }
        cached.pictured = torch.cat([cached.pictured.to(device), chunk.pictured.to(device)], dim=-1)
        # In some families the tokens of an image attend in both directions; in others they have positions of their own.
        if "token_type_ids" in self._input_names:
            inputs["token_type_ids"] = cached.pictured
        if self._rope_index:  # It runs on the CPU, because it reads each number.
            positions = [self._compute_positions(branch) for branch in branches]
            inputs["position_ids"] = (torch.cat(positions, dim=-1) + cached.position).to(device)
            cached.position += int(positions[-1].max()) + 1
        lengths = torch.tensor([len(branch) for branch in branches], device=device)
        if len(branches) > 1:
            masks = self._make_masks(earlier_count, lengths, chunk.pictured[0].to(device))
            inputs["attention_mask"] = masks if "sliding_attention" in masks else masks["full_attention"]
            offsets = torch.cat([torch.arange(len(branch)) for branch in branches])
            inputs.setdefault("position_ids", (earlier_count + offsets)[None].to(device))
        ends = lengths.cumsum(0) - 1
        if "logits_to_keep" in self._input_names:
            inputs["logits_to_keep"] = ends
        if chunk.embeddings:
            inputs["mm_encoder_outputs"] = join_embeddings(chunk.embeddings)
        with torch.inference_mode():
            output = self.model(input_ids=ids, past_key_values=cached.cache, use_cache=True, **inputs)
        # The copy to main memory waits for a GPU; without it, the deadline would be checked too early.
        logits = output.logits[0] if "logits_to_keep" in self._input_names else output.logits[0, ends]
        return list(logits.float().cpu())

    def _compute_positions(self, span: TokenSpan) -> torch.Tensor:
        grids = span.features.get("image_grid_thw")
        positions: torch.Tensor = self._rope_index(span.ids, mm_token_type_ids=span.pictured, image_grid_thw=grids)[0]
        return positions

    def _make_masks(self, earlier_count: int, lengths: torch.Tensor, pictured: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return the attention masks of the branches by the kind of a layer's attention."""
        branches = torch.repeat_interleave(lengths)
        indices = torch.arange(len(branches), device=lengths.device)
        mask = indices[:, None] >= indices
        if "token_type_ids" in self._input_names:  # All tokens of an image see one another.
            images = (pictured.diff(prepend=pictured.new_zeros(1)) == 1).cumsum(0) * pictured
            mask |= (images[:, None] == images) & (images > 0)
        mask &= branches[:, None] == branches
        mask = torch.cat([mask.new_ones(len(branches), earlier_count), mask], dim=-1)[None, None]
        masks = {"full_attention": mask}
        if self._window is not None:
            positions = earlier_count + indices - (lengths.cumsum(0) - lengths)[branches]
            earlier_positions = torch.arange(earlier_count, device=lengths.device)
            all_positions = torch.cat([earlier_positions, positions])
            masks["sliding_attention"] = mask & (all_positions > positions[:, None] - self._window)
        return masks


def free_memory(step: Callable[[], T]) -> T:
    """Return the result of a step.

    Raises ModelMemoryError if memory ran out, and frees the memory of the step before.
    """
    try:
        return step()
    except EngineError:
        raise
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        reason = str(error).strip() or "no memory is left"
    # Only here is the traceback gone, which kept the tensors of the step.
    release_model()
    raise ModelMemoryError(
        f"out of memory: {reason}; stop what else uses the memory, name a smaller model, or quantize this one"
    )


def release_model() -> None:
    """Return unused memory to the system."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def _regroup(spans: Sequence[TokenSpan], max_tokens: int) -> Iterator[TokenSpan]:
    """Regroup the tokens in steps of about `max_tokens`; split text anywhere, but never an image."""
    group: list[TokenSpan] = []
    for part in (part for span in spans for part in _split_text(span, max_tokens)):
        if group and (sum(map(len, group)) + len(part) > max_tokens or not can_join([*group, part])):
            yield join_spans(group)
            group = []
        group.append(part)
    if group:
        yield join_spans(group)


def _split_text(span: TokenSpan, max_tokens: int) -> list[TokenSpan]:
    if span.features or span.embeddings:
        return [span]
    return [TokenSpan.of_words(ids) for ids in span.ids.split(max_tokens, dim=-1)]
