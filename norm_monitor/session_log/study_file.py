"""The contents of study.yaml: conditions, participants by pseudonym, sessions, coders and codebook."""

from collections import Counter
from collections.abc import Iterable
from datetime import date
from typing import Annotated, Self

from pydantic import Field, field_validator, model_validator

from norm_core.files.data_files import shipped_text
from norm_core.records.flag import Attribute, Polarity, Severity
from norm_core.records.json_codec import sha256_of
from norm_core.runtime.config import Config, parse_yaml
from norm_core.runtime.wording import to_words
from norm_monitor.session_log.schema import CONSENSUS, MONITOR, Consent, Participant

Pseudonym = Annotated[str, Field(pattern=r"^\w[\w.-]*$", max_length=40)]
# The name of a session is also that of its folder.
SessionName = Annotated[str, Field(pattern=r"^\w([\w .-]*\w)?$", max_length=80)]
# The keys to code with, in the order of the attributes: errors in the upper row, competences below.
_KEYS = {Polarity.ERROR: "1234567", Polarity.COMPETENCE: "qwertyu"}
_CODEBOOK = parse_yaml(shipped_text("norm_monitor.session_log", "codebook.yaml"), "codebook.yaml")
_SEVERITIES = {severity: str(_CODEBOOK["severities"][severity.value]) for severity in Severity}


class StudyParticipant(Config):
    """A participant's consents, with the day of each withdrawal."""

    words: bool = Field(default=True, description="consent to a transcript of their words")
    coders: bool = Field(default=False, description="consent to be watched by coders")
    withdrawn: dict[Consent, date] = Field(default={}, description="what they withdrew, and when")

    def allows(self, what: Consent) -> bool:
        """Whether they gave this consent and withdrew neither it nor everything."""
        return getattr(self, what.value, True) and not self.withdrawn.keys() & {what, Consent.EVERYTHING}

    @property
    def allowed(self) -> tuple[str, ...]:
        """The consents that hold among words and coders."""
        return tuple(what.value for what in Consent if what is not Consent.EVERYTHING and self.allows(what))


class PlannedSession(Config):
    """One session of the study. Paths count from the folder of study.yaml."""

    condition: str = Field(default="", description="condition of the session")
    participants: dict[Pseudonym, tuple[str, ...]] = Field(
        default={}, description="each participant with their person ids in this session"
    )
    coders: tuple[Pseudonym, ...] = Field(default=(), description="who codes it; empty: every coder")
    log: str = Field(default="", description="folder of the log; default: sessions/NAME")
    bag: str = Field(default="", description="bag of the recording")
    media: tuple[str, ...] = Field(
        default=(), description="video and sound files; FILE=SECONDS: the session begins at this second of the file"
    )
    excluded: str = Field(default="", description="why no rate counts it")


class Code(Config):
    """One code of the codebook."""

    id: Annotated[str, Field(pattern=r"^\w[\w-]*$")]
    name: str = Field(min_length=1)
    definition: str = ""
    include: tuple[str, ...] = Field(default=(), description="examples that count")
    exclude: tuple[str, ...] = Field(default=(), description="examples that do not count")
    polarity: Polarity
    attribute: Attribute | None = Field(default=None, description="the HSRI attribute that it counts as")
    key: Annotated[str, Field(pattern=r"^\S?$")] = Field(default="", description="the key to code it with")

    @property
    def description(self) -> str:
        """The definition with the examples that count and those that do not."""
        parts = (("", (self.definition,)), ("Counts: ", self.include), ("Does not count: ", self.exclude))
        return ". ".join(name + "; ".join(texts) for name, texts in parts if any(texts))


# The seven attributes of HSRI, as errors and as competences.
HSRI = tuple(
    Code(
        id=f"{polarity.value}_{attribute.value}",
        name=f"{polarity.value} {to_words(attribute.value)}",
        definition=_CODEBOOK["attributes"][attribute.value]["definition"],
        polarity=polarity,
        attribute=attribute,
        key=_KEYS[polarity][index],
        **_CODEBOOK["attributes"][attribute.value][polarity.value],
    )
    for polarity in Polarity
    for index, attribute in enumerate(Attribute)
)


