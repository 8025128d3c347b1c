"""Observe who else is there and what each is doing: by the request, by tracked people, or by a model."""

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

# What a person is doing with the robot.
_ACTIVITIES = {
    Engagement.ENGAGING: "turning to the robot",
    Engagement.ENGAGED: "busy with the robot",
    Engagement.DISENGAGING: "turning away from the robot",
}
_GAZES = {Gaze.AT_ROBOT: "looking at the robot", Gaze.ELSEWHERE: "looking elsewhere"}
_MAX_WRITTEN_TOKENS = 400


class SeenOther(BaseModel):
    """One person, animal or machine as a model describes it."""

    model_config = ConfigDict(extra="ignore")
    role: str = Field(default="", max_length=200)
    appearance: str = Field(default="", max_length=400)
    doing: str = Field(max_length=400)
    duplicable: Duplicable = Duplicable.UNKNOWN


class SceneObservation(BaseModel):
    """The description of a scene that a model writes."""

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


def read_observation(
    others: tuple[OtherAgent, ...] | None, viewpoint: Viewpoint | None, *, has_camera: bool
) -> Observation:
    """Read the scene from the request. What the request omits is unknown, not absent."""
    source = "given" if others is not None else "nobody" if has_camera else "words"
    return Observation(others=others or (), viewpoint=viewpoint or Viewpoint(), source=source)


def find_people(window: Window | None, now_ns: int, max_age_ns: int) -> tuple[Person, ...]:
    """List the people of the newest tracker message with people; empty where it is older than `max_age_ns`.

    A message without people does not count: a camera that sees no face does not prove that nobody is there.
    """
    presences = [presence for presence in window.presences if presence.persons] if window else []
    newest = max(presences, key=lambda presence: presence.stamp_ns, default=None)
    return newest.persons if newest and now_ns - newest.stamp_ns <= max_age_ns else ()


def convert_people(people: Iterable[Person]) -> tuple[OtherAgent, ...]:
    """Convert REP-155 people to other agents. Their activity is known only where it is with the robot.

    Such an activity vetoes nothing, because the robot cannot do it in their place.
    """
    return tuple(
        OtherAgent(
            agent_id=person.person_id,
            appearance=_describe_position(person),
            doing=_ACTIVITIES.get(person.engagement, ""),
            duplicable=Duplicable.YES if person.engagement in _ACTIVITIES else Duplicable.UNKNOWN,
        )
        for person in people
        if person.person_id
    )


def observe_with_model(engine: Engine, prompt: Prompt, deadline: Deadline) -> Observation:
    """Ask a model to describe the images. On failure, return no other agents and the reason."""
    reply = engine.generate(prompt, SceneObservation, max_tokens=_MAX_WRITTEN_TOKENS, deadline=deadline)
    if reply.outcome is not Outcome.ANSWERED or reply.value is None:
        return Observation(source="engine", outcome=reply.outcome, reason=reply.reason or "nothing was written")
    scene = reply.value
    others = tuple(
        OtherAgent(agent_id=f"seen-{index}", **other.model_dump()) for index, other in enumerate(scene.others)
    )
    return Observation(
        others=others,
        viewpoint=Viewpoint(description=scene.viewpoint, place=scene.place, role=scene.role),
        source="engine",
    )


def describe_other(other: OtherAgent) -> str:
    """Describe another agent in one phrase, role and activity; empty where the activity is unknown."""
    return ", ".join(filter(None, (other.role.strip(), other.doing.strip()))) if other.doing.strip() else ""


def _describe_position(person: Person) -> str:
    """Describe where a person stands and looks."""
    position = f"the person {person.distance_m:.1f} m away" if person.distance_m is not None else "a person"
    return ", ".join(filter(None, (position, _GAZES.get(person.gaze, ""))))
