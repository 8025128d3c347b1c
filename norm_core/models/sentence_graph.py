"""The packaged sentence encoder's forward pass as an ONNX graph; the weights stay in the package.

`python -m norm_core.models.sentence_graph` writes it again; that needs onnx, which running it does not.
"""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from norm_core.engines.errors import EngineFailedError
from norm_core.engines.sentences.packaged_model import GRAPH, ORDERS, WIDTH
from norm_core.runtime.extras import install_command

_EMBEDDED, _EPSILON, _OPSET = 512, 1e-12, 18
_FEATURES = _EMBEDDED + len(ORDERS) * WIDTH
_SHAPES: dict[str, tuple[int, ...]] = {
    "proj": (_EMBEDDED, 3 * WIDTH),
    "cnn_W": (_FEATURES, _EMBEDDED),
    "cnn_b": (_EMBEDDED,),
    "ln_g": (_FEATURES,),
    "ln_b": (_FEATURES,),
    "d0": (_EMBEDDED, 320),
    "d1": (320, 320),
    "d2": (320, _EMBEDDED),
    "d3": (_EMBEDDED, _EMBEDDED),
    "p1": (_EMBEDDED, 320),
    "p3": (320, _EMBEDDED),
    **dict.fromkeys(("proj_b", "proj_ln_g", "proj_ln_b"), (3 * WIDTH,)),
    **{f"w{layer}_{order}": (order * WIDTH, WIDTH) for order, _ in ORDERS for layer in (1, 2)},
    **{f"b{layer}_{order}": (WIDTH,) for order, _ in ORDERS for layer in (1, 2)},
}


def sentence_graph() -> Any:
    """Return the model: the token embeddings of sentences in, one unit vector per sentence out."""
    try:
        onnx = import_module("onnx")
    except ImportError as error:
        raise EngineFailedError(
            f"onnx: writing ONNX models needs it, and it is not installed; run {install_command('weights')}"
        ) from error
    graph = _Graph(onnx)
    graph.forward()
    opset = onnx.helper.make_opsetid("", _OPSET)
    return onnx.helper.make_model(graph.made(), opset_imports=[opset], ir_version=8, producer_name="tactful")


class _Graph:
    """The nodes in execution order; `add` returns the name of a node's output."""

    def __init__(self, onnx: Any) -> None:
        self._onnx = onnx
        self._nodes: list[Any] = []
        self._constants: dict[str, Any] = {}

    def forward(self) -> None:
        """Three two-layer convolutions over the tokens, their projected sum, and a deep average of that."""
        projected = self._add("Add", self._add("MatMul", "embedded", "proj"), "proj_b")
        projected = self._normed(projected, "proj_ln_g", "proj_ln_b")
        parts = [f"part_{order}" for order, _ in ORDERS]
        self._nodes.append(self._onnx.helper.make_node("Split", [projected], parts, axis=1, num_outputs=len(parts)))
        features = ["embedded"]
        for (order, _), part in zip(ORDERS, parts, strict=True):
            first = self._add("Add", self._convolved(part, 1, order), part)
            features.append(self._add("Add", self._convolved(first, 2, order), first))
        normed = self._normed(self._add("Concat", *features, axis=1), "ln_g", "ln_b")
        # Summed before the projection: the two commute, and only one row per sentence remains to project. The rows
        # are added
        # one by one, because a matrix product adds in blocks, whose bounds would depend on the place of the sentence.
        nothing = self._constant("nothing", np.zeros((1, _FEATURES), np.float32))
        total = self._add("ScatterND", self._add("Mul", "lengths", nothing), "sentence_of", normed, reduction="add")
        shifted = self._add("Add", self._add("MatMul", total, "cnn_W"), self._add("Mul", "lengths", "cnn_b"))
        mean = self._add("Div", shifted, self._add("Sqrt", "lengths"))
        inner = self._add("Relu", self._add("MatMul", mean, "d0"))
        middle = self._add("Add", self._add("MatMul", mean, "p1"), self._add("MatMul", inner, "d1"))
        middle = self._add("Relu", middle)
        outer = self._add("Relu", self._add("MatMul", middle, "d2"))
        last = self._add("Add", self._add("MatMul", middle, "p3"), self._add("MatMul", outer, "d3"))
        last = self._add("Tanh", last)
        norm = self._add("ReduceL2", last, self._ints("over_width", [1]), keepdims=1)
        self._nodes.append(self._onnx.helper.make_node("Div", [last, norm], ["vector"]))

    def made(self) -> Any:
        types, value = self._onnx.TensorProto, self._onnx.helper.make_tensor_value_info
        given = [
            value("embedded", types.FLOAT, ["tokens", _EMBEDDED]),
            value("sentence_of", types.INT64, ["tokens", 1]),
            value("lengths", types.FLOAT, ["sentences", 1]),
            *(value(f"places_{order}", types.INT64, ["tokens", order]) for order, _ in ORDERS),
        ]
        constants = [*self._constants.values(), *(self._weight(name, shape) for name, shape in _SHAPES.items())]
        vector = value("vector", types.FLOAT, ["sentences", _EMBEDDED])
        return self._onnx.helper.make_graph(self._nodes, "sentence_encoder", given, [vector], constants)

    def _convolved(self, given: str, layer: int, order: int) -> str:
        """Join each token with its neighbours; beyond the sentence's ends stands the last row, of zeros."""
        padded = self._add("Pad", given, self._ints("one_row", [0, 0, 1, 0]))
        around = self._add("Gather", padded, f"places_{order}", axis=0)
        flat = self._add("Reshape", around, self._ints(f"flat_{order}", [-1, order * WIDTH]))
        weighed = self._add("Add", self._add("MatMul", flat, f"w{layer}_{order}"), f"b{layer}_{order}")
        return self._add("Relu", weighed)

    def _normed(self, given: str, weight: str, bias: str) -> str:
        return self._add("LayerNormalization", given, weight, bias, axis=-1, epsilon=_EPSILON)

    def _add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        made = f"{operator}_{len(self._nodes)}"
        self._nodes.append(self._onnx.helper.make_node(operator, inputs, [made], **attributes))
        return made

    def _ints(self, name: str, values: list[int]) -> str:
        return self._constant(name, np.array(values, np.int64))

    def _constant(self, name: str, value: Any) -> str:
        self._constants[name] = self._onnx.numpy_helper.from_array(value, name)
        return name

    def _weight(self, name: str, shape: tuple[int, ...]) -> Any:
        """Declare a tensor that the graph's loader must supply."""
        tensor = self._onnx.TensorProto(name=name, data_type=self._onnx.TensorProto.FLOAT, dims=shape)
        tensor.data_location = self._onnx.TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value="brought along")
        return tensor


if __name__ == "__main__":
    (Path(sys.argv[1]) if len(sys.argv) > 1 else GRAPH).write_bytes(sentence_graph().SerializeToString())
