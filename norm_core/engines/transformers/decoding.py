"""Turn a model's logits into option weights or the next token."""

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

import torch

from norm_core.engines.transformers.prompt_tokens import PromptTokenizer


class TokenDecoder:
    """A model's letter tokens, end-of-turn tokens and sampling settings."""

    def __init__(self, model: Any, reader: PromptTokenizer) -> None:
        self._tokenizer = reader.tokenizer
        # A letter that is not a single token ends the list of usable letters.
        self._letters = [torch.tensor(ids) for ids in takewhile(bool, reader.letters())]
        settings = model.generation_config
        ends = settings.eos_token_id if isinstance(settings.eos_token_id, list) else [settings.eos_token_id]
        self._ends = {end for end in (*ends, self._tokenizer.eos_token_id) if end is not None}
        self._temperature = settings.temperature or 1.0
        text = model.config.get_text_config()
        self.context_tokens: int | None = getattr(text, "max_position_embeddings", None)

    @property
    def max_options(self) -> int:
        """The number of letters that are single tokens."""
        return len(self._letters)

    def weigh(self, logits: torch.Tensor, count: int) -> list[float]:
        """Return the log-probability of each of the first `count` letters, over all tokens."""
        every = torch.log_softmax(logits.double(), dim=-1)
        return [float(torch.logsumexp(every[ids], dim=-1)) for ids in self._letters[:count]]

    def dice(self, seed: int) -> torch.Generator | None:
        """Return the random generator for `next`; None for seed 0, which takes the likeliest token."""
        return torch.Generator().manual_seed(seed) if seed else None

    def next(self, logits: torch.Tensor, dice: torch.Generator | None) -> int:
        """Return the next token."""
        if dice is None:
            return int(logits.argmax())
        chances = torch.softmax(logits / self._temperature, dim=-1)
        return int(torch.multinomial(chances, 1, generator=dice))

    def ends(self, token: int) -> bool:
        """Whether a token ends the model's turn."""
        return token in self._ends

    def text(self, tokens: Sequence[int]) -> str:
        """Return the text of written tokens, without special tokens."""
        written: str = self._tokenizer.decode(tokens, skip_special_tokens=True)
        return written
