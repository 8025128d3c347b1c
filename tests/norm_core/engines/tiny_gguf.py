"""A vision model small enough for a test, as llama.cpp reads one: a GGUF and its projector, with random weights."""

from collections.abc import Mapping
from pathlib import Path

import gguf
import numpy as np

from norm_core.engines.llama_cpp.probe import byte_letters

WIDTH, HEADS, LAYERS, INNER = 64, 4, 2, 128
IMAGE_PX, PATCH_PX = 112, 14
IMAGE_TOKENS = (IMAGE_PX // PATCH_PX // 4) ** 2  # the projector pools squares of four patches a side
CONTROL = ("<|im_start|>", "<|im_end|>")
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

Tensors = Mapping[str, tuple[int, ...]]


def write_model(path: Path, family: str = "gemma3", *, context_tokens: int = 2048, template: str = TEMPLATE) -> Path:
    """Write a language model that knows bytes alone; that of qwen2vl counts positions in three dimensions."""
    is_qwen, width = family == "qwen2vl", WIDTH
    writer = gguf.GGUFWriter(path, "qwen2vl" if is_qwen else "llama")
    if is_qwen:
        writer.add_rope_dimension_sections([4, 2, 2, 0])
    writer.add_context_length(context_tokens)
    writer.add_embedding_length(width)
    writer.add_feed_forward_length(INNER)
    writer.add_block_count(LAYERS)
    writer.add_head_count(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    tokens = [*byte_letters(), "Ġt", *CONTROL]
    kinds = [gguf.TokenType.NORMAL] * (len(tokens) - len(CONTROL)) + [gguf.TokenType.CONTROL] * len(CONTROL)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges(["Ġ t"])
    writer.add_eos_token_id(tokens.index("<|im_end|>"))
    if template:
        writer.add_chat_template(template)
    block = {
        "attn_norm.weight": (width,),
        "attn_q.weight": (width, width),
        "attn_k.weight": (width, width),
        "attn_v.weight": (width, width),
        "attn_output.weight": (width, width),
        "ffn_norm.weight": (width,),
        "ffn_gate.weight": (INNER, width),
        "ffn_up.weight": (INNER, width),
        "ffn_down.weight": (width, INNER),
    }
    if is_qwen:
        block |= {f"attn_{name}.bias": (width,) for name in "qkv"}
    ends = {"token_embd.weight": (len(tokens), width), "output_norm.weight": (width,)}
    _write(writer, {**ends, "output.weight": (len(tokens), width), **_blocks("blk", block)})
    return path


def write_projector(path: Path, family: str = "gemma3", *, width: int = WIDTH) -> Path:
    """Write the vision encoder and projector of a family, into embeddings of the given width."""
    is_qwen = family == "qwen2vl"
    writer = gguf.GGUFWriter(path, "clip")
    writer.add_clip_has_vision_encoder(True)
    types = gguf.VisionProjectorType
    writer.add_clip_projector_type(types.QWEN2VL if is_qwen else types.GEMMA3)
    writer.add_vision_image_size(IMAGE_PX)
    writer.add_vision_patch_size(PATCH_PX)
    writer.add_vision_embedding_length(WIDTH)
    writer.add_vision_feed_forward_length(INNER)
    writer.add_vision_projection_dim(width)
    writer.add_vision_block_count(LAYERS)
    writer.add_vision_head_count(HEADS)
    writer.add_vision_attention_layernorm_eps(1e-6)
    writer.add_vision_image_mean([0.5] * 3)
    writer.add_vision_image_std([0.5] * 3)
    writer.add_vision_use_gelu(True)
    norms = {f"{name}.{part}": (WIDTH,) for name in ("ln1", "ln2") for part in ("weight", "bias")}
    heads = ("attn_q", "attn_k", "attn_v", "attn_out")
    block = {
        **norms,
        **{f"{name}.weight": (WIDTH, WIDTH) for name in heads},
        **{f"{name}.bias": (WIDTH,) for name in heads},
        "ffn_up.weight": (INNER, WIDTH),
        "ffn_up.bias": (INNER,),
        "ffn_down.weight": (WIDTH, INNER),
        "ffn_down.bias": (WIDTH,),
    }
    patch = (WIDTH, 3, PATCH_PX, PATCH_PX)
    ends: Tensors = {
        "v.patch_embd.weight": patch,
        "v.patch_embd.bias": (WIDTH,),
        "v.position_embd.weight": ((IMAGE_PX // PATCH_PX) ** 2, WIDTH),
        "mm.input_projection.weight": (WIDTH, width),
        "mm.soft_emb_norm.weight": (WIDTH,),
    }
    if is_qwen:
        ends = {
            "v.patch_embd.weight": patch,
            "v.patch_embd.weight.1": patch,
            "mm.0.weight": (4 * WIDTH, 4 * WIDTH),
            "mm.0.bias": (4 * WIDTH,),
            "mm.2.weight": (width, 4 * WIDTH),
            "mm.2.bias": (width,),
        }
    last = {"v.post_ln.weight": (WIDTH,), "v.post_ln.bias": (WIDTH,)}
    _write(writer, {**ends, **last, **_blocks("v.blk", block)})
    return path


def _blocks(prefix: str, block: Tensors) -> dict[str, tuple[int, ...]]:
    return {f"{prefix}.{number}.{name}": shape for number in range(LAYERS) for name, shape in block.items()}


def _write(writer: gguf.GGUFWriter, tensors: Tensors) -> None:
    """Write random weights, and ones for the norms."""
    numbers = np.random.default_rng(0)
    for name, shape in tensors.items():
        is_norm = name.endswith(".weight") and len(shape) == 1
        values = np.ones(shape) if is_norm else numbers.normal(0, 0.2, shape)
        writer.add_tensor(name, values.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
