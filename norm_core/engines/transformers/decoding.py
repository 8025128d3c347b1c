"""Turn a model's logits into option weights or the next token."""

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

import torch

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
