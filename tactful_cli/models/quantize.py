"""The recipes of `tactful models quantize`. Each produces weights and a manifest for them."""

import shutil
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from norm_core.bags.reader import BagError, BagReader
from norm_core.engines.onnx.session import Arrays, open_session
from norm_core.engines.sentences.sentence_encoder import DEFAULT_TOKENS, open_tokenizer
from norm_core.models.bert_onnx import write_onnx
from norm_core.models.catalogue import Catalogue
from norm_core.models.manifest import EngineKind, Manifest
from norm_core.models.quantize_onnx import OutputAgreement, compare_outputs, int8_dynamic, int8_static
from norm_core.models.store import Store, hashed_file
from norm_core.records.frame import Frame
from norm_core.records.record import record
from norm_core.runtime.config import ConfigError
from norm_core.runtime.health_log import HealthLog
from norm_core.runtime.picture_decoding import decode_picture
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.wording import count_of
from norm_monitor.eyes import Eyes
from norm_monitor.senses.camera.faults import IMAGE_TYPES
from norm_monitor.senses.camera.frame_keeper import FrameConfig
from norm_monitor.senses.camera.picture import picture_of
from norm_monitor.senses.faces.finder import onnx_file


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
        topic = next((topic.topic for topic in reader.topics if topic.type_name in IMAGE_TYPES), "")
        if not topic:
            raise BagError(f"{bag}: has no topic of {', '.join(IMAGE_TYPES)}; {PROGRAM} bag info lists its topics")
        eyes = Eyes(topic, HealthLog(), FrameConfig(keep_hz=2.0))
        for message in reader.messages([topic]):
            seen = eyes.take(picture_of(reader.decode(message)))
            yield from (record for record in seen if isinstance(record, Frame))


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


_MAX_EXAMPLES = 64
_SENTENCES = (
    "Good morning! Is the lift working?",
    "No.",
    "I am sorry for your loss.",
    "The robot waters the plants while a guest waits at the desk for an answer that does not come.",
    "Could you please step aside, so that the lady with the walking frame can pass?",
    "Visitors sign in on the second floor between 9 and 17 o'clock.",
    "Stop.",
    "He laughed at a joke which nobody else in the room had understood.",
)


class Recipe(StrEnum):
    """The ways to quantize a model, named by the width of a weight and the method."""

    INT8_DYNAMIC = "int8-dynamic"
    INT8_STATIC = "int8-static"
    INT8_ENCODER = "int8-encoder"


def quantize(name: str, recipe: Recipe, new_name: str, bag: Path | None) -> dict[str, Any]:
    """Run the recipe on a model. Returns the values that the command prints."""
    catalogue, store = Catalogue(), Store()
    manifest, beside = catalogue.manifest(name), catalogue.path(name).parent
    new_name = new_name or f"{name}-{recipe.value}"
    catalogue.check_free(new_name)
    catalogue.own.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=catalogue.own, prefix=".making-") as making:
        if recipe is Recipe.INT8_ENCODER:
            made = _encoder(manifest, store.open(manifest, beside).folder, Path(making))
        else:
            made = _onnx(manifest, _onnx_model(manifest, store, beside), recipe, Path(making), bag)
        (catalogue.own / new_name).mkdir(exist_ok=True)
        for file in made.files:
            file.replace(catalogue.own / new_name / file.name)
    # Its memory was measured on other files, and is left out.
    plain = manifest.model_dump(mode="json", exclude_defaults=True, exclude={"memory"}) | made.changes
    hashes = [hashed_file(catalogue.own / new_name, file.name).model_dump() for file in made.files]
    cosine = f"the lowest cosine to its outputs is {made.measured.worst:.4f}"
    plain |= {"name": new_name, "source": {"path": new_name}, "files": hashes, "made_from": manifest.name}
    path = catalogue.write(plain | {"notes": f"{made.size_ratio:.0%} of the size; {cosine}, on {made.compared_with}."})
    return {
        "name": path.stem,
        "manifest_path": str(path),
        "size_ratio": made.size_ratio,
        "cosines": made.measured.cosines,
        "fitted_on": made.fitted_on,
        "compared_on": made.compared_on,
    }


@record
class _MadeModel:
    """The files of a quantized model, what its manifest changes, and how near its outputs come to the original's."""

    files: tuple[Path, ...]  # the model first
    changes: dict[str, str]
    size_ratio: float
    measured: OutputAgreement
    fitted_on: int
    compared_on: int
    compared_with: str


def _onnx_model(manifest: Manifest, store: Store, beside: Path) -> Path:
    folder = store.open(manifest, beside).folder
    if manifest.engine is EngineKind.TFLITE:
        return onnx_file(Path(manifest.files[0].path).stem)
    models = [file.path for file in manifest.files if file.path.endswith(".onnx")]
    if manifest.engine is not EngineKind.ONNX or len(models) != 1 or folder is None:
        raise ConfigError(
            f"{manifest.name}: an int8 recipe needs one ONNX file, and this has {', '.join(models) or 'none'}; "
            "choose another model"
        )
    return folder / models[0]


def _onnx(manifest: Manifest, model: Path, recipe: Recipe, making: Path, bag: Path | None) -> _MadeModel:
    session = open_session(model)
    examples: Sequence[Arrays] = bag_inputs(bag, manifest, session.inputs, _MAX_EXAMPLES) if bag else []
    # Hold out every fourth example, so that the comparison uses data that the recipe has not seen.
    fitted, held = [e for i, e in enumerate(examples) if i % 4 != 3], list(examples[3::4])
    small = making / f"{model.stem}.{recipe.value}.onnx"
    if recipe is Recipe.INT8_STATIC:
        int8_static(model, small, fitted)
    else:
        int8_dynamic(model, small)
    pictures = f"{count_of(len(held), 'picture')} that it was not fitted on"
    return _MadeModel(
        files=(small,),
        changes={"engine": EngineKind.ONNX.value, "quantization": recipe.value},
        size_ratio=small.stat().st_size / model.stat().st_size,
        measured=compare_outputs(model, small, held or [session.blank()]),
        fitted_on=len(fitted),
        compared_on=len(held),
        compared_with=pictures if held else "zeros alone, as no bag was given",
    )


def _encoder(manifest: Manifest, folder: Path | None, making: Path) -> _MadeModel:
    if manifest.engine is not EngineKind.ENCODER or folder is None or not (folder / "model.safetensors").is_file():
        raise ConfigError(f"{manifest.name}: int8-encoder is for a sentence encoder in model.safetensors; choose one")
    whole, small, words = making / "whole.onnx", making / "model.onnx", making / "tokenizer.json"
    write_onnx(folder, whole)
    int8_dynamic(whole, small)
    shutil.copyfile(folder / "tokenizer.json", words)
    tokenizer = open_tokenizer(words, manifest.context_tokens or DEFAULT_TOKENS)
    examples = [{"tokens": np.array([tokenizer.encode(sentence).ids], np.int64)} for sentence in _SENTENCES]
    return _MadeModel(
        files=(small, words),
        changes={"quantization": "int8"},
        size_ratio=small.stat().st_size / whole.stat().st_size,
        measured=compare_outputs(whole, small, examples),
        fitted_on=0,
        compared_on=len(examples),
        compared_with=f"{len(examples)} sentences",
    )
