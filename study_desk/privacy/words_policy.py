"""Whose words may be told, by what participants consent to."""

from collections.abc import Iterable, Mapping
from typing import Any, Self

from norm_core.records.record import record
from study_desk.log.schema import Participant
from study_desk.log.session_config import participants_of

WITHHELD = "(not told: somebody in this session keeps their words private)"
UNKNOWN_CONSENT = "(not told: whether people here let their words be told is not known yet)"


@record
class WordsPolicy:
    """Whose words may be told. Where somebody's may not, nor may those of a voice that could be theirs."""

    is_known: bool = True
    private: frozenset[str] | None = None  # person ids; None where nobody keeps their words private
    is_anybody_private: bool = False  # whose voice is not known

    @classmethod
    def of_participants(cls, participants: Iterable[Participant]) -> Self:
        """Take the consents to a transcript."""
        private = [one for one in participants if not one.transcript]
        ids = frozenset(person for one in private for person in one.person_ids)
        return cls(private=ids if private else None, is_anybody_private=any(not one.person_ids for one in private))

    @classmethod
    def of_settings(cls, values: Mapping[str, Any]) -> Self:
        """Read the study settings of a monitor."""
        named, no_words = values.get("study.participants") or (), values.get("study.no_words") or ()
        return cls.of_participants(participants_of(named, (), no_words))

    def withheld(self, *person_ids: str) -> str:
        """Return why the words of people are not told, or nothing."""
        if not self.is_known:
            return UNKNOWN_CONSENT
        if self.private is None:
            return ""
        return WITHHELD if self.is_anybody_private or {"", *self.private}.intersection(person_ids) else ""
