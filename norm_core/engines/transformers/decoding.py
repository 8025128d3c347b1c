"""Turn a model's logits into option weights or the next token, and read tokens one by one."""

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

import torch
from transformers.cache_utils import Cache, StaticLayer

from norm_core.engines.transformers.prompt_tokens import PromptTokenizer


class TokenDecoder:
    """Decode logits by the letter tokens, end-of-turn tokens and temperature of a model."""

    def __init__(self, model: Any, tokenizer: PromptTokenizer) -> None:
        self._tokenizer = tokenizer.tokenizer
        # The usable letters end before the first that is not a single token.
        self._letters = [torch.tensor(ids) for ids in takewhile(bool, tokenizer.find_letter_tokens())]
        settings = model.generation_config
        end_tokens = settings.eos_token_id if isinstance(settings.eos_token_id, list) else [settings.eos_token_id]
        self._end_tokens = {token for token in (*end_tokens, self._tokenizer.eos_token_id) if token is not None}
        self._temperature = settings.temperature or 1.0
        text_config = model.config.get_text_config()
        self.context_tokens: int | None = getattr(text_config, "max_position_embeddings", None)

    @property
    def max_options(self) -> int:
        """The number of letters that are single tokens."""
        return len(self._letters)

    def weigh_letters(self, logits: torch.Tensor, count: int) -> list[float]:
        """Return the log-probability of each of the first `count` letters, over all tokens."""
        log_probabilities = torch.log_softmax(logits.double(), dim=-1)
        return [float(torch.logsumexp(log_probabilities[ids], dim=-1)) for ids in self._letters[:count]]

    def make_random_source(self, seed: int) -> torch.Generator | None:
        """Return the source for `choose_token`; None for seed 0, which means greedy decoding."""
        return torch.Generator().manual_seed(seed) if seed else None

    def choose_token(self, logits: torch.Tensor, random_source: torch.Generator | None) -> int:
        """Return the next token."""
        if random_source is None:
            return int(logits.argmax())
        probabilities = torch.softmax(logits / self._temperature, dim=-1)
        return int(torch.multinomial(probabilities, 1, generator=random_source))

    def is_end(self, token: int) -> bool:
        """Whether a token ends the turn of the model."""
        return token in self._end_tokens

    def write_text(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens, without special tokens."""
        text: str = self._tokenizer.decode(tokens, skip_special_tokens=True)
        return text


class StaticDecoding:
    """Passes of one token over a cache of fixed size, whose tensors keep their addresses for a CUDA graph."""

    def __init__(self, model: Any, size: int, *, axes: int | None, window: int | None, captures: bool) -> None:
        """Reserve `size` tokens; `axes` counts the axes of a position, `window` the tokens of a sliding layer."""
        self._model = model
        self._window = window
        self._captures = captures
        self.size = size
        self._cache = Cache(layers=[])
        self._graph: Any = None
        self._indices = torch.arange(size, device=model.device)
        self._ids = torch.zeros((1, 1), dtype=torch.long, device=model.device)
        self._index = self._ids.clone()
        self._position = torch.zeros((axes, 1, 1) if axes else (1, 1), dtype=torch.long, device=model.device)

    def load(self, cache: Cache, position: int) -> None:
        """Copy a cache; the next token has `position`."""
        if not self._cache.layers:
            self._cache = Cache(layers=[StaticLayer(self.size) for _ in cache.layers])
        with torch.inference_mode():
            for layer, source in zip(self._cache.layers, cache.layers, strict=True):
                if not layer.is_initialized:
                    layer.lazy_initialization(source.keys, source.values)
                token_count = source.get_seq_length()
                layer.keys[:, :, :token_count].copy_(source.keys)
                layer.values[:, :, :token_count].copy_(source.values)
            self._index.fill_(token_count)
            self._position.fill_(position)
            self._reset_lengths()
            if self._captures and self._graph is None:
                self.forward()  # The libraries must initialize outside of the graph.
                graph = torch.cuda.CUDAGraph()
                # thread_local, because other threads may use the GPU meanwhile.
                with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                    self._logits = self.forward()
                self._graph = graph
                self._reset_lengths()

    def _reset_lengths(self) -> None:
        for layer in self._cache.layers:
            layer.cumulative_length.copy_(self._index[0, 0])

    def read_token(self, token: int) -> torch.Tensor:
        """Read a token and return the logits after it."""
        with torch.inference_mode():
            self._ids.fill_(token)
            if self._graph is None:
                self._logits = self.forward()
            else:
                self._graph.replay()
            self._index += 1
            self._position += 1
            return self._logits[0, -1].float().cpu()

    def forward(self) -> torch.Tensor:
        """Run the pass, which must not wait for the GPU or copy from main memory."""
        masks = {"full_attention": (self._indices <= self._index)[None, None]}
        if self._window is not None:
            masks["sliding_attention"] = masks["full_attention"] & (self._indices > self._index - self._window)
        logits: torch.Tensor = self._model(
            input_ids=self._ids,
            attention_mask=masks["full_attention"] if self._window is None else masks,
            position_ids=self._position,
            past_key_values=self._cache,
            use_cache=True,
            logits_to_keep=1,
        ).logits
        return logits
