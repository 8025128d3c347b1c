"""The tokenizer in the metadata of a GGUF file of Qwen2 or SmolLM2."""

from typing import Any

from norm_core.engines.errors import EngineFailedError
from norm_core.models.gguf_file import GgufFile

# The patterns that split a text before its bytes are joined to tokens. Control tokens are never parsed from a text.
_SPLIT_PATTERNS = {
    "qwen2": (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
        r"|\s+(?!\S)|\s+",
    ),
    "smollm": (r"\p{N}", r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"),
}


def load_tokenizer(file: GgufFile) -> Any:
    """Return the tokenizer in a file. Raises EngineFailedError if it is not of a known kind."""
    # Imported here, because commands that only list models should start fast.
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers  # noqa: PLC0415

    kind = file.metadata.get("tokenizer.ggml.model"), file.metadata.get("tokenizer.ggml.pre")
    if kind[0] != "gpt2" or kind[1] not in _SPLIT_PATTERNS:
        known_kinds = " or ".join(_SPLIT_PATTERNS)
        raise EngineFailedError(f"{file.path}: has a tokenizer of the kind {kind}; take a model with {known_kinds}")
    vocabulary = {token: index for index, token in enumerate(file.metadata.get("tokenizer.ggml.tokens", ()))}
    merges = [tuple(pair.split(" ")) for pair in file.metadata.get("tokenizer.ggml.merges", ())]
    tokenizer = Tokenizer(models.BPE(vocabulary, merges))
    splits = [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in _SPLIT_PATTERNS[kind[1]]]
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*splits, byte_level])
    return tokenizer
