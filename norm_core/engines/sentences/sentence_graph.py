"""The forward pass of the packaged sentence encoder as an ONNX graph; the weights stay in the package.

`python -m norm_core.engines.sentences.sentence_graph` writes it again; that needs onnx, which running it does not.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np

from norm_core.engines.reader.onnx_graph import OnnxGraph
from norm_core.engines.sentences.packaged_model import GRAPH, ORDERS, WIDTH

# The number of values of an embedding.
_EMBEDDED = 512
_EPSILON = 1e-12
_OPSET = 18
_FEATURES = _EMBEDDED + len(ORDERS) * WIDTH
# The shape of each tensor of weights, by its name.
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


def make_sentence_graph() -> Any:
    """Return the model: the token embeddings of sentences in, one unit vector per sentence out."""
    graph = _SentenceGraph()
    graph.add_forward_pass()
    onnx = graph.onnx
    opset = onnx.helper.make_opsetid("", _OPSET)
    return onnx.helper.make_model(graph.build(), opset_imports=[opset], ir_version=8, producer_name="tactful")


class _SentenceGraph(OnnxGraph):
    """The graph of the encoder, with its weights as external tensors."""

    def add_forward_pass(self) -> None:
        """Add three two-layer convolutions over the tokens, the projected sum, and a deep averaging network."""
        projected = self.add("Add", self.add("MatMul", "embedded", "proj"), "proj_b")
        projected = self.add_norm(projected, "proj_ln_g", "proj_ln_b", _EPSILON)
        parts = [f"part_{order}" for order, _ in ORDERS]
        self.add("Split", projected, outputs=parts, axis=1, num_outputs=len(parts))
        features = ["embedded"]
        for (order, _), part in zip(ORDERS, parts, strict=True):
            first = self.add("Add", self._add_convolution(part, 1, order), part)
            features.append(self.add("Add", self._add_convolution(first, 2, order), first))
        normed = self.add_norm(self.add("Concat", *features, axis=1), "ln_g", "ln_b", _EPSILON)
        # The sum comes before the projection, because then only one row per sentence is left to project. The rows are
        # added one by one, because a matrix product adds in blocks that depend on the position of the sentence.
        nothing = self.add_constant("nothing", np.zeros((1, _FEATURES), np.float32))
        total = self.add("ScatterND", self.add("Mul", "lengths", nothing), "sentence_of", normed, reduction="add")
        shifted = self.add("Add", self.add("MatMul", total, "cnn_W"), self.add("Mul", "lengths", "cnn_b"))
        mean = self.add("Div", shifted, self.add("Sqrt", "lengths"))
        inner = self.add("Relu", self.add("MatMul", mean, "d0"))
        middle = self.add("Add", self.add("MatMul", mean, "p1"), self.add("MatMul", inner, "d1"))
        middle = self.add("Relu", middle)
        outer = self.add("Relu", self.add("MatMul", middle, "d2"))
        last = self.add("Add", self.add("MatMul", middle, "p3"), self.add("MatMul", outer, "d3"))
        last = self.add("Tanh", last)
        norm = self.add("ReduceL2", last, self.add_ints("over_width", [1]), keepdims=1)
        self.add("Div", last, norm, outputs=["vector"])

    def build(self) -> Any:
        """Return the graph with its inputs, output and weights."""
        types, value = self.onnx.TensorProto, self.onnx.helper.make_tensor_value_info
        inputs = [
            value("embedded", types.FLOAT, ["tokens", _EMBEDDED]),
            value("sentence_of", types.INT64, ["tokens", 1]),
            value("lengths", types.FLOAT, ["sentences", 1]),
            *(value(f"places_{order}", types.INT64, ["tokens", order]) for order, _ in ORDERS),
        ]
        constants = [*self.constants.values(), *(self._declare_weight(name, shape) for name, shape in _SHAPES.items())]
        vector = value("vector", types.FLOAT, ["sentences", _EMBEDDED])
        return self.onnx.helper.make_graph(self.nodes, "sentence_encoder", inputs, [vector], constants)

    def _add_convolution(self, tokens: str, layer: int, order: int) -> str:
        """Join each token with its neighbours; beyond the ends of the sentence, they are zeros."""
        padded = self.add("Pad", tokens, self.add_ints("one_row", [0, 0, 1, 0]))
        neighbours = self.add("Gather", padded, f"places_{order}", axis=0)
        flat = self.add("Reshape", neighbours, self.add_ints(f"flat_{order}", [-1, order * WIDTH]))
        weighed = self.add("Add", self.add("MatMul", flat, f"w{layer}_{order}"), f"b{layer}_{order}")
        return self.add("Relu", weighed)

    def _declare_weight(self, name: str, shape: tuple[int, ...]) -> Any:
        """Declare a tensor that is supplied when the graph is loaded."""
        tensor = self.onnx.TensorProto(name=name, data_type=self.onnx.TensorProto.FLOAT, dims=shape)
        tensor.data_location = self.onnx.TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value="brought along")
        return tensor


if __name__ == "__main__":
    (Path(sys.argv[1]) if len(sys.argv) > 1 else GRAPH).write_bytes(make_sentence_graph().SerializeToString())
