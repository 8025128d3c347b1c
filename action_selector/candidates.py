"""Candidate actions: of the request, or of the skill catalogue."""

import re
from collections.abc import Iterable
from pathlib import Path

from pydantic import Field, field_validator

from norm_core.records.decision import Norm, Viewpoint
from norm_core.records.record import record
from norm_core.runtime.config import Config, load_private_config

_SMALL_WORDS = {"a", "an", "the", "in", "at", "on", "of", "to", "is", "are"}


@record
class Candidate:
    """One possible action. An empty action means none of the above; `unmet` names a precondition that fails.

    `same_as` is the first index with the same words: repeated candidates share one verdict.
    """

    index: int
    action: str
    same_as: int
    norms: tuple[Norm, ...] = ()
    unmet: str = ""

    @property
    def is_none(self) -> bool:
        """Whether this candidate stands for "none of the above"."""
        return not self.action.strip()


class Needs(Config):
    """Preconditions of a skill. An unknown place or role passes; a fact passes only if the request states it."""

    places: tuple[str, ...] = Field(default=(), description="the robot must stand in one of these")
    roles: tuple[str, ...] = Field(default=(), description="the robot must act as one of these")
    facts: tuple[str, ...] = Field(default=(), description="all of these must be stated with the question")

    def explain_unmet(self, viewpoint: Viewpoint, facts: Iterable[str]) -> str:
        """Explain which precondition fails; empty where all hold."""
        if viewpoint.place and self.places and not _names_any(viewpoint.place, self.places):
            return f"it is done in the {' or '.join(self.places)}, and the robot is here: {viewpoint.place}"
        if viewpoint.role and self.roles and not _names_any(viewpoint.role, self.roles):
            return f"it is for {' or '.join(self.roles)}, and the robot is here as {viewpoint.role}"
        stated = [_split_words(fact) for fact in facts]
        missing = [fact for fact in self.facts if _split_words(fact) not in stated]
        return f"nobody states that {' and '.join(missing)}" if missing else ""


class Skill(Config):
    """One entry of a skill catalogue: an action, the norms it serves and what it needs."""

    action: str = Field(min_length=1, max_length=400, description="what the robot does, in words")
    norms: tuple[Norm, ...] = Field(default=(), description="norm categories that it serves")
    needs: Needs = Needs()


class SkillCatalogue(Config):
    """The skills of a robot, as its team writes them down."""

    skills: tuple[Skill, ...] = Field(min_length=1, max_length=64)
    may_do_nothing: bool = Field(default=True, description="whether none of them is a possible answer")

    @field_validator("skills")
    @classmethod
    def _check_repeats(cls, skills: tuple[Skill, ...]) -> tuple[Skill, ...]:
        names = [normalize_action(skill.action) for skill in skills]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ValueError(f"the skill {repeated[0]!r} appears twice")
        return skills

    @classmethod
    def read(cls, path: Path) -> "SkillCatalogue":
        """Load a catalogue from a YAML file. Raises ConfigError."""
        return load_private_config(cls, path)


def build_candidates(
    options: tuple[str, ...], catalogue: SkillCatalogue | None, viewpoint: Viewpoint, facts: Iterable[str]
) -> tuple[Candidate, ...]:
    """Build candidates from the options and the catalogue. Without options, every skill is a candidate."""
    facts = tuple(facts)
    skills_by_action = {normalize_action(skill.action): skill for skill in catalogue.skills} if catalogue else {}
    if not options and catalogue:
        options = tuple(skill.action for skill in catalogue.skills) + ("",) * catalogue.may_do_nothing
    candidates = []
    firsts: dict[str, int] = {}
    for index, action in enumerate(options):
        skill = skills_by_action.get(normalize_action(action))
        unmet = skill.needs.explain_unmet(viewpoint, facts) if skill else ""
        same_as = firsts.setdefault(normalize_action(action) or action.strip(), index)
        norms = skill.norms if skill else ()
        candidates.append(Candidate(index=index, action=action, same_as=same_as, norms=norms, unmet=unmet))
    return tuple(candidates)


def normalize_action(text: str) -> str:
    """Remove what makes no difference between actions: case, spaces and the final punctuation."""
    return " ".join(text.casefold().split()).rstrip(" .!?。！？")


def _split_words(text: str) -> list[str]:
    """Split into the words that identify a place or fact."""
    return [word for word in re.findall(r"[^\W_]+", text.casefold()) if word not in _SMALL_WORDS]


def _names_any(stated: str, wanted: Iterable[str]) -> bool:
    """Decide whether `stated` has all words of a wanted text, as "gym" in "the gym, ground floor"."""
    return any(set(_split_words(name)) <= set(_split_words(stated)) for name in wanted)
