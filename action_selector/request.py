"""A request to the selector. All of its text is untrusted."""

from norm_core.records.decision import OtherAgent, Viewpoint
from norm_core.records.record import record
from norm_core.records.window import Window


@record
class Request:
    """One request. None for `others` or `viewpoint` means "observe them"; an empty option is none of the above.

    `facts` are stated by the caller, such as "hands_free". `source` is the scene's origin, whose own precedents are
    never used. `task` names the only question of a query: nothing else is asked, and its outcome is the decision's.
    It is empty where all is wanted.
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
