"""Checkpoints of Qwen3-VL's sizes with random weights, and the tests' tokenizer of the family."""

from pathlib import Path
from typing import Any

_FAMILY = "qwen3_vl"
_ROPE = {"rope_type": "default", "rope_theta": 5e6, "mrope_section": [24, 20, 20]}
_TEXT = {
    "vocab_size": 151936,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "max_position_embeddings": 262144,
    "rope_parameters": _ROPE,
    **dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id")),
}
_VISION = {
    "depth": 24,
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_heads": 16,
    "num_position_embeddings": 2304,
    "deepstack_visual_indexes": [5, 11, 17],
}
_VISION_8B = {"depth": 27, "hidden_size": 1152, "intermediate_size": 4304, "deepstack_visual_indexes": [8, 16, 24]}

# By name: the text's hidden and inner widths, layers and heads, whether embeddings are tied, and the vision's own.
SIZES: dict[str, tuple[int, int, int, int, bool, dict[str, Any]]] = {
    "qwen3-vl-2b": (2048, 6144, 28, 16, True, {}),
    "qwen3-vl-4b": (2560, 9728, 36, 32, True, {}),
    "qwen3-vl-8b": (4096, 12288, 36, 32, False, _VISION_8B),
}


def write_checkpoint(name: str, folder: Path, device: str, *, tiny: bool) -> float:
    """Write a checkpoint of SIZES in bf16 in a hub repository's layout; return its millions of parameters.

    With `tiny`, it is the tests' checkpoint of the family, with a longer context.
    """
    import torch
    from transformers import AutoModelForImageTextToText
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    from tests.norm_core.engines.tiny_checkpoints import FAMILIES, built, tokenizer_of

    if tiny:
        built(_FAMILY, folder, context_tokens=16384)
        return (folder / "model.safetensors").stat().st_size / 4e6
    tokenizer = tokenizer_of(FAMILIES[_FAMILY])
    torch.manual_seed(0)
    with torch.device(device):
        model = AutoModelForImageTextToText.from_config(_config(name, tokenizer.get_vocab()), dtype=torch.bfloat16)
    model.save_pretrained(folder, max_shard_size="2GB")
    tokenizer.save_pretrained(folder)
    pictures = Qwen2VLImageProcessorPil(patch_size=16, size={"shortest_edge": 64 * 64, "longest_edge": 448 * 448})
    pictures.save_pretrained(folder)
    return float(sum(part.numel() for part in model.parameters()) / 1e6)


def _config(name: str, ids: dict[str, int]) -> Any:
    from transformers import Qwen3VLConfig

    hidden, inner, layers, heads, tied, vision = SIZES[name]
    text = {"hidden_size": hidden, "intermediate_size": inner, "num_hidden_layers": layers}
    return Qwen3VLConfig(
        image_token_id=ids["<|image_pad|>"],
        video_token_id=ids["<|video_pad|>"],
        vision_start_token_id=ids["<|vision_start|>"],
        vision_end_token_id=ids["<|vision_end|>"],
        tie_word_embeddings=tied,
        text_config={**_TEXT, **text, "num_attention_heads": heads, "tie_word_embeddings": tied},
        vision_config={**_VISION, **vision, "out_hidden_size": hidden},
    )
