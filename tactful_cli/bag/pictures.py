"""Turn a bag's images into model inputs, on which a quantization recipe measures activations."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from norm_core.bags.reader import BagError, BagReader
from norm_core.models.manifest import Manifest
from norm_core.records.frame import Frame
from norm_core.runtime.config import ConfigError
from norm_core.runtime.health_log import HealthLog
from norm_core.runtime.picture_decoding import decode_picture
from norm_monitor.eyes import Eyes
from norm_monitor.senses.camera.frame_keeper import FrameConfig
from tactful_cli.see import first_camera, seen_in


def bag_inputs(
    bag: Path, manifest: Manifest, inputs: dict[str, tuple[int | None, ...]], most: int
) -> list[dict[str, NDArray[np.float32]]]:
    """Read up to `most` frames, spread over the bag, in the input format of the model."""
    divided_by, offset = (manifest.settings.get(f"picture_{name}") for name in ("divided_by", "offset"))
    if not isinstance(divided_by, int | float) or not isinstance(offset, int | float) or len(inputs) != 1:
        raise ConfigError(
            f"{manifest.name}: settings: picture_divided_by and picture_offset are missing: "
            "its manifest does not say how a picture becomes its one input; add them"
        )
    ((name, shape),) = inputs.items()
    if len(shape) != 4 or shape[1] != 3 or not (shape[2] and shape[3]):
        raise ConfigError(
            f"{manifest.name}: its input {name} is {shape}, and a picture is (1, 3, height, width); "
            "choose a model of pictures"
        )
    tiles = [frame.tile_jpeg for frame in _frames_of(bag)]
    if not tiles:
        raise BagError(f"{bag}: holds no picture that can be decoded; name another bag")
    chosen = tiles[:: max(1, -(-len(tiles) // most))]
    return [{name: (_fitted(tile, shape[2], shape[3]) / divided_by + offset).astype(np.float32)} for tile in chosen]


def _frames_of(bag: Path) -> Iterator[Frame]:
    """Yield two frames a second of the first topic of pictures."""
    with BagReader(bag) as reader:
        topic = first_camera(reader, bag)
        eyes = Eyes(topic, HealthLog(), FrameConfig(keep_hz=2.0))
        yield from (found for found in seen_in(reader, topic, eyes) if isinstance(found, Frame))


def _fitted(tile_jpeg: bytes, height_px: int, width_px: int) -> NDArray[Any]:
    """Centre a picture, as RGB, in a black array of shape (1, 3, height, width)."""
    bgr = decode_picture(tile_jpeg)
    if bgr is None:
        raise BagError("a kept frame is no JPEG; record the bag again")
    scale = min(width_px / bgr.shape[1], height_px / bgr.shape[0])
    size = (max(1, round(bgr.shape[1] * scale)), max(1, round(bgr.shape[0] * scale)))
    small = cv2.cvtColor(cv2.resize(bgr, size, interpolation=cv2.INTER_AREA), cv2.COLOR_BGR2RGB)
    left, top = (width_px - size[0]) // 2, (height_px - size[1]) // 2
    whole = np.zeros((height_px, width_px, 3), np.float64)
    whole[top : top + size[1], left : left + size[0]] = small
    return whole.transpose(2, 0, 1)[np.newaxis]
