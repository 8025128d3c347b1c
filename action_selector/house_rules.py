"""The rules of a robot team: what to do and not to do in a situation, and what never to do."""

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from pydantic import Field, model_validator

from action_selector.retrieval import Matrix, SentenceEncoding, similarity
from action_selector.text_safety.injection_filter import read_disguised
from norm_core.runtime.config import Config, load_private_config


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
        return load_private_config(cls, path)


def forbidden(
    actions: Sequence[str], hard: Sequence[HardRule], sentences: SentenceEncoding, least: float
) -> dict[int, str]:
    """Explain which actions a hard rule forbids, by index: by its words, or by a likeness of at least `least`."""
    alike = action_likeness(sentences, actions, [rule.never for rule in hard])
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
        alike = action_likeness(sentences, actions, [rule.dont, rule.do])
        for place in range(len(actions)):
            if alike[place, 0] >= least and alike[place, 0] > alike[place, 1]:
                reasons.setdefault(place, f"a house rule advises against it: {rule.why}")
    return reasons


def in_favour(action: str, rules: Sequence[HouseRule], sentences: SentenceEncoding, least: float) -> str:
    """Explain why an applicable rule supports the action. Empty where none does."""
    for rule in rules:
        alike = action_likeness(sentences, [action], [rule.do, rule.dont])[0]
        if alike[0] >= least and alike[0] > alike[1]:
            return rule.why
    return ""


# The encoder likens what has the same case, full stop or small words, whatever it means.
_SMALL_WORDS = {
    *("a", "an", "the", "in", "into", "at", "on", "of", "to", "from", "by", "for", "with", "and", "or", "is", "are"),
    *("it", "its", "he", "she", "him", "her", "his", "they", "them"),
}


def action_likeness(sentences: SentenceEncoding, actions: Sequence[str], named: Sequence[str]) -> Matrix:
    """Compute how alike actions and what rules name are, by their content words."""
    rows, columns = ([read_disguised(text)[0] for text in texts] for texts in (actions, named))
    return similarity(sentences, rows, columns, content_words)


def content_words(text: str) -> str:
    """Return the words that tell what is done, in folded case and without stops."""
    words = re.findall(r"[^\W_]+", text.casefold())
    return " ".join([word for word in words if word not in _SMALL_WORDS] or words)


def applicable_rules(
    rules: Sequence[HouseRule], situation: str, sentences: SentenceEncoding, least: float
) -> tuple[HouseRule, ...]:
    """List the rules whose situation has a similarity of at least `least`, the most similar first."""
    if not situation.strip() or not rules:
        return ()
    alike = similarity(sentences, [rule.situation for rule in rules], [situation])[:, 0]
    order = sorted(range(len(rules)), key=lambda place: (-alike[place], place))
    return tuple(rules[place] for place in order if alike[place] >= least)


# Words end where no letter follows. Chinese and Japanese write no spaces between them.
_LETTER = r"[^\W_\u3040-\u30ff\u3400-\u9fff]"
_LONG_ENOUGH_TO_SPLIT = 6  # "be low" is not "below"


def _has_word(action: str, words: Sequence[str]) -> bool:
    """Whether one of the words stands in the action: as written, in disguised letters, spelled out or split in two."""
    plain, spelled = read_disguised(action)
    split_at_capitals = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", plain)
    pairs = " ".join(first + second for first, second in pairwise(plain.split()))
    for word in words:
        letters = read_disguised(word)[0]
        signs = r"(?:[^\w\s]|_)*".join(r"\s+" if letter == " " else re.escape(letter) for letter in letters)
        pattern = re.compile(rf"(?<!{_LETTER}){signs}(?:s|es)?(?!{_LETTER})", re.IGNORECASE)
        if pattern.search(plain) or pattern.search(split_at_capitals) or letters.casefold() in spelled.casefold():
            return True
        if len(letters) >= _LONG_ENOUGH_TO_SPLIT and pattern.search(pairs):
            return True
    return False
