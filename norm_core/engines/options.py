"""A question's options: lettered for a prompt, read from a reply's words, or weighed by the letters' tokens."""

import math
import re
from collections.abc import Iterable, Sequence
from string import ascii_lowercase, ascii_uppercase

from norm_core.engines.errors import UnparsedError
from norm_core.engines.prompt import neutralize_markup

OPTION_LETTERS = ascii_uppercase + ascii_lowercase
_LETTER_ALONE = "Answer with the letter of one option and nothing else."
_REASONS_FIRST = "Reason step by step first. Then end with one line: Answer: and the letter of one option."


def letter_options(options: tuple[str, ...], *, reasons_first: bool = False) -> str:
    """Return the options as lines and the request for one letter; at most len(LETTERS) options."""
    texts = (" ".join(neutralize_markup(option).split()) for option in options)  # no option can look like two
    lines = [f"{letter}. {text}" for letter, text in zip(OPTION_LETTERS, texts, strict=False)]
    return "\n".join([*lines, _REASONS_FIRST if reasons_first else _LETTER_ALONE])


# A capital that stands for an option and begins no sentence, such as "A robot" or "I think".
_LETTER = r"(?:[B-HJ-Z]|[AI](?!['’]|\s+[a-z]))(?![\w'’])"
_LENIENT = [
    re.compile(pattern)
    for pattern in (
        rf"\\boxed\{{\W*({_LETTER})\W*\}}",
        rf'"(?i:answer|choice|option|letter)"\s*:\s*"?\(?({_LETTER})',
        rf"(?i:answer|choose|chosen|select|答案|选择)\W{{0,8}}(?i:is|to be|是|为)?\W{{0,8}}({_LETTER})",
        rf"(?i:choice|option|letter|选项)\W{{0,8}}(?i:is|to be|是|为)?\W{{0,8}}({_LETTER})",
    )
]
_FIRST = re.compile(rf"^\W*({_LETTER})(?:\s*[).:,\n]|\s+[-–—]|\s*$)")
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


def is_refusal(text: str) -> bool:
    """Whether a free text begins by declining, as "I'm sorry, but I can't help with that" does."""
    return _DECLINED.match(without_thought(text)) is not None


def without_thought(text: str) -> str:
    """Remove the reasoning that a model writes before its answer, up to its closing tag."""
    return _THOUGHT.sub("", text).strip()


def read_option(text: str, options: Sequence[str]) -> int | None:
    """Return the option that a text chooses, or None: its letter alone; otherwise as models often state it.

    Lenient forms, in this order: the last "answer: X", a letter at the beginning or on the last line, the only one in
    parentheses, the words of one option alone.
    """
    letters = OPTION_LETTERS[: len(options)]
    reply = without_thought(text)
    strict = reply.strip(" \t\n.()[]*_`\"':")
    if len(strict) == 1 and strict in letters:
        return letters.index(strict)
    last = reply.splitlines()[-1].strip(" .()[]*_`\"':") if reply else ""
    stated = [match for form in _LENIENT for match in list(form.finditer(reply))[-1:]] or list(_FIRST.finditer(reply))
    bracketed = set(re.findall(rf"\(([{letters}])\)", reply))
    letter = stated[0][1] if stated else last if len(last) == 1 else ""
    letter = letter or (bracketed.pop() if len(bracketed) == 1 else "")
    if letter:
        return letters.index(letter) if letter in letters else None
    plain = _words(reply)
    named = [place for place, option in enumerate(options) if (words := _words(option)) and words in plain]
    return named[0] if len(named) == 1 else None


def _words(text: str) -> str:
    words = re.findall(r"\w+", text.casefold())
    return f" {' '.join(words)} " if words else ""


# Stands for a leading space in a server's raw tokens.
_SPACES = " \t\n▁Ġ"


def letter_weights(top: Iterable[tuple[str, float]], letters: Sequence[str]) -> list[float]:
    """Return a log-probability for each letter from the reported tokens, each of which appears once.

    A letter that was not reported gets its upper bound: the least of the reported probabilities, or its share of the
    remaining probability, whichever is less. So an answer is never more confident than the report allows.
    """
    # A probability of one may be rounded up slightly.
    weights = {token: math.exp(min(logprob, 0.0)) for token, logprob in top if math.isfinite(logprob)}
    seen = dict.fromkeys((letter for letter in letters if any(_letter(token) == letter for token in weights)), 0.0)
    for token, probability in weights.items():
        if _letter(token) in seen:
            seen[_letter(token)] += probability
    if not any(seen.values()):
        likeliest = sorted(weights, key=lambda token: -weights[token])[:5]
        raise UnparsedError(f"no option's letter is among the likeliest tokens, which are {likeliest}")
    missing = len(letters) - len(seen)
    most = min(*weights.values(), max(1.0 - sum(weights.values()), 0.0) / max(missing, 1))
    return [math.log(share) if (share := seen.get(letter, most)) > 0 else -math.inf for letter in letters]


def _letter(token: str) -> str:
    return token.strip(_SPACES)
