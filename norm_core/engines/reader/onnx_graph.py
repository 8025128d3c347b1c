"""Build ONNX graphs node by node; needs the package onnx, which running a graph does not."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from norm_core.engines.errors import EngineFailedError
from norm_core.runtime.extras import format_install_command


def import_for_weights(module: str) -> Any:
    """Import a module of the extra `weights`. Raises EngineFailedError if it is missing."""
    try:
        return import_module(module)
    except ImportError as error:
        raise EngineFailedError(
            f"{error.name}: this package writes ONNX models, and is not installed; run "
            f"{format_install_command('weights')}"
        ) from error


class OnnxGraph:
    """The nodes of a graph in execution order; methods that add a node return the name of its output."""

    def __init__(self) -> None:
        self.onnx = import_for_weights("onnx")
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = {}

    def add(self, operator: str, *inputs: str, outputs: Sequence[str] = (), **attributes: Any) -> str:
        """Add a node, by default with one output that gets a new name."""
        outputs = outputs or [f"{operator}_{len(self.nodes)}"]
        self.nodes.append(self.onnx.helper.make_node(operator, inputs, outputs, **attributes))
        return outputs[0]

    def add_norm(self, hidden: str, weight: str, bias: str, epsilon: float) -> str:
        """Add a layer normalization."""
        return self.add("LayerNormalization", hidden, weight, bias, axis=-1, epsilon=epsilon)

    def add_ints(self, name: str, values: list[int]) -> str:
        """Add a constant list of integers."""
        return self.add_constant(name, np.array(values, np.int64))

    def add_constant(self, name: str, value: Any) -> str:
        """Add a constant, unless one of that name exists."""
        if name not in self.constants:
            self.constants[name] = self.onnx.numpy_helper.from_array(np.asarray(value), name)
        return name
