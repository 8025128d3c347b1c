"""Checkpoints of each model family: its real config class with small numbers, random weights, a tokenizer made here."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    Gemma3Config,
    Idefics3Config,
    InternVLConfig,
    LlamaConfig,
    LlavaConfig,
    PreTrainedTokenizerFast,
    Qwen2_5_VLConfig,
    Qwen3VLConfig,
    SmolVLMConfig,
)
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
from transformers.models.gemma3.image_processing_pil_gemma3 import Gemma3ImageProcessorPil
from transformers.models.got_ocr2.image_processing_pil_got_ocr2 import GotOcr2ImageProcessorPil
from transformers.models.idefics3.image_processing_pil_idefics3 import Idefics3ImageProcessorPil
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil
from transformers.models.smolvlm.image_processing_pil_smolvlm import SmolVLMImageProcessorPil

CONTEXT_TOKENS = 2048

_SAID = "What should the robot do? Greet the guest, water the plants, and wait. The answer is the letter of one option."
_CHATML = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}IMAGE{% else %}{{ part['text'] }}{% endif %}{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_IDEFICS = (
    "<|im_start|>{% for message in messages %}{{ message['role'] | capitalize }}"
    "{% if message['content'][0]['type'] == 'image' %}:{% else %}: {% endif %}{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<image>{% else %}{{ part['text'] }}{% endif %}{% endfor %}<end_of_utterance>\n"
    "{% endfor %}{% if add_generation_prompt %}Assistant:{% endif %}"
)
_GEMMA = (
    "{{ bos_token }}{% for message in messages %}<start_of_turn>{{ message['role'] }}\n"
    "{% for part in message['content'] %}{% if part['type'] == 'image' %}<start_of_image>"
    "{% else %}{{ part['text'] | trim }}{% endif %}{% endfor %}<end_of_turn>\n{% endfor %}"
    "{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)


@dataclass(frozen=True)
class Family:
    """What sets a family apart; `special` are the control tokens of its real tokenizer, the first ends a turn."""

    special: tuple[str, ...]
    template: str
    config: Callable[[dict[str, int]], Any]
    image_processor: Callable[[], Any] | None = None
    named: tuple[tuple[str, str], ...] = ()
    processor: tuple[tuple[str, Any], ...] = ()


def _text(**more: Any) -> dict[str, Any]:
    return {
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "max_position_embeddings": CONTEXT_TOKENS,
        "initializer_range": 0.2,
        **more,
    }


def _ids(ids: dict[str, int]) -> dict[str, Any]:
    return {"vocab_size": len(ids), "pad_token_id": None, "bos_token_id": None, "eos_token_id": None}


def _siglip(**more: Any) -> dict[str, Any]:
    return {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, **more}


def _idefics3(ids: dict[str, int], kind: Any = Idefics3Config) -> Any:
    return kind(
        image_token_id=ids["<image>"],
        scale_factor=2,
        text_config={"model_type": "llama", **_text(), **_ids(ids)},
        vision_config=_siglip(image_size=56, patch_size=14),
        pad_token_id=ids["<|im_end|>"],
    )


def _qwen(ids: dict[str, int], kind: Any, **vision: Any) -> Any:
    return kind(
        image_token_id=ids["<|image_pad|>"],
        video_token_id=ids["<|video_pad|>"],
        vision_start_token_id=ids["<|vision_start|>"],
        vision_end_token_id=ids["<|vision_end|>"],
        text_config=_text(**_ids(ids), rope_parameters={"rope_type": "default", "mrope_section": [4, 2, 2]}),
        vision_config={
            "depth": 2, "hidden_size": 64, "intermediate_size": 128, "num_heads": 4, "out_hidden_size": 64, **vision,
        },
    )  # fmt: skip


def _internvl(ids: dict[str, int]) -> Any:
    return InternVLConfig(
        image_token_id=ids["<IMG_CONTEXT>"],
        downsample_ratio=0.5,
        text_config={"model_type": "qwen2", **_text(), **_ids(ids)},
        vision_config=_siglip(image_size=[56, 56], patch_size=[14, 14]),
    )


def _gemma3(ids: dict[str, int]) -> Any:
    return Gemma3Config(
        image_token_index=ids["<image_soft_token>"],
        boi_token_index=ids["<start_of_image>"],
        eoi_token_index=ids["<end_of_image>"],
        mm_tokens_per_image=4,
        text_config=_text(**_ids(ids), sliding_window=64, num_hidden_layers=6),
        vision_config=_siglip(image_size=56, patch_size=14),
    )


def _llava(ids: dict[str, int]) -> Any:
    return LlavaConfig(
        image_token_index=ids["<image>"],
        image_seq_length=16,
        text_config={"model_type": "llama", **_text(), **_ids(ids)},
        vision_config={"model_type": "clip_vision_model", **_siglip(image_size=56, patch_size=14)},
    )


def _llama(ids: dict[str, int]) -> Any:
    return LlamaConfig(**_text(), **_ids(ids))


_QWEN_SPECIAL = (
    "<|im_end|>", "<|im_start|>", "<|endoftext|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>",
    "<|image_pad|>", "<|video_pad|>", "<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>", "<|box_end|>",
    "<|quad_start|>", "<|quad_end|>",
)  # fmt: skip
_IDEFICS_SPECIAL = (
    "<end_of_utterance>", "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<image>", "<fake_token_around_image>",
    "<global-img>", *(f"<row_{row}_col_{column}>" for row in range(1, 7) for column in range(1, 7)),
)  # fmt: skip

# Pictures of 112 pixels in four tiles of 56, and one of the whole.
_SPLIT = {"size": {"longest_edge": 112}, "max_image_size": {"longest_edge": 56}}

FAMILIES = {
    "idefics3": Family(
        special=_IDEFICS_SPECIAL,
        template=_IDEFICS,
        config=_idefics3,
        image_processor=lambda: Idefics3ImageProcessorPil(**_SPLIT),
        processor=(("processor_class", "Idefics3Processor"), ("image_seq_len", 4)),
    ),
    "smolvlm": Family(
        special=(*_IDEFICS_SPECIAL, "<video>"),
        template=_IDEFICS,
        config=lambda ids: _idefics3(ids, SmolVLMConfig),
        image_processor=lambda: SmolVLMImageProcessorPil(**_SPLIT),
        processor=(("processor_class", "SmolVLMProcessor"), ("image_seq_len", 4)),
    ),
    "qwen3_vl": Family(
        special=_QWEN_SPECIAL,
        template=_CHATML.replace("IMAGE", "<|vision_start|><|image_pad|><|vision_end|>"),
        config=lambda ids: _qwen(ids, Qwen3VLConfig, num_position_embeddings=64, deepstack_visual_indexes=[0]),
        image_processor=lambda: Qwen2VLImageProcessorPil(
            patch_size=16, size={"shortest_edge": 32 * 32, "longest_edge": 128 * 128}
        ),
    ),
    "qwen2_5_vl": Family(
        special=_QWEN_SPECIAL,
        template=_CHATML.replace("IMAGE", "<|vision_start|><|image_pad|><|vision_end|>"),
        config=lambda ids: _qwen(ids, Qwen2_5_VLConfig, fullatt_block_indexes=[1]),
        image_processor=lambda: Qwen2VLImageProcessorPil(size={"shortest_edge": 28 * 28, "longest_edge": 112 * 112}),
    ),
    "internvl": Family(
        special=("<|im_end|>", "<|im_start|>", "<|endoftext|>", "<img>", "</img>", "<IMG_CONTEXT>", "<video>"),
        template=_CHATML.replace("IMAGE", "<IMG_CONTEXT>\n"),
        config=_internvl,
        image_processor=lambda: GotOcr2ImageProcessorPil(
            size={"height": 56, "width": 56}, crop_to_patches=True, min_patches=1, max_patches=6
        ),
        named=(
            ("start_image_token", "<img>"),
            ("end_image_token", "</img>"),
            ("context_image_token", "<IMG_CONTEXT>"),
            ("video_token", "<video>"),
        ),
        processor=(("processor_class", "InternVLProcessor"), ("image_seq_length", 4)),
    ),
    "gemma3": Family(
        special=(
            "<end_of_turn>", "<bos>", "<eos>", "<pad>", "<unk>", "<mask>", "<start_of_turn>", "<start_of_image>",
            "<end_of_image>", "<image_soft_token>", "<unused0>", "[multimodal]",
        ),
        template=_GEMMA,
        config=_gemma3,
        image_processor=lambda: Gemma3ImageProcessorPil(size={"height": 56, "width": 56}),
        named=(
            ("bos_token", "<bos>"),
            ("boi_token", "<start_of_image>"),
            ("eoi_token", "<end_of_image>"),
            ("image_token", "<image_soft_token>"),
        ),
        processor=(("processor_class", "Gemma3Processor"), ("image_seq_length", 4)),
    ),
    "llava": Family(
        special=("</s>", "<s>", "<unk>", "<image>", "<pad>"),
        template=_CHATML.replace("IMAGE", "<image>\n"),
        config=_llava,
        image_processor=lambda: CLIPImageProcessorPil(
            size={"shortest_edge": 56}, crop_size={"height": 56, "width": 56}
        ),
        processor=(
            ("processor_class", "LlavaProcessor"),
            ("patch_size", 14),
            ("num_additional_image_tokens", 1),
            ("vision_feature_select_strategy", "default"),
        ),
    ),
    "llama": Family(
        special=("<|im_end|>", "<|im_start|>", "<|endoftext|>", "<s>", "</s>", "[INST]"),
        template=_CHATML,
        config=_llama,
    ),
}  # fmt: skip


def tokenizer_of(family: Family) -> PreTrainedTokenizerFast:
    """A byte-level BPE like the real one, with few merges and every control token."""
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    inner.train_from_iterator([_SAID], trainers.BpeTrainer(vocab_size=320, initial_alphabet=alphabet))
    named = {"eos_token": family.special[0], "pad_token": family.special[0], **dict(family.named)}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner,
        additional_special_tokens=[token for token in family.special if token not in named.values()],
        **named,
    )
    tokenizer.chat_template = family.template
    return tokenizer


def built(name: str, folder: Path, context_tokens: int = CONTEXT_TOKENS, seed: int = 0) -> Path:
    """Writes the family's checkpoint as a hub repository holds it, and returns its folder."""
    family = FAMILIES[name]
    tokenizer = tokenizer_of(family)
    config = family.config(tokenizer.get_vocab())
    config.get_text_config().max_position_embeddings = context_tokens
    torch.manual_seed(seed)
    auto = AutoModelForImageTextToText if family.image_processor else AutoModelForCausalLM
    model = auto.from_config(config).eval()
    if name == "gemma3":  # begins as zeros, and every picture would look the same
        torch.nn.init.normal_(model.model.multi_modal_projector.mm_input_projection_weight, std=0.2)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    if family.image_processor:
        family.image_processor().save_pretrained(folder)
    if family.processor:
        (folder / "processor_config.json").write_text(json.dumps(dict(family.processor)))
    return folder
