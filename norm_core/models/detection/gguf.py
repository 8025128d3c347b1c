"""Find a GGUF model, all of its parts and its projector for pictures."""

import re
from pathlib import Path

from norm_core.models.detection.found_model import MOST_CONTEXT_TOKENS, MOST_IMAGES, FoundModel, key_value_bytes
from norm_core.models.detection.gguf_header import GgufHeader, read_gguf_header
from norm_core.models.manifest import EngineKind, Task
from norm_core.runtime.config import ConfigError

# The kinds of llama.cpp's general.file_type.
_QUANTIZATIONS = {
    0: "f32", 1: "f16", 2: "q4_0", 3: "q4_1", 7: "q8_0", 8: "q5_0", 9: "q5_1", 10: "q2_k", 11: "q3_k_s", 12: "q3_k_m",
    13: "q3_k_l", 14: "q4_k_s", 15: "q4_k_m", 16: "q5_k_s", 17: "q5_k_m", 18: "q6_k", 19: "iq2_xxs", 20: "iq2_xs",
    21: "q2_k_s", 22: "iq3_xs", 23: "iq3_xxs", 24: "iq1_s", 25: "iq4_nl", 26: "iq3_s", 27: "iq3_m", 28: "iq2_s",
    29: "iq2_m", 30: "iq4_xs", 31: "iq1_m", 32: "bf16",
}  # fmt: skip
_PART = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$")


def find_gguf(folder: Path, names: list[str]) -> FoundModel:
    """Describe the one model among a folder's GGUF files; raise ConfigError if there is none or a choice."""
    projectors = [name for name in names if "mmproj" in name]
    models = [name for name in names if name not in projectors]
    firsts = [name for name in models if not (part := _PART.search(name)) or int(part[1]) == 1]
    if len(firsts) != 1 or len(projectors) > 1:
        raise ConfigError(
            f"{folder}: holds {', '.join(sorted(names)) or 'no GGUF file'}; one model and at most one mmproj file "
            "are needed: choose them with --include NAME"
        )
    parts = _parts(folder, firsts[0])
    headers = [read_gguf_header(folder / name) for name in parts]
    header, projector = headers[0], projectors[0] if projectors else None
    kind = header.metadata.get("general.type", "model")
    if kind != "model":
        raise ConfigError(f"{folder / firsts[0]}: is a GGUF file of type {kind}; name the model that it belongs to")
    if projector:
        read_gguf_header(folder / projector)
    form = header.metadata.get("general.file_type")
    heads, width = header.of_architecture("attention.head_count"), header.of_architecture("embedding_length")
    head_size = width // heads if isinstance(heads, int) and heads and isinstance(width, int) else None
    context = header.of_architecture("context_length")
    return FoundModel(
        engine=EngineKind.LLAMA_CPP,
        task=Task.VISION_LANGUAGE if projector else Task.LANGUAGE,
        folder=folder,
        files=(*parts, *((projector,) if projector else ())),
        fields={
            "quantization": _QUANTIZATIONS.get(form, "gguf") if isinstance(form, int) else "gguf",
            "parameters_million": round(sum(each.parameters for each in headers) / 1e6, 1) or None,
            "kv_bytes_per_token": key_value_bytes(
                header.of_architecture("block_count"),
                _key_value_heads(header, heads),
                header.of_architecture("attention.key_length") or head_size,
            ),
            "context_tokens": min(context, MOST_CONTEXT_TOKENS) if isinstance(context, int) and context else None,
            "max_images": MOST_IMAGES if projector else 0,
            "licence": header.metadata.get("general.license", ""),
        },
    )


def _key_value_heads(header: GgufHeader, heads: object) -> object:
    """Return the heads of a layer; of layers that differ, the most."""
    stated = header.of_architecture("attention.head_count_kv")
    return max(stated) if isinstance(stated, list) and stated else stated or heads


def _parts(folder: Path, first: str) -> list[str]:
    """Return the names of all parts of a model; raise ConfigError if one is missing."""
    part = _PART.search(first)
    if not part:
        return [first]
    names = [_PART.sub(f"-{number:05}-of-{part[2]}.gguf", first) for number in range(1, int(part[2]) + 1)]
    if missing := [name for name in names if not (folder / name).is_file()]:
        raise ConfigError(f"{folder}: {', '.join(missing)} is missing; download every part of the model")
    return names
