"""A robot team's own rules: advice that outranks every precedent, and hard rules that veto."""

import re
from collections.abc import Sequence
from pathlib import Path

from pydantic import Field, model_validator

from action_selector.retrieve.likeness import SentenceEncoding, similarity
from norm_core.runtime.config import Config, load_config


class HouseRule(Config):
    """In a situation like this, do that and not the other, which falls; why is told to people."""

    situation: str = Field(min_length=1, max_length=1000)
    do: str = Field(default="", max_length=400)
    dont: str = Field(default="", max_length=400)
    why: str = Field(min_length=1, max_length=400)

    @model_validator(mode="after")
    def _says_something(self) -> "HouseRule":
        if not (self.do or self.dont):
            raise ValueError("a rule says what to do, what not to do (dont), or both")
        return self


class HardRule(Config):
    """Never to be done, wherever. A candidate with one of the words is vetoed, and one that means the same."""

    never: str = Field(min_length=1, max_length=400)
    words: tuple[str, ...] = Field(default=(), description="any of these words or phrases in a candidate vetoes it")
    why: str = Field(default="", max_length=400)


class HouseRules(Config):
    rules: tuple[HouseRule, ...] = ()
    hard: tuple[HardRule, ...] = ()

    @classmethod
    def read(cls, path: Path) -> "HouseRules":
        return load_config(cls, path)


def forbidding_rule(
    actions: Sequence[str], hard: Sequence[HardRule], sentences: SentenceEncoding, least: float
) -> dict[int, str]:
    """Why an action must not be done, by its place; words are enough, else it must be like the rule by least."""
    alike = similarity(sentences, actions, [rule.never for rule in hard])
    reasons: dict[int, str] = {}
    for place, action in enumerate(actions):
        for number, rule in enumerate(hard):
            if action.strip() and (_has_word(action, rule.words) or alike[place, number] >= least):
                why = f": {rule.why}" if rule.why else ""
                reasons.setdefault(place, f"a rule of this house says never to {rule.never.rstrip('.')}{why}")
    return reasons


def advised_against(
    actions: Sequence[str], rules: Sequence[HouseRule], sentences: SentenceEncoding, least: float
) -> dict[int, str]:
    """Why an action is not to be done here, by its place: it is like what an applying rule says not to do."""
    reasons: dict[int, str] = {}
    for rule in rules:
        alike = similarity(sentences, actions, [rule.dont, rule.do])
        for place in range(len(actions)):
            if alike[place, 0] >= least and alike[place, 0] > alike[place, 1]:
                reasons.setdefault(place, f"a rule of this house says not to here: {rule.why}")
    return reasons


def in_favour(action: str, rules: Sequence[HouseRule], sentences: SentenceEncoding, least: float) -> str:
    """Why an applying rule says to do this, or nothing where none does."""
    for rule in rules:
        alike = similarity(sentences, [action], [rule.do, rule.dont])[0]
        if alike[0] >= least and alike[0] > alike[1]:
            return rule.why
    return ""


def applicable_rules(
    rules: Sequence[HouseRule], situation: str, sentences: SentenceEncoding, least: float
) -> tuple[HouseRule, ...]:
    """The rules whose situation is like this one by least, the most alike first."""
    if not situation.strip() or not rules:
        return ()
    alike = similarity(sentences, [rule.situation for rule in rules], [situation])[:, 0]
    order = sorted(range(len(rules)), key=lambda place: (-alike[place], place))
    return tuple(rules[place] for place in order if alike[place] >= least)


def _has_word(action: str, words: Sequence[str]) -> bool:
    text = action.casefold()
    return any(re.search(rf"(?<!\w){re.escape(word.casefold())}(?:s|es)?(?!\w)", text) for word in words)
