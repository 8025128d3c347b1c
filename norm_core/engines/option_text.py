"""Read the chosen option from a model's text: strictly, then leniently, otherwise not at all."""

import re
from collections.abc import Sequence

from norm_core.engines.option_letters import OPTION_LETTERS

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
    said = without_thought(text)
    strict = said.strip(" \t\n.()[]*_`\"':")
    if len(strict) == 1 and strict in letters:
        return letters.index(strict)
    last = said.splitlines()[-1].strip(" .()[]*_`\"':") if said else ""
    stated = [match for form in _LENIENT for match in list(form.finditer(said))[-1:]] or list(_FIRST.finditer(said))
    bracketed = set(re.findall(rf"\(([{letters}])\)", said))
    letter = stated[0][1] if stated else last if len(last) == 1 else ""
    letter = letter or (bracketed.pop() if len(bracketed) == 1 else "")
    if letter:
        return letters.index(letter) if letter in letters else None
    plain = _words(said)
    named = [place for place, option in enumerate(options) if (words := _words(option)) and words in plain]
    return named[0] if len(named) == 1 else None


def _words(text: str) -> str:
    words = re.findall(r"\w+", text.casefold())
    return f" {' '.join(words)} " if words else ""
