"""The deployment context: permitted inferences, and permitted viewers of pictures."""

from enum import StrEnum

from pydantic import Field

from norm_core.runtime.config import Config


class DeploymentContext(StrEnum):
    """Where the robot works; EU AI Act 5(1)(f) forbids inferring emotions from pictures at work and in education."""

    UNSPECIFIED = "unspecified"
    HOME = "home"
    PUBLIC = "public"
    HEALTH = "health"
    WORKPLACE = "workplace"
    EDUCATION = "education"

    @property
    def allows_emotions_from_pictures(self) -> bool:
        """Whether emotions may be inferred from pictures; only a stated context can permit it."""
        return self in {DeploymentContext.HOME, DeploymentContext.PUBLIC, DeploymentContext.HEALTH}


class PictureRules(Config):
    """Rules about the pictures that a model may see, and its inferences from them."""

    pictures_may_leave: bool = Field(default=False, description="whether pictures may go to a model on another machine")
    deployment_context: DeploymentContext = Field(
        default=DeploymentContext.UNSPECIFIED,
        description="where the robot works; emotions may be inferred from pictures only in home, public and health",
    )
