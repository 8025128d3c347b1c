"""The settings of the selector."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator

from norm_core.records.decision import Norm
from norm_core.runtime.config import LIVE, Config
from norm_core.streams.watermarks import SOURCES, check_sources

# Harm and lost privacy cannot be undone; bad manners can be repaired.
DEFAULT_NORM_ORDER = (
    Norm.SAFETY,
    Norm.PRIVACY,
    Norm.PROXEMICS,
    Norm.COMMUNICATION,
    Norm.COORDINATION,
    Norm.COOPERATION,
    Norm.POLITENESS,
)


class WhenUnsure(StrEnum):
    """The recommendation when several candidates could be right."""

    ASK_HUMAN = "ask_human"
    BEST_EFFORT = "best_effort"


class SelectorConfig(Config):
    """Settings that change a decision; their hash is part of each decision."""

    when_unsure: WhenUnsure = Field(
        default=WhenUnsure.ASK_HUMAN,
        description="what to do if several candidates could be right",
        json_schema_extra=LIVE,
    )
    coverage: float = Field(
        default=0.6,
        gt=0,
        le=1,
        description="probability that the candidates which could be right must reach together",
        json_schema_extra=LIVE,
    )
    veto_others: bool = Field(
        default=True, description="whether to veto a candidate that somebody else is already doing"
    )
    avoid_others: bool = Field(
        default=True, description="whether a candidate scores lower the more it resembles what others are doing"
    )
    match_threshold: float = Field(
        default=0.35, ge=-1, le=1, description="similarity from which a candidate counts as another person's action"
    )
    rule_threshold: float = Field(
        default=0.5,
        ge=-1,
        le=1,
        description="similarity from which a house rule applies to a situation",
        json_schema_extra=LIVE,
    )
    action_threshold: float = Field(
        default=0.66,
        ge=-1,
        le=1,
        description="similarity of content words from which a candidate counts as the action in a house rule",
        json_schema_extra=LIVE,
    )
    ask_viewpoint: bool = Field(
        default=True, description="whether to ask the model what is possible from this viewpoint"
    )
    possible_threshold: float = Field(
        default=0.2,
        ge=0,
        le=1,
        description="probability by the model below which a candidate counts as impossible from this viewpoint",
    )
    orders: int = Field(
        default=4, ge=1, le=64, description="number of different orders in which the model sees the options"
    )
    precedents: int = Field(default=5, ge=0, le=50, description="maximum number of precedents to use")
    precedent_threshold: float = Field(
        default=0.4, ge=-1, le=1, description="similarity to the scene from which a precedent is used"
    )
    norm_order: tuple[Norm, ...] = Field(
        default=DEFAULT_NORM_ORDER,
        description="norm categories, the most important first",
        json_schema_extra=LIVE,
    )
    style: Literal["default", "egoplan", "exclusion"] = Field(
        default="default", description="style of the model's prompt"
    )
    has_camera: bool = Field(
        default=True,
        description="whether a camera or the node people shows who is there; false to decide by words, as up sets it "
        "for a profile without both",
    )
    max_frame_age_s: float = Field(default=3.0, gt=0, le=600, description="maximum age of a frame that is used")
    pictures_may_leave: bool = Field(default=False, description="whether pictures may go to a model on another machine")
    reserve_ms: float = Field(
        default=50.0, ge=0, le=10_000, description="time before the deadline at which the model must have finished"
    )

    @field_validator("norm_order")
    @classmethod
    def _check_order(cls, order: tuple[Norm, ...]) -> tuple[Norm, ...]:
        if sorted(order) != sorted(Norm):
            raise ValueError(f"it names each of {', '.join(Norm)} once")
        return order


class RequestConfig(Config):
    """Which records a request needs, and how long a decision may take."""

    window_s: float = Field(default=15.0, gt=0, le=600, description="how much of the past a request takes into account")
    longest_s: float = Field(default=10.0, gt=0, le=600, description="time limit of a goal whose deadline is 0 or -1")
    sources: Annotated[tuple[str, ...], AfterValidator(check_sources)] = Field(
        default=(),
        description=f"sources that a query without a deadline waits for, of {', '.join(SOURCES)}; empty for none",
    )
    frames_every_s: float = Field(default=1.0, gt=0, le=60, description="period of kept frames and of presence")
