"""The study settings of a running node, and whose words may be passed on."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

from pydantic import Field, model_validator

from norm_core.records.record import record
from norm_core.runtime.config import NAMES_FILE, Config, load_private_config
from norm_monitor.session_log.key_file import KeyFile
from norm_monitor.session_log.reader import LogError
from norm_monitor.session_log.redact import RedactionPolicy, Redactor
from norm_monitor.session_log.schema import Participant

WITHHELD = "(not told: somebody in this session keeps their words private)"
UNKNOWN_CONSENT = "(not told: whether people here let their words be told is not known yet)"


class StudyConfig(Config):
    """The study session that a running monitor logs."""

    log: str = Field(
        default="",
        description="folder of the session's study log, a new one or the one to go on with; empty for none",
        json_schema_extra=NAMES_FILE,
    )
    name: str = Field(default="", description="name of the study")
    session: str = Field(default="", description="name of the session; each once in a study")
    condition: str = Field(default="", description="condition of the session")
    participants: tuple[str, ...] = Field(
        default=(), description="pseudonyms, each with = the person ids of this session: P-7K3MX=person_1,voice_2"
    )
    clips: tuple[str, ...] = Field(default=(), description="pseudonyms of who consented to clips")
    no_words: tuple[str, ...] = Field(
        default=(), description="pseudonyms of who did not consent to a transcript: their words stay out"
    )
    key_file: str = Field(
        default="", description="key file with the names to take out; it stays apart", json_schema_extra=NAMES_FILE
    )
    policy: str = Field(
        default="", description="YAML of what may be kept of words; names go by default", json_schema_extra=NAMES_FILE
    )
    retention_days: int = Field(default=0, ge=0, description="days after which withdraw --expired empties it; 0: none")

    @model_validator(mode="after")
    def _named(self) -> Self:
        if self.log and not (self.name and self.session.strip()):
            raise ValueError("log needs name and session: a log says whose session it is")
        return self


def participants_of(
    texts: Iterable[str], clips: Iterable[str] = (), no_words: Iterable[str] = ()
) -> tuple[Participant, ...]:
    """Parse participants such as P-7K3MX=person_1,voice_2, with their consents."""
    clips, no_words = set(clips), set(no_words)
    split = [text.partition("=") for text in texts]
    if unknown := (clips | no_words) - {pseudonym for pseudonym, _, _ in split}:
        raise LogError(f"{', '.join(sorted(unknown))}: no participant of this session; name them as participants too")
    return tuple(
        Participant(
            pseudonym=pseudonym,
            person_ids=tuple(filter(None, ids.split(","))),
            clips=pseudonym in clips,
            transcript=pseudonym not in no_words,
        )
        for pseudonym, _, ids in split
    )


def redactor_of(keys: Path | None, participants: Iterable[Participant] = (), policy: Path | None = None) -> Redactor:
    """Build the redactor from the key file and the policy."""
    participants, names = tuple(participants), None
    if keys:
        file = KeyFile(keys)
        names = file.names()
        file.check_pseudonyms(participant.pseudonym for participant in participants)
    return Redactor(load_private_config(RedactionPolicy, policy) if policy else None, names, participants)


@record
class WordsPolicy:
    """Whose words may be passed on. If one person keeps theirs private, an unknown voice counts as that person."""

    is_known: bool = True
    private: frozenset[str] | None = None  # person ids; None where nobody keeps their words private
    is_anybody_private: bool = False  # whose voice is not known

    @classmethod
    def of_participants(cls, participants: Iterable[Participant]) -> Self:
        """Read the consents to a transcript."""
        private = [participant for participant in participants if not participant.transcript]
        ids = frozenset(person for participant in private for person in participant.person_ids)
        return cls(
            private=ids if private else None,
            is_anybody_private=any(not participant.person_ids for participant in private),
        )

    @classmethod
    def of_settings(cls, values: Mapping[str, Any]) -> Self:
        """Read the study settings of a monitor."""
        named, no_words = values.get("study.participants") or (), values.get("study.no_words") or ()
        return cls.of_participants(participants_of(named, (), no_words))

    def withheld(self, *person_ids: str) -> str:
        """Return the reason for withholding the words of people, or nothing."""
        if not self.is_known:
            return UNKNOWN_CONSENT
        if self.private is None:
            return ""
        return WITHHELD if self.is_anybody_private or {"", *self.private}.intersection(person_ids) else ""