class StudyFile(Config):
    """The contents of study.yaml."""

    study: str = Field(min_length=1, description="name of the study, as in its logs")
    conditions: tuple[Annotated[str, Field(min_length=1)], ...] = Field(
        default=(), description="conditions of the sessions"
    )
    coders: tuple[Pseudonym, ...] = Field(default=(), description="coders by pseudonym")
    participants: dict[Pseudonym, StudyParticipant] = Field(
        default={}, description="participants by pseudonym, never by name, with their consents"
    )
    sessions: dict[SessionName, PlannedSession] = Field(default={}, description="sessions by name")
    codes: tuple[Code, ...] = Field(default=(), description="codes of the study beside those of HSRI")
    severities: dict[Severity, str] = Field(
        default={}, description="severities among which coders choose, with their meaning; empty: all of the codebook"
    )
    retention_days: int = Field(
        default=0, ge=0, description="days after which withdraw --expired empties logs; 0: never"
    )
    seed: int = Field(default=0, ge=0, description="random seed of the order in which each coder codes")

    @property
    def codebook(self) -> tuple[Code, ...]:
        """HSRI's attributes in both polarities, then the study's own codes."""
        return (*HSRI, *self.codes)

    @property
    def defined_severities(self) -> dict[Severity, str]:
        """The severities among which coders choose, with their meaning."""
        return self.severities or _SEVERITIES

    def coders_of(self, session: str) -> tuple[str, ...]:
        """List the coders of a session."""
        return self.sessions[session].coders or self.coders

    def sessions_of(self, coder: str) -> tuple[str, ...]:
        """List the sessions of a coder in the order drawn for them. A new session does not change it for the others."""
        sessions = (name for name in self.sessions if coder in self.coders_of(name))
        return tuple(sorted(sessions, key=lambda name: sha256_of([self.study, self.seed, coder, name])))

    def explain_hidden(self, participants: Iterable[str]) -> str:
        """Explain why coders may not watch a session with these participants. Empty if all agreed."""
        refused = [
            name
            for name in participants
            if name not in self.participants or not self.participants[name].allows(Consent.CODERS)
        ]
        return f"{', '.join(refused)} did not agree to be watched by coders" if refused else ""

    def participants_of(self, session: str) -> tuple[Participant, ...]:
        """List the participants of a session as its log names them, with the consents of today."""
        return tuple(
            Participant(
                pseudonym=pseudonym,
                person_ids=ids,
                transcript=self.participants[pseudonym].allows(Consent.WORDS),
            )
            for pseudonym, ids in self.sessions[session].participants.items()
        )

    @field_validator("conditions", "coders")
    @classmethod
    def _has_each_name_once(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        _check_unique(names)
        return names

    @field_validator("codes")
    @classmethod
    def _has_each_code_once(cls, codes: tuple[Code, ...]) -> tuple[Code, ...]:
        _check_unique(code.id for code in (*HSRI, *codes))
        _check_unique(f"key {code.key}" for code in (*HSRI, *codes) if code.key)
        return codes

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Self:
        if reserved := {MONITOR, CONSENSUS, "all"} & {*self.coders}:
            raise ValueError(f"coder {min(reserved)}: the name is taken by the program: give another pseudonym")
        for name, session in self.sessions.items():
            where = f"session {name}"
            if session.condition and self.conditions:
                check_known("condition", [session.condition], self.conditions, where)
            check_known("coder", session.coders, self.coders, where)
            check_known("participant", session.participants, self.participants, where)
        _check_unique(f"log folder {session.log or f'sessions/{name}'}" for name, session in self.sessions.items())
        return self


def check_known(what: str, names: Iterable[str], known_names: Iterable[str], where: str) -> None:
    """Raise ValueError for a name that study.yaml does not list."""
    known_names = tuple(known_names)
    if unknown := [name for name in names if name not in known_names]:
        raise ValueError(
            f"{where}: unknown {what} {', '.join(unknown)}; study.yaml has {', '.join(known_names) or 'none'}: "
            "correct it, or add it there"
        )


def _check_unique(names: Iterable[str]) -> None:
    """Raise ValueError for a name that occurs twice."""
    if repeated := [name for name, count in Counter(names).items() if count > 1]:
        raise ValueError(f"{', '.join(repeated)} is given twice: rename one, or delete it")
