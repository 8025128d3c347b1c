"""A BERT sentence encoder of random weights with the names and shapes of real ones, and what it must answer."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer, models, pre_tokenizers

HIDDEN, INNER, LAYERS, HEADS, WORDS, PLACES, EPSILON = 32, 64, 2, 4, 60, 40, 1e-12

Tensors = dict[str, NDArray[np.float32]]


def write_safetensors(path: Path, tensors: Mapping[str, NDArray[Any]], dtype: str, metadata: dict[str, str]) -> None:
    header: dict[str, Any] = {"__metadata__": metadata}
    body = b""
    for name, tensor in tensors.items():
        offsets = [len(body), len(body) + tensor.nbytes]
        header[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": offsets}
        body += tensor.tobytes()
    head = json.dumps(header).encode()
    path.write_bytes(len(head).to_bytes(8, "little") + head + body)


def write_tiny_bert(folder: Path) -> Tensors:
    """Writes config.json, model.safetensors and tokenizer.json."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(7)
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (WORDS, HIDDEN),
        "embeddings.position_embeddings.weight": (PLACES, HIDDEN),
        "embeddings.token_type_embeddings.weight": (2, HIDDEN),
        "embeddings.LayerNorm.weight": (HIDDEN,),
        "embeddings.LayerNorm.bias": (HIDDEN,),
    }
    for layer in range(LAYERS):
        at = f"encoder.layer.{layer}"
        square = [f"attention.self.{part}" for part in ("query", "key", "value")] + ["attention.output.dense"]
        sizes = dict.fromkeys(square, (HIDDEN, HIDDEN))
        sizes |= {"intermediate.dense": (INNER, HIDDEN), "output.dense": (HIDDEN, INNER)}
        for name, size in sizes.items():
            shapes |= {f"{at}.{name}.weight": size, f"{at}.{name}.bias": size[:1]}
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes |= {f"{at}.{name}.weight": (HIDDEN,), f"{at}.{name}.bias": (HIDDEN,)}
    tensors = {name: random.normal(0, 0.3, shape).astype(np.float32) for name, shape in shapes.items()}
    write_safetensors(folder / "model.safetensors", tensors, "F32", {"format": "pt"})
    config = {"model_type": "bert", "hidden_act": "gelu", "hidden_size": HIDDEN, "layer_norm_eps": EPSILON}
    config |= {"num_hidden_layers": LAYERS, "num_attention_heads": HEADS}
    (folder / "config.json").write_text(json.dumps(config))
    said = "Greet the guest . Water plants Count to a thousand Good morning What should robot do ? would be rude"
    words = ["[UNK]", *said.split(), "takes", "longest", "Say", "number"]
    words += [str(number) for number in range(30)]
    tokenizer = Tokenizer(models.WordLevel({word: place for place, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    return tensors


def encoded(tensors: Tensors, tokens: list[int]) -> NDArray[np.float32]:
    """The unit vector of a row of tokens, worked out plainly."""

    def linear(x: NDArray[np.float32], at: str) -> NDArray[np.float32]:
        return x @ tensors[f"{at}.weight"].T + tensors[f"{at}.bias"]

    def normed(x: NDArray[np.float32], at: str) -> NDArray[np.float32]:
        spread = np.sqrt(x.var(-1, keepdims=True) + EPSILON)
        scaled: NDArray[np.float32] = (x - x.mean(-1, keepdims=True)) / spread
        return scaled * tensors[f"{at}.weight"] + tensors[f"{at}.bias"]

    x = tensors["embeddings.word_embeddings.weight"][tokens] + tensors["embeddings.token_type_embeddings.weight"][0]
    x = normed(x + tensors["embeddings.position_embeddings.weight"][: len(tokens)], "embeddings.LayerNorm")
    size = HIDDEN // HEADS
    for layer in range(LAYERS):
        at = f"encoder.layer.{layer}"
        q, k, v = (linear(x, f"{at}.attention.self.{part}") for part in ("query", "key", "value"))
        heads = []
        for head in range(HEADS):
            part = slice(head * size, (head + 1) * size)
            scores = q[:, part] @ k[:, part].T / math.sqrt(size)
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            heads.append(weights / weights.sum(-1, keepdims=True) @ v[:, part])
        attended = linear(np.concatenate(heads, -1), f"{at}.attention.output.dense")
        x = normed(x + attended, f"{at}.attention.output.LayerNorm")
        inner = linear(x, f"{at}.intermediate.dense")
        inner = inner * 0.5 * (1 + np.vectorize(math.erf)(inner / math.sqrt(2)))
        x = normed(x + linear(inner, f"{at}.output.dense"), f"{at}.output.LayerNorm")
    mean = x.mean(0)
    return np.asarray(mean / np.linalg.norm(mean), np.float32)
