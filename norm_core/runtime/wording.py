"""Numbers and identifiers in sentences for a person."""

import re


def count_of(number: int, noun: str, plural: str = "") -> str:
    """Give a count with its noun, as "1 message" or "2 messages"; plural where it is not the noun with an s."""
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"


def in_words(identifier: str) -> str:
    """Give an identifier without underscores, as "timed out"."""
    return identifier.replace("_", " ")


def without_password(text: str) -> str:
    """Return a text with what stands before the host of an address left out, as logs and statuses show it."""
    return re.sub(r"(?s)(:/*|//).*@", r"\1(password)@", text)
