"""stand-in"""
from tokenizers import Tokenizer, Regex, pre_tokenizers, decoders
from tokenizers.models import BPE

_SPLIT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def tokenizer_of(base):
    vocabulary = {token: n for n, token in enumerate(base.metadata["tokenizer.ggml.tokens"])}
    merges = [tuple(line.split(" ")) for line in base.metadata["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(BPE(vocabulary, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(_SPLIT), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer
