"""Ask llama.cpp for some tokens of a tiny model that is made here: `python -m norm_core.engines.llama_cpp.probe`.

A build that does not fit the processor ends at its first token with a signal, which takes this process alone.
"""

import struct
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from norm_core.engines.engine import Engine
from norm_core.engines.errors import EngineError
from norm_core.engines.prompt import Prompt, Question, Text
from norm_core.engines.reply import Reply
from norm_core.records.outcome import Outcome
from norm_core.runtime.time import WallClock

_WIDTH, _INNER, _HEADS, _LAYERS, _CONTEXT = 256, 512, 4, 1, 256
_TEMPLATE = "{% for message in messages %}{{ message['content'] }}\n{% endfor %}"
_UINT32, _INT32, _FLOAT32, _STRING, _ARRAY = 4, 5, 6, 8, 9  # GGUF's types of values
_F32, _Q4_0, _Q8_0, _Q4_K, _Q6_K = 0, 2, 8, 12, 14  # ggml's types of tensors
# By type of tensor: the values in a block, its bytes, and where its scales stand as half-precision numbers.
_BLOCKS = {_Q4_0: (32, 18, (0,)), _Q8_0: (32, 34, (0,)), _Q4_K: (256, 144, (0, 2)), _Q6_K: (256, 210, (208,))}


def write_tiny_model(path: Path) -> None:
    """Write a language model of random weights in the number formats that real models have."""
    letters = byte_letters()
    tokens = [*letters, "Ġt", "<|end|>"]
    normal, control = 1, 3
    values: list[tuple[str, bytes]] = [
        ("general.architecture", _string("llama")),
        *((f"llama.{name}", _number(_UINT32, value)) for name, value in _SIZES.items()),
        ("llama.attention.layer_norm_rms_epsilon", _number(_FLOAT32, 1e-5)),
        ("tokenizer.ggml.model", _string("gpt2")),
        ("tokenizer.ggml.pre", _string("default")),
        ("tokenizer.ggml.tokens", _array(_STRING, [_text(token) for token in tokens])),
        ("tokenizer.ggml.token_type", _array(_INT32, [struct.pack("<i", kind) for kind in [normal] * 257 + [control]])),
        ("tokenizer.ggml.merges", _array(_STRING, [_text("Ġ t")])),
        ("tokenizer.ggml.eos_token_id", _number(_UINT32, len(tokens) - 1)),
        ("tokenizer.chat_template", _string(_TEMPLATE)),
    ]
    tensors = _tensors(len(tokens))
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(values))
    head += b"".join(_text(name) + value for name, value in values)
    data, numbers = b"", np.random.default_rng(0)
    for name, (kind, shape) in tensors.items():
        head += _text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), kind, len(data))
        data += _padded(_weights(kind, shape, numbers))
    path.write_bytes(_padded(head) + data)


_SIZES = {
    "context_length": _CONTEXT,
    "embedding_length": _WIDTH,
    "feed_forward_length": _INNER,
    "block_count": _LAYERS,
    "attention.head_count": _HEADS,
}


def _tensors(token_count: int) -> dict[str, tuple[int, tuple[int, ...]]]:
    square = (_WIDTH, _WIDTH)
    block: dict[str, tuple[int, tuple[int, ...]]] = {
        "attn_norm": (_F32, (_WIDTH,)),
        "attn_q": (_Q4_K, square),
        "attn_k": (_Q4_0, square),
        "attn_v": (_Q6_K, square),
        "attn_output": (_Q8_0, square),
        "ffn_norm": (_F32, (_WIDTH,)),
        "ffn_gate": (_Q4_K, (_INNER, _WIDTH)),
        "ffn_up": (_Q4_0, (_INNER, _WIDTH)),
        "ffn_down": (_Q6_K, (_WIDTH, _INNER)),
    }
    return {
        "token_embd.weight": (_F32, (token_count, _WIDTH)),
        "output_norm.weight": (_F32, (_WIDTH,)),
        "output.weight": (_Q6_K, (token_count, _WIDTH)),
        **{f"blk.{layer}.{name}.weight": kind for layer in range(_LAYERS) for name, kind in block.items()},
    }


def _weights(kind: int, shape: tuple[int, ...], numbers: np.random.Generator) -> bytes:
    """Return ones for a norm, small numbers for a table, random blocks with a small scale for a quantized matrix."""
    if kind == _F32:
        return (np.ones(shape) if len(shape) == 1 else numbers.normal(0, 0.2, shape)).astype("<f4").tobytes()
    held, size, scales = _BLOCKS[kind]
    blocks = numbers.integers(0, 256, (int(np.prod(shape)) // held, size), np.uint8)
    for place in scales:
        blocks[:, place : place + 2] = np.frombuffer(np.array([1e-3], "<f2").tobytes(), np.uint8)
    return blocks.tobytes()


def _text(text: str) -> bytes:
    content = text.encode()
    return struct.pack("<Q", len(content)) + content


def _string(text: str) -> bytes:
    return struct.pack("<I", _STRING) + _text(text)


def _number(kind: int, value: float) -> bytes:
    return struct.pack("<If" if kind == _FLOAT32 else "<II", kind, value)


def _array(kind: int, values: Sequence[bytes]) -> bytes:
    return struct.pack("<IIQ", _ARRAY, kind, len(values)) + b"".join(values)


def _padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % 32)


def byte_letters() -> list[str]:
    """Return the letter that stands for each byte in a byte-level vocabulary."""
    visible = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = [byte for byte in range(0x100) if byte not in visible]
    return [chr(byte) if byte in visible else chr(0x100 + hidden.index(byte)) for byte in range(0x100)]


def main() -> int:
    """Ask one question and write some tokens; return 1 and say why where no answer comes."""
    try:
        from norm_core.engines.llama_cpp.backend import LlamaCppBackend  # noqa: PLC0415  importing it may fail

        with tempfile.TemporaryDirectory() as folder:
            model = Path(folder, "probe.gguf")
            write_tiny_model(model)
            engine = Engine(LlamaCppBackend(model, context_tokens=_CONTEXT, threads=1), WallClock())
            prompt = Prompt(version="probe-1", parts=(Text(text="A guest comes in."),))
            question = Question(parts=(), options=("Wave.", "Wait."))
            answers: list[Reply] = [*engine.ask_many(prompt, [question]), engine.generate(prompt, max_tokens=4)]
            engine.close()
    except (ImportError, OSError, EngineError) as error:
        print(f"llama.cpp: gives no answer: {error}", file=sys.stderr)
        return 1
    for answer in answers:
        if answer.outcome is not Outcome.ANSWERED:
            print(f"llama.cpp: gives no answer: {answer.reason}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
