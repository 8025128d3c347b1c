"""Read the pictures of a bag, small enough for a page."""

from pathlib import Path
from typing import Any

import cv2
import numpy as np

from norm_core.bags.reader import BagReader
from norm_core.records.frame import Frame
from norm_core.records.messages import message_type
from norm_core.runtime.picture_decoding import decode_picture
from norm_monitor.senses.camera.faults import IMAGE_TYPES
from norm_monitor.senses.camera.picture import PictureFormatError, decode, picture_of
from study_desk.privacy.blur import Pixels

PICTURE_TYPES = (*IMAGE_TYPES, message_type(Frame))
WIDTH_PX = 320


def camera_topic(bag: Path) -> str | None:
    """Return the topic to take pictures from: stored frames, then compressed images, then raw ones."""
    with BagReader(bag) as reader:
        for wanted in reversed(PICTURE_TYPES):
            for topic in reader.topics:
                if topic.type_name == wanted and topic.message_count:
                    return topic.topic
    return None


def small_pixels(decoded: Any, width_px: int = WIDTH_PX) -> Pixels | None:
    """Decode a message to a small BGR image, or None where it holds none."""
    if isinstance(decoded, Frame):
        image = decode_picture(decoded.tile_jpeg)
    else:
        try:
            image = decode(picture_of(decoded))
        except PictureFormatError:
            return None
    if image is None:
        return None
    scale = min(1.0, width_px / image.shape[1])
    size = (max(2, round(image.shape[1] * scale) // 2 * 2), max(2, round(image.shape[0] * scale) // 2 * 2))
    return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.uint8)
