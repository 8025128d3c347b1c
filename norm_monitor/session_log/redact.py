"""Redact words before they enter a log: names by policy and key file, and words without consent."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass, replace
from enum import StrEnum
from operator import is_
from typing import Annotated, Any

from pydantic import Field

from norm_core.records.decision import Decision
from norm_core.records.flag import SocialFlag
from norm_core.records.record import record
from norm_core.records.speech import RobotSpeech, Speaker, Utterance
from norm_core.runtime.config import Config
from norm_monitor.session_log.schema import Label, Participant, Review, SessionInfo
from norm_monitor.session_log.text_search import WordRuns, name_parts, name_pattern, part_pattern, plain_words

WITHHELD = "[not consented]"
NAME = "[name]"

# Phrases that introduce a name. A name ends at a non-word; Chinese names have two to four characters.
_INTRODUCTIONS = (
    re.compile(r"(?i:\bmy name(?: is|'s|’s)|\bcall me|\bI am called)\s+((?-i:\w[\w'’-]*(?:\s+[A-Z]\w+)?))"),
    re.compile(r"(?i:\bI(?:'m|’m| am))\s+([A-Z][\w'’-]+)(?=[.,!?]|$|\s+and\b)"),
    re.compile(r"(?i:\bich hei(?:ß|ss)e|\bmein name ist|\bje m['’]appelle|\bme llamo|\bmi chiamo)\s+(\w[\w'’-]*)"),
    re.compile(
        r"(?:我叫|我的名字是|名前は)\s*(?![你您他她它])([\u4e00-\u9fff\u3040-\u30ff]{1,4}?)(?=[，。！？、,.!?\s]|です|$)"
    ),
)
# Capitalized words after such phrases that are not names, also in transcripts of capitals alone.
_NO_NAME = re.compile(
    "a|an|the|at|by|for|from|in|it|my|no|not|of|off|on|so|that|this|to|up|with|yes|back|done|fine|good|here|late|lost|"
    "ok|okay|ready|sorry|sure|there|well|dich|dir|euch|ihnen|sie|uns|le|la|les|el|los|las|un|una|une|il|lo",
    re.IGNORECASE,
)
# A quote ends at the last end mark before the next quote, because speech may contain such marks.
_QUOTE = re.compile("“(.*?)”(?=[^”]*(?:“|$))", re.DOTALL)

# What a record says or quotes in words.
_WORDS: dict[type, tuple[str, ...]] = {
    Utterance: ("text",),
    RobotSpeech: ("text",),
    SocialFlag: ("rationale", "correction"),
    Decision: ("situation", "question", "explanation", "justification", "trade_off"),
    Review: ("note",),
    Label: ("comment",),
}


class RedactionPolicy(Config):
    """What may be stored of words. By default, words without names."""

    words: bool = Field(default=True, description="whether transcripts are kept at all")
    redact_names: bool = Field(default=True, description="whether names are replaced by pseudonyms, or by [name]")
    redact_introductions: bool = Field(default=True, description="whether a name is also taken from how it is said")
    known_only: bool = Field(
        default=False, description="whether words of a person id that no participant has are withheld (passers-by)"
    )
    also: tuple[Annotated[str, Field(pattern=r"\w")], ...] = Field(
        default=(), description="further names and words to take out, of whoever passes by"
    )


@record
class NamesToRemove:
    """Real names and their replacements. They come from the key file and never enter a log."""

    by_name: tuple[tuple[str, str], ...] = ()


class Redactor:
    """Redact the records of one log. Remembers spoken names, so that later mentions are removed too.

    `withheld` are words that are taken out wherever they stand.
    """

    def __init__(
        self,
        policy: RedactionPolicy | None = None,
        names: NamesToRemove | None = None,
        participants: Iterable[Participant] = (),
        withheld: WordRuns | None = None,
    ) -> None:
        self._policy = policy or RedactionPolicy()
        self._names: dict[str, str] = {}
        self._parts: dict[str, tuple[str, str]] = {}  # parts of names as written, and what replaces them
        self._participants = tuple(participants)
        self._any_name: re.Pattern[str] | None = None
        self._stay: set[str] = set()
        self._withheld: set[str] = set()  # utterances with withheld words
        self._withheld_words = ""
        self._withheld_runs = withheld or WordRuns()
        self._robot_words: dict[str, str] = {}  # its plain words by their text
        self._kept_words: dict[str, str] = {}  # by speaker: words that a flag may quote
        for name, stand_in in (names or NamesToRemove()).by_name:
            self._learn_person(name, stand_in)
        for word in self._policy.also:
            self._learn(word, NAME)

    def clean(self, entry: Any) -> Any:  # noqa: PLR0911 one a kind of record
        """Redact a record for storage."""
        match entry:
            case SessionInfo():
                self._participants = entry.participants or self._participants
                return entry
            case Utterance():
                return self._utterance(entry)
            case RobotSpeech():
                return self._robot_speech(entry)
            case SocialFlag():
                return self._flag(entry)
            case Decision():
                return self._decision(entry)
            case Review():
                return replace(entry, note=self.text(entry.note))
            case Label():
                return replace(entry, comment=self.text(entry.comment))
            case _:
                return entry

    def text(self, text: str) -> str:
        """Remove names and repetitions of withheld words from text."""
        if not text:
            return text
        text = self._withheld_runs.replaced_in(text, WITHHELD)
        if not self._policy.redact_names:
            return text
        if self._policy.redact_introductions:
            for name in _find_introduced_names(text):
                self._learn_person(name, self._parts.get(name.casefold(), (name, NAME))[1])
        if not self._names:
            return text
        if self._any_name is None:
            # Replacements match as names too. They stay, so that nothing is cut out of them.
            stay = {*self._names.values(), *(p.pseudonym for p in self._participants), WITHHELD}
            self._stay = {words.casefold() for words in stay}
            whole = sorted({*self._names, *stay}, key=len, reverse=True)
            parts = [part for key, (part, _) in self._parts.items() if key not in self._names]
            patterns = [*map(name_pattern, whole), *map(part_pattern, sorted(parts, key=len, reverse=True))]
            self._any_name = re.compile("|".join(patterns), re.IGNORECASE)
        return self._any_name.sub(self._stand_in, text)

    def _learn_person(self, name: str, stand_in: str) -> None:
        """Learn a name and its parts. A part that several people share is replaced by no pseudonym."""
        self._learn(name, stand_in)
        for part in name_parts([name]):
            _, other = self._parts.get(part.casefold(), (part, stand_in))
            self._parts[part.casefold()] = (part, stand_in if other == stand_in else NAME)
            self._any_name = None

    def _learn(self, name: str, stand_in: str) -> None:
        if name.casefold() not in self._names:
            self._names[name.casefold()] = stand_in
            self._any_name = None

    def _stand_in(self, match: re.Match[str]) -> str:
        key = match[0].casefold()
        _, of_part = self._parts.get(key, ("", NAME))
        return self._names.get(key) or (match[0] if key in self._stay else of_part)

    def _robot_speech(self, speech: RobotSpeech) -> RobotSpeech:
        if speech.text:
            self._robot_words[speech.text] = plain_words(speech.text)
        if not self._policy.words:
            return replace(speech, text=WITHHELD if speech.text else "")
        self._keep_for_quotes("the robot by its own account", speech.text)
        return replace(speech, text=self.text(speech.text))

    def _utterance(self, utterance: Utterance) -> Utterance:
        if not self._may_keep(utterance):
            self._withhold(utterance)
            return replace(utterance, text=WITHHELD, words=())
        if utterance.speaker is Speaker.ROBOT and not self._may_keep_echo(utterance.text):
            return replace(utterance, text=WITHHELD, words=())
        self._keep_for_quotes(utterance.speaker_id or utterance.speaker, utterance.text)
        text = self.text(utterance.text)
        # Word timings would reveal the removed words.
        words = utterance.words if text == utterance.text else ()
        return replace(utterance, text=text, words=words)

    def _may_keep_echo(self, text: str) -> bool:
        """Whether words that were heard as the robot's may stay: a person's may be among them.

        If words are withheld and the robot states its own, the stated words that remain must contain those heard.
        """
        if not (self._withholds() and self._robot_words):
            return True
        heard_words = plain_words(text)
        alike = (text for text, plain in self._robot_words.items() if heard_words in plain)
        return any(heard_words in plain_words(self._withheld_runs.replaced_in(text, WITHHELD)) for text in alike)

    def _keep_for_quotes(self, speaker: str, text: str) -> None:
        words, plain = self._kept_words.get(speaker, " "), plain_words(text)
        if self._withholds() and not words.endswith(plain):  # start and stop of one speech repeat the text
            self._kept_words[speaker] = words + plain[1:]

    def _withhold(self, utterance: Utterance) -> None:
        """Remember withheld words, because flags and other people may repeat them."""
        self._withheld.add(utterance.utterance_id)
        self._withheld_words += plain_words(utterance.text)
        self._withheld_runs.add(utterance.text)

    def _withholds(self) -> bool:
        return not self._policy.words or self._policy.known_only or not all(p.transcript for p in self._participants)

    def _may_keep(self, utterance: Utterance) -> bool:
        if not self._policy.words:
            return False
        if utterance.speaker is Speaker.ROBOT:
            return True
        speaker = next((p for p in self._participants if utterance.speaker_id in p.person_ids), None)
        if speaker is None and not all(p.transcript for p in self._participants):
            return False  # the speaker may be a person without consent
        return speaker.transcript if speaker else not (self._policy.known_only and utterance.speaker_id)

    def _flag(self, flag: SocialFlag) -> SocialFlag:
        evidence = tuple(
            replace(fact, quote=self._quote(fact.quote, touched=fact.utterance_id in self._withheld))
            for fact in flag.evidence
        )
        rationale, correction = self._quoting(flag.rationale), self.text(flag.correction)
        return replace(flag, evidence=evidence, rationale=rationale, correction=correction)

    def _decision(self, decision: Decision) -> Decision:
        return replace(
            decision,
            situation=self._quoting(decision.situation),  # a repair's is the rationale of a flag
            question=self.text(decision.question),
            explanation=self.text(decision.explanation),
            justification=self.text(decision.justification),
        )

    def _quoting(self, text: str) -> str:
        """Redact text in which people are quoted."""
        return self.text(_QUOTE.sub(lambda match: f"“{self._quote(match[1])}”", text))

    def _quote(self, quote: str, *, touched: bool = False) -> str:
        """Redact a quote. If words are withheld, it may contain only words that the log stores."""
        if not quote or not self._withholds():
            return self.text(quote)
        plain = plain_words(quote)
        may_stay = (
            not touched and plain not in self._withheld_words and any(plain in w for w in self._kept_words.values())
        )
        return self.text(quote) if may_stay else WITHHELD


def without_words(entry: Any) -> Any:
    """Withhold everything that a record quotes or says in words."""
    changes: dict[str, Any] = {name: WITHHELD for name in _WORDS.get(type(entry), ()) if getattr(entry, name)}
    if isinstance(entry, Utterance):
        changes = {"text": WITHHELD, "words": ()}
    if isinstance(entry, SocialFlag):
        changes["evidence"] = tuple(replace(fact, quote=fact.quote and WITHHELD) for fact in entry.evidence)
    return replace(entry, **changes) if changes else entry


def replace_texts(value: Any, clean: Callable[[str], str]) -> Any:
    """Clean all text of a record or message, including ids. Return the same object if nothing changes."""
    if isinstance(value, str) and not isinstance(value, StrEnum):
        cleaned = clean(value)
        return value if cleaned == value else cleaned
    if isinstance(value, tuple | list):
        items = [replace_texts(item, clean) for item in value]
        return value if all(map(is_, items, value)) else type(value)(items)
    if is_dataclass(value) and not isinstance(value, type):
        old = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
        changed = {name: new for name, value in old.items() if (new := replace_texts(value, clean)) is not value}
        return replace(value, **changed) if changed else value
    return value


def _find_introduced_names(text: str) -> Iterator[str]:
    """Yield names with which people introduce themselves; capitalized, where the script has capitals."""
    for pattern in _INTRODUCTIONS:
        for match in pattern.finditer(text):
            name = match[1]
            if name[0].isalpha() and not name[0].islower() and not _NO_NAME.fullmatch(name.split()[0]):
                yield name


def quotes_in(text: str) -> list[str]:
    """Return the quotes in the text of a rationale."""
    return _QUOTE.findall(text)
