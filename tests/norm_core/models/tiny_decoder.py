"""A Qwen2 or Llama decoder of random weights in GGUF, an adapter for it, and what both must answer."""

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import pre_tokenizers

WIDTH, INNER, HEADS, KEY_HEADS, LAYERS, RANK = 128, 256, 4, 2, 2, 4
HEAD, EPSILON, BASE = WIDTH // HEADS, 1e-6, 10_000.0
TOKENS = [*sorted(pre_tokenizers.ByteLevel.alphabet()), "Ġt", "el"]
PARTS = {
    "q": ("attn_q", WIDTH, WIDTH),
    "k": ("attn_k", KEY_HEADS * HEAD, WIDTH),
    "v": ("attn_v", KEY_HEADS * HEAD, WIDTH),
    "o": ("attn_output", WIDTH, WIDTH),
    "gate": ("ffn_gate", INNER, WIDTH),
    "up": ("ffn_up", INNER, WIDTH),
    "down": ("ffn_down", WIDTH, INNER),
}
Tensors = dict[str, NDArray[Any]]


def write_safetensors(path: Path, tensors: Mapping[str, NDArray[Any]], dtype: str, metadata: dict[str, str]) -> None:
    header: dict[str, Any] = {"__metadata__": metadata}
    body = b""
    for name, tensor in tensors.items():
        offsets = [len(body), len(body) + tensor.nbytes]
        header[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": offsets}
        body += tensor.tobytes()
    head = json.dumps(header).encode()
    path.write_bytes(len(head).to_bytes(8, "little") + head + body)


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def number(value: float) -> bytes:
    return struct.pack("<II", 4, value) if isinstance(value, int) else struct.pack("<If", 6, value)


def texts(values: list[str]) -> bytes:
    return struct.pack("<IIQ", 9, 8, len(values)) + b"".join(map(text, values))


def write_gguf(path: Path, values: dict[str, bytes], tensors: Mapping[str, tuple[int, tuple[int, ...], bytes]]) -> Path:
    """Write metadata, and tensors by name as GGML's type, shape and bytes."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(values))
    head += b"".join(text(name) + value for name, value in values.items())
    body = b""
    for name, (kind, shape, content) in tensors.items():
        head += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), kind, len(body))
        body += content + bytes(-len(content) % 32)
    path.write_bytes(head + bytes(-len(head) % 32) + body)
    return path


def write_tiny_decoder(path: Path, *, family: str = "qwen2") -> Tensors:
    """Write the model, and return its weights."""
    random = np.random.default_rng(3)
    shapes: dict[str, tuple[int, ...]] = {"token_embd.weight": (len(TOKENS), WIDTH), "output_norm.weight": (WIDTH,)}
    for layer in range(LAYERS):
        shapes |= {f"blk.{layer}.{name}_norm.weight": (WIDTH,) for name in ("attn", "ffn")}
        shapes |= {f"blk.{layer}.{name}.weight": (rows, columns) for name, rows, columns in PARTS.values()}
        if family == "qwen2":
            shapes |= {f"blk.{layer}.{PARTS[part][0]}.bias": PARTS[part][1:2] for part in "qkv"}
    tensors = {name: random.normal(0, 0.12, shape).astype(np.float32) for name, shape in shapes.items()}
    tensors |= {name: tensor + 1 for name, tensor in tensors.items() if "norm" in name}
    values = {"general.architecture": struct.pack("<I", 8) + text(family), "tokenizer.ggml.tokens": texts(TOKENS)}
    values |= {
        "tokenizer.ggml.model": struct.pack("<I", 8) + text("gpt2"),
        "tokenizer.ggml.merges": texts(["Ġ t", "e l"]),
    }
    values |= {"tokenizer.ggml.pre": struct.pack("<I", 8) + text("smollm" if family == "llama" else "qwen2")}
    sizes = {"block_count": LAYERS, "embedding_length": WIDTH, "attention.head_count": HEADS, "rope.freq_base": BASE}
    sizes |= {"attention.head_count_kv": KEY_HEADS, "attention.layer_norm_rms_epsilon": EPSILON}
    sizes |= {"context_length": 2048, "feed_forward_length": INNER}
    values |= {f"{family}.{name}": number(size) for name, size in sizes.items()}
    stored = tensors if family == "qwen2" else {name: _in_pairs(name, tensor) for name, tensor in tensors.items()}
    write_gguf(path, values, {name: (0, tensor.shape, tensor.tobytes()) for name, tensor in stored.items()})
    return tensors


def _in_pairs(name: str, tensor: NDArray[Any]) -> NDArray[Any]:
    """Put what is turned together side by side in a head of queries or keys, as a Llama's file has it."""
    if not name.endswith(("attn_q.weight", "attn_k.weight")):
        return tensor
    first = [head * HEAD + place for head in range(len(tensor) // HEAD) for place in range(HEAD // 2)]
    return tensor[[row for place in first for row in (place, place + HEAD // 2)]]


def write_adapter(path: Path, base_sha256: str, **changes: NDArray[Any]) -> Tensors:
    """Write an adapter, and return its weights; `changes` take the place of some."""
    random = np.random.default_rng(4)
    tensors: Tensors = {"head.weight": random.normal(0, 0.3, (38, WIDTH)), "head.bias": random.normal(0, 0.3, 38)}
    for layer in range(LAYERS):
        for part, (_, rows, columns) in PARTS.items():
            tensors[f"layers.{layer}.{part}.lora_a"] = random.normal(0, 0.1, (RANK, columns))
            tensors[f"layers.{layer}.{part}.lora_b"] = random.normal(0, 0.1, (rows, RANK))
    tensors = {name: tensor.astype(np.float16) for name, tensor in (tensors | changes).items() if tensor.size}
    write_safetensors(path, tensors, "F16", {"base_sha256": base_sha256, "people_scale": "1"})
    return tensors


def heads_of(base: Tensors, adapter: Tensors, tokens: list[int]) -> Any:
    """Return the outputs of the heads at each token, in one pass over all of them."""
    places = np.arange(len(tokens))
    turns = np.outer(places, BASE ** (-2 * np.arange(HEAD // 2) / HEAD))
    mask = np.where(places[:, None] < places, -np.inf, 0)

    def normed(name: str) -> Any:
        return state / np.sqrt((state**2).mean(-1, keepdims=True) + EPSILON) * base[f"{name}_norm.weight"]

    def linear(inputs: Any, layer: int, part: str) -> Any:
        name = f"blk.{layer}.{PARTS[part][0]}"
        first, second = (adapter[f"layers.{layer}.{part}.lora_{side}"].astype(np.float64) for side in "ab")
        return inputs @ (base[f"{name}.weight"] + second @ first).T + base.get(f"{name}.bias", 0)

    def turned(vectors: Any) -> Any:
        one, other, cosines, sines = *np.split(vectors, 2, axis=-1), np.cos(turns), np.sin(turns)
        return np.concatenate([one * cosines - other * sines, other * cosines + one * sines], -1)

    state = base["token_embd.weight"][tokens].astype(np.float16).astype(np.float64)
    for layer in range(LAYERS):
        inputs = normed(f"blk.{layer}.attn")
        query, key, value = (
            linear(inputs, layer, part).reshape(len(tokens), -1, HEAD).swapaxes(0, 1) for part in "qkv"
        )
        key, value = (np.repeat(part, HEADS // KEY_HEADS, axis=0) for part in (turned(key), value))
        scores = np.exp(turned(query) @ key.swapaxes(1, 2) / np.sqrt(HEAD) + mask)
        mixed = (scores / scores.sum(-1, keepdims=True)) @ value
        state = state + linear(mixed.swapaxes(0, 1).reshape(len(tokens), -1), layer, "o")
        inputs = normed(f"blk.{layer}.ffn")
        gate = linear(inputs, layer, "gate")
        state = state + linear(gate / (1 + np.exp(-gate)) * linear(inputs, layer, "up"), layer, "down")
    return normed("output") @ adapter["head.weight"].astype(np.float64).T + adapter["head.bias"]
