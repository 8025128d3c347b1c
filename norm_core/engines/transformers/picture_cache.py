"""Keep the embeddings of pictures, so that each is encoded once for all windows and questions."""

from collections import OrderedDict
from typing import Any

from norm_core.engines.prompt import Image
from norm_core.engines.transformers.picture_encoder import PictureEncoder, encodes_apart
from norm_core.engines.transformers.prompt_tokens import PromptTokenizer, TokenSpan
from norm_core.records.status import Counter

# The features that the text pass needs beside the embedding: the picture's height and width in tokens.
_OF_TEXT = "image_grid_thw"


class PictureCache:
    """The embeddings used last, within `capacity_mb`, by the digest of the JPEG.

    Weights and preprocessing are part of the key too: a cache belongs to one loaded model and its processor.
    """

    def __init__(self, capacity_mb: float, reader: PromptTokenizer, encoder: PictureEncoder) -> None:
        self._capacity_bytes, self._reader, self._encoder = capacity_mb * 1_000_000, reader, encoder
        self._spans: OrderedDict[str, TokenSpan] = OrderedDict()
        self._size_bytes = self._hits = self._misses = self._evictions = 0

    @property
    def counters(self) -> tuple[Counter, ...]:
        """How many pictures were found, encoded, and dropped for room."""
        return (
            Counter(name="picture_cache_hits", count=self._hits),
            Counter(name="picture_cache_misses", count=self._misses),
            Counter(name="picture_cache_evictions", count=self._evictions),
        )

    def span(self, image: Image) -> TokenSpan:
        """Return the picture's tokens with its embedding; encode it if it is not there."""
        if (held := self._spans.get(image.sha256)) is not None:
            self._hits += 1
            self._spans.move_to_end(image.sha256)
            return held
        span = self._encode(image)
        self._misses += 1
        self._spans[image.sha256] = span
        self._size_bytes += _size_bytes(span)
        while self._size_bytes > self._capacity_bytes:
            _, dropped = self._spans.popitem(last=False)
            self._size_bytes -= _size_bytes(dropped)
            self._evictions += 1
        return span

    def _encode(self, image: Image) -> TokenSpan:
        read = self._reader.picture(image)
        return TokenSpan(
            ids=read.ids,
            pictured=read.pictured,
            features={_OF_TEXT: read.features[_OF_TEXT]} if _OF_TEXT in read.features else {},
            embeddings=(self._encoder.encode(read.features),),
        )


def _size_bytes(span: TokenSpan) -> int:
    return sum(embedding.size_bytes for embedding in span.embeddings)


def open_cache(model: Any, reader: PromptTokenizer, capacity_mb: int) -> PictureCache | None:
    """Return the cache of a model that sees; None where its family does not encode pictures apart, or without room."""
    if not (reader.sees and capacity_mb and encodes_apart(model)):
        return None
    return PictureCache(capacity_mb, reader, PictureEncoder(model))
