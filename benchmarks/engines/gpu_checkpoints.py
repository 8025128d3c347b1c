"""Checkpoints of published sizes with random weights, and the tests' tokenizer of the family."""

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


def _qwen3_vl(ids: dict[str, int], hidden: int, inner: int, layers: int, heads: int) -> Any:
    from transformers import Qwen3VLConfig

    return Qwen3VLConfig(
        image_token_id=ids["<|image_pad|>"],
        video_token_id=ids["<|video_pad|>"],
        vision_start_token_id=ids["<|vision_start|>"],
        vision_end_token_id=ids["<|vision_end|>"],
        tie_word_embeddings=True,
        text_config={
            "vocab_size": 151936,
            "hidden_size": hidden,
            "intermediate_size": inner,
            "num_hidden_layers": layers,
            "num_attention_heads": heads,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "max_position_embeddings": 262144,
            "tie_word_embeddings": True,
            "rope_parameters": {"rope_type": "default", "rope_theta": 5e6, "mrope_section": [24, 20, 20]},
            **_NO_TOKENS,
        },
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


def _smolvlm2_256m(ids: dict[str, int]) -> Any:
    from transformers import SmolVLMConfig

    return SmolVLMConfig(
        image_token_id=ids["<image>"],
        scale_factor=4,
        tie_word_embeddings=False,
        text_config={
            "model_type": "llama",
            "vocab_size": 49280,
            "hidden_size": 576,
            "intermediate_size": 1536,
            "num_hidden_layers": 30,
            "num_attention_heads": 9,
            "num_key_value_heads": 3,
            "max_position_embeddings": 8192,
            "tie_word_embeddings": False,
            **_NO_TOKENS,
        },
        vision_config={
            "hidden_size": 768,
            "intermediate_size": 3072,
            "num_hidden_layers": 12,
            "num_attention_heads": 12,
            "image_size": 512,
            "patch_size": 16,
        },
        pad_token_id=ids["<|im_end|>"],
    )


_NO_TOKENS = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}


def _qwen3_pictures() -> Any:
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    return Qwen2VLImageProcessorPil(patch_size=16, size={"shortest_edge": 64 * 64, "longest_edge": 448 * 448})


def _smolvlm_pictures() -> Any:
    from transformers.models.smolvlm.image_processing_pil_smolvlm import SmolVLMImageProcessorPil

    edge = {"longest_edge": 512}
    return SmolVLMImageProcessorPil(size=edge, max_image_size=edge, do_image_splitting=False)


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
    "smolvlm2-256m": Size(family="smolvlm", config=_smolvlm2_256m, image_processor=_smolvlm_pictures, image_tokens=64),
}


def write_checkpoint(name: str, folder: Path, device: str) -> None:
    """Write a checkpoint of SIZES in bf16 in a hub repository's layout; "tiny" is the tests' own."""
    import json

    import torch
    from transformers import AutoModelForImageTextToText

    from tests.norm_core.engines.tiny_checkpoints import FAMILIES, built, tokenizer_of

    if name == "tiny":
        built("qwen3_vl", folder)
        config = json.loads((folder / "config.json").read_text())
        config["text_config"]["max_position_embeddings"] = 16384
        (folder / "config.json").write_text(json.dumps(config))
        return
    size = SIZES[name]
    tokenizer = tokenizer_of(FAMILIES[size.family])
    torch.manual_seed(0)
    with torch.device(device):
        model = AutoModelForImageTextToText.from_config(size.config(tokenizer.get_vocab()), dtype=torch.bfloat16)
    print(f"{name}: {sum(part.numel() for part in model.parameters()) / 1e6:.0f} million parameters")
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    size.image_processor().save_pretrained(folder)
    if processor := dict(FAMILIES[size.family].processor):
        processor["image_seq_len"] = size.image_tokens
        (folder / "processor_config.json").write_text(json.dumps(processor))
    del model
    if device == "cuda":
        torch.cuda.empty_cache()
