"""Measure how many faces `tactful bag anonymize` finds by size, what else it blurs, and its cost.

`python benchmarks/bags/faces.py` composes 1280x720 images with one face each, tilted by up to 15 degrees, at brightness
0.5 to 1.4. The images without faces are photographs, textures and a page of text.
"""

import argparse
import time
from collections.abc import Iterable
from typing import Any

import cv2
import numpy as np

from benchmarks.bags.face_pictures import HEIGHT_PX, WIDTH_PX, photograph, with_face
from norm_core.records.presence import Face
from study_desk.privacy.blur import MARGIN
from study_desk.privacy.face_search import TiledFaceDetector

FACELESS = (
    "brick.png", "camera.png", "chelsea.png", "coffee.png", "coins.png", "grass.png", "gravel.png",
    "motorcycle_left.png", "page.png", "rocket.jpg", "text.png",
)  # fmt: skip
WIDTHS_PX = (20, 25, 30, 40, 50, 70, 92, 130, 200, 300)


def covers(faces: Iterable[Face], width_px: float, x_px: float, y_px: float) -> bool:
    """Whether a box, without its margin, contains the centre of a face and has about its width."""
    for face in faces:
        x, y = x_px / WIDTH_PX - face.left_ratio, y_px / HEIGHT_PX - face.top_ratio
        inside = 0 < x < face.width_ratio and 0 < y < face.height_ratio
        if inside and 0.6 < face.width_ratio * WIDTH_PX / width_px < 2.5:
            return True
    return False


def blurred_share(faces: Iterable[Face]) -> float:
    """Compute the share of the image under the boxes with their margins."""
    mask = np.zeros((HEIGHT_PX, WIDTH_PX), bool)
    for face in faces:
        wide, tall = MARGIN * face.width_ratio, MARGIN * face.height_ratio
        rows = np.clip([face.top_ratio - tall, face.top_ratio + face.height_ratio + tall], 0, 1) * HEIGHT_PX
        columns = np.clip([face.left_ratio - wide, face.left_ratio + face.width_ratio + wide], 0, 1) * WIDTH_PX
        mask[int(rows[0]) : int(rows[1]), int(columns[0]) : int(columns[1])] = True
    return float(mask.mean())


def main(find: Any) -> None:
    """Print how many pasted faces are found per width, and the cost per picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pictures", type=int, default=22, help="pictures a size (default: 22)")
    count = parser.parse_args().pictures
    generator = np.random.default_rng(7)
    rooms = [cv2.resize(photograph(name), (WIDTH_PX, HEIGHT_PX), interpolation=cv2.INTER_AREA) for name in FACELESS]
    started_s = time.process_time()
    shares = [blurred_share(find(image)) for image in rooms]
    cost_ms = (time.process_time() - started_s) / len(rooms) * 1000
    for width in WIDTHS_PX:
        found = 0
        for index in range(count):
            x, y = generator.uniform(width, WIDTH_PX - width), generator.uniform(width, HEIGHT_PX - width)
            tilt_deg, brightness = generator.uniform(-15, 15), generator.uniform(0.5, 1.4)
            image = with_face(rooms[index % len(rooms)], width, x, y, tilt_deg, brightness)
            found += covers(find(image), width, x, y)
        print(f"{width:4} px: {found} of {count} faces found", flush=True)
    print(f"without a face: {np.mean(shares):.1%} of the picture is blurred, at most {max(shares):.1%}")
    print(f"{cost_ms:.0f} ms of CPU time a picture")


if __name__ == "__main__":
    main(TiledFaceDetector().find)
