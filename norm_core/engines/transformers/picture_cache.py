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
from norm_core.engines.transformers.picture_encoder import PictureEncoder, encodes_apart
from norm_core.engines.transformers.prompt_tokens import PromptTokenizer, TokenSpan, join_spans
from norm_core.records.status import Counter

# The feature that the text pass needs beside the embedding: the picture's height and width in tokens.
_OF_TEXT = "image_grid_thw"


class PictureCache:
    """The most recently used embeddings, within `capacity_mb`, by the digest of the JPEG.

    A cache belongs to one loaded model and its processor.
    """

    def __init__(self, capacity_mb: float, reader: PromptTokenizer, encoder: PictureEncoder) -> None:
        self._capacity_bytes, self._reader, self.encoder = capacity_mb * 1_000_000, reader, encoder
        self.clear()

    def clear(self) -> None:
        """Drop all pictures and counts."""
        self._spans: OrderedDict[str, TokenSpan] = OrderedDict()
        self._size_bytes = self._hits = self._misses = self._evictions = 0

    @property
    def counters(self) -> tuple[Counter, ...]:
        """The numbers of hits, misses and evictions."""
        return (
            Counter(name="picture_cache_hits", count=self._hits),
            Counter(name="picture_cache_misses", count=self._misses),
            Counter(name="picture_cache_evictions", count=self._evictions),
        )

    def spans(self, images: Sequence[Image], check: Callable[[], None]) -> dict[str, TokenSpan]:
        """Return each picture's tokens with its embedding, by its digest; encode missing ones.

        `check` is called before each step and may raise.
        """
        spans = {image.sha256: self._spans[image.sha256] for image in images if image.sha256 in self._spans}
        missing = {image.sha256: image for image in images if image.sha256 not in spans}
        self._hits += len(images) - len(missing)
        for name in spans:
            self._spans.move_to_end(name)
        reads: dict[str, TokenSpan] = {}
        for name, image in missing.items():
            check()
            reads[name] = free_memory(partial(self._reader.picture, image))
        while reads:
            check()
            _, of_one_shape = next(groupby(reads, key=lambda name: _shapes(reads[name])))
            names = list(islice(of_one_shape, self.encoder.batch))
            self._encode({name: reads.pop(name) for name in names}, spans)
        return spans

    def _encode(self, batch: dict[str, TokenSpan], spans: dict[str, TokenSpan]) -> None:
        """Encode pictures of one shape as one batch, which is padded; add them to `spans` and to the cache."""
        reads = [*batch.values()]
        reads += reads[-1:] * (self.encoder.batch - len(reads))
        embeddings = free_memory(partial(self.encoder.encode, join_spans(reads).features, len(reads)))
        self._misses += len(batch)
        for (name, read), embedding in zip(batch.items(), embeddings, strict=False):
            features = {_OF_TEXT: read.features[_OF_TEXT]} if _OF_TEXT in read.features else {}
            spans[name] = self._spans[name] = replace(read, features=features, embeddings=(embedding,))
            self._size_bytes += embedding.size_bytes
        while self._size_bytes > self._capacity_bytes:
            _, dropped = self._spans.popitem(last=False)
            self._size_bytes -= dropped.embeddings[0].size_bytes
            self._evictions += 1


def _shapes(span: TokenSpan) -> dict[str, torch.Size]:
    return {name: value.shape for name, value in span.features.items()}


def open_cache(model: Any, reader: PromptTokenizer, capacity_mb: int) -> PictureCache | None:
    """Return the cache of a vision model; None if its family cannot encode pictures apart, or for a capacity of 0."""
    if not (reader.sees and capacity_mb and encodes_apart(model)):
        return None
    return PictureCache(capacity_mb, reader, PictureEncoder(model))
