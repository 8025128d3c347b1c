"""Encode pictures apart from the text, for families whose text pass accepts embeddings."""

import inspect
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import torch

from norm_core.records.record import record

# The fixed number of pictures in a pass. The order of sums in a kernel depends on the size of its input, so with a
# variable number, other pictures would change an embedding. A GPU encodes four in about the time of one.
_BATCH_SIZES = {"cpu": 1, "cuda": 4}
# Families whose answers the tests compare with those of the joint pass.
FAMILIES = {"gemma3", "idefics3", "internvl", "llava", "qwen2_5_vl", "qwen3_vl", "smolvlm"}


@record
class PictureEmbedding:
    """The output of the vision tower for a picture; later layers add the features in `deep` (Qwen3-VL)."""

    tokens: torch.Tensor
    deep: tuple[torch.Tensor, ...] = ()

    @property
    def size_bytes(self) -> int:
        """The memory of all tensors."""
        return sum(tensor.nbytes for tensor in (self.tokens, *self.deep))


class PictureEncoder:
    """The vision tower of a model."""

    def __init__(self, model: Any) -> None:
        self._core = model.model
        self._device = model.device
        self._dtype = model.dtype
        self._input_names = set(inspect.signature(self._core.get_image_features).parameters)
        self.batch_size = _BATCH_SIZES.get(model.device.type, _BATCH_SIZES["cuda"])

    def encode(self, features: dict[str, torch.Tensor], count: int) -> list[PictureEmbedding]:
        """Run the vision tower once on the joined features of `count` pictures of one shape."""
        inputs = {
            name: value.to(self._device, self._dtype) if value.is_floating_point() else value.to(self._device)
            for name, value in features.items()
            if name in self._input_names
        }
        with torch.inference_mode():
            output = self._core.get_image_features(**inputs, return_dict=True)
        layers = [output.pooler_output, *(getattr(output, "deepstack_features", None) or ())]
        # Cloned, because a part of a batch would keep the memory of the whole batch.
        pictures = zip(*([part.clone() for part in _to_tensor(layer).chunk(count)] for layer in layers), strict=True)
        return [PictureEmbedding(tokens=tokens, deep=tuple(deep)) for tokens, *deep in pictures]


def join_embeddings(embeddings: Sequence[PictureEmbedding]) -> dict[str, Any]:
    """Return the embeddings of pictures in the form that the text pass accepts in place of pixels."""
    tokens = [embedding.tokens for embedding in embeddings]
    deep = [list(layer) for layer in zip(*(embedding.deep for embedding in embeddings), strict=True)]
    # Families with flat tokens accept a list, those with tiles one tensor.
    pooled: Any = tokens if tokens[0].ndim == 2 else torch.cat(tokens)
    return {"image": SimpleNamespace(pooler_output=pooled, deepstack_features=deep)}


def can_encode_apart(model: Any) -> bool:
    """Whether the family is one of FAMILIES, and this transformers passes embeddings to its text pass."""
    core = getattr(model, "model", None)
    return (
        model.config.model_type in FAMILIES
        and hasattr(core, "get_image_features")
        and "mm_encoder_outputs" in inspect.signature(core.forward).parameters  # type: ignore[union-attr]
    )


def _to_tensor(value: Any) -> torch.Tensor:
    """Return one tensor from a tensor, or from a list with one for each picture."""
    return value if isinstance(value, torch.Tensor) else torch.cat(tuple(value))
