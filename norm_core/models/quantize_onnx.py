"""Quantize ONNX models to int8: weights alone, or activations too if examples are given."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

from norm_core.engines.errors import EngineFailedError
from norm_core.engines.onnx.session import CPU, SAMPLE, Arrays, cosine, open_session
from norm_core.models.onnx_graph import import_for_weights
from norm_core.records.record import record

_OPSET = 17
# Weights of 7 bits: without VNNI, two products of 8 bits do not fit the 16 bits in which they are added.
_REDUCE_RANGE = True


@record
class OutputAgreement:
    """The lowest cosine over the examples between quantized and original outputs, by output."""

    examples: int
    cosines: dict[str, float]

    @property
    def worst(self) -> float:
        """The lowest cosine of all outputs."""
        return min(self.cosines.values())


def int8_dynamic(model: Path, target: Path) -> None:
    """Quantize the weights of matrix products; activations are scaled at run time. For encoders, without examples."""
    tools = import_for_weights("onnxruntime.quantization")
    with _preparing(model, target) as prepared:
        tools.quantize_dynamic(
            str(prepared),
            str(target),
            weight_type=tools.QuantType.QInt8,
            per_channel=True,
            reduce_range=_REDUCE_RANGE,
        )
    _keep_sample(target)


def int8_static(model: Path, target: Path, examples: Sequence[Arrays]) -> None:
    """Quantize weights and activations, over the ranges in the examples. For convolutional networks."""
    if not examples:
        raise EngineFailedError("int8-static needs examples to measure activations on: name a bag with --bag")
    tools = import_for_weights("onnxruntime.quantization")

    class Examples(tools.CalibrationDataReader):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            self._left = iter(examples)

        def get_next(self) -> Arrays | None:
            return next(self._left, None)

    with _preparing(model, target) as prepared:
        tools.quantize_static(
            str(prepared),
            str(target),
            Examples(),
            quant_format=tools.QuantFormat.QDQ,
            activation_type=tools.QuantType.QUInt8,
            weight_type=tools.QuantType.QInt8,
            per_channel=True,
            reduce_range=_REDUCE_RANGE,
        )
    _keep_sample(target)


def _keep_sample(model: Path) -> None:
    """Write some outputs into the model's metadata, which are compared where it is loaded."""
    onnx = import_module("onnx")
    graph = onnx.load(str(model))
    onnx.helper.set_model_props(graph, {SAMPLE: open_session(model, providers=(CPU,)).sample()})
    onnx.save(graph, str(model))


def compare_outputs(model: Path, smaller: Path, examples: Sequence[Arrays]) -> OutputAgreement:
    """Run both models on the examples; use other examples than those for the ranges."""
    original, quantized = (open_session(path, providers=(CPU,), warm_up=examples[0]) for path in (model, smaller))
    cosines = dict.fromkeys(original.outputs, 1.0)
    for example in examples:
        for name, left, right in zip(cosines, original.run(None, example), quantized.run(None, example), strict=True):
            cosines[name] = min(cosines[name], cosine(left, right))
    return OutputAgreement(examples=len(examples), cosines=cosines)


@contextmanager
def _preparing(model: Path, target: Path) -> Iterator[Path]:
    """Add shapes to the model and raise its operator set to one with a scale for each channel."""
    prepared = target.with_name(f"{target.stem}.prepared.onnx")
    onnx = import_for_weights("onnx")
    graph = onnx.load(str(model))
    if next((entry.version for entry in graph.opset_import if not entry.domain), 0) < _OPSET:
        graph = import_module("onnx.version_converter").convert_version(graph, _OPSET)
    try:
        onnx.save(graph, str(prepared))
        shapes = import_module("onnxruntime.quantization.shape_inference")
        shapes.quant_pre_process(str(prepared), str(prepared), skip_symbolic_shape=True)
        yield prepared
    finally:
        prepared.unlink(missing_ok=True)
