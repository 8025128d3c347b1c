"""The options of a question: lettered for a prompt, then read from a reply or weighed by the letters' tokens."""

import math
import re
from collections.abc import Iterable, Sequence
from string import ascii_lowercase, ascii_uppercase

from norm_core.engines.errors import UnparsedError
from norm_core.engines.prompt import neutralize_markup

OPTION_LETTERS = ascii_uppercase + ascii_lowercase
_LETTER_ALONE = "Answer with the letter of one option and nothing else."
_REASONS_FIRST = "Reason step by step first. Then end with one line: Answer: and the letter of one option."
# A capital that stands for an option and begins no sentence, such as "A robot" or "I think".
_LETTER = r"(?:[B-HJ-Z]|[AI](?!['’]|\s+[a-z]))(?![\w'’])"
_STATED = [  # the most explicit forms first
    re.compile(rf"\\boxed\{{\W*({_LETTER})\W*\}}"),
    re.compile(
        r"(?:(?i:answer|choose|chosen|select|pick|opt for|go(?:ing)? with|答案|选择)"
        r"(?:\W{0,8}(?i:is|to be|是|为))?\W{0,8}"
        rf'|"(?i:choice|option|letter)"\s*:\s*"?\(?)({_LETTER})'
    ),
    re.compile(rf"(?i:choice|option|letter|选项)\W{{0,8}}(?i:is|to be|是|为)?\W{{0,8}}({_LETTER})"),
]
_RULED_OUT = [
    re.compile(
        r"(?i:\b(?:not|nor|neither|never|except|exclud(?:e|ing)|eliminat(?:e|ing)|reject(?:ing)?|rul(?:e|ed|ing) out"
        r"|instead of|rather than|over)|n['’]t)\W{0,4}"
        rf"(?:(?i:choose|pick|select|option|answer|choice|letter)\W{{0,4}})?({_LETTER})"
    ),
    re.compile(
        rf"(?<!\w)({_LETTER})\)?,? (?i:(?:is|was|can be|seems|looks) (?:not|wrong|incorrect|out|ruled|excluded))"
    ),
]
_AT_START = re.compile(rf"^\W*({_LETTER})(?:\s*[).:,\n]|\s+[-–—]|\s*$)", re.MULTILINE)
_THOUGHT = re.compile(r"^.*</think(?:ing)?>", re.DOTALL)
_DECLINED = re.compile(
    r"""^\W*(?:
      (?:(?:I['’]?m|I\ am)\ (?:so\ |very\ |really\ )?sorry|sorry|(?:I|my)\ apologi[sz]e?s?|unfortunately|as\ an\ ai\b)
        [^\n]{0,60}?\b(?:can(?:no|['’])t|cannot|unable|not\ able|won['’]t|will\ not|not\ comfortable|must\ decline)
      |I\ (?:can(?:no|['’])t|cannot|am\ (?:unable|not\ able)\ to|won['’]t|will\ not|must\ decline\ to)
        \ (?:help|assist|answer|comply|provide|discuss|engage|participate|fulfil|continue|identify|analy[sz]e|do\ that)
      |(?:很?抱歉|对不起)[^\n]{0,20}(?:无法|不能|不便)
    )""",
    re.IGNORECASE | re.VERBOSE,
)
# Characters for a leading space in a server's raw tokens.
_SPACES = " \t\n▁Ġ"


def letter_options(options: tuple[str, ...], *, reasons_first: bool = False) -> str:
    """Return the options as lettered lines, and the request for one letter; at most len(OPTION_LETTERS) options."""
    texts = (" ".join(neutralize_markup(option).split()) for option in options)  # no option can look like two
    lines = [f"{letter}. {text}" for letter, text in zip(OPTION_LETTERS, texts, strict=False)]
    return "\n".join([*lines, _REASONS_FIRST if reasons_first else _LETTER_ALONE])


def is_refusal(text: str) -> bool:
    """Whether a free text begins by declining, as "I'm sorry, but I can't help with that" does."""
    return _DECLINED.match(without_thought(text)) is not None


def without_thought(text: str) -> str:
    """Remove the reasoning that a model writes before its answer, up to its closing tag."""
    return _THOUGHT.sub("", text).strip()


def read_option(text: str, options: Sequence[str]) -> int | None:
    """Return the index of the option that a text chooses; None if there is none, or more than one.

    The text is a letter alone, or has one of these forms, tried in this order: "answer: X", "option X", a letter at the
    beginning of a line, the only letter in parentheses, the words of one option. An option that the text rules out does
    not count.
    """
    letters = OPTION_LETTERS[: len(options)]
    visible = without_thought(text)
    strict = visible.strip(" \t\n.()[]*_`\"':")
    if len(strict) == 1 and strict in letters:
        return letters.index(strict)
    ruled_out = {match[1] for form in _RULED_OUT for match in form.finditer(visible)}
    bracketed = re.compile(rf"\(([{letters}])\)")
    for form in (*_STATED, _AT_START, bracketed):
        letters_stated = {match[1] for match in form.finditer(visible)}
        if chosen := letters_stated - ruled_out:
            letter = chosen.pop()
            return letters.index(letter) if not chosen and letter in letters else None
        if letters_stated:
            return None
    plain = _spaced_words(visible)
    matching = [index for index, option in enumerate(options) if (words := _spaced_words(option)) and words in plain]
    return matching[0] if len(matching) == 1 else None


def _spaced_words(text: str) -> str:
    words = re.findall(r"\w+", text.casefold())
    return f" {' '.join(words)} " if words else ""


def letter_weights(top: Iterable[tuple[str, float]], letters: Sequence[str]) -> list[float]:
    """Return a log-probability for each letter from the reported tokens, which are distinct.

    A letter that was not reported gets an upper bound: the lowest reported probability, or its share of the remaining
    probability if that is less. So an answer is never more confident than the report allows.
    """
    # A probability of one may be rounded up slightly.
    weights = {token: math.exp(min(logprob, 0.0)) for token, logprob in top if math.isfinite(logprob)}
    shares = dict.fromkeys((letter for letter in letters if any(_letter(token) == letter for token in weights)), 0.0)
    for token, probability in weights.items():
        if _letter(token) in shares:
            shares[_letter(token)] += probability
    if not any(shares.values()):
        likeliest = sorted(weights, key=lambda token: -weights[token])[:5]
        raise UnparsedError(f"no option's letter is among the likeliest tokens, which are {likeliest}")
    missing = len(letters) - len(shares)
    upper_bound = min(*weights.values(), max(1.0 - sum(weights.values()), 0.0) / max(missing, 1))
    return [math.log(share) if (share := shares.get(letter, upper_bound)) > 0 else -math.inf for letter in letters]


def _letter(token: str) -> str:
    return token.strip(_SPACES)
