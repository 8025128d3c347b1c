"""The tokenizer in the metadata of a Qwen2 model's GGUF file."""

from typing import Any

from norm_core.engines.errors import EngineFailedError
from norm_core.models.gguf_file import GgufFile

# How Qwen2 parts a text before it joins bytes to tokens; no control token is parsed from a text.
_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def tokenizer_of(file: GgufFile) -> Any:
    """Return the tokenizer; raise EngineFailedError if the file holds none of Qwen2's kind."""
    # Imported here: a command that only lists things should not spend the time.
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers  # noqa: PLC0415

    kind = file.metadata.get("tokenizer.ggml.model"), file.metadata.get("tokenizer.ggml.pre")
    if kind != ("gpt2", "qwen2"):
        raise EngineFailedError(f"{file.path}: has a tokenizer of the kind {kind}; the reader is made of a qwen2 model")
    vocabulary = {token: number for number, token in enumerate(file.metadata.get("tokenizer.ggml.tokens", ()))}
    merges = [tuple(pair.split(" ")) for pair in file.metadata.get("tokenizer.ggml.merges", ())]
    tokenizer = Tokenizer(models.BPE(vocabulary, merges))
    parts = pre_tokenizers.Split(Regex(_SPLIT), "isolated")
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([parts, byte_level])
    return tokenizer
