"""Write a BERT sentence encoder from safetensors as an ONNX graph, without torch: one unit vector per sentence."""

import json
import math
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from norm_core.engines.errors import EngineFailedError
from norm_core.models.safetensors_header import read_safetensors_header
from norm_core.runtime.extras import install_command

_OPSET = 17
_DTYPES = {"F32": np.float32, "F16": np.float16}


def write_onnx(folder: Path, target: Path) -> None:
    """Write the ONNX model of a folder's config.json and model.safetensors; its vector is the mean over tokens."""
    try:
        onnx = import_module("onnx")
    except ImportError as error:
        remedy = f"install it with {install_command('weights')}"
        raise EngineFailedError(f"writing ONNX models needs onnx, which is not installed; {remedy}") from error
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    if config.get("model_type") != "bert" or config.get("hidden_act") != "gelu":
        raise EngineFailedError(f"{folder}: only BERT with GELU is written out, not {config.get('model_type')}")
    graph = _Graph(onnx, read_safetensors(folder / "model.safetensors"))
    graph.encoder(config["num_hidden_layers"], config["num_attention_heads"], config["layer_norm_eps"])
    model = onnx.helper.make_model(
        graph.made(config["hidden_size"]), opset_imports=[onnx.helper.make_opsetid("", _OPSET)], ir_version=8
    )
    onnx.checker.check_model(model)
    onnx.save(model, str(target))


def read_safetensors(path: Path) -> dict[str, NDArray[np.float32]]:
    """Return the floating-point tensors in a file by name."""
    entries, start = read_safetensors_header(path)
    body = memoryview(path.read_bytes())[start:]
    try:
        return {
            name: np.frombuffer(body[slice(*entry["data_offsets"])], _DTYPES[entry["dtype"]])
            .reshape(entry["shape"])
            .astype(np.float32)
            for name, entry in entries.items()
            if entry["dtype"] in _DTYPES
        }
    except (ValueError, KeyError, TypeError) as error:
        raise EngineFailedError(f"{path}: is no whole safetensors file: {error}") from error


class _Graph:
    """The nodes in execution order; each method adds nodes and returns the name of their output."""

    def __init__(self, onnx: Any, tensors: dict[str, NDArray[np.float32]]) -> None:
        self._onnx, self._tensors = onnx, {name.removeprefix("bert."): tensor for name, tensor in tensors.items()}
        self._nodes: list[Any] = []
        self._constants: dict[str, Any] = {}

    def encoder(self, layers: int, heads: int, epsilon: float) -> None:
        hidden = self._embedded(epsilon)
        for number in range(layers):
            at = f"encoder.layer.{number}"
            attended = self._attended(hidden, f"{at}.attention", heads)
            hidden = self._normed(self._add("Add", hidden, attended), f"{at}.attention.output.LayerNorm", epsilon)
            inner = self._gelu(self._linear(hidden, f"{at}.intermediate.dense"))
            outer = self._linear(inner, f"{at}.output.dense")
            hidden = self._normed(self._add("Add", hidden, outer), f"{at}.output.LayerNorm", epsilon)
        mean = self._add("ReduceMean", hidden, axes=[1], keepdims=0)
        length = self._add("ReduceL2", mean, axes=[1], keepdims=1)
        self._nodes.append(self._onnx.helper.make_node("Div", [mean, length], ["vector"]))

    def made(self, width: int) -> Any:
        types, make = self._onnx.TensorProto, self._onnx.helper.make_tensor_value_info
        tokens, vector = make("tokens", types.INT64, [1, "length"]), make("vector", types.FLOAT, [1, width])
        constants = list(self._constants.values())
        return self._onnx.helper.make_graph(self._nodes, "sentence_encoder", [tokens], [vector], constants)

    def _embedded(self, epsilon: float) -> str:
        words = self._add("Gather", self._weight("embeddings.word_embeddings.weight"), "tokens")
        length = self._add("Slice", self._add("Shape", "tokens"), self._ints("one", [1]), self._ints("two", [2]))
        positions = self._weight("embeddings.position_embeddings.weight")
        places = self._add("Slice", positions, self._ints("zero", [0]), length, self._ints("zero", [0]))
        kind = self._constant("first_kind", self._tensors["embeddings.token_type_embeddings.weight"][:1])
        return self._normed(self._add("Add", self._add("Add", words, places), kind), "embeddings.LayerNorm", epsilon)

    def _attended(self, hidden: str, at: str, heads: int) -> str:
        """Add self-attention without a mask: a sentence is encoded alone, so that nothing is padded."""
        size = self._tensors[f"{at}.self.query.bias"].shape[0] // heads
        split, joined = self._ints("split", [1, -1, heads, size]), self._ints("joined", [1, -1, heads * size])

        def headed(part: str, order: list[int]) -> str:
            whole = self._linear(hidden, f"{at}.self.{part}")
            return self._add("Transpose", self._add("Reshape", whole, split), perm=order)

        scores = self._add("MatMul", headed("query", [0, 2, 1, 3]), headed("key", [0, 2, 3, 1]))
        scaled = self._add("Mul", scores, self._constant("scale", np.float32(1 / math.sqrt(size))))
        mixed = self._add("MatMul", self._add("Softmax", scaled, axis=-1), headed("value", [0, 2, 1, 3]))
        together = self._add("Reshape", self._add("Transpose", mixed, perm=[0, 2, 1, 3]), joined)
        return self._linear(together, f"{at}.output.dense")

    def _linear(self, given: str, at: str) -> str:
        turned = self._constant(f"{at}.turned", self._tensors[f"{at}.weight"].T.copy())
        return self._add("Add", self._add("MatMul", given, turned), self._weight(f"{at}.bias"))

    def _normed(self, given: str, at: str, epsilon: float) -> str:
        weight, bias = self._weight(f"{at}.weight"), self._weight(f"{at}.bias")
        return self._add("LayerNormalization", given, weight, bias, axis=-1, epsilon=epsilon)

    def _gelu(self, given: str) -> str:
        curve = self._add("Erf", self._add("Div", given, self._constant("root_two", np.float32(math.sqrt(2)))))
        risen = self._add("Add", curve, self._constant("unit", np.float32(1)))
        return self._add("Mul", self._add("Mul", given, risen), self._constant("half", np.float32(0.5)))

    def _add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        made = f"{operator}_{len(self._nodes)}"
        self._nodes.append(self._onnx.helper.make_node(operator, inputs, [made], **attributes))
        return made

    def _weight(self, name: str) -> str:
        return self._constant(name, self._tensors[name])

    def _ints(self, name: str, values: list[int]) -> str:
        return self._constant(name, np.array(values, np.int64))

    def _constant(self, name: str, value: Any) -> str:
        if name not in self._constants:
            self._constants[name] = self._onnx.numpy_helper.from_array(np.asarray(value), name)
        return name
