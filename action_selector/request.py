"""The selector's request and its limits. All of its text is untrusted."""

from norm_core.engines.prompt import Image
from norm_core.engines.request_context import Deadline
from norm_core.records.decision import OtherAgent, Viewpoint
from norm_core.records.record import record
from norm_core.records.window import Window

MOST_CANDIDATES = 64  # of others and of justifications too
LONGEST_CHARACTERS = 20_000
LONGEST_REPEATED = 2_000  # in a decision


class UnusableError(ValueError):
    """A request that cannot be answered; the message says what to send instead."""


@record
class Request:
    """One request. None for `others` or `viewpoint` means "observe them"; an empty option is none of the above.

    `facts` are stated by the caller, such as "hands_free". `source` is the scene's origin, whose own precedents are
    never used. `images` are images beside the window's frames, as in a suite. `task` names the only question of a
    query: nothing else is asked, and its outcome is the decision's. It is empty where all is wanted.
    """

    query_id: str
    task: str = ""
    candidates: tuple[str, ...] = ()
    justifications: tuple[str, ...] = ()
    situation: str = ""
    question: str = ""
    style: str = "default"
    others: tuple[OtherAgent, ...] | None = None
    viewpoint: Viewpoint | None = None
    facts: tuple[str, ...] = ()
    source: str = ""
    window: Window | None = None
    images: tuple[Image, ...] = ()


def repeated(text: str) -> str:
    """Return what a decision repeats of a text of its request."""
    return text[:LONGEST_REPEATED]


def check(request: Request, deadline: Deadline, *, max_frame_age_ns: int, needs_frames: bool) -> None:
    """Check a request against the limits. Raises UnusableError.

    `needs_frames` is true where a model still has to observe the scene.
    """
    now_ns = deadline.clock.now_ns()
    if deadline.deadline_ns is not None and deadline.deadline_ns <= deadline.asked_ns:
        raise UnusableError("the deadline had already passed when the question came: ask with a later one")
    others = request.others or ()
    counted = {"candidates": request.candidates, "justifications": request.justifications, "others": others}
    for name, given in counted.items():
        if len(given) > MOST_CANDIDATES:
            raise UnusableError(f"{len(given)} {name} were given: offer at most {MOST_CANDIDATES}")
    for name, options in (("candidates", request.candidates), ("justifications", request.justifications)):
        if sum(not option.strip() for option in options) > 1:
            raise UnusableError(f"{name}: two of them are empty, and one empty one means none of the above")
    viewpoint = request.viewpoint or Viewpoint()
    texts = (
        *request.candidates,
        *request.justifications,
        *(text for other in others for text in (other.role, other.appearance, other.doing)),
        *(request.situation, request.question, viewpoint.description, viewpoint.place, viewpoint.role),
    )
    if max(map(len, texts)) > LONGEST_CHARACTERS:  # a border may have cut it already
        raise UnusableError(f"a text of more than {LONGEST_CHARACTERS} characters was given; shorten it")
    if (needs_frames and not request.images) or (request.window is not None and request.window.frames):
        _check_frames(request.window, now_ns, max_frame_age_ns)


def _check_frames(window: Window | None, now_ns: int, max_age_ns: int) -> None:
    if window is None or not window.frames:
        raise UnusableError("there is no frame yet: start the camera, or tell who is there and what they do")
    age_ns = now_ns - window.frames[-1].stamp_ns
    if age_ns > max_age_ns:
        raise UnusableError(
            f"the newest frame is {age_ns / 1e9:.1f} s old and may be at most {max_age_ns / 1e9:.1f} s: "
            "see whether the camera still sends"
        )
