"""Observe who else is there and what each is doing: as the request tells it, by tracked people, or by a model."""

from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict, Field

from norm_core.engines.engine import Engine
from norm_core.engines.prompt import Prompt
from norm_core.engines.request_context import Deadline
from norm_core.records.decision import Duplicable, OtherAgent, Viewpoint
from norm_core.records.outcome import Outcome
from norm_core.records.presence import Engagement, Gaze, Person
from norm_core.records.record import record
from norm_core.records.window import Window

_WITH_THE_ROBOT = {
    Engagement.ENGAGING: "turning to the robot",
    Engagement.ENGAGED: "busy with the robot",
    Engagement.DISENGAGING: "turning away from the robot",
}
_LOOKING = {Gaze.AT_ROBOT: "looking at the robot", Gaze.ELSEWHERE: "looking elsewhere"}


class SeenOther(BaseModel):
    """One person, animal or machine as a model describes it."""

    model_config = ConfigDict(extra="ignore")
    role: str = Field(default="", max_length=200)
    appearance: str = Field(default="", max_length=400)
    doing: str = Field(max_length=400)
    duplicable: Duplicable = Duplicable.UNKNOWN


class SceneObservation(BaseModel):
    """What a model is asked to write of a scene."""

    model_config = ConfigDict(extra="ignore")
    viewpoint: str = Field(default="", max_length=600)
    place: str = Field(default="", max_length=200)
    role: str = Field(default="", max_length=200)
    others: list[SeenOther] = Field(default_factory=list, max_length=20)


@record
class Observation:
    """The scene and its source. `outcome` differs from ANSWERED where a model failed."""

    others: tuple[OtherAgent, ...] = ()
    viewpoint: Viewpoint = Viewpoint()
    source: str = "given"
    outcome: Outcome = Outcome.ANSWERED
    reason: str = ""


def observation_given(others: tuple[OtherAgent, ...] | None, viewpoint: Viewpoint | None) -> Observation:
    """Take the scene from the request. What the request omits is unknown, not absent."""
    source = "given" if others is not None else "nobody"
    return Observation(others=others or (), viewpoint=viewpoint or Viewpoint(), source=source)


def people_in(window: Window | None, now_ns: int, max_age_ns: int) -> tuple[Person, ...]:
    """List the people of the newest tracker message; empty where it is older than `max_age_ns`.

    Only identified persons count: a camera without a visible face does not prove that nobody is there.
    """
    presences = [presence for presence in window.presences if presence.persons] if window else []
    newest = max(presences, key=lambda presence: presence.stamp_ns, default=None)
    return newest.persons if newest and now_ns - newest.stamp_ns <= max_age_ns else ()


def from_people(people: Iterable[Person]) -> tuple[OtherAgent, ...]:
    """Convert REP-155 people to other agents: their position towards the robot, and rarely their activity.

    An activity with the robot itself is no veto, because the robot cannot do it in their place.
    """
    return tuple(
        OtherAgent(
            agent_id=person.person_id,
            appearance=_standing(person),
            doing=_WITH_THE_ROBOT.get(person.engagement, ""),
            duplicable=Duplicable.YES if person.engagement in _WITH_THE_ROBOT else Duplicable.UNKNOWN,
        )
        for person in people
        if person.person_id
    )


def from_engine(engine: Engine, prompt: Prompt, deadline: Deadline) -> Observation:
    """Ask a model to describe the images. On failure, return no other agents and the reason."""
    written = engine.generate(prompt, SceneObservation, max_tokens=400, deadline=deadline)
    if written.outcome is not Outcome.ANSWERED or written.value is None:
        return Observation(source="engine", outcome=written.outcome, reason=written.reason or "nothing was written")
    seen = written.value
    others = tuple(
        OtherAgent(agent_id=f"seen-{number}", **other.model_dump()) for number, other in enumerate(seen.others)
    )
    return Observation(
        others=others,
        viewpoint=Viewpoint(description=seen.viewpoint, place=seen.place, role=seen.role),
        source="engine",
    )


def describe_other(other: OtherAgent) -> str:
    """Describe another agent in one phrase: role, then activity."""
    return ", ".join(filter(None, (other.role.strip(), other.doing.strip()))) if other.doing.strip() else ""


def _standing(person: Person) -> str:
    where = f"the person {person.distance_m:.1f} m away" if person.distance_m is not None else "a person"
    return ", ".join(filter(None, (where, _LOOKING.get(person.gaze, ""))))
