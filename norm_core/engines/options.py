"""The options of a question: lettered for a prompt, then read from a reply or weighed by the tokens of letters."""

import math
import re
from collections.abc import Iterable, Sequence
from string import ascii_lowercase, ascii_uppercase

from norm_core.engines.errors import UnparsedError
from norm_core.engines.prompt import neutralize_markup

OPTION_LETTERS = ascii_uppercase + ascii_lowercase
_LETTER_REQUEST = "Answer with the letter of one option and nothing else."
_REASONING_REQUEST = "Reason step by step first. Then end with one line: Answer: and the letter of one option."
# A capital that stands for an option. It does not begin a sentence, such as "A robot" or "I think".
_LETTER = r"(?:[B-HJ-Z]|[AI](?!['’]|\s+[a-z]))(?![\w'’])"
# The forms that state an option, the most explicit first.
_STATED = [
    re.compile(rf"\\boxed\{{\W*({_LETTER})\W*\}}"),
    re.compile(
        r"(?:(?i:answer|choose|chosen|select|pick|opt for|go(?:ing)? with|答案|选择)"
        r"(?:\W{0,8}(?i:is|to be|是|为))?\W{0,8}"
        rf'|"(?i:choice|option|letter)"\s*:\s*"?\(?)({_LETTER})'
    ),
    re.compile(rf"(?i:choice|option|letter|选项)\W{{0,8}}(?i:is|to be|是|为)?\W{{0,8}}({_LETTER})"),
]
# The forms that rule an option out.
_RULED_OUT = [
    re.compile(
        r"(?i:\b(?:not|nor|neither|never|except|exclud(?:e|ing)|eliminat(?:e|ing)|reject(?:ing)?|rul(?:e|ed|ing) out"
        r"|instead of|rather than|over)|n['’]t)\W{0,4}"
        rf"(?:(?i:choose|pick|select|option|answer|choice|letter)\W{{0,4}})?({_LETTER})"
    ),
    re.compile(
        rf"(?<!\w)({_LETTER})\)?[,.:]? (?i:(?:is|was|can be|seems|looks) (?:not|wrong|incorrect|out|ruled|excluded)"
        r"|(?:no|wrong|incorrect)\b)"
    ),
]
_AT_START = re.compile(rf"^\W*({_LETTER})(?:\s*[).:,\n]|\s+[-–—]|\s*$)", re.MULTILINE)
# What makes of a stated letter one of several, as in "answer: B or C".
_AND_ANOTHER = re.compile(rf"\W?\s*(?:,|/|&|\bor\b|\band\b)\s*\(?{_LETTER}")
_DENIES_WORDS = r"\b(?:not|never|t|avoid|except|but|over|rather than|instead of)(?: \w+){0,2}"
_REASONING = re.compile(r"^.*</think(?:ing)?>", re.DOTALL)
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
# The characters by which raw tokens of a server mark a space.
_SPACES = " \t\n▁Ġ"


def format_options(options: tuple[str, ...], *, reasons_first: bool = False) -> str:
    """Return at most len(OPTION_LETTERS) options as lettered lines, and the request for one letter."""
    # On one line without markup, no option can look like two.
    texts = (" ".join(neutralize_markup(option).split()) for option in options)
    lines = [f"{letter}. {text}" for letter, text in zip(OPTION_LETTERS, texts, strict=False)]
    return "\n".join([*lines, _REASONING_REQUEST if reasons_first else _LETTER_REQUEST])


def is_refusal(text: str) -> bool:
    """Whether a text begins by declining, as "I'm sorry, but I can't help with that" does."""
    return _DECLINED.match(strip_reasoning(text)) is not None


def strip_reasoning(text: str) -> str:
    """Remove the reasoning that a model writes before its answer, up to its closing tag."""
    return _REASONING.sub("", text).strip()


def read_option(text: str, options: Sequence[str]) -> int | None:
    """Return the index of the option that a text chooses; None if there is none, or more than one.

    A letter alone chooses its option. Otherwise these forms are tried in order: "answer: X", "option X", a letter at
    the beginning of a line, the only letter in parentheses, the words of one option. An option that the text rules out,
    or states as one of several, does not count.
    """
    letters = OPTION_LETTERS[: len(options)]
    visible = strip_reasoning(text)
    stripped = visible.strip(" \t\n.()[]*_`\"':")
    if len(stripped) == 1 and stripped in letters:
        return letters.index(stripped)
    ruled_out = {match[1] for form in _RULED_OUT for match in form.finditer(visible)}
    in_parentheses = re.compile(rf"\(([{letters}])\)")
    for form in (*_STATED, _AT_START, in_parentheses):
        matches = list(form.finditer(visible))
        stated_letters = {match[1] for match in matches}
        if any(_AND_ANOTHER.match(visible, match.end(1)) for match in matches):
            return None
        if matches and form is _AT_START:
            stated_letters |= set(in_parentheses.findall(visible))
        if chosen := stated_letters - ruled_out:
            letter = chosen.pop()
            return letters.index(letter) if not chosen and letter in letters else None
        if stated_letters:
            return None
    text_words = _join_words(visible)
    option_words = [_join_words(option) for option in options]
    indices = [index for index, words in enumerate(option_words) if words and words in text_words]
    if len(indices) != 1 or re.search(_DENIES_WORDS + re.escape(option_words[indices[0]]), text_words):
        return None
    return indices[0]


def _join_words(text: str) -> str:
    """Return the words of a text in lower case between spaces, so that a search finds whole words."""
    words = re.findall(r"\w+", text.casefold())
    return f" {' '.join(words)} " if words else ""


def weigh_letters(top_tokens: Iterable[tuple[str, float]], letters: Sequence[str]) -> list[float]:
    """Return a log-probability for each letter from the reported tokens, which are distinct.

    A letter that was not reported gets an upper bound: the lowest reported probability, or its share of the remaining
    probability if that is less. So an answer is never more confident than the report allows.

    Raises UnparsedError if no letter was reported.
    """
    # A probability of one may be rounded up slightly.
    weights = {token: math.exp(min(logprob, 0.0)) for token, logprob in top_tokens if math.isfinite(logprob)}
    known_letters = set(letters)
    shares: dict[str, float] = {}
    for token, probability in weights.items():
        if (letter := token.strip(_SPACES)) in known_letters:
            shares[letter] = shares.get(letter, 0.0) + probability
    if not any(shares.values()):
        likeliest = sorted(weights, key=lambda token: -weights[token])[:5]
        raise UnparsedError(f"no option's letter is among the likeliest tokens, which are {likeliest}")
    missing_count = len(letters) - len(shares)
    upper_bound = min(*weights.values(), max(1.0 - sum(weights.values()), 0.0) / max(missing_count, 1))
    return [math.log(share) if (share := shares.get(letter, upper_bound)) > 0 else -math.inf for letter in letters]
