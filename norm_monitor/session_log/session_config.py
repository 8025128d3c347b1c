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

# What stands in the place of words that may not be passed on.
WITHHELD = "(withheld: somebody in this session keeps their words private)"
_UNKNOWN_CONSENT = "(withheld: it is not known yet whether the people here consent to the use of their words)"


class StudyConfig(Config):
    """The study session that a running monitor logs."""

    log: str = Field(
        default="",
        description="folder of the session's study log, new or to be continued; empty for none",
        json_schema_extra=NAMES_FILE,
    )
    name: str = Field(default="", description="name of the study")
    session: str = Field(default="", description="name of the session, unique within the study")
    condition: str = Field(default="", description="condition of the session")
    participants: tuple[str, ...] = Field(
        default=(),
        description="pseudonyms, each followed by = and the person ids of this session: P-7K3MX=person_1,voice_2",
    )
    no_words: tuple[str, ...] = Field(
        default=(),
        description="pseudonyms of participants whose words are withheld, because they did not consent to a transcript",
    )
    key_file: str = Field(
        default="",
        description="key file with the names to remove; keep it apart from the log",
        json_schema_extra=NAMES_FILE,
    )
    policy: str = Field(
        default="",
        description="YAML file that says which words may be stored; by default, all except names",
        json_schema_extra=NAMES_FILE,
    )
    retention_days: int = Field(
        default=0, ge=0, description="days until withdraw --expired erases the log; 0 for never"
    )

    @model_validator(mode="after")
    def _names_its_session(self) -> Self:
        if self.log and not (self.name and self.session.strip()):
            raise ValueError("log needs name and session: a log states whose session it is")
        return self


def parse_participants(texts: Iterable[str], no_words: Iterable[str] = ()) -> tuple[Participant, ...]:
    """Parse participants such as P-7K3MX=person_1,voice_2, some of whom consent to no transcript.

    Raises LogError if one of these is not among the participants.
    """
    no_words = set(no_words)
    parts = [text.partition("=") for text in texts]
    if unknown := no_words - {pseudonym for pseudonym, _, _ in parts}:
        raise LogError(
            f"{', '.join(sorted(unknown))}: not a participant of this session; name them as participants too"
        )
    return tuple(
        Participant(
            pseudonym=pseudonym,
            person_ids=tuple(filter(None, ids.split(","))),
            transcript=pseudonym not in no_words,
        )
        for pseudonym, _, ids in parts
    )


def make_redactor(keys: Path | None, participants: Iterable[Participant] = (), policy: Path | None = None) -> Redactor:
    """Build the redactor from the key file and the policy. Raises KeyFileError or ConfigError for a faulty one."""
    participants = tuple(participants)
    names = None
    if keys:
        key_file = KeyFile(keys)
        names = key_file.names()
        key_file.check_pseudonyms(participant.pseudonym for participant in participants)
    return Redactor(load_private_config(RedactionPolicy, policy) if policy else None, names, participants)


@record
class WordsPolicy:
    """Whose words may be passed on. If one person keeps theirs private, an unknown voice counts as that person."""

    is_known: bool = True
    private_ids: frozenset[str] | None = None  # of people who keep their words private; None: nobody does
    is_any_voice_private: bool = False  # whether one of these people has no known person id

    @classmethod
    def from_participants(cls, participants: Iterable[Participant]) -> Self:
        """Derive the policy from the consents to a transcript."""
        private = [participant for participant in participants if not participant.transcript]
        ids = frozenset(person for participant in private for person in participant.person_ids)
        return cls(
            private_ids=ids if private else None,
            is_any_voice_private=any(not participant.person_ids for participant in private),
        )

    @classmethod
    def from_settings(cls, values: Mapping[str, Any]) -> Self:
        """Derive the policy from the study settings of a monitor."""
        participants = values.get("study.participants") or ()
        no_words = values.get("study.no_words") or ()
        return cls.from_participants(parse_participants(participants, no_words))

    def explain_withheld(self, *person_ids: str) -> str:
        """Explain why the words of these people are withheld. Empty if they may be passed on."""
        if not self.is_known:
            return _UNKNOWN_CONSENT
        if self.private_ids is None:
            return ""
        is_withheld = self.is_any_voice_private or bool({"", *self.private_ids}.intersection(person_ids))
        return WITHHELD if is_withheld else ""
