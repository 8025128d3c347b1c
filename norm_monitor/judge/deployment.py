"""Where a robot works, and what may be inferred there."""

from enum import StrEnum


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
        """Whether a model may be asked about emotions with pictures; only where a context that allows it is stated."""
        return self in {DeploymentContext.HOME, DeploymentContext.PUBLIC, DeploymentContext.HEALTH}

    @property
    def forbids_emotions_from_pictures(self) -> bool:
        """Whether a context is stated in which they may not be inferred; a replayed suite is then shown no picture."""
        return self in {DeploymentContext.WORKPLACE, DeploymentContext.EDUCATION}
