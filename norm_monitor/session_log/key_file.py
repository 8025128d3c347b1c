"""The key file of a study: pseudonyms and real names, which must stay apart from the logs."""

import secrets
from collections.abc import Iterable
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from norm_core.files.atomic_file import write_atomic
from norm_core.files.plain_file import read_plain_file
from norm_core.runtime.errors import TactfulError
from norm_monitor.session_log.reader import SEGMENTS
from norm_monitor.session_log.redact import NamesToRemove

MAX_KEY_BYTES = 16 << 20
# Without characters that are easily confused.
ALPHABET = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"


class KeyFileError(TactfulError, ValueError):
    """A key file cannot be used."""


class KeyFilePerson(BaseModel):
    """The real names behind a pseudonym."""

    model_config = ConfigDict(extra="forbid")
    names: tuple[str, ...] = ()


class _KeyFileContent(BaseModel):
    model_config = ConfigDict(extra="forbid")
    version: int = 1
    participants: dict[str, KeyFilePerson] = {}


class KeyFile:
    """Pseudonyms and names in a file, which must not lie inside a log."""

    def __init__(self, path: Path) -> None:
        if any(path.resolve().parent.glob(SEGMENTS)):
            raise KeyFileError(f"{path}: lies in the folder of a log; name a file outside it")
        self._path = path
        try:
            self._file = (
                _KeyFileContent.model_validate_json(read_plain_file(path, MAX_KEY_BYTES))
                if path.exists()
                else _KeyFileContent()
            )
        except (OSError, ValidationError) as error:
            raise KeyFileError(
                f"{path}: is not a key file: {str(error).splitlines()[0]}; name one that study participant made"
            ) from error

    @property
    def pseudonyms(self) -> tuple[str, ...]:
        """All pseudonyms in the file, sorted."""
        return tuple(sorted(self._file.participants))

    def names_of(self, pseudonym: str) -> tuple[str, ...]:
        """Return a participant's real names; none if the file lacks them. Raises KeyFileError if it is missing."""
        self.names()
        return self._file.participants.get(pseudonym, KeyFilePerson()).names

    def add(self, names: tuple[str, ...], pseudonym: str = "") -> str:
        """Add a participant, and return the pseudonym; random if none is given."""
        if not names or not all(map(_is_name, names)):
            raise KeyFileError(f"{self._path}: a name needs at least one letter; give one by which they may be called")
        taken = self._file.participants
        self._refuse_real_name(pseudonym, names)
        while not pseudonym or pseudonym in taken:
            if pseudonym:
                raise KeyFileError(f"{self._path}: {pseudonym} stands for someone already; give another pseudonym")
            pseudonym = "P-" + "".join(secrets.choice(ALPHABET) for _ in range(5))
        taken[pseudonym] = KeyFilePerson(names=names)
        self._save()
        return pseudonym

    def forget(self, pseudonym: str) -> bool:
        """Remove a participant. Returns whether they existed."""
        there = self._file.participants.pop(pseudonym, None) is not None
        if there:
            self._save()
        return there

    def names(self) -> NamesToRemove:
        """Return all names with their pseudonyms. Raises KeyFileError if the file is missing."""
        if not self._path.exists():  # otherwise a mistyped path would keep every name
            raise KeyFileError(f"{self._path}: there is no such key file; study participant makes one")
        pairs = [(name, key) for key, person in self._file.participants.items() for name in person.names]
        for name, key in pairs:
            if not _is_name(name):
                raise KeyFileError(
                    f"{self._path}: {key} has the name {name!r}, without a letter: take it out of the file"
                )
        return NamesToRemove(by_name=tuple(sorted(pairs)))

    def check_pseudonyms(self, pseudonyms: Iterable[str]) -> None:
        """Raise KeyFileError if a pseudonym is a real name of the file."""
        for pseudonym in pseudonyms:
            self._refuse_real_name(pseudonym)

    def _refuse_real_name(self, pseudonym: str, names: Iterable[str] = ()) -> None:
        real_names = {name.strip().casefold() for person in self._file.participants.values() for name in person.names}
        if pseudonym.strip().casefold() in real_names | {name.strip().casefold() for name in names}:
            raise KeyFileError(f"{self._path}: {pseudonym} is a real name there; give a pseudonym, such as P-7K3MX")

    def _save(self) -> None:
        write_atomic(self._path, self._file.model_dump_json(indent=2), mode=0o600, fsync=True)


def _is_name(name: str) -> bool:
    return any(map(str.isalpha, name))
