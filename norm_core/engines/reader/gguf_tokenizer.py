"""The tokenizer in the metadata of a GGUF file of Qwen2 or SmolLM2."""

from typing import Any

from norm_core.engines.errors import EngineFailedError
from norm_core.models.gguf_file import GgufFile

# The patterns that split a text before bytes are joined to tokens. Control tokens are never parsed from a text.
_SPLITS = {
    "qwen2": (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
        r"|\s+(?!\S)|\s+",
    ),
    "smollm": (r"\p{N}", r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"),
}


def tokenizer_of(file: GgufFile) -> Any:
    """Return the tokenizer; raise EngineFailedError if the file holds none that is known."""
    # Imported here, because commands that only list models should start fast.
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers  # noqa: PLC0415

    kind = file.metadata.get("tokenizer.ggml.model"), file.metadata.get("tokenizer.ggml.pre")
    if kind[0] != "gpt2" or kind[1] not in _SPLITS:
        wanted = " or ".join(_SPLITS)
        raise EngineFailedError(f"{file.path}: has a tokenizer of the kind {kind}; the reader takes one of {wanted}")
    vocabulary = {token: number for number, token in enumerate(file.metadata.get("tokenizer.ggml.tokens", ()))}
    merges = [tuple(pair.split(" ")) for pair in file.metadata.get("tokenizer.ggml.merges", ())]
    tokenizer = Tokenizer(models.BPE(vocabulary, merges))
    parts = [pre_tokenizers.Split(Regex(split), "isolated") for split in _SPLITS[kind[1]]]
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*parts, byte_level])
    return tokenizer
