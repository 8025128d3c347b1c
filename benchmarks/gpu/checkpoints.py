"""Checkpoints of published sizes with random weights, and the tests' tokenizer of the family."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from norm_core.records.record import record


@record
class Size:
    """A family, its published shape, and how it reads a picture."""

    family: str
    config: Callable[[dict[str, int]], Any]
    image_processor: Callable[[], Any]
    image_tokens: int | None = None


_ROPE = {"rope_type": "default", "rope_theta": 5e6, "mrope_section": [24, 20, 20]}


def _qwen3_text(hidden: int, inner: int, layers: int, heads: int) -> dict[str, Any]:
    return {
        "vocab_size": 151936,
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "max_position_embeddings": 262144,
        "rope_parameters": {"rope_type": "default", "rope_theta": 1e6},
        "tie_word_embeddings": False,
        **dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id")),
    }


def _qwen3_vl(ids: dict[str, int], hidden: int, inner: int, layers: int, heads: int) -> Any:
    from transformers import Qwen3VLConfig

    return Qwen3VLConfig(
        image_token_id=ids["<|image_pad|>"],
        video_token_id=ids["<|video_pad|>"],
        vision_start_token_id=ids["<|vision_start|>"],
        vision_end_token_id=ids["<|vision_end|>"],
        tie_word_embeddings=True,
        text_config=_qwen3_text(hidden, inner, layers, heads) | {"rope_parameters": _ROPE, "tie_word_embeddings": True},
        vision_config={
            "depth": 24,
            "hidden_size": 1024,
            "intermediate_size": 4096,
            "num_heads": 16,
            "out_hidden_size": hidden,
            "num_position_embeddings": 2304,
            "deepstack_visual_indexes": [5, 11, 17],
        },
    )


def _qwen3_vl_8b(ids: dict[str, int]) -> Any:
    config = _qwen3_vl(ids, hidden=4096, inner=12288, layers=36, heads=32)
    config.tie_word_embeddings = config.text_config.tie_word_embeddings = False
    vision = config.vision_config
    vision.depth, vision.hidden_size, vision.intermediate_size = 27, 1152, 4304
    vision.deepstack_visual_indexes = [8, 16, 24]
    return config


def _internvl_4b(ids: dict[str, int]) -> Any:
    from transformers import InternVLConfig

    return InternVLConfig(
        image_token_id=ids["<IMG_CONTEXT>"],
        downsample_ratio=0.5,
        tie_word_embeddings=False,
        text_config=_qwen3_text(hidden=2560, inner=9728, layers=36, heads=32) | {"model_type": "qwen3"},
        vision_config={
            "hidden_size": 1024,
            "intermediate_size": 4096,
            "num_hidden_layers": 24,
            "num_attention_heads": 16,
            "attention_bias": True,
            "image_size": [448, 448],
            "patch_size": [14, 14],
        },
    )


def _qwen3_pictures() -> Any:
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    return Qwen2VLImageProcessorPil(patch_size=16, size={"shortest_edge": 64 * 64, "longest_edge": 448 * 448})


def _internvl_pictures() -> Any:
    """As OpenGVLab's repository has it: a picture is cut into up to twelve tiles, and shown whole beside them."""
    from transformers.models.got_ocr2.image_processing_pil_got_ocr2 import GotOcr2ImageProcessorPil

    return GotOcr2ImageProcessorPil(size={"height": 448, "width": 448}, crop_to_patches=True, max_patches=12)


SIZES = {
    "qwen3-vl-2b": Size(
        family="qwen3_vl",
        config=lambda ids: _qwen3_vl(ids, hidden=2048, inner=6144, layers=28, heads=16),
        image_processor=_qwen3_pictures,
    ),
    "qwen3-vl-4b": Size(
        family="qwen3_vl",
        config=lambda ids: _qwen3_vl(ids, hidden=2560, inner=9728, layers=36, heads=32),
        image_processor=_qwen3_pictures,
    ),
    "qwen3-vl-8b": Size(family="qwen3_vl", config=_qwen3_vl_8b, image_processor=_qwen3_pictures),
    "internvl3.5-4b": Size(
        family="internvl", config=_internvl_4b, image_processor=_internvl_pictures, image_tokens=256
    ),
}


def write_checkpoint(name: str, folder: Path, device: str, *, tiny: bool) -> float:
    """Write a checkpoint of SIZES in bf16 in a hub repository's layout; return its millions of parameters.

    With `tiny`, it is the tests' checkpoint of the family, with a longer context.
    """
    import torch
    from transformers import AutoModelForImageTextToText

    from tests.norm_core.engines.tiny_checkpoints import FAMILIES, built, tokenizer_of

    size = SIZES[name]
    if tiny:
        built(size.family, folder, context_tokens=16384)
        return (folder / "model.safetensors").stat().st_size / 4e6
    tokenizer = tokenizer_of(FAMILIES[size.family])
    torch.manual_seed(0)
    with torch.device(device):
        model = AutoModelForImageTextToText.from_config(size.config(tokenizer.get_vocab()), dtype=torch.bfloat16)
    model.save_pretrained(folder, max_shard_size="2GB")
    tokenizer.save_pretrained(folder)
    size.image_processor().save_pretrained(folder)
    if processor := dict(FAMILIES[size.family].processor):
        processor["image_seq_length"] = size.image_tokens
        (folder / "processor_config.json").write_text(json.dumps(processor))
    return float(sum(part.numel() for part in model.parameters()) / 1e6)
