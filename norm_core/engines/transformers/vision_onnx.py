"""A vision tower as ONNX for one size of picture, run by TensorRT, CUDA or the CPU; torch encodes other sizes."""

import copy
import hashlib
import logging
import shutil
import tempfile
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
import transformers
from transformers import vision_utils

from norm_core.engines.errors import EngineFailedError
from norm_core.engines.prompt import Image
from norm_core.engines.transformers.picture_encoder import PictureEmbedding, PictureEncoder
from norm_core.records.status import Counter
from norm_core.runtime.cache_dir import make_cache_folder

_LANGUAGE = {"language_model", "text_model"}
# The largest difference from torch, as a share of the largest value: in float32, and in 16 bits or on a GPU.
_TOLERANCE, _TOLERANCE_16_BIT = 1e-4, 0.05

_log = logging.getLogger(__name__)


class OnnxPictureEncoder:
    """The exported tower for pictures like its sample; the model's own for all others."""

    def __init__(self, encoder: PictureEncoder, sample: dict[str, torch.Tensor], model: Any) -> None:
        """Export the tower, or find it exported. Raises EngineFailedError if that fails or changes the embedding."""
        try:
            # Imported here, because it is off by default.
            from norm_core.engines.onnx.session import open_session  # noqa: PLC0415

            path = _export_once(_Tower(model.model, sample).eval(), sample["pixel_values"])
            self._session = open_session(path, cache_folder=path.parent, memory_arena=False)
        except ImportError as error:
            raise EngineFailedError(
                f"the vision tower as ONNX needs {error.name}; install it, or remove onnx_picture_px from the manifest"
            ) from None
        except EngineFailedError:
            raise
        except Exception as error:  # noqa: BLE001  the exporter raises anything for a graph that it cannot take
            raise EngineFailedError(
                f"the vision tower cannot be exported: {type(error).__name__}: {error!s:.200}; torch runs it"
            ) from None
        self._encoder, self._like = encoder, _signature(sample)
        self._device, self._dtype = model.device, model.dtype
        self._encoded = 0
        # On a GPU as well, where TensorRT may round more than torch.
        _compare(self.encode(sample), encoder.encode(sample), is_exact=model.dtype == torch.float32)
        self._encoded = 0
        _log.warning("%s runs the vision tower for pictures like %s", self._session.provider, self._like[0])

    @property
    def counters(self) -> tuple[Counter, ...]:
        """How many pictures the exported tower encoded."""
        return (Counter(name="pictures_encoded_by_onnx", count=self._encoded),)

    def encode(self, features: dict[str, torch.Tensor]) -> PictureEmbedding:
        """Run the exported tower on one picture's features, or torch on those of another size."""
        if _signature(features) != self._like:
            return self._encoder.encode(features)
        self._encoded += 1
        name = next(iter(self._session.inputs))
        outputs = self._session.run(None, {name: features["pixel_values"].float().numpy()})
        tokens, *deep = (torch.from_numpy(output).to(self._device, self._dtype) for output in outputs)
        return PictureEmbedding(tokens=tokens, deep=tuple(deep))


