"""The key of a server, which no text from that server may show."""

import os
import re

_REDACTED = "(the key)"
# A shorter one, such as EMPTY, guards nothing, and may be a word of an answer.
_MIN_LENGTH = 6


class ApiKey:
    """The key in an environment variable; empty where none is named or set."""

    def __init__(self, variable: str) -> None:
        self._key = os.environ.get(variable, "") if variable else ""
        self._pattern = re.compile("".join(map(_any_spelling, self._key)), re.ASCII)

    def __bool__(self) -> bool:
        """Whether there is a key."""
        return bool(self._key)

    @property
    def headers(self) -> dict[str, str]:
        """The headers that carry the key."""
        return {"Authorization": f"Bearer {self._key}"} if self._key else {}

    def redact(self, text: str) -> str:
        """Return a server's text without the key, be it plain or escaped as in JSON or an address."""
        return self._pattern.sub(_REDACTED, text) if len(self._key) >= _MIN_LENGTH else text

    def redact_bytes(self, content: bytes) -> bytes:
        """Return a server's answer without the key."""
        return self.redact(content.decode(errors="surrogateescape")).encode(errors="surrogateescape")


def _any_spelling(character: str) -> str:
    """Return a pattern of a character as it is, percent-encoded or escaped; an answer may be quoted in another."""
    code = f"(?i:{ord(character):02x})"
    return rf"(?:\\{{0,4}}{re.escape(character)}|%(?:25)?{code}|\\{{1,4}}(?:u00|x){code})"
