"""Halve the pictures that a model gets each time that memory runs out, down to words only."""

from collections.abc import Sequence
from dataclasses import replace
from threading import Lock

from norm_core.engines.engine import EngineHealth
from norm_core.engines.prompt import Image, Part, Prompt, Question
from norm_core.records.status import Counter
from norm_core.runtime.time import NS_PER_S, Clock

# The pause before one reduction is lifted. It doubles if memory runs out again.
_FIRST_PAUSE_NS = 60 * NS_PER_S
_MAX_PAUSE_NS = 960 * NS_PER_S
# One picture in 256 remains, which means none.
_MAX_LEVEL = 8


class PictureAllowance:
    """The current reduction of pictures. One thread changes it; any thread may read the health."""

    def __init__(self, model: str, clock: Clock) -> None:
        self._model = model
        self._clock = clock
        self._lock = Lock()
        self._level = 0
        self._pause_ns = _FIRST_PAUSE_NS
        self._due_ns = 0
        self._failure_count = 0
        self._withheld_count = 0

    @property
    def health(self) -> EngineHealth:
        """Whether pictures are withheld, and how often memory ran out."""
        with self._lock:
            issue = (
                f"model {self._model}: memory ran out, so it gets one picture in {2**self._level}; stop what else "
                "uses the memory, set max_images lower, or choose a smaller model or quantization"
            )
            return EngineHealth(
                issues=(issue,) if self._level else (),
                counters=(
                    Counter(name="model_out_of_memory", count=self._failure_count),
                    Counter(name="pictures_withheld", count=self._withheld_count),
                )
                if self._failure_count
                else (),
            )

    def restore(self) -> None:
        """Lift one reduction if the pause since the last failure is over."""
        with self._lock:
            if self._level and self._clock.now_ns() >= self._due_ns:
                self._level -= 1
                self._due_ns = self._clock.now_ns() + self._pause_ns

    def reduce(self, parts: Sequence[Part]) -> bool:
        """Count a failure, and reduce until these parts shrink; return False if they hold no picture."""
        with self._lock:
            self._failure_count += 1
            now_ns = self._clock.now_ns()
            # A failure soon after the last means that the reduction was lifted too early.
            is_again = bool(self._due_ns) and now_ns < self._due_ns + self._pause_ns
            self._pause_ns = min(2 * self._pause_ns, _MAX_PAUSE_NS) if is_again else _FIRST_PAUSE_NS
            self._due_ns = now_ns + self._pause_ns
            failed_parts = _reduce_parts(parts, self._level)
            while self._level < _MAX_LEVEL and _count_pictures(failed_parts):
                self._level += 1
                if _reduce_parts(parts, self._level) != failed_parts:
                    return True
            return False

    def fit(self, prompt: Prompt) -> Prompt:
        """Return the prompt with the pictures that are allowed now."""
        return replace(prompt, parts=self._reduce_and_count(prompt.parts)) if self._level else prompt

    def fit_question(self, question: Question) -> Question:
        """Return the question with the pictures that are allowed now."""
        return replace(question, parts=self._reduce_and_count(question.parts)) if self._level else question

    def _reduce_and_count(self, parts: tuple[Part, ...]) -> tuple[Part, ...]:
        with self._lock:
            reduced = _reduce_parts(parts, self._level)
            self._withheld_count += _count_pictures(parts) - _count_pictures(reduced)
            return reduced


def _count_pictures(parts: Sequence[Part]) -> int:
    return sum(isinstance(part, Image) for part in parts)


def _reduce_parts(parts: Sequence[Part], level: int) -> tuple[Part, ...]:
    """Return the parts with one picture in 2**level, evenly spread and including the last."""
    image_indices = [index for index, part in enumerate(parts) if isinstance(part, Image)]
    count = len(image_indices) >> level
    stride = len(image_indices) / count if count else 0
    chosen_indices = {image_indices[len(image_indices) - 1 - int(step * stride)] for step in range(count)}
    return tuple(part for index, part in enumerate(parts) if index in chosen_indices or not isinstance(part, Image))
