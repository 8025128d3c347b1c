"""A selector from the files that a robot's team keeps."""

from pathlib import Path

from pydantic import Field

from action_selector.candidates import SkillCatalogue
from action_selector.choose.linear_scorer import Fitted
from action_selector.config import SelectorConfig
from action_selector.decider import Decider
from action_selector.model import Model
from action_selector.retrieve.likeness import Sentences
from action_selector.retrieve.precedents import PrecedentError, PrecedentIndex
from action_selector.veto.house_rules import HouseRules


class SelectorFiles(SelectorConfig):
    """The selector's settings and where its files lie; an empty path is none."""

    model: str = Field(default="", description="name of the model that is asked; empty for likeness alone")
    skills: str = Field(default="", description="YAML catalogue of the robot's skills; empty for none")
    house_rules: str = Field(default="", description="YAML file of house rules; empty for none")
    precedents_index: str = Field(default="", description="folder that `tactful norms index` wrote; empty for none")
    fitted: str = Field(default="", description="weights that `tactful bench fit` wrote; empty for none")


def open_selector(
    files: SelectorFiles, sentences: Sentences, weights_sha256: str = "", engine: Model | None = None
) -> Decider:
    """Reads every file, or raises a TactfulError that names the first that cannot be used."""
    catalogue, rules, index = (_path(path) for path in (files.skills, files.house_rules, files.precedents_index))
    fitted = _path(files.fitted)
    precedents = PrecedentIndex.load(index) if index else None
    if precedents and precedents.weights_sha256 not in {"", weights_sha256}:
        raise PrecedentError(f"{index}: was made with another encoder: make it anew with `tactful norms index`")
    return Decider(
        sentences,
        # Without what a node adds of its own, so that a node and a replay give one digest of one configuration.
        SelectorFiles(**files.model_dump(include=set(SelectorFiles.model_fields))),
        engine=engine,
        catalogue=SkillCatalogue.read(catalogue) if catalogue else None,
        rules=HouseRules.read(rules) if rules else None,
        precedents=precedents,
        fitted=Fitted.read(fitted, weights_sha256) if fitted else None,
    )


def _path(text: str) -> Path | None:
    return Path(text).expanduser() if text else None
