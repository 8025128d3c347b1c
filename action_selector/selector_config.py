"""The settings of the selector."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator

from action_selector.repair import RepairConfig
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
    DO_NOTHING = "do_nothing"
    BEST_EFFORT = "best_effort"


class SelectorConfig(Config):
    """Settings that change a decision; their hash is part of each decision."""

    when_unsure: WhenUnsure = Field(
        default=WhenUnsure.ASK_HUMAN,
        description="what to do where several candidates could be right: ask_human, do_nothing or best_effort",
        json_schema_extra=LIVE,
    )
    coverage: float = Field(
        default=0.6,
        gt=0,
        le=1,
        description="probability that the set of candidates which could be right must reach together",
        json_schema_extra=LIVE,
    )
    veto_others: bool = Field(
        default=True, description="whether a candidate is vetoed that somebody else is already doing"
    )
    avoid_others: bool = Field(
        default=True, description="whether a candidate also scores lower the more it resembles what others do"
    )
    match_threshold: float = Field(
        default=0.35, ge=-1, le=1, description="similarity from which a candidate counts as another's action"
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
        description="similarity of content words from which a candidate counts as the action that a house rule names",
        json_schema_extra=LIVE,
    )
    ask_viewpoint: bool = Field(default=True, description="whether a model is asked what can be done from here")
    ask_norms: bool = Field(default=True, description="whether a model is asked which norms a candidate serves")
    possible_threshold: float = Field(
        default=0.2, ge=0, le=1, description="a model's probability below which a candidate cannot be done from here"
    )
    orders: int = Field(default=4, ge=1, le=64, description="number of orders in which a model is shown the options")
    precedents: int = Field(default=5, ge=0, le=50, description="largest number of precedents that are used")
    precedent_threshold: float = Field(
        default=0.4, ge=-1, le=1, description="similarity from which a precedent is used for a scene"
    )
    norm_order: tuple[Norm, ...] = Field(
        default=DEFAULT_NORM_ORDER,
        description="norm categories, from the one that never gives way to the one that always does",
        json_schema_extra=LIVE,
    )
    style: Literal["default", "egoplan", "exclusion"] = Field(default="default", description="how a model is asked")
    max_frame_age_s: float = Field(
        default=3.0, gt=0, le=600, description="age of the newest frame above which it is not used"
    )
    pictures_may_leave: bool = Field(
        default=False, description="whether a model that does not run on this machine may be sent pictures"
    )
    reserve_ms: float = Field(
        default=50.0, ge=0, le=10_000, description="time before the deadline that a model does not get"
    )
    fall_back: bool = Field(
        default=True,
        description="whether the explanation ranks the candidates by similarity where the model fails",
    )

    @field_validator("norm_order")
    @classmethod
    def _check_order(cls, order: tuple[Norm, ...]) -> tuple[Norm, ...]:
        if sorted(order) != sorted(Norm):
            raise ValueError(f"it names each of {', '.join(Norm)} once")
        return order


class RequestConfig(Config):
    """Which records a request needs, and how long a decision may take."""

    window_s: float = Field(default=15.0, gt=0, le=600, description="seconds of the past that a request sees")
    longest_s: float = Field(default=10.0, gt=0, le=600, description="time for a goal whose deadline is 0 or -1")
    sources: Annotated[tuple[str, ...], AfterValidator(check_sources)] = Field(
        default=(),
        description=f"sources that a query without a deadline waits for, of {', '.join(SOURCES)}; "
        "() to answer it at once",
    )
    frames_every_s: float = Field(
        default=1.0, gt=0, le=60, description="period in which one frame, and one message of people, is kept"
    )
    repair: RepairConfig = RepairConfig()
