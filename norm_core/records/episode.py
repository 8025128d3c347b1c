"""Benchmark items and sessions as they travel in a bag, and what was answered. No label is ever in them."""

from enum import StrEnum

from norm_core.records.decision import OtherAgent, Viewpoint
from norm_core.records.outcome import Outcome
from norm_core.records.provenance import Provenance
from norm_core.records.record import record


class EpisodeEdge(StrEnum):
    BEGIN = "begin"
    END = "end"


@record
class Episode:
    """The beginning or the end of one item."""

    stamp_ns: int
    frame_id: str = ""
    episode_id: str
    state: EpisodeEdge
    suite: str
    setting: str = ""
    start_ns: int
    end_ns: int


@record
class Query:
    """A question about the current episode; options stand in the order offered, an empty one for none of them.

    frame_id may name the video that the episode is of, where several are: none of its own serves as a precedent.
    """

    stamp_ns: int
    frame_id: str = ""
    query_id: str
    episode_id: str
    task: str
    question: str = ""
    style: str = ""
    options: tuple[str, ...] = ()
    justifications: tuple[str, ...] = ()
    several: bool = False
    others_given: bool = False
    others: tuple[OtherAgent, ...] = ()
    viewpoint_given: bool = False
    viewpoint: Viewpoint = Viewpoint()
    deadline_ns: int | None = None  # None: no deadline, as in lockstep replay


@record
class Answer:
    """What was answered; anything but ANSWERED carries no choice and says why in reason.

    The reason of an answer says without which pictures it was made, where some were held back.
    """

    stamp_ns: int
    frame_id: str = ""
    query_id: str
    episode_id: str
    task: str
    outcome: Outcome
    chosen: tuple[int, ...] = ()
    probabilities: tuple[float, ...] = ()
    text: str = ""
    reason: str = ""
    provenance: Provenance = Provenance()

    def __post_init__(self) -> None:
        if self.outcome is not Outcome.ANSWERED and self.chosen:
            raise ValueError(f"answer to {self.query_id} is {self.outcome} and yet chooses")