def blank_picture(size_px: tuple[int, int]) -> Image:
    """Return a gray JPEG of a size, with something in it."""
    width, height = size_px
    pixels = np.full((height, width, 3), 120, np.uint8)
    pixels[height // 4 : height // 2, width // 4 : width // 2] = (40, 120, 220)
    return Image(jpeg=cv2.imencode(".jpg", pixels)[1].tobytes())


class _Tower(torch.nn.Module):  # type: ignore[misc]  # without torch it is Any
    """A copy of a model's vision part in float32, with all that depends on the picture's size as constants."""

    def __init__(self, core: Any, sample: dict[str, torch.Tensor]) -> None:
        super().__init__()
        parts = {name: part for name, part in core.named_children() if name not in _LANGUAGE}
        self.core = copy.copy(core)
        self.core.__dict__["_modules"] = {name: copy.deepcopy(part).float().cpu() for name, part in parts.items()}
        self.grid = sample.get("image_grid_thw")
        self.fixed = _size_constants(self.core.visual, self.grid) if self.grid is not None else {}
        self.patches = _patch_mask(self.core, sample)

    def forward(self, pixel_values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        if self.grid is not None:
            output = self.core.visual(pixel_values, grid_thw=self.grid, return_dict=True, **self.fixed)
            return output.pooler_output, *(getattr(output, "deepstack_features", None) or ())
        if self.patches is not None:
            # As get_image_features of the Idefics families does, without its search for empty tiles.
            seen = self.core.vision_model(pixel_values=pixel_values[0], patch_attention_mask=self.patches)
            return (self.core.connector(seen.last_hidden_state).flatten(0, 1),)
        return (self.core.get_image_features(pixel_values, return_dict=True).pooler_output,)


def _size_constants(visual: Any, grid: torch.Tensor) -> dict[str, Any]:
    """Return what a tower of the Qwen-VL families computes from a picture's size.

    Lengths are numpy arrays, so that the exporter takes them as numbers and not as data.
    """
    merge = visual.spatial_merge_size
    fixed: dict[str, Any] = {
        "position_ids": vision_utils.get_vision_position_ids(grid, merge),
        "cu_seqlens": vision_utils.get_vision_cu_seqlens(grid).numpy(),
    }
    if hasattr(visual, "window_size"):
        index, lengths = vision_utils.get_vision_window_index(grid, merge, visual.window_size, visual.patch_size)
        fixed |= {"window_index": index, "cu_window_seqlens": lengths.numpy()}
    if hasattr(visual, "num_grid_per_side"):
        fixed["interp_indices"], fixed["interp_weights"] = vision_utils.get_vision_interpolation_indices_and_weights(
            grid,
            visual.num_grid_per_side,
            mode=visual.interpolation_mode,
            align_corners=visual.interpolation_align_corners,
            spatial_merge_size=merge,
        )
    return fixed


def _patch_mask(core: Any, sample: dict[str, torch.Tensor]) -> torch.Tensor | None:
    """Return which patches hold picture and no padding, for families with such a mask."""
    if (mask := sample.get("pixel_attention_mask")) is None:
        return None
    side = core.config.vision_config.patch_size
    tiles = mask[0].unfold(1, side, side).unfold(2, side, side)
    return (tiles.sum(dim=(-1, -2)) > 0).bool()


def _export_once(tower: _Tower, pixels: torch.Tensor) -> Path:
    """Return the tower's ONNX file; export it if no earlier load did."""
    made_with = f"{torch.__version__} {transformers.__version__} {tuple(pixels.shape)} {tower.fixed.keys()}"
    key = hashlib.sha256(made_with.encode())
    constants = [value for value in (tower.grid, tower.patches) if value is not None]
    for value in (*tower.state_dict().values(), *constants):
        key.update(value.contiguous().numpy())
    folder = make_cache_folder("vision") / key.hexdigest()[:32]
    if (path := folder / "tower.onnx").is_file():
        return path
    folder.parent.mkdir(parents=True, exist_ok=True)
    _log.warning("exporting the vision tower to ONNX once; this takes up to some minutes")
    # A folder of its own, because tensors over 2 GB stand beside the model's file.
    made = Path(tempfile.mkdtemp(dir=folder.parent))
    try:
        with torch.no_grad():
            torch.onnx.export(tower, (pixels,), made / path.name, dynamo=True, verbose=False, external_data=True)
        made.replace(folder)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return path


def _signature(features: dict[str, torch.Tensor]) -> tuple[Any, ...]:
    """Return what the graph was made for: the shape of the pixels, and the grid and mask themselves."""
    rest = (value.numpy().tobytes() for name, value in sorted(features.items()) if name != "pixel_values")
    return tuple(features["pixel_values"].shape), *rest


def _compare(onnx: PictureEmbedding, own: PictureEmbedding, *, is_exact: bool) -> None:
    tolerance = _TOLERANCE if is_exact else _TOLERANCE_16_BIT
    for made, wanted in zip((onnx.tokens, *onnx.deep), (own.tokens, *own.deep), strict=True):
        gap = float((made - wanted).abs().max()) / (float(wanted.abs().max()) or 1.0)
        if not gap <= tolerance:
            raise EngineFailedError(f"the exported vision tower differs from torch's by {gap:.1e}; torch runs it")
