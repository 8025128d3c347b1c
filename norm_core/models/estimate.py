"""Estimates of the memory of a model, used until it is measured."""

from norm_core.models.manifest import EngineKind, Manifest, MemoryNeed

# Bits per weight, with its scales: nf4 has a 32-bit scale for each 64 weights. In q4_k_m some matrices have 6 bits.
_BITS = {"bf16": 16.0, "f16": 16.0, "f32": 32.0, "nf4": 4.5, "q4_k_m": 4.9}
# The usable share of free memory: a tenth is left for a display, activations, and the reserve of torch and CUDA.
MEMORY_SHARE = 0.9
# The memory that CUDA takes in a process.
CUDA_CONTEXT_MB = 650.0


def estimate_memory(manifest: Manifest, quantization: str) -> MemoryNeed | None:
    """Estimate the weights by parameters, and the peak, with the cache of a full context; None without these data."""
    parameters = manifest.parameters_million
    kv_bytes = manifest.kv_bytes_per_token
    context_tokens = manifest.context_tokens
    bits = _BITS.get(quantization)
    if not (
        parameters and kv_bytes and context_tokens and bits and (bits >= 16 or manifest.precise_million is not None)
    ):
        return None
    precise_million = manifest.precise_million if bits < 16 and manifest.precise_million else 0.0
    load_mb = float(max(1, round((parameters - precise_million) * bits / 8 + precise_million * 2)))
    cache_mb = round(kv_bytes * context_tokens / 1e6)
    how = f"{parameters:g} million parameters at {bits:g} bits"
    how += f", {precise_million:g} million of them at 16" if precise_million else ""
    how += f"; at the peak {kv_bytes} bytes of keys and values for each of {context_tokens} tokens; "
    how += "activations are not counted"
    return MemoryNeed(load_mb=load_mb, peak_mb=round(load_mb + cache_mb, 1), estimated=True, how=how)


def doubles_on_cpu(manifest: Manifest) -> bool:
    """Whether a model takes twice its estimate on a CPU, where transformers widens 16-bit weights to 32 bits."""
    is_estimate = manifest.memory is not None and manifest.memory.estimated
    is_widened = manifest.engine is EngineKind.TRANSFORMERS and manifest.quantization in ("bf16", "f16")
    return is_estimate and is_widened and "dtype" not in manifest.settings


def estimate_download_mb(manifest: Manifest) -> float:
    """Return the size of the files to pull: stated, or by parameters and the quantization of the published files."""
    if manifest.size_bytes:
        return manifest.size_bytes / 1e6
    if not manifest.source.hub:
        return 0.0
    # The weights of nf4 are published in 16 bits.
    bits = 16.0 if manifest.quantization == "nf4" else _BITS.get(manifest.quantization, 0.0)
    return float(round((manifest.parameters_million or 0.0) * bits / 8))
