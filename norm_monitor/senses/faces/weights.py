"""Convert the face models' TFLite files to ONNX once, into a cache folder."""

import hashlib
import logging
from importlib import import_module
from pathlib import Path

from norm_core.models.catalogue import Catalogue
from norm_core.models.store import Store
from norm_core.runtime.atomic_file import atomic_path
from norm_core.runtime.cache_dir import make_cache_folder
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.program import PROGRAM

SHORT_RANGE, FULL_RANGE = "face_detection_short_range", "face_detection_full_range"
LANDMARKS = "face_landmark"
_MODELS = {SHORT_RANGE: "blazeface-short-range", FULL_RANGE: "blazeface-full-range", LANDMARKS: "face-mesh"}


class FaceWeightsMissingError(TactfulError, RuntimeError):
    """The weights or their converter are missing, or cannot be stored; the message gives the remedy."""


def default_folder() -> Path:
    """Return the default folder of converted weights."""
    return make_cache_folder("weights")


def onnx_file(name: str, folder: Path | None = None) -> Path:
    """Return a model's ONNX file and convert it if it is missing; an interrupted call leaves no file."""
    source = _tflite_file(name)
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    target = (folder or default_folder()) / f"{name}-{digest}.onnx"
    if not target.is_file():
        _convert(source, target)
    return target


def _tflite_file(name: str) -> Path:
    """Find a model's pulled or packaged file without importing the package, which needs tensorflow."""
    model = _MODELS.get(name, name)
    found = Store().found(Catalogue().manifest(model))
    source = found[0] / f"{name}.tflite" if found else None
    if source is None or not source.is_file():
        raise FaceWeightsMissingError(f"the face model {model} is not installed; run {PROGRAM} models pull {model}")
    return source


def _convert(source: Path, target: Path) -> None:
    try:
        converter = import_module("tflite2onnx")
    except ImportError as error:
        raise FaceWeightsMissingError("the face models cannot be converted: install tflite2onnx") from error
    # It warns about each half-precision tensor; tests compare those with the packaged models.
    logging.getLogger("tflite2onnx").setLevel(logging.ERROR)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(target, concurrent=True) as made:
            converter.convert(str(source), str(made))
    except OSError as error:
        raise FaceWeightsMissingError(f"{target.parent}: cannot hold the face models: {error.strerror}") from error
