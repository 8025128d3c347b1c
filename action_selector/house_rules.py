"""The rules of a robot team: what to do and not to do in a situation, and what never to do."""

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from pydantic import Field, model_validator

from action_selector.retrieval import Matrix, SentenceEncoding, compute_similarity
from action_selector.text_safety.disguised_letters import read_disguised
from norm_core.runtime.config import Config, load_private_config

# Words that an encoder would find alike, although they do not name what is done.
_SMALL_WORDS = {
    *("a", "an", "the", "in", "into", "at", "on", "of", "to", "from", "by", "for", "with", "and", "or", "is", "are"),
    *("it", "its", "he", "she", "him", "her", "his", "they", "them"),
}
# A letter of a script with spaces. A word of Chinese or Japanese may end anywhere.
_LETTER = r"[^\W_\u3040-\u30ff\u3400-\u9fff]"
# Shorter words are not searched in two parts: "be low" is not "below".
_MIN_SPLIT_LENGTH = 6


class HouseRule(Config):
    """In a situation like this, do one action and veto another. `why` is shown to people."""

    situation: str = Field(min_length=1, max_length=1000)
    do: str = Field(default="", max_length=400)
    dont: str = Field(default="", max_length=400)
    why: str = Field(min_length=1, max_length=400)

    @model_validator(mode="after")
    def _check_content(self) -> "HouseRule":
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


def find_forbidden(
    actions: Sequence[str], hard: Sequence[HardRule], sentences: SentenceEncoding, threshold: float
) -> dict[int, str]:
    """Explain which actions a hard rule forbids, by index: by its words, or by a similarity from `threshold` on."""
    similarities = compare_actions(sentences, actions, [rule.never for rule in hard])
    reasons: dict[int, str] = {}
    for action_index, action in enumerate(actions):
        for rule_index, rule in enumerate(hard):
            is_alike = similarities[action_index, rule_index] >= threshold
            if action.strip() and (is_alike or _has_word(action, rule.words)):
                why = f": {rule.why}" if rule.why else ""
                reasons.setdefault(action_index, f"a rule of this house says never to {rule.never.rstrip('.')}{why}")
    return reasons


def find_advised_against(
    actions: Sequence[str], rules: Sequence[HouseRule], sentences: SentenceEncoding, threshold: float
) -> dict[int, str]:
    """Explain which actions an applicable rule advises against, by index."""
    reasons: dict[int, str] = {}
    for rule in rules:
        for index, (dont, do) in enumerate(compare_actions(sentences, actions, [rule.dont, rule.do])):
            if dont >= threshold and dont > do:
                reasons.setdefault(index, f"a house rule advises against it: {rule.why}")
    return reasons


def find_support(action: str, rules: Sequence[HouseRule], sentences: SentenceEncoding, threshold: float) -> str:
    """Return the reason of an applicable rule that supports the action; empty where none does."""
    for rule in rules:
        do, dont = compare_actions(sentences, [action], [rule.do, rule.dont])[0]
        if do >= threshold and do > dont:
            return rule.why
    return ""


def compare_actions(sentences: SentenceEncoding, actions: Sequence[str], named: Sequence[str]) -> Matrix:
    """Compute the similarity of actions and of what rules name, by their content words."""
    rows = [read_disguised(action)[0] for action in actions]
    columns = [read_disguised(text)[0] for text in named]
    return compute_similarity(sentences, rows, columns, extract_content_words)


def extract_content_words(text: str) -> str:
    """Return the words that name what is done, in lower case and without punctuation."""
    words = re.findall(r"[^\W_]+", text.casefold())
    return " ".join([word for word in words if word not in _SMALL_WORDS] or words)


def find_applicable_rules(
    rules: Sequence[HouseRule], situation: str, sentences: SentenceEncoding, threshold: float
) -> tuple[HouseRule, ...]:
    """List the rules whose situation has a similarity from `threshold` on, the most similar first."""
    if not situation.strip() or not rules:
        return ()
    similarities = compute_similarity(sentences, [rule.situation for rule in rules], [situation])[:, 0]
    order = sorted(range(len(rules)), key=lambda index: (-similarities[index], index))
    return tuple(rules[index] for index in order if similarities[index] >= threshold)


def _has_word(action: str, words: Sequence[str]) -> bool:
    """Decide whether the action has one of the words: as written, in disguised letters, spelled out or split in two."""
    plain, spelled = read_disguised(action)
    split_at_capitals = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", plain)
    pairs = " ".join(first + second for first, second in pairwise(plain.split()))
    for word in words:
        letters = read_disguised(word)[0]
        signs = r"(?:[^\w\s]|_)*".join(r"\s+" if letter == " " else re.escape(letter) for letter in letters)
        pattern = re.compile(rf"(?<!{_LETTER}){signs}(?:s|es)?(?!{_LETTER})", re.IGNORECASE)
        if pattern.search(plain) or pattern.search(split_at_capitals) or letters.casefold() in spelled.casefold():
            return True
        if len(letters) >= _MIN_SPLIT_LENGTH and pattern.search(pairs):
            return True
    return False
