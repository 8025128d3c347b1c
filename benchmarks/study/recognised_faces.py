"""Count the identities that a face recogniser recognises in pictures before and after `tactful bag anonymize`.

`python benchmarks/study/recognised_faces.py [PICTURE...]` pastes each face into 1280x720 pictures of five widths. The
recogniser (dlib's, whose weights `face-recognition-models` carries) knows each face from its own picture. It is given
the place of each face, so that a face that is no longer detected may still be recognised. Without PICTURE it uses the
one licensed photograph at hand, of scikit-image. Each PICTURE shows one face, of a person whose picture may be used.

Needs, beside the development environment: `pip install dlib-bin==20.0.1.post1 face-recognition-models==0.3.0`.
"""

import argparse
import tempfile
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from benchmarks.bags.face_pictures import HEIGHT_PX, WIDTH_PX, photograph, room
from norm_core.bags.reader import BagReader
from norm_core.bags.types import make
from norm_core.bags.writer import BagWriter
from norm_core.runtime.time import NS_PER_S
from norm_core.runtime.wording import count_of
from study_desk.privacy.anonymize import anonymize
from study_desk.privacy.face_search import TiledFaceDetector
from study_desk.privacy.picture_blurring import pixels_of
from study_desk.privacy.topic_treatments import AnonymizeOptions, NoFacePolicy

# The distance of two embeddings below which the recogniser's authors call them one person.
SAME_PERSON = 0.6
WIDTHS_PX = (40, 70, 92, 130, 200)
BRIGHTNESSES = (0.6, 1.0, 1.3)
# Below this number of identities, a share says nothing.
ENOUGH = 30
Box = tuple[int, int, int, int]


class Recogniser:
    """dlib's face recogniser."""

    def __init__(self) -> None:
        dlib = import_module("dlib")
        spec = find_spec("face_recognition_models")
        if spec is None or spec.origin is None:
            raise FileNotFoundError("face-recognition-models is not installed; see --help")
        folder = Path(spec.origin).parent / "models"
        self._rectangle = dlib.rectangle
        self._find = dlib.get_frontal_face_detector()
        self._landmarks = dlib.shape_predictor(str(folder / "shape_predictor_5_face_landmarks.dat"))
        self._embed = dlib.face_recognition_model_v1(str(folder / "dlib_face_recognition_resnet_model_v1.dat"))

    def face(self, image: Any) -> Box:
        """Return the most certain face in a BGR picture."""
        found, scores, _ = self._find.run(cv2.cvtColor(image, cv2.COLOR_BGR2RGB), 1, 0.0)
        if not found:
            raise ValueError("no face is found in a picture that must show one; give another")
        best = found[int(np.argmax(scores))]
        return best.left(), best.top(), best.right(), best.bottom()

    def embedding(self, image: Any, box: Box) -> Any:
        """Return the embedding of the face in a box."""
        rgb = np.ascontiguousarray(cv2.cvtColor(image, cv2.COLOR_BGR2RGB))
        shape = self._landmarks(rgb, self._rectangle(*box))
        return np.array(self._embed.compute_face_descriptor(rgb, shape))


def pasted(seed: int, source: Any, box: Box, width: int, brightness: float) -> tuple[Any, Box]:
    """Paste the head around a box into a drawn room, with this width of the box; return the picture and the new box."""
    left, top, right, bottom = box
    zoom, generator = width / (right - left), np.random.default_rng(seed)
    half = width // 2
    x, y = int(generator.integers(2 * width, WIDTH_PX - 2 * width)), int(generator.integers(2 * width, HEIGHT_PX - 220))
    place = np.array([[zoom, 0, x - zoom * (left + right) / 2], [0, zoom, y - zoom * (top + bottom) / 2]])
    small = cv2.GaussianBlur(source, (0, 0), 0.5 / zoom) if zoom < 1 else source
    head = cv2.warpAffine(small, place, (WIDTH_PX, HEIGHT_PX), borderMode=cv2.BORDER_REPLICATE)
    mask = np.zeros((HEIGHT_PX, WIDTH_PX, 1), np.float32)
    cv2.ellipse(mask, (x, y), (round(width * 0.8), width), 0, 0, 360, 1.0, -1)
    image = np.clip(mask * head * brightness + (1 - mask) * room(seed), 0, 255).astype(np.uint8)
    return image, (x - half, y - half, x + half, y + half)


def anonymized(images: list[Any]) -> list[Any]:
    """Return the pictures of a bag after it is anonymized. Pictures without a face are left, the least safe setting."""
    with tempfile.TemporaryDirectory() as folder:
        bag, made = Path(folder) / "bag", Path(folder) / "made"
        with BagWriter(bag) as writer:
            for index, image in enumerate(images):
                stamp_ns = (1 + 2 * index) * NS_PER_S  # too far apart for a face of one to count for the next
                png = cv2.imencode(".png", image)[1].tobytes()
                header = {"stamp": make("builtin_interfaces/msg/Time", {"sec": 1 + 2 * index, "nanosec": 0})}
                values = {
                    "header": make("std_msgs/msg/Header", header | {"frame_id": ""}),
                    "format": "png",
                    "data": png,
                }
                writer.write_message("/camera", make("sensor_msgs/msg/CompressedImage", values), stamp_ns)
        anonymize(bag, made, AnonymizeOptions(no_face=NoFacePolicy.LEAVE), TiledFaceDetector().find)
        with BagReader(made) as reader:
            return [pixels_of(reader.decode(message)) for message in reader.messages(["/camera"])]


def main() -> None:
    """Print how many pictures and identities are recognised before and after."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("picture", nargs="*", type=Path, help="pictures of one person each")
    paths = parser.parse_args().picture
    sources = [cv2.imread(str(path)) for path in paths] or [photograph("astronaut.png")]
    recogniser = Recogniser()
    boxes = [recogniser.face(source) for source in sources]
    known = [recogniser.embedding(source, box) for source, box in zip(sources, boxes, strict=True)]
    cases = [(who, width, light) for who in range(len(sources)) for width in WIDTHS_PX for light in BRIGHTNESSES]
    made = [pasted(seed, sources[who], boxes[who], width, light) for seed, (who, width, light) in enumerate(cases)]
    after = anonymized([image for image, _ in made])
    for name, images in (("before", [image for image, _ in made]), ("after", after)):
        near = [
            float(np.linalg.norm(recogniser.embedding(image, box) - known[who]))
            for image, (_, box), (who, _, _) in zip(images, made, cases, strict=True)
        ]
        hits = [who for distance, (who, _, _) in zip(near, cases, strict=True) if distance < SAME_PERSON]
        whom = count_of(len(sources), "identity", "identities")
        print(
            f"{name}: {len(hits)} of {len(cases)} pictures and {len(set(hits))} of {whom} recognised; "
            f"distances {min(near):.2f} to {max(near):.2f}"
        )
    if len(sources) < ENOUGH:
        print(f"{count_of(len(sources), 'identity', 'identities')}: too few for a rate")


if __name__ == "__main__":
    main()
