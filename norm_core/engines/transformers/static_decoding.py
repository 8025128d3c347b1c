"""Write tokens over a cache of fixed size, which a GPU replays as one graph a token."""

from typing import Any

import torch
from transformers.cache_utils import Cache, StaticLayer

# Prompts of about the same length share a graph. Its size depends on the prompt alone, as kernels sum by sizes.
_STEP_TOKENS = 1024


def static_size(tokens: int) -> int:
    """Return the size of the cache that holds so many tokens."""
    return -(-tokens // _STEP_TOKENS) * _STEP_TOKENS


class StaticDecoding:
    """Passes of one token whose tensors keep their addresses, as a graph needs it."""

    def __init__(self, model: Any, size: int, *, axes: int | None, window: int | None) -> None:
        """Make room for `size` tokens; `axes` counts the axes of a position, and `window` is that of sliding layers."""
        self._model, self._window, self.size = model, window, size
        self._cache = Cache(layers=[])
        self._graph: Any = None
        self._ids = torch.zeros((1, 1), dtype=torch.long, device=model.device)
        self._positions = self._ids.expand(axes, 1, 1).clone() if axes else self._ids.clone()
        kinds = ("full_attention",) if window is None else ("full_attention", "sliding_attention")
        self._masks = {kind: torch.zeros((1, 1, 1, self.size), dtype=torch.bool, device=model.device) for kind in kinds}

    def load(self, cache: Cache, position: int) -> None:
        """Copy what was read; the next token has that position."""
        with torch.inference_mode():
            self._copy(cache)
            self._position = position
            for mask in self._masks.values():
                mask.zero_()
                mask[..., : self._tokens] = True
            if self._window is not None:
                self._masks["sliding_attention"][..., : max(0, self._tokens - self._window)] = False
            if self._model.device.type == "cuda" and self._graph is None:
                self._capture()

    def step(self, token: int) -> torch.Tensor:
        """Read a token and return the logits after it."""
        with torch.inference_mode():
            self._ids.fill_(token)
            self._positions.fill_(self._position)
            for mask in self._masks.values():
                mask[..., self._tokens] = True
            if self._window is not None and self._tokens >= self._window:
                self._masks["sliding_attention"][..., self._tokens - self._window] = False
            self._tokens += 1
            self._position += 1
            if self._graph is None:
                self._logits = self.forward()
            else:
                self._graph.replay()
            return self._logits[0, -1].float().cpu()

    def forward(self) -> torch.Tensor:
        """Run the pass: nothing in it may wait for the GPU or copy from the processor's memory."""
        masks = self._masks
        logits: torch.Tensor = self._model(
            input_ids=self._ids,
            attention_mask=masks if "sliding_attention" in masks else masks["full_attention"],
            position_ids=self._positions,
            past_key_values=self._cache,
            use_cache=True,
            logits_to_keep=1,
        ).logits
        return logits

    def _copy(self, cache: Cache) -> None:
        if not self._cache.layers:
            self._cache = Cache(layers=[StaticLayer(self.size) for _ in cache.layers])
        for layer, source in zip(self._cache.layers, cache.layers, strict=True):
            if not layer.is_initialized:
                layer.lazy_initialization(source.keys, source.values)
            self._tokens = source.get_seq_length()
            layer.keys[:, :, : self._tokens].copy_(source.keys)
            layer.values[:, :, : self._tokens].copy_(source.values)
        self._rewind()

    def _capture(self) -> None:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self.forward()  # libraries set themselves up outside of the graph
        torch.cuda.current_stream().wait_stream(stream)
        self._rewind()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):  # other threads may use the GPU meanwhile
            self._logits = self.forward()
        self._graph = graph

    def _rewind(self) -> None:
        for layer in self._cache.layers:
            layer.cumulative_length.fill_(self._tokens)
