"""The key of a published dataset: which label stands for whom. It stays with the study and is never published."""

import secrets
from collections.abc import Container
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from norm_core.runtime.atomic_file import write_atomic
from norm_core.runtime.errors import TactfulError
from study_desk.log.schema import CONSENSUS, MONITOR
from study_desk.study.study_folder import writing

KEY_FILE = "publication_key.json"
# Without characters that are easily confused. BIDS allows letters and digits alone in a label.
_ALPHABET = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"


class PublishError(TactfulError, ValueError):
    """A study cannot be published as it is; the message gives the remedy."""


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")
    version: int = 1
    participants: dict[str, str] = {}
    coders: dict[str, str] = {}
    sessions: dict[str, str] = {}


class PublicationKey:
    """Random labels for participants and coders, and numbers for sessions, the same at each publication."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = _File.model_validate_json(path.read_bytes()) if path.exists() else _File()
        except (OSError, ValidationError) as error:
            raise PublishError(
                f"{path}: is no key of a publication: {str(error).splitlines()[0]}; name one that study publish made"
            ) from error

    def participant(self, pseudonym: str) -> str:
        """Return a participant's label, such as sub-7K3M."""
        return f"sub-{_drawn(self._file.participants, pseudonym)}"

    def coder(self, pseudonym: str) -> str:
        """Return a coder's label, such as coder-9XQ2. The monitor and the consensus keep their names."""
        if pseudonym in (MONITOR, CONSENSUS):
            return pseudonym
        return f"coder-{_drawn(self._file.coders, pseudonym)}"

    def session(self, name: str, subject: str) -> str:
        """Return a session's label, such as ses-01: the next free number of its subject."""
        sessions = self._file.sessions
        if not sessions.get(name, "").startswith(f"{subject}/"):
            taken = [int(label.rpartition("-")[2]) for label in sessions.values() if label.startswith(f"{subject}/")]
            sessions[name] = f"{subject}/ses-{max(taken, default=0) + 1:02}"
        return sessions[name].rpartition("/")[2]

    def session_in(self, path: str) -> str:
        """Return the name of the session in a folder of the dataset, such as sub-7K3M/ses-01; empty if none is."""
        return next((name for name, label in self._file.sessions.items() if label == path), "")

    def forget_except(self, participants: Container[str], sessions: Container[str]) -> None:
        """Forget the labels of everybody and every session that is not to be published again."""
        for table, known in ((self._file.participants, participants), (self._file.sessions, sessions)):
            for name in [name for name in table if name not in known]:
                del table[name]

    def save(self) -> None:
        """Write the key, readable by its owner alone."""
        with writing(self.path):
            write_atomic(self.path, self._file.model_dump_json(indent=2), mode=0o600, fsync=True)


def _drawn(table: dict[str, str], name: str) -> str:
    while name not in table:
        label = "".join(secrets.choice(_ALPHABET) for _ in range(4))
        if label not in table.values():
            table[name] = label
    return table[name]
