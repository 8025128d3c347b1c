"""Benchmark items and their answers, as they travel in a bag. They never contain a label."""

from enum import StrEnum

from norm_core.records.decision import OtherAgent, Viewpoint
from norm_core.records.outcome import Outcome
from norm_core.records.provenance import Provenance
from norm_core.records.record import record


class EpisodeEdge(StrEnum):
    """The start or end of an episode."""

    BEGIN = "begin"
    END = "end"


@record
class Episode:
    """The start or end of one item."""

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
    """A question about the current episode.

    `options` keep the order in which they were offered; an empty option means "none of these". `frame_id` may name the
    episode's video, so that the precedents of that video are excluded.
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
    deadline_ns: int | None = None  # None means no deadline, as in a lockstep replay


@record
class Answer:
    """An answer to a query.

    Only an ANSWERED answer carries a choice; any other gives its cause in `reason`. The reason of an answer names the
    pictures that were withheld from the model, if any.
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
        """Check that only an ANSWERED answer carries a choice. Raises ValueError."""
        if self.outcome is not Outcome.ANSWERED and self.chosen:
            raise ValueError(f"answer to {self.query_id} is {self.outcome} and yet chooses")
