"""Who else is there, what each is doing, and where the robot stands: given, from people's messages, or from a model."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from pydantic import BaseModel, ConfigDict, Field

from norm_core.decision import Duplicable, OtherAgent, Viewpoint
from norm_core.engines.call import Limit
from norm_core.engines.prompt import Prompt
from norm_core.engines.reply import Generation
from norm_core.outcome import Outcome
from norm_core.record import record


class Writes(Protocol):
    """The part of an engine that writes."""

    def generate(
        self, prompt: Prompt, schema: type["Seen"] | None = None, *, max_tokens: int = 256, limit: Limit | None = None
    ) -> Generation["Seen"]: ...


class SeenOther(BaseModel):
    """One person, animal or machine as a model describes it."""

    model_config = ConfigDict(extra="ignore")
    role: str = Field(default="", max_length=200)
    appearance: str = Field(default="", max_length=400)
    doing: str = Field(max_length=400)
    duplicable: Duplicable = Duplicable.UNKNOWN


class Seen(BaseModel):
    """What a model is asked to write of a scene."""

    model_config = ConfigDict(extra="ignore")
    viewpoint: str = Field(default="", max_length=600)
    place: str = Field(default="", max_length=200)
    role: str = Field(default="", max_length=200)
    others: list[SeenOther] = Field(default_factory=list, max_length=20)


@record
class Observation:
    """What is believed of the scene, and by whose word; outcome is not ANSWERED where a model could not tell."""

    others: tuple[OtherAgent, ...] = ()
    viewpoint: Viewpoint = Viewpoint()
    told_by: str = "given"
    outcome: Outcome = Outcome.ANSWERED
    reason: str = ""


def given(others: tuple[OtherAgent, ...] | None, viewpoint: Viewpoint | None) -> Observation:
    """What the asker says; what they leave out is unknown, not absent."""
    told_by = "given" if others is not None else "nobody"
    return Observation(others=others or (), viewpoint=viewpoint or Viewpoint(), told_by=told_by)


def from_people(people: Iterable[Mapping[str, str]]) -> tuple[OtherAgent, ...]:
    """Others from REP-155 people: dicts of person_id, and where known role, engagement and doing.

    People trackers tell who is there and seldom what they do; where they do not, no candidate can be theirs.
    """
    return tuple(
        OtherAgent(
            agent_id=person["person_id"],
            role=person.get("role", ""),
            appearance=person.get("appearance", ""),
            doing=person.get("doing", ""),
            duplicable=Duplicable(person.get("duplicable", Duplicable.UNKNOWN)),
        )
        for person in people
        if person.get("person_id")
    )


def from_engine(engine: Writes, prompt: Prompt, limit: Limit, max_tokens: int = 400) -> Observation:
    """What a model writes of the pictures in prompt; where it cannot, nobody is believed to be there, and why."""
    written = engine.generate(prompt, Seen, max_tokens=max_tokens, limit=limit)
    if written.outcome is not Outcome.ANSWERED or written.value is None:
        return Observation(told_by="engine", outcome=written.outcome, reason=written.reason or "nothing was written")
    seen = written.value
    others = tuple(
        OtherAgent(agent_id=f"seen-{number}", **other.model_dump()) for number, other in enumerate(seen.others)
    )
    return Observation(
        others=others,
        viewpoint=Viewpoint(description=seen.viewpoint, place=seen.place, role=seen.role),
        told_by="engine",
    )


def said_of(other: OtherAgent) -> str:
    """What an other does, as one phrase: the role, then the doing."""
    return ", ".join(filter(None, (other.role.strip(), other.doing.strip()))) if other.doing.strip() else ""
