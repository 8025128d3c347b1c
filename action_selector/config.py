"""The settings of the selector."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator

from action_selector.choose.abstain import WhenUnsure
from action_selector.choose.norms import DEFAULT_ORDER
from action_selector.request import RepairConfig
from norm_core.records.decision import Norm
from norm_core.records.json_codec import sha256_of
from norm_core.runtime.config import LIVE, Config
from norm_core.runtime.watermarks import SOURCES, known_sources

# The settings that change probabilities; house rules, skills and precedents are a site's own and are not among them.
_SCORING = {
    "veto_others", "avoid_others", "match_least", "ask_viewpoint", "possible_least", "orders", "precedents",
    "precedent_least", "style",
}  # fmt: skip


class SelectorConfig(Config):
    """Settings that change a decision; their hash is part of each decision."""

    when_unsure: WhenUnsure = Field(
        default=WhenUnsure.ASK_HUMAN,
        description="where several could be right: ask_human, do_nothing or best_effort",
        json_schema_extra=LIVE,
    )
    coverage: float = Field(
        default=0.6,
        gt=0,
        le=1,
        description="probability that the candidates which could be right hold together",
        json_schema_extra=LIVE,
    )
    veto_others: bool = Field(default=True, description="whether what another is already doing falls")
    avoid_others: bool = Field(
        default=True, description="whether likeness also keeps away from what others do, beside the veto"
    )
    match_least: float = Field(
        default=0.35, ge=-1, le=1, description="cosine from which a candidate is another's action"
    )
    rule_least: float = Field(
        default=0.5,
        ge=-1,
        le=1,
        description="cosine from which a house rule speaks of a situation or candidate",
        json_schema_extra=LIVE,
    )
    ask_viewpoint: bool = Field(default=True, description="whether a model is asked what can be done from here")
    ask_norms: bool = Field(default=True, description="whether a model is asked which norms a candidate serves")
    possible_least: float = Field(
        default=0.2, ge=0, le=1, description="a model's probability below which a candidate cannot be done from here"
    )
    orders: int = Field(default=4, ge=1, le=64, description="orders in which a model is asked the options")
    precedents: int = Field(default=5, ge=0, le=50, description="precedents shown")
    precedent_least: float = Field(
        default=0.4, ge=-1, le=1, description="cosine from which a precedent is like the scene"
    )
    norm_order: tuple[Norm, ...] = Field(
        default=DEFAULT_ORDER,
        description="norm categories, from the one that never gives way to the one that always does",
        json_schema_extra=LIVE,
    )
    style: Literal["default", "egoplan", "exclusion"] = Field(default="default", description="how a model is asked")
    max_frame_age_s: float = Field(default=3.0, gt=0, le=600, description="older frames are not decided upon")
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

    calibration: str = Field(
        default="",
        description="file of `tactful calibrate selector`, or its bare name; `coverage` is then the share of cases in "
        "which the set holds the right candidate; empty for none",
    )

    def scoring_sha256(self) -> str:
        """Compute the digest of the settings on which the probabilities depend."""
        return sha256_of(self.model_dump(mode="json", include=_SCORING))

    @field_validator("norm_order")
    @classmethod
    def _each_once(cls, order: tuple[Norm, ...]) -> tuple[Norm, ...]:
        if sorted(order) != sorted(Norm):
            raise ValueError(f"it names each of {', '.join(Norm)} once")
        return order


class RequestConfig(Config):
    """Which records a request needs, and how long a decision may take."""

    window_s: float = Field(default=15.0, gt=0, le=600, description="how much of the past is looked at")
    longest_s: float = Field(default=10.0, gt=0, le=600, description="time for a goal whose deadline is 0 or -1")
    sources: Annotated[tuple[str, ...], AfterValidator(known_sources)] = Field(
        default=(), description=f"what a query without a deadline waits for, of {', '.join(SOURCES)}; () to ask at once"
    )
    frames_every_s: float = Field(default=1.0, gt=0, le=60, description="period of kept frames and of presence")
    repair: RepairConfig = RepairConfig()
