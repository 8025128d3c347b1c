"""Cache the embeddings of pictures, so that each is encoded once for all windows and questions."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby, islice
from typing import Any

import torch

from norm_core.engines.prompt import Image
from norm_core.engines.transformers.forward_pass import free_memory
from norm_core.engines.transformers.picture_encoder import PictureEncoder, can_encode_apart
from norm_core.engines.transformers.prompt_tokens import PromptTokenizer, TokenSpan, join_spans
from norm_core.records.status import Counter

# The feature that the text pass needs beside the embedding: height and width of the picture in tokens.
_GRID_FEATURE = "image_grid_thw"


class PictureCache:
    """The most recently used embeddings, within `capacity_mb`, by the digest of the JPEG.

    A cache belongs to one loaded model and its processor.
    """

    def __init__(self, capacity_mb: float, tokenizer: PromptTokenizer, encoder: PictureEncoder) -> None:
        self._capacity_bytes = capacity_mb * 1_000_000
        self._tokenizer = tokenizer
        self.encoder = encoder
        self.clear()

    def clear(self) -> None:
        """Drop all pictures and counts."""
        self._spans: OrderedDict[str, TokenSpan] = OrderedDict()
        self._size_bytes = 0
        self._hit_count = 0
        self._miss_count = 0
        self._eviction_count = 0

    @property
    def counters(self) -> tuple[Counter, ...]:
        """The numbers of hits, misses and evictions."""
        return (
            Counter(name="picture_cache_hits", count=self._hit_count),
            Counter(name="picture_cache_misses", count=self._miss_count),
            Counter(name="picture_cache_evictions", count=self._eviction_count),
        )

    def get_spans(self, images: Sequence[Image], check: Callable[[], None]) -> dict[str, TokenSpan]:
        """Return the tokens of each picture with its embedding, by its digest; encode missing ones.

        `check` is called before each step and may raise.
        """
        spans = {image.sha256: self._spans[image.sha256] for image in images if image.sha256 in self._spans}
        missing = {image.sha256: image for image in images if image.sha256 not in spans}
        self._hit_count += len(images) - len(missing)
        for digest in spans:
            self._spans.move_to_end(digest)
        unencoded: dict[str, TokenSpan] = {}
        for digest, image in missing.items():
            check()
            unencoded[digest] = free_memory(partial(self._tokenizer.tokenize_picture, image))
        while unencoded:
            check()
            _, same_shape = next(groupby(unencoded, key=lambda digest: _read_shapes(unencoded[digest])))
            digests = list(islice(same_shape, self.encoder.batch_size))
            self._encode({digest: unencoded.pop(digest) for digest in digests}, spans)
        return spans

    def _encode(self, batch: dict[str, TokenSpan], spans: dict[str, TokenSpan]) -> None:
        """Encode pictures of one shape as one batch, which is padded; add them to `spans` and to the cache."""
        padded = [*batch.values()]
        padded += padded[-1:] * (self.encoder.batch_size - len(padded))
        embeddings = free_memory(partial(self.encoder.encode, join_spans(padded).features, len(padded)))
        self._miss_count += len(batch)
        for (digest, span), embedding in zip(batch.items(), embeddings, strict=False):
            features = {_GRID_FEATURE: span.features[_GRID_FEATURE]} if _GRID_FEATURE in span.features else {}
            spans[digest] = replace(span, features=features, embeddings=(embedding,))
            self._spans[digest] = spans[digest]
            self._size_bytes += embedding.size_bytes
        while self._size_bytes > self._capacity_bytes:
            _, dropped = self._spans.popitem(last=False)
            self._size_bytes -= dropped.embeddings[0].size_bytes
            self._eviction_count += 1


def _read_shapes(span: TokenSpan) -> dict[str, torch.Size]:
    return {name: value.shape for name, value in span.features.items()}


def open_cache(model: Any, tokenizer: PromptTokenizer, capacity_mb: int) -> PictureCache | None:
    """Return the cache of a vision model; None if its family cannot encode pictures apart, or for a capacity of 0."""
    if not (tokenizer.has_vision and capacity_mb and can_encode_apart(model)):
        return None
    return PictureCache(capacity_mb, tokenizer, PictureEncoder(model))
