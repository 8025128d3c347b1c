"""Encode pictures apart from the text, once for all windows and questions, in families whose text pass allows it."""

import inspect
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby, islice
from types import SimpleNamespace
from typing import Any

import torch

from norm_core.engines.prompt import Image
from norm_core.engines.transformers.forward_pass import free_memory
from norm_core.engines.transformers.prompt_tokens import PromptTokenizer, TokenSpan, join_spans
from norm_core.records.record import record
from norm_core.records.status import Counter

# Pictures in one pass, always as many, so that no other picture changes an embedding: the order in which a kernel sums
# depends on the size of its input. A GPU takes four in about the time of one; a processor gains nothing.
_BATCHES = {"cpu": 1, "cuda": 4}
# Families whose answers were compared with those of the joint pass; the tests hold each.
FAMILIES = {"gemma3", "idefics3", "internvl", "llava", "qwen2_5_vl", "qwen3_vl", "smolvlm"}


@record
class PictureEmbedding:
    """What the vision tower makes of a picture; `deep` are the features that later layers add (Qwen3-VL)."""

    tokens: torch.Tensor
    deep: tuple[torch.Tensor, ...] = ()

    @property
    def size_bytes(self) -> int:
        """The memory of all tensors."""
        return sum(tensor.nbytes for tensor in (self.tokens, *self.deep))


class PictureEncoder:
    """A model's own vision tower."""

    def __init__(self, model: Any) -> None:
        self._core, self._device, self._dtype = model.model, model.device, model.dtype
        self._takes = set(inspect.signature(self._core.get_image_features).parameters)
        self.batch = _BATCHES.get(model.device.type, _BATCHES["cuda"])

    def encode(self, features: dict[str, torch.Tensor], count: int) -> list[PictureEmbedding]:
        """Run the vision tower once on the joined features of `count` pictures of one shape."""
        inputs = {
            name: value.to(self._device, self._dtype) if value.is_floating_point() else value.to(self._device)
            for name, value in features.items()
            if name in self._takes
        }
        with torch.inference_mode():
            output = self._core.get_image_features(**inputs, return_dict=True)
        layers = [output.pooler_output, *(getattr(output, "deepstack_features", None) or ())]
        # Copies: a part of a batch would hold all of its memory.
        pictures = zip(*([part.clone() for part in _flat(layer).chunk(count)] for layer in layers), strict=True)
        return [PictureEmbedding(tokens=tokens, deep=tuple(deep)) for tokens, *deep in pictures]


def join_embeddings(embeddings: Sequence[PictureEmbedding]) -> dict[str, Any]:
    """Return several pictures as the text pass takes them in place of pixels."""
    tokens = [embedding.tokens for embedding in embeddings]
    deep = [list(layer) for layer in zip(*(embedding.deep for embedding in embeddings), strict=True)]
    # Families of flat tokens take a list; those of tiles take one tensor.
    pooled: Any = tokens if tokens[0].ndim == 2 else torch.cat(tokens)
    return {"image": SimpleNamespace(pooler_output=pooled, deepstack_features=deep)}


def encodes_apart(model: Any) -> bool:
    """Whether the family is one of FAMILIES, and this transformers passes embeddings to its text pass."""
    core = getattr(model, "model", None)
    return (
        model.config.model_type in FAMILIES
        and hasattr(core, "get_image_features")
        and "mm_encoder_outputs" in inspect.signature(core.forward).parameters  # type: ignore[union-attr]
    )


def _flat(value: Any) -> torch.Tensor:
    """Return a tensor from a tensor or from a list with one tensor a picture."""
    return value if isinstance(value, torch.Tensor) else torch.cat(tuple(value))


# The features that the text pass needs beside the embedding: the picture's height and width in tokens.
_OF_TEXT = "image_grid_thw"


class PictureCache:
    """The embeddings used last, within `capacity_mb`, by the digest of the JPEG.

    Weights and preprocessing are part of the key too: a cache belongs to one loaded model and its processor.
    """

    def __init__(self, capacity_mb: float, reader: PromptTokenizer, encoder: PictureEncoder) -> None:
        self._capacity_bytes, self._reader, self.encoder = capacity_mb * 1_000_000, reader, encoder
        self.clear()

    def clear(self) -> None:
        """Forget all pictures and counts."""
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

    def spans(self, images: Sequence[Image], check: Callable[[], None]) -> dict[str, TokenSpan]:
        """Return each picture's tokens with its embedding, by its digest; encode those that are not there.

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
        """Encode pictures of one shape in one pass, filled up to a whole batch; add them to `spans` and keep them."""
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
    """Return the cache of a model that sees; None where its family does not encode pictures apart, or without room."""
    if not (reader.sees and capacity_mb and encodes_apart(model)):
        return None
    return PictureCache(capacity_mb, reader, PictureEncoder(model))
