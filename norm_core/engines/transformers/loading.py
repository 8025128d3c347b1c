"""Load a transformers checkpoint from a folder, in a number format or quantized."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText, AutoTokenizer
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING, MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING

from norm_core.engines.errors import EngineError, EngineFailedError
from norm_core.engines.transformers.forward_pass import free_memory
from norm_core.engines.transformers.prompt_tokens import PromptTokenizer, load_tokenizer
from norm_core.runtime.extras import format_install_command
from norm_core.runtime.program import PROGRAM

_DTYPES = {"bf16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}
# Nothing is downloaded, and no code of a checkpoint runs.
_LOCAL_FILES = {"local_files_only": True, "trust_remote_code": False}
# The vision part and the last layer are small and lose most by quantization.
_UNQUANTIZED_PARTS = ["lm_head", "visual", "vision_model", "vision_tower", "connector", "multi_modal_projector"]


def load_model(folder: Path, *, dtype: str, quantization: str, device: str) -> tuple[Any, PromptTokenizer]:
    """Return the model and its tokenizer. Raises EngineFailedError if the checkpoint or the settings are faulty."""
    if not (folder / "config.json").is_file():
        raise EngineFailedError(
            f"{folder}: is not a transformers checkpoint (no config.json); check it with {PROGRAM} models list MODEL"
        )
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise EngineFailedError(
            "device: torch finds no GPU on this machine; set device to cpu, or check the driver with nvidia-smi"
        )
    try:
        return free_memory(lambda: _load_checkpoint(folder, dtype, quantization, device))
    except EngineError:
        raise
    except Exception as error:  # noqa: BLE001  the libraries raise anything for a damaged checkpoint
        raise EngineFailedError(
            f"{folder} cannot be loaded: {type(error).__name__}: {error}; check it with {PROGRAM} models list MODEL"
        ) from None


def _load_checkpoint(folder: Path, dtype: str, quantization: str, device: str) -> tuple[Any, PromptTokenizer]:
    device = device if device != "auto" else "cuda" if torch.cuda.is_available() else "cpu"
    config = AutoConfig.from_pretrained(folder, **_LOCAL_FILES)
    has_vision = type(config) in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING
    if not has_vision and type(config) not in MODEL_FOR_CAUSAL_LM_MAPPING:
        raise EngineFailedError(
            f"{folder}: a {config.model_type} neither writes nor scores text; name a causal or image-text-to-text model"
        )
    tokenizer = load_tokenizer(
        folder, config, AutoTokenizer.from_pretrained(folder, **_LOCAL_FILES), has_vision=has_vision
    )
    if not all(tokenizer.find_letter_tokens()[:2]):  # If the files are missing, transformers makes an empty tokenizer.
        raise EngineFailedError(
            f"{folder}: the tokenizer has no letters, so it is incomplete; check it with {PROGRAM} models list MODEL"
        )
    model_class = AutoModelForImageTextToText if has_vision else AutoModelForCausalLM
    model, report = model_class.from_pretrained(
        folder,
        dtype=_choose_number_format(dtype, device),
        device_map={"": device},
        output_loading_info=True,
        quantization_config=_make_quantization_config(quantization, config),
        **_LOCAL_FILES,
    )
    if missing_keys := sorted(report["missing_keys"]):
        raise EngineFailedError(
            f"{folder}: {len(missing_keys)} of the weights are missing, such as {missing_keys[0]}; "
            f"check it with {PROGRAM} models list MODEL"
        )
    return model.eval(), tokenizer


def _choose_number_format(dtype: str, device: str) -> torch.dtype:
    if dtype == "auto":
        return torch.bfloat16 if device.startswith("cuda") else torch.float32
    if dtype not in _DTYPES:
        raise EngineFailedError(f"the number format {dtype!r} is unknown: use auto, {', '.join(_DTYPES)}")
    return _DTYPES[dtype]


def _make_quantization_config(quantization: str, config: Any) -> Any:
    """Return the quantization config for loading; None without quantization.

    Raises EngineFailedError for another quantization than nf4, also of the checkpoint.
    """
    if getattr(config, "quantization_config", None):
        raise EngineFailedError(
            "the checkpoint is quantized, so only a server reads it; serve it with vLLM, or name one that is not "
            "quantized, with the quantization nf4 if memory is short"
        )
    if not quantization:
        return None
    if quantization != "nf4":
        raise EngineFailedError(f"the quantization {quantization!r} is unknown: use nf4")
    if find_spec("bitsandbytes") is None:
        raise EngineFailedError(
            f"nf4 needs bitsandbytes, which is not installed; install it with {format_install_command('transformers')}"
        )
    # Imported here, because only nf4 needs bitsandbytes.
    from transformers import BitsAndBytesConfig  # noqa: PLC0415

    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_compute_dtype=torch.bfloat16,
        llm_int8_skip_modules=_UNQUANTIZED_PARTS,
    )
