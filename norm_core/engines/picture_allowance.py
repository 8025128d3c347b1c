"""Reduce the pictures that a model gets after memory ran out, from all pictures down to words only."""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil
from threading import Lock

from norm_core.decoding.picture_decoding import decode_picture
from norm_core.engines.engine import EngineHealth
from norm_core.engines.prompt import Image, Part, Prompt, Question
from norm_core.records.record import record
from norm_core.records.status import Counter
from norm_core.runtime.time import NS_PER_S, Clock

# The pause before one reduction is lifted, and the longest pause after doubling.
_FIRST_PAUSE_NS, _MAX_PAUSE_NS = 60 * NS_PER_S, 960 * NS_PER_S


@record
class _Reduction:
    """The share of the pictures that a model gets, the scale of their sides, and the wording for a user."""

    count: float
    side: float
    wording: str


_REDUCTIONS = (
    _Reduction(count=1, side=1, wording="all its pictures"),
    _Reduction(count=1 / 2, side=1, wording="half of its pictures"),
    _Reduction(count=1 / 4, side=1 / 2, wording="a quarter of its pictures, at half their size"),
    _Reduction(count=0, side=0, wording="words only"),
)


class PictureAllowance:
    """The reduction that is in force. One thread changes it; any thread may read the health."""

    def __init__(self, model: str, clock: Clock) -> None:
        self._model, self._clock = model, clock
        self._lock = Lock()
        self._level = 0
        self._pause_ns, self._due_ns = _FIRST_PAUSE_NS, 0
        self._failures = self._withheld = 0

    @property
    def health(self) -> EngineHealth:
        """Whether pictures are withheld, and how often memory ran out."""
        with self._lock:
            issue = (
                f"model {self._model}: memory ran out, so it gets {_REDUCTIONS[self._level].wording}; stop what else "
                "uses the memory, set max_images lower, or choose a smaller model or quantization"
            )
            return EngineHealth(
                issues=(issue,) if self._level else (),
                counters=(
                    Counter(name="model_out_of_memory", count=self._failures),
                    Counter(name="pictures_withheld", count=self._withheld),
                )
                if self._failures
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
            self._failures += 1
            now_ns = self._clock.now_ns()
            # A failure soon after the last means that the reduction was lifted too early.
            is_again = bool(self._due_ns) and now_ns < self._due_ns + self._pause_ns
            self._pause_ns = min(2 * self._pause_ns, _MAX_PAUSE_NS) if is_again else _FIRST_PAUSE_NS
            self._due_ns = now_ns + self._pause_ns
            before = _reduce_parts(parts, _REDUCTIONS[self._level])
            while self._level + 1 < len(_REDUCTIONS) and _count(before):
                self._level += 1
                if _reduce_parts(parts, _REDUCTIONS[self._level]) != before:
                    return True
            return False

    def fit(self, prompt: Prompt) -> Prompt:
        """Return the prompt with the pictures that are allowed now."""
        return replace(prompt, parts=self._fit(prompt.parts)) if self._level else prompt

    def fit_question(self, question: Question) -> Question:
        """Return the question with the pictures that are allowed now."""
        return replace(question, parts=self._fit(question.parts)) if self._level else question

    def _fit(self, parts: tuple[Part, ...]) -> tuple[Part, ...]:
        with self._lock:
            reduced = _reduce_parts(parts, _REDUCTIONS[self._level])
            self._withheld += _count(parts) - _count(reduced)
            return reduced


def _count(parts: Sequence[Part]) -> int:
    return sum(isinstance(part, Image) for part in parts)


def _reduce_parts(parts: Sequence[Part], step: _Reduction) -> tuple[Part, ...]:
    """Return the parts with a share of the pictures, evenly spread and including the last."""
    image_indices = [index for index, part in enumerate(parts) if isinstance(part, Image)]
    count = ceil(len(image_indices) * step.count)
    stride = len(image_indices) / count if count else 0
    chosen_indices = {image_indices[len(image_indices) - 1 - int(number * stride)] for number in range(count)}
    return tuple(
        _shrink(part, step.side) if isinstance(part, Image) else part
        for index, part in enumerate(parts)
        if index in chosen_indices or not isinstance(part, Image)
    )


def _shrink(image: Image, side: float) -> Image:
    """Return the picture with shorter sides; unchanged if it is not a JPEG, which the model itself refuses."""
    pixels = decode_picture(image.jpeg) if side != 1 else None
    if pixels is None:
        return image
    import cv2  # noqa: PLC0415  # for pictures alone

    small = cv2.resize(pixels, None, fx=side, fy=side, interpolation=cv2.INTER_AREA)
    return Image(jpeg=cv2.imencode(".jpg", small)[1].tobytes())
