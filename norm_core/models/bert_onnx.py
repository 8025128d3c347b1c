"""Write a BERT sentence encoder from safetensors as an ONNX graph, without torch: one unit vector per sentence."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from norm_core.engines.errors import EngineFailedError
from norm_core.models.detection.checkpoint import read_safetensors_header
from norm_core.models.onnx_graph import OnnxGraph

_OPSET = 17
_DTYPES = {"F32": np.float32, "F16": np.float16}


def write_onnx(folder: Path, target: Path) -> None:
    """Write the ONNX model of a folder's config.json and model.safetensors; its vector is the mean over tokens."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    if config.get("model_type") != "bert" or config.get("hidden_act") != "gelu":
        raise EngineFailedError(f"{folder}: only BERT with GELU is written out, not {config.get('model_type')}")
    graph = _BertGraph(read_safetensors(folder / "model.safetensors"))
    graph.encoder(config["num_hidden_layers"], config["num_attention_heads"], config["layer_norm_eps"])
    onnx = graph.onnx
    opset = onnx.helper.make_opsetid("", _OPSET)
    model = onnx.helper.make_model(graph.build(config["hidden_size"]), opset_imports=[opset], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, str(target))


def read_safetensors(path: Path) -> dict[str, NDArray[np.float32]]:
    """Return the floating-point tensors in a file by name."""
    header = read_safetensors_header(path)
    body = memoryview(path.read_bytes())[header.tensors_at :]
    try:
        return {
            name: np.frombuffer(body[slice(*entry["data_offsets"])], _DTYPES[entry["dtype"]])
            .reshape(entry["shape"])
            .astype(np.float32)
            for name, entry in header.entries.items()
            if entry["dtype"] in _DTYPES
        }
    except (ValueError, KeyError, TypeError) as error:
        raise EngineFailedError(f"{path}: is no whole safetensors file: {error}") from error


class _BertGraph(OnnxGraph):
    def __init__(self, tensors: dict[str, NDArray[np.float32]]) -> None:
        super().__init__()
        self._tensors = {name.removeprefix("bert."): tensor for name, tensor in tensors.items()}

    def encoder(self, layers: int, heads: int, epsilon: float) -> None:
        hidden = self._embedded(epsilon)
        for number in range(layers):
            at = f"encoder.layer.{number}"
            attended = self._attended(hidden, f"{at}.attention", heads)
            hidden = self._normed(self.add("Add", hidden, attended), f"{at}.attention.output.LayerNorm", epsilon)
            inner = self._gelu(self._linear(hidden, f"{at}.intermediate.dense"))
            outer = self._linear(inner, f"{at}.output.dense")
            hidden = self._normed(self.add("Add", hidden, outer), f"{at}.output.LayerNorm", epsilon)
        mean = self.add("ReduceMean", hidden, axes=[1], keepdims=0)
        length = self.add("ReduceL2", mean, axes=[1], keepdims=1)
        self.add("Div", mean, length, outputs=["vector"])

    def build(self, width: int) -> Any:
        types, make = self.onnx.TensorProto, self.onnx.helper.make_tensor_value_info
        tokens, vector = make("tokens", types.INT64, [1, "length"]), make("vector", types.FLOAT, [1, width])
        constants = list(self.constants.values())
        return self.onnx.helper.make_graph(self.nodes, "sentence_encoder", [tokens], [vector], constants)

    def _embedded(self, epsilon: float) -> str:
        words = self.add("Gather", self._weight("embeddings.word_embeddings.weight"), "tokens")
        length = self.add("Slice", self.add("Shape", "tokens"), self.add_ints("one", [1]), self.add_ints("two", [2]))
        positions = self._weight("embeddings.position_embeddings.weight")
        places = self.add("Slice", positions, self.add_ints("zero", [0]), length, self.add_ints("zero", [0]))
        kind = self.add_constant("first_kind", self._tensors["embeddings.token_type_embeddings.weight"][:1])
        return self._normed(self.add("Add", self.add("Add", words, places), kind), "embeddings.LayerNorm", epsilon)

    def _attended(self, hidden: str, at: str, heads: int) -> str:
        """Add self-attention without a mask: a sentence is encoded alone, so that nothing is padded."""
        size = self._tensors[f"{at}.self.query.bias"].shape[0] // heads
        split, joined = self.add_ints("split", [1, -1, heads, size]), self.add_ints("joined", [1, -1, heads * size])

        def headed(part: str, order: list[int]) -> str:
            whole = self._linear(hidden, f"{at}.self.{part}")
            return self.add("Transpose", self.add("Reshape", whole, split), perm=order)

        scores = self.add("MatMul", headed("query", [0, 2, 1, 3]), headed("key", [0, 2, 3, 1]))
        scaled = self.add("Mul", scores, self.add_constant("scale", np.float32(1 / math.sqrt(size))))
        mixed = self.add("MatMul", self.add("Softmax", scaled, axis=-1), headed("value", [0, 2, 1, 3]))
        together = self.add("Reshape", self.add("Transpose", mixed, perm=[0, 2, 1, 3]), joined)
        return self._linear(together, f"{at}.output.dense")

    def _linear(self, hidden: str, at: str) -> str:
        turned = self.add_constant(f"{at}.turned", self._tensors[f"{at}.weight"].T.copy())
        return self.add("Add", self.add("MatMul", hidden, turned), self._weight(f"{at}.bias"))

    def _normed(self, hidden: str, at: str, epsilon: float) -> str:
        return self.add_norm(hidden, self._weight(f"{at}.weight"), self._weight(f"{at}.bias"), epsilon)

    def _gelu(self, hidden: str) -> str:
        curve = self.add("Erf", self.add("Div", hidden, self.add_constant("root_two", np.float32(math.sqrt(2)))))
        risen = self.add("Add", curve, self.add_constant("unit", np.float32(1)))
        return self.add("Mul", self.add("Mul", hidden, risen), self.add_constant("half", np.float32(0.5)))

    def _weight(self, name: str) -> str:
        return self.add_constant(name, self._tensors[name])
