"""The key file of a study: pseudonyms and real names, which must stay apart from the logs."""

import secrets
from collections.abc import Iterable
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from norm_core.files.atomic_file import write_atomic
from norm_core.files.plain_file import read_plain_file
from norm_core.runtime.errors import TactfulError
from norm_monitor.session_log.reader import LOG_FILE
from norm_monitor.session_log.redact import NamesToRemove

_MAX_FILE_BYTES = 16 << 20
# The characters of drawn pseudonyms, without those that are easily confused.
ALPHABET = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"


class KeyFileError(TactfulError, ValueError):
    """A key file cannot be used."""


class KeyFilePerson(BaseModel):
    """The real names behind a pseudonym."""

    model_config = ConfigDict(extra="forbid")
    names: tuple[str, ...] = ()


class _KeyFileContent(BaseModel):
    """What a key file holds: people by pseudonym."""

    model_config = ConfigDict(extra="forbid")
    version: int = 1
    participants: dict[str, KeyFilePerson] = {}


class KeyFile:
    """Pseudonyms and names in a file, which must not lie inside a log."""

    def __init__(self, path: Path) -> None:
        if path.resolve().with_name(LOG_FILE).exists():
            raise KeyFileError(f"{path}: lies in the folder of a log; name a file outside it")
        self._path = path
        try:
            self._content = (
                _KeyFileContent.model_validate_json(read_plain_file(path, _MAX_FILE_BYTES))
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
        return tuple(sorted(self._content.participants))

    def names_of(self, pseudonym: str) -> tuple[str, ...]:
        """Return a participant's real names, if the file has them. Raises KeyFileError if it is missing."""
        self.names()
        return self._content.participants.get(pseudonym, KeyFilePerson()).names

    def add(self, names: tuple[str, ...], pseudonym: str = "") -> str:
        """Add a participant, and return the pseudonym; without one, a random one is drawn."""
        if not names or not all(map(_has_letter, names)):
            raise KeyFileError(f"{self._path}: a name needs at least one letter; give the name that people say")
        people = self._content.participants
        self._check_pseudonym(pseudonym, names)
        if pseudonym in people:
            raise KeyFileError(f"{self._path}: {pseudonym} stands for someone already; give another pseudonym")
        while not pseudonym or pseudonym in people:
            pseudonym = "P-" + "".join(secrets.choice(ALPHABET) for _ in range(5))
        people[pseudonym] = KeyFilePerson(names=names)
        self._save()
        return pseudonym

    def forget(self, pseudonym: str) -> bool:
        """Remove a participant. Return whether the file had them."""
        is_removed = self._content.participants.pop(pseudonym, None) is not None
        if is_removed:
            self._save()
        return is_removed

    def names(self) -> NamesToRemove:
        """Return all names with their pseudonyms. Raises KeyFileError if the file is missing."""
        if not self._path.exists():  # otherwise a mistyped path would keep every name
            raise KeyFileError(f"{self._path}: there is no such key file; study participant makes one")
        pairs = [(name, pseudonym) for pseudonym, person in self._content.participants.items() for name in person.names]
        for name, pseudonym in pairs:
            if not _has_letter(name):
                raise KeyFileError(
                    f"{self._path}: {pseudonym} has the name {name!r}, without a letter: take it out of the file"
                )
        return NamesToRemove(by_name=tuple(sorted(pairs)))

    def check_pseudonyms(self, pseudonyms: Iterable[str]) -> None:
        """Raise KeyFileError if a pseudonym is a real name of the file."""
        for pseudonym in pseudonyms:
            self._check_pseudonym(pseudonym)

    def _check_pseudonym(self, pseudonym: str, more_names: Iterable[str] = ()) -> None:
        """Raise KeyFileError if a pseudonym is a real name of the file, or one of these."""
        names = [*more_names, *(name for person in self._content.participants.values() for name in person.names)]
        if pseudonym.strip().casefold() in {name.strip().casefold() for name in names}:
            raise KeyFileError(f"{self._path}: {pseudonym} is a real name there; give a pseudonym, such as P-7K3MX")

    def _save(self) -> None:
        write_atomic(self._path, self._content.model_dump_json(indent=2), mode=0o600, fsync=True)


def _has_letter(name: str) -> bool:
    return any(map(str.isalpha, name))
