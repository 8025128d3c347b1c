"""What a request may hold: limits of counts, lengths and ages."""

from collections.abc import Sequence
from dataclasses import replace

from action_selector.candidates import normalize_action
from action_selector.request import Request
from norm_core.engines.request_context import Deadline
from norm_core.records.decision import Viewpoint
from norm_core.records.window import Window
from norm_core.runtime.wording import count_of

# The limit holds for candidates, justifications and other agents alike.
MAX_CANDIDATES = 64
MAX_CHARACTERS = 20_000
# A decision repeats no more of a request's text.
MAX_REPEATED_CHARACTERS = 2_000


class UnusableError(ValueError):
    """A request that cannot be answered; the message says what to send instead."""


def shorten(text: str) -> str:
    """Cut a request's text to the length that a decision repeats."""
    return text[:MAX_REPEATED_CHARACTERS]


def find_repeat(options: Sequence[str]) -> tuple[int, int] | None:
    """Find the first option that has the words of an earlier one; return the earlier index, then its own."""
    first_indexes: dict[str, int] = {}
    for index, option in enumerate(options):
        first_index = first_indexes.setdefault(normalize_action(option) or option.strip(), index)
        if first_index != index:
            return first_index, index
    return None


def check_request(request: Request, deadline: Deadline, *, max_frame_age_ns: int, needs_frames: bool) -> None:
    """Check a request against the limits; `needs_frames` is true where a model still has to observe the scene.

    Raises UnusableError if a limit is exceeded.
    """
    if deadline.deadline_ns is not None and deadline.deadline_ns <= deadline.asked_ns:
        raise UnusableError("the deadline had already passed when the question came: ask with a later one")
    others = request.others or ()
    lists = {"candidates": request.candidates, "justifications": request.justifications, "others": others}
    for name, entries in lists.items():
        if len(entries) > MAX_CANDIDATES:
            raise UnusableError(f"{len(entries)} {name} were given: offer at most {MAX_CANDIDATES}")
    for name, options in (("candidates", request.candidates), ("justifications", request.justifications)):
        if sum(not option.strip() for option in options) > 1:
            raise UnusableError(f"{name}: two of them are empty, and one empty one means none of the above")
        if not request.task and (repeat := find_repeat(options)):
            raise UnusableError(
                f"{name}: number {repeat[1] + 1} repeats number {repeat[0] + 1}, {shorten(options[repeat[0]])!r}: "
                "send each once"
            )
    viewpoint = request.viewpoint or Viewpoint()
    texts = (
        *request.candidates,
        *request.justifications,
        *(text for other in others for text in (other.role, other.appearance, other.doing)),
        *(request.situation, request.question, viewpoint.description, viewpoint.place, viewpoint.role),
    )
    # The message states no length, because the node may have cut the text already.
    if max(map(len, texts)) > MAX_CHARACTERS:
        raise UnusableError(f"a text of more than {MAX_CHARACTERS} characters was given; shorten it")
    candidate_count = len(request.candidates)
    justification_count = len(request.justifications)
    if not request.task and candidate_count and justification_count not in {0, candidate_count}:
        raise UnusableError(
            f"justifications: {justification_count} for {count_of(candidate_count, 'candidate')}; "
            "send one for each candidate, in any order, or none"
        )
    if needs_frames or (request.window is not None and request.window.frames):
        _check_frames(request.window, deadline.clock.now_ns(), max_frame_age_ns)


def drop_old_frames(request: Request, now_ns: int, max_age_ns: int) -> Request:
    """Leave out frames that are too old where the request states its others, and so needs no frame."""
    window = request.window
    if request.others is None or window is None or not window.frames:
        return request
    if now_ns - window.frames[-1].stamp_ns <= max_age_ns:
        return request
    return replace(request, window=replace(window, frames=()))


def _check_frames(window: Window | None, now_ns: int, max_age_ns: int) -> None:
    """Raise UnusableError if there is no frame that is new enough."""
    if window is None or not window.frames:
        raise UnusableError(
            "there is no frame yet: start the camera, state who is there and what they do, or set has_camera of the "
            "selector to false"
        )
    age_ns = now_ns - window.frames[-1].stamp_ns
    if age_ns > max_age_ns:
        raise UnusableError(
            f"the newest frame is {age_ns / 1e9:.1f} s old and may be at most {max_age_ns / 1e9:.1f} s: "
            "check whether the camera still sends"
        )
