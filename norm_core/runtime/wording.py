"""Write counts, identifiers and addresses for people."""

import re


def count_of(number: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun, as "1 message" or "2 messages"; name a plural that does not only add an s."""
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"


def to_words(identifier: str) -> str:
    """Return an identifier without underscores, as "timed out"."""
    return identifier.replace("_", " ")


def hide_password(text: str) -> str:
    """Return a text without user names and passwords in its addresses, for logs and statuses."""
    return re.sub(r"(?s)(:/*|//).*@", r"\1(password)@", text)
