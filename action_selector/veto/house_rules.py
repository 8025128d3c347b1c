"""A robot team's rules: advice that outranks precedents, and hard rules that veto."""

import re
from collections.abc import Sequence
from pathlib import Path

from pydantic import Field, model_validator

from action_selector.retrieve.likeness import SentenceEncoding, similarity
from norm_core.runtime.config import Config, load_config


class HouseRule(Config):
    """In a situation like this, do one action and veto another. `why` is shown to people."""

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
    """A general ban. Vetoes a candidate that contains one of the words or means the same."""

    never: str = Field(min_length=1, max_length=400)
    words: tuple[str, ...] = Field(default=(), description="any of these words or phrases in a candidate vetoes it")
    why: str = Field(default="", max_length=400)


class HouseRules(Config):
    """The rules of one site: for situations, which apply by similarity, and general bans."""

    rules: tuple[HouseRule, ...] = ()
    hard: tuple[HardRule, ...] = ()

    @classmethod
    def read(cls, path: Path) -> "HouseRules":
        """Load the rules from a YAML file. Raises ConfigError."""
        return load_config(cls, path)


def forbidding_rule(
    actions: Sequence[str], hard: Sequence[HardRule], sentences: SentenceEncoding, least: float
) -> dict[int, str]:
    """Explain which actions a hard rule forbids, by index: by its words, or by a similarity of at least `least`."""
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
    """Explain which actions an applicable rule advises against, by index."""
    reasons: dict[int, str] = {}
    for rule in rules:
        alike = similarity(sentences, actions, [rule.dont, rule.do])
        for place in range(len(actions)):
            if alike[place, 0] >= least and alike[place, 0] > alike[place, 1]:
                reasons.setdefault(place, f"a house rule advises against it: {rule.why}")
    return reasons


def in_favour(action: str, rules: Sequence[HouseRule], sentences: SentenceEncoding, least: float) -> str:
    """Explain why an applicable rule supports the action. Empty where none does."""
    for rule in rules:
        alike = similarity(sentences, [action], [rule.do, rule.dont])[0]
        if alike[0] >= least and alike[0] > alike[1]:
            return rule.why
    return ""


def applicable_rules(
    rules: Sequence[HouseRule], situation: str, sentences: SentenceEncoding, least: float
) -> tuple[HouseRule, ...]:
    """List the rules whose situation has a similarity of at least `least`, the most similar first."""
    if not situation.strip() or not rules:
        return ()
    alike = similarity(sentences, [rule.situation for rule in rules], [situation])[:, 0]
    order = sorted(range(len(rules)), key=lambda place: (-alike[place], place))
    return tuple(rules[place] for place in order if alike[place] >= least)


def _has_word(action: str, words: Sequence[str]) -> bool:
    text = action.casefold()
    return any(re.search(rf"(?<!\w){re.escape(word.casefold())}(?:s|es)?(?!\w)", text) for word in words)
