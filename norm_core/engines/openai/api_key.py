"""The key of a server, which is removed from all texts of that server."""

import os
import re

_REDACTED = "(the key)"
# A shorter key, such as EMPTY, protects nothing, and may be a word of an answer.
_MIN_LENGTH = 6


class ApiKey:
    """The key in an environment variable; empty if none is named or set."""

    def __init__(self, variable: str) -> None:
        self._key = os.environ.get(variable, "") if variable else ""
        self._pattern = re.compile("".join(map(_match_any_spelling, self._key)), re.ASCII)

    def __bool__(self) -> bool:
        """Whether there is a key."""
        return bool(self._key)

    @property
    def headers(self) -> dict[str, str]:
        """The headers that carry the key."""
        return {"Authorization": f"Bearer {self._key}"} if self._key else {}

    def redact(self, text: str) -> str:
        """Return a text of the server without the key, whether plain, escaped as in JSON or percent-encoded."""
        return self._pattern.sub(_REDACTED, text) if len(self._key) >= _MIN_LENGTH else text

    def redact_bytes(self, content: bytes) -> bytes:
        """Return an answer of the server without the key."""
        return self.redact(content.decode(errors="surrogateescape")).encode(errors="surrogateescape")


def _match_any_spelling(character: str) -> str:
    """Return a pattern for a character that is plain, percent-encoded or escaped, once or twice."""
    code = f"(?i:{ord(character):02x})"
    return rf"(?:\\{{0,4}}{re.escape(character)}|%(?:25)?{code}|\\{{1,4}}(?:u00|x){code})"
