"""Convert a Qwen2 or Llama model in GGUF and an adapter to the folder of a talk reader, without torch.

The ONNX graph takes the embeddings of tokens and the keys and values of earlier tokens, and returns the outputs of the
adapter's heads. The adapter is merged into the weights before they are quantized to 8 bits.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from norm_core.engines.errors import EngineFailedError
from norm_core.engines.reader.gguf_tokenizer import load_tokenizer
from norm_core.engines.reader.onnx_graph import OnnxGraph
from norm_core.engines.talk_reader import HEAD_OUTPUTS
from norm_core.models.gguf_file import Floats, GgufFile
from norm_core.models.reader_folder import (
    EMBEDDINGS,
    GRAPH,
    TOKENIZER,
    WEIGHTS,
    ReaderManifest,
    ReaderSize,
    write_manifest,
)
from norm_core.models.safetensors import read_safetensors, read_safetensors_header
from norm_core.models.store import describe_file, hash_file
from norm_core.records.record import record

_MAX_TOKENS = 1024
# The versions of ONNX operators and of the file format.
_OPSET = 21
_IR_VERSION = 10
# The domain of the operators of ONNX Runtime.
_MICROSOFT = "com.microsoft"
# The numbers of weights that share a scale; the first that divides a row is used. 32 is not more exact than 128, and
# takes a fifth more memory.
_BLOCK_WIDTHS = (128, 64, 32)
# Weights start at a multiple of this many bytes, so that they can be mapped.
_ALIGNMENT_BYTES = 4096
# The number of embeddings that are converted at once.
_ROWS_AT_ONCE = 8192
# The accuracy level of MatMulNBits with 8-bit activations.
_INT8_ACTIVATIONS = 4
_FAMILIES = ("qwen2", "llama")
# The linear maps that an adapter changes: the name in GGUF by the name in the adapter.
PARTS = {
    "q": "attn_q",
    "k": "attn_k",
    "v": "attn_v",
    "o": "attn_output",
    "gate": "ffn_gate",
    "up": "ffn_up",
    "down": "ffn_down",
}


@record
class DecoderShape:
    """The dimensions of a decoder of the family qwen2 or llama."""

    family: str
    layers: int
    width: int
    heads: int
    key_heads: int
    rope_base: float
    epsilon: float

    @property
    def head_width(self) -> int:
        """The size of one head."""
        return self.width // self.heads


def read_decoder_shape(file: GgufFile) -> DecoderShape:
    """Return the dimensions in the metadata. Raises EngineFailedError for another architecture or missing values."""
    family = file.metadata.get("general.architecture")
    if family not in _FAMILIES:
        families = " or ".join(_FAMILIES)
        raise EngineFailedError(f"{file.path}: is a {family} model; take a {families} model")
    try:
        values = {key.removeprefix(f"{family}."): value for key, value in file.metadata.items()}
        return DecoderShape(
            family=family,
            layers=values["block_count"],
            width=values["embedding_length"],
            heads=values["attention.head_count"],
            key_heads=values["attention.head_count_kv"],
            rope_base=values["rope.freq_base"],
            epsilon=values["attention.layer_norm_rms_epsilon"],
        )
    except KeyError as error:
        raise EngineFailedError(f"{file.path}: does not state {error}; take another file of the model") from error


def read_decoder_tensor(file: GgufFile, shape: DecoderShape, name: str) -> Floats:
    """Return a tensor; reorder queries and keys, so that rotation pairs the first half of a head with the second."""
    values = file.read_tensor(name)
    # Files of Llama store these pairs side by side.
    if shape.family == "llama" and name.endswith(("attn_q.weight", "attn_k.weight")):
        pairs = values.reshape(-1, shape.head_width // 2, 2, shape.width)
        values = pairs.swapaxes(1, 2).reshape(values.shape)
    return values


def write_reader(
    base: Path,
    adapter: Path,
    folder: Path,
    *,
    size: ReaderSize = ReaderSize.MIDDLE,
    advance: Callable[[int, int], None] = lambda done, total: None,
) -> ReaderManifest:
    """Write the reader, which replaces the folder once it is complete.

    Raises EngineFailedError if the folder cannot be written, or if the adapter belongs to another base model.
    """
    tensors = read_safetensors(adapter)
    adapter_metadata = read_safetensors_header(adapter).metadata
    file = GgufFile(base)
    if (expected_sha256 := adapter_metadata.get("base_sha256")) != file.sha256:
        raise EngineFailedError(
            f"{base}: has the SHA-256 {file.sha256[:16]}…, and {adapter.name} was made for "
            f"{f'{expected_sha256[:16]}…' if expected_sha256 else 'a file that it does not state'}; take the base "
            "model of that hash"
        )
    shape = read_decoder_shape(file)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder.parent, prefix=".making-") as temporary:
            new = Path(temporary, "new")
            old = Path(temporary, "old")
            new.mkdir()
            loss = _write_decoder(file, tensors, shape, new, advance)
            load_tokenizer(file).save(str(new / TOKENIZER))
            manifest = ReaderManifest(
                source=base.name,
                files=tuple(describe_file(new, name) for name in (GRAPH, WEIGHTS, EMBEDDINGS, TOKENIZER)),
                base_sha256=file.sha256,
                adapter_sha256=hash_file(adapter),
                adapter=adapter_metadata,
                max_tokens=_MAX_TOKENS,
                layers=shape.layers,
                key_heads=shape.key_heads,
                head_width=shape.head_width,
                weight_loss=loss,
                size=size,
            )
            write_manifest(manifest, new)
            if folder.exists():
                folder.rename(old)
            new.rename(folder)
    except OSError as error:
        raise EngineFailedError(
            f"{folder}: the reader cannot be written: {error.strerror}; make room of a gigabyte there (large: two), "
            "or set TACTFUL_WEIGHTS to another folder"
        ) from error
    return manifest


def _write_decoder(
    file: GgufFile,
    adapter: Mapping[str, Floats],
    shape: DecoderShape,
    folder: Path,
    advance: Callable[[int, int], None],
) -> float:
    """Write the graph, its weights and the embeddings; return the mean relative error of the 8-bit weights."""
    weight, bias = (adapter.get(f"head.{name}", np.zeros(0, np.float32)) for name in ("weight", "bias"))
    if (weight.shape, bias.shape) != ((HEAD_OUTPUTS, shape.width), (HEAD_OUTPUTS,)):
        raise EngineFailedError(
            f"the adapter has no head of {HEAD_OUTPUTS} outputs for vectors of {shape.width} values; take one that was "
            f"made for {file.path.name}"
        )
    total = shape.layers + 1
    with (folder / WEIGHTS).open("wb") as stream:
        graph = _DecoderGraph(file, adapter, shape, stream)
        graph.add_start()
        for layer in range(shape.layers):
            graph.add_layer(layer)
            advance(layer + 1, total)
        graph.add_end(weight, bias)
    (folder / GRAPH).write_bytes(graph.build_model().SerializeToString())
    _write_embeddings(file, folder / EMBEDDINGS)
    advance(total, total)
    return round(float(np.mean(graph.losses)), 4)


def _merge_weight(file: GgufFile, adapter: Mapping[str, Floats], shape: DecoderShape, layer: int, part: str) -> Floats:
    """Return the weight of a linear map [out, in] with the change of the adapter.

    Raises EngineFailedError if the adapter does not fit.
    """
    weight = read_decoder_tensor(file, shape, f"blk.{layer}.{PARTS[part]}.weight")
    names = [f"layers.{layer}.{part}.lora_{side}" for side in "ab"]
    if missing_names := [name for name in names if name not in adapter]:
        raise EngineFailedError(f"the adapter has no {missing_names[0]}; take one that was made for {file.path.name}")
    first, second = (adapter[name] for name in names)
    if (second.shape[0], first.shape[1]) != weight.shape or first.shape[0] != second.shape[1]:
        raise EngineFailedError(
            f"the adapter's layers.{layer}.{part} changes {second.shape[0]} by {first.shape[1]} weights, and "
            f"{file.path.name} has {' by '.join(map(str, weight.shape))}; take one that was made for it"
        )
    merged: Floats = weight + second @ first
    return merged


def _write_embeddings(file: GgufFile, target: Path) -> None:
    shape = file.shapes.get("token_embd.weight", (0, 0))
    header = {"descr": "<f2", "fortran_order": False, "shape": shape}
    with target.open("wb") as stream:
        np.lib.format.write_array_header_1_0(stream, header)
        for start in range(0, shape[0] or 1, _ROWS_AT_ONCE):
            rows = file.read_tensor("token_embd.weight", slice(start, start + _ROWS_AT_ONCE))
            stream.write(rows.astype("<f2").tobytes())


class _DecoderGraph(OnnxGraph):
    """The graph of the decoder, whose weights go to a stream."""

    def __init__(self, file: GgufFile, adapter: Mapping[str, Floats], shape: DecoderShape, stream: BinaryIO) -> None:
        super().__init__()
        self._file = file
        self._adapter = adapter
        self._shape = shape
        self._stream = stream
        self.losses: list[np.floating[Any]] = []

    def add_start(self) -> None:
        """Add the rotations of positions; the hidden state starts as the tokens' embeddings."""
        half = self._shape.head_width // 2
        angles = np.outer(np.arange(_MAX_TOKENS), self._shape.rope_base ** (-np.arange(half) / half))
        self.add_constant("cosines", np.cos(angles).astype(np.float32))
        self.add_constant("sines", np.sin(angles).astype(np.float32))
        # The names of the hidden state, and of the change that the next normalization adds to it.
        self._state = "embedded"
        self._change = ""

    def add_layer(self, layer: int) -> None:
        """Add attention and the feed-forward part, each after a normalization."""
        normed = self._add_normalization(f"blk.{layer}.attn_norm.weight")
        bias = ""
        if self._shape.family == "qwen2":
            biases = np.concatenate([self._file.read_tensor(f"blk.{layer}.attn_{part}.bias") for part in "qkv"])
            bias = self.add_constant(f"bias_{layer}", biases)
        mixed = self._add_linear(normed, layer, "q", "k", "v", bias=bias)
        self._change = self._add_linear(self._add_attention(mixed, layer), layer, "o")
        normed = self._add_normalization(f"blk.{layer}.ffn_norm.weight")
        gate = self.add("QuickGelu", self._add_linear(normed, layer, "gate"), domain=_MICROSOFT, alpha=1.0)
        self._change = self._add_linear(self.add("Mul", gate, self._add_linear(normed, layer, "up")), layer, "down")

    def add_end(self, weight: Floats, bias: Floats) -> None:
        """Add the last normalization and the heads."""
        normed = self._add_normalization("output_norm.weight")
        vectors = self.add("Squeeze", normed, self.add_ints("first", [0]))
        scores = self.add("MatMul", vectors, self.add_constant("head", weight.T.copy()))
        self.add("Add", scores, self.add_constant("head_bias", bias), outputs=["heads"])

    def build_model(self) -> Any:
        """Return the model, whose large weights are in another file."""
        types, helper, shape = self.onnx.TensorProto, self.onnx.helper, self._shape
        value = helper.make_tensor_value_info
        names = [f"{kind}_{layer}" for layer in range(shape.layers) for kind in ("key", "value")]
        cache = {
            time: [value(f"{time}_{name}", types.FLOAT, [1, shape.key_heads, time, shape.head_width]) for name in names]
            for time in ("past", "present")
        }
        inputs = [
            value("embedded", types.FLOAT, [1, "tokens", shape.width]),
            value("last_position", types.INT32, [1]),
            value("length", types.INT32, []),
            *cache["past"],
        ]
        outputs = [value("heads", types.FLOAT, ["tokens", HEAD_OUTPUTS]), *cache["present"]]
        graph = helper.make_graph(self.nodes, "reader", inputs, outputs, list(self.constants.values()))
        opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(_MICROSOFT, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION, producer_name="tactful")

    def _add_attention(self, mixed: str, layer: int) -> str:
        cache = [f"{kind}_{layer}" for kind in ("key", "value")]
        return self.add(
            "GroupQueryAttention",
            *(mixed, "", "", *(f"past_{name}" for name in cache), "last_position", "length", "cosines", "sines"),
            outputs=[f"attended_{layer}", *(f"present_{name}" for name in cache)],
            domain=_MICROSOFT,
            num_heads=self._shape.heads,
            kv_num_heads=self._shape.key_heads,
            do_rotary=1,
        )

    def _add_normalization(self, name: str) -> str:
        """Add the change, if there is one, to the state; return the state over its root mean square."""
        weight = self.add_constant(name, self._file.read_tensor(name))
        epsilon = self._shape.epsilon
        if not self._change:
            return self.add("SimplifiedLayerNormalization", self._state, weight, axis=-1, epsilon=epsilon)
        inputs = (self._state, self._change, weight)
        self._state = f"{name}.state"
        outputs = [f"{name}.normed", "", "", self._state]
        operator = "SkipSimplifiedLayerNormalization"
        return self.add(operator, *inputs, outputs=outputs, domain=_MICROSOFT, epsilon=epsilon)

    def _add_linear(self, hidden: str, layer: int, *parts: str, bias: str = "") -> str:
        """Add one product with the weights of all parts, one below the other."""
        weight = np.concatenate([_merge_weight(self._file, self._adapter, self._shape, layer, part) for part in parts])
        codes, scales = _quantize_blocks(weight)
        restored = (codes.astype(np.float32) - 128) * scales[..., None]
        self.losses.append(np.linalg.norm(restored.reshape(weight.shape) - weight) / np.linalg.norm(weight))
        name = f"{''.join(parts)}_{layer}"
        inputs = [hidden, self._add_external(f"{name}.codes", codes), self._add_external(f"{name}.scales", scales)]
        attributes = {"K": weight.shape[1], "N": weight.shape[0], "bits": 8, "block_size": codes.shape[-1]}
        inputs += ["", "", bias] if bias else []
        return self.add("MatMulNBits", *inputs, domain=_MICROSOFT, accuracy_level=_INT8_ACTIVATIONS, **attributes)

    def _add_external(self, name: str, values: NDArray[Any]) -> str:
        """Write a constant into the file of weights, from where ONNX Runtime maps it."""
        self._stream.write(bytes(-self._stream.tell() % _ALIGNMENT_BYTES))
        types = self.onnx.TensorProto
        kind = self.onnx.helper.np_dtype_to_tensor_dtype(values.dtype)
        tensor = types(name=name, data_type=kind, dims=values.shape, data_location=types.EXTERNAL)
        for key, entry in (("location", WEIGHTS), ("offset", self._stream.tell()), ("length", values.nbytes)):
            tensor.external_data.add(key=key, value=str(entry))
        self._stream.write(values.tobytes())
        self.constants[name] = tensor
        return name


def _quantize_blocks(weight: Floats) -> tuple[NDArray[np.uint8], Floats]:
    """Return 8-bit codes [out, blocks, width of a block] around 128, and the scale of each block."""
    rows, columns = weight.shape
    width = next((width for width in _BLOCK_WIDTHS if columns % width == 0), 0)
    if not width:
        raise EngineFailedError(f"a width of {columns} is not a multiple of {_BLOCK_WIDTHS[-1]}; take another model")
    blocks = weight.reshape(rows, columns // width, width)
    scales = np.abs(blocks).max(axis=-1) / 127
    codes = np.rint(blocks / np.where(scales == 0, 1, scales)[..., None]) + 128
    return codes.astype(np.uint8), scales.astype(np.float32)
