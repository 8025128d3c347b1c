"""Choose a robot's next action from a scene and candidate actions, or abstain."""

from typing import TYPE_CHECKING

from norm_core.runtime.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from action_selector.candidates import Candidate, Skill, SkillCatalogue
    from action_selector.choose.abstain import WhenUnsure
    from action_selector.config import RequestConfig, SelectorConfig
    from action_selector.decider import Decider
    from action_selector.model import SelectorModel
    from action_selector.repair import RepairConfig, RepairRequests
    from action_selector.request import Request, UnusableError
    from action_selector.retrieve.precedents import (
        Precedent,
        PrecedentError,
        PrecedentIndex,
        read_precedents,
        write_precedents,
    )
    from action_selector.selector import DueRequest, Recommendation, Selector
    from action_selector.selector_factory import SelectorFiles, open_selector
    from action_selector.veto.house_rules import HardRule, HouseRule, HouseRules

__all__ = [
    "Candidate",
    "Decider",
    "DueRequest",
    "HardRule",
    "HouseRule",
    "HouseRules",
    "Precedent",
    "PrecedentError",
    "PrecedentIndex",
    "Recommendation",
    "RepairConfig",
    "RepairRequests",
    "Request",
    "RequestConfig",
    "Selector",
    "SelectorConfig",
    "SelectorFiles",
    "SelectorModel",
    "Skill",
    "SkillCatalogue",
    "UnusableError",
    "WhenUnsure",
    "open_selector",
    "read_precedents",
    "write_precedents",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "candidates": ("Candidate", "Skill", "SkillCatalogue"),
            "choose.abstain": ("WhenUnsure",),
            "config": ("RequestConfig", "SelectorConfig"),
            "decider": ("Decider",),
            "model": ("SelectorModel",),
            "repair": ("RepairConfig", "RepairRequests"),
            "request": ("Request", "UnusableError"),
            "retrieve.precedents": (
                "Precedent",
                "PrecedentError",
                "PrecedentIndex",
                "read_precedents",
                "write_precedents",
            ),
            "selector": ("DueRequest", "Recommendation", "Selector"),
            "selector_factory": ("SelectorFiles", "open_selector"),
            "veto.house_rules": ("HardRule", "HouseRule", "HouseRules"),
        },
    )
