"""The most windows a second that a GPU can judge, from its published figures."""

from norm_core.models.manifest import Manifest
from norm_core.models.planning.gpu_figures import figures_of
from norm_core.records.record import record

# One window of the judge, as its prompts are today: pictures, words, and questions that share them.
QUESTIONS, PICTURES, WORD_TOKENS, QUESTION_TOKENS = 8, 4, 500, 60


@record
class Speed:
    """At most so many windows a second, and what that follows from; None where no figure of the GPU is known."""

    windows_per_s: float | None
    source: str


def estimate_speed(manifest: Manifest, gpu_name: str) -> Speed:
    """Bound the speed by arithmetic and by reading the weights once a pass; real engines reach a part of it."""
    figures, parameters, memory = figures_of(gpu_name), manifest.parameters_million, manifest.memory
    if parameters is None or memory is None:
        return Speed(windows_per_s=None, source="the size of the model is not stated")
    if figures is None:
        return Speed(windows_per_s=None, source=f"no figures of {gpu_name or 'a CPU'} are known here")
    pictures = min(PICTURES, manifest.max_images or 0)
    tokens = WORD_TOKENS + pictures * (manifest.image_tokens or 0) + QUESTIONS * QUESTION_TOKENS
    reading_s = (1 + QUESTIONS) * memory.load_mb * 1e6 / (figures.bandwidth_gb_s * 1e9)
    computing_s = 2 * parameters * 1e6 * tokens / (figures.tflops * 1e12) if figures.tflops else 0.0
    by = f"{figures.bandwidth_gb_s:g} GB/s" + (f" and {figures.tflops:g} TFLOP/s" if figures.tflops else " alone")
    return Speed(windows_per_s=1 / (reading_s + computing_s), source=f"at most, by {by} ({figures.source})")
