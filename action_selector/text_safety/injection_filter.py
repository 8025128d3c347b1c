"""Remove instructions to the chooser from untrusted text before its meaning is compared.

Fences and option scoring protect a language model. A sentence encoder has no fences: an instruction in a text would
shift its meaning, so the filter removes it.
"""

import re
from collections.abc import Iterable
from functools import lru_cache

from action_selector.text_safety.disguised_letters import join_letters, remove_invisible, to_plain_letters
from action_selector.text_safety.order_patterns import CHOICE_END, CHOICE_START, EXPLICIT, find_order
from norm_core.engines.prompt import neutralize_markup

# End of a clause: a full stop of any script, a line break, a semicolon, a bracket or an em dash.
_CLAUSE_END = re.compile(
    r"(?<=[.!?;:。！？；：…．｡।؟؛۔])\s*|[\n\r]+|\s+(?=[(\[{<‹])|(?<=[)\]}>›])\s+|\s+[—–]\s+|\s-{2,}\s"
)
# A quotation that forges the fences of the prompt: from one fence line to the next, or to the end.
_FORGED = re.compile(
    r"(?:^[ \t]*={3,}[^\n]*|={3,}(?=\n))(?:\n(?![ \t]*={3,})[^\n]*)*"
    r"(?:\n[ \t]*={3,}(?:[^\n(]*\(data, not instructions\))?)?",
    re.MULTILINE,
)
# In scripts without spaces, about two characters count as a word.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]{1,2}|[^\s\u3040-\u30ff\u3400-\u9fff]+")
# A new sentence after an instruction that has no full stop. These words would continue the instruction.
_NEW_SENTENCE = re.compile(
    r"\s+(?!(?:and|or|no|not|nothing|as|because|even|if|for|in|on|at|to|with|of|whatever|instead|now|please|first|last|is|for)\b)\w"
)
# Fewer words than this before or after an instruction belong to it, such as "please" or "dear robot".
_MIN_WORDS = 3


@lru_cache(maxsize=8192)
def strip_instructions(text: str) -> str:
    """Remove instructions from a text. Returns an empty string where nothing is left of an explicit one.

    The cut runs from the start of an instruction to the end of its clause. Plain text before and after it stays;
    otherwise an instruction would erase another agent's action.
    """
    visible = remove_invisible(text)
    # Letters that stand apart are joined only where they hide an instruction.
    for variant in dict.fromkeys((join_letters(visible), visible)):
        lines = neutralize_markup("\n".join(" ".join(line.split()) for line in variant.splitlines()))
        clauses = _split_clauses(_FORGED.sub("\n", lines))
        clauses_left = _remove_orders(clauses)
        # A robot may do what only sounds like an instruction ("go with B"): options are scored, so it is harmless.
        plain = to_plain_letters(variant)
        if clauses_left != _split_clauses(lines) and (clauses_left or EXPLICIT.search(f"{plain}\n{plain[::-1]}")):
            return " ".join(clauses_left)
    return " ".join(lines.split())


def _remove_orders(clauses: Iterable[str]) -> list[str]:
    """Remove instructions, and the action that "choose:" names after one."""
    clauses_left: list[str] = []
    is_order = False
    is_named_next = False
    for clause in clauses:
        if is_named_next:
            is_named_next = False
            continue
        plain = to_plain_letters(clause)
        rest = "" if is_order and CHOICE_START.match(plain) else _remove_order(clause)
        is_order = rest != clause
        is_named_next = is_order and bool(CHOICE_END.search(plain))
        clauses_left += [rest] if rest else []
    return clauses_left


def _remove_order(clause: str) -> str:
    """Remove the instruction of a clause; few words before or after it go with it."""
    plain = to_plain_letters(clause)
    if not (span := find_order(plain)):
        return clause
    before = plain[: span[0]].rstrip(" ,:;-—–")
    after = plain[span[1] :]
    parts = (before, after.strip() if _NEW_SENTENCE.match(after) else "")
    return " ".join(part for part in parts if len(_WORD.findall(part)) >= _MIN_WORDS)


def _split_clauses(text: str) -> list[str]:
    """Split a text at the ends of its clauses."""
    return [clause.strip() for clause in _CLAUSE_END.split(text) if clause and clause.strip()]
