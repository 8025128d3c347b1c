"""The replies of models across runs, so that nothing is asked twice."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

from norm_core.engines.reply import Generation, Scores
from norm_core.records.json_codec import from_json, to_json
from norm_core.records.outcome import Outcome
from norm_core.records.record import record
from norm_core.runtime.cache_dir import make_cache_folder
from sim_replays.suites.target import SuiteError

# Of about 400 bytes each.
_MAX_REPLIES = 1_000_000
_CACHED = {Outcome.ANSWERED, Outcome.UNPARSED}


@record
class CachedReply:
    """What a model said to one request."""

    outcome: Outcome
    probabilities: tuple[float, ...] = ()
    text: str = ""
    reason: str = ""


class AnswerCache:
    """Replies by the digest of model and request, in a file that processes share; any thread may ask."""

    def __init__(self, path: Path | None = None) -> None:
        """Open the file; without one, the replies last as long as this object. Raises SuiteError if it is unusable."""
        self._name, self._lock = path or "memory", Lock()
        with self._usable():
            if path:
                path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                path.touch(mode=0o600)
            self._file = sqlite3.connect(path or "", timeout=60.0, check_same_thread=False, isolation_level=None)
            self._file.execute("PRAGMA journal_mode=WAL")
            self._file.execute("PRAGMA synchronous=NORMAL")
            self._file.execute("CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, reply TEXT)")
            oldest = "SELECT max(rowid) FROM replies"
            self._file.execute(f"DELETE FROM replies WHERE rowid <= ({oldest}) - ?", (_MAX_REPLIES,))

    @classmethod
    def of_user(cls) -> "AnswerCache":
        """Open the cache that all runs of this user share."""
        return cls(make_cache_folder("answers") / "replies-1.sqlite")

    def get(self, key: str) -> CachedReply | None:
        """Return a reply, or None."""
        with self._usable():
            row = self._file.execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
        return from_json(CachedReply, row[0]) if row else None

    def put(self, key: str, said: Scores | Generation[Any]) -> None:
        """Keep what a model said, unless it gave no reply."""
        if said.outcome in _CACHED:
            probabilities = said.probabilities if isinstance(said, Scores) else ()
            reply = CachedReply(outcome=said.outcome, probabilities=probabilities, text=said.text, reason=said.reason)
            with self._usable():
                self._file.execute("INSERT OR REPLACE INTO replies VALUES (?, ?)", (key, to_json(reply)))

    @contextmanager
    def _usable(self) -> Iterator[None]:
        try:
            with self._lock:
                yield
        except (OSError, sqlite3.Error) as error:
            raise SuiteError(f"{self._name}: the cache of answers is unusable: {error}; add --no-cache") from error
