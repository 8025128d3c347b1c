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
from norm_monitor.session_log.text_search import (
    WordRuns,
    make_name_pattern,
    make_part_pattern,
    normalize_words,
    split_names,
)

# What replaces words without consent.
WITHHELD = "[not consented]"
# What replaces a name without a pseudonym.
NAME = "[name]"

# Phrases that introduce a name. A name ends at the end of a word; Chinese and Japanese ones have up to four characters.
_INTRODUCTIONS = (
    re.compile(r"(?i:\bmy name(?: is|'s|’s)|\bcall me|\bI am called)\s+((?-i:\w[\w'’-]*(?:\s+[A-Z]\w+)?))"),
    re.compile(r"(?i:\bI(?:'m|’m| am))\s+([A-Z][\w'’-]+)(?=[.,!?]|$|\s+and\b)"),
    re.compile(r"(?i:\bich hei(?:ß|ss)e|\bmein name ist|\bje m['’]appelle|\bme llamo|\bmi chiamo)\s+(\w[\w'’-]*)"),
    re.compile(
        r"(?:我叫|我的名字是|名前は)\s*(?![你您他她它])([\u4e00-\u9fff\u3040-\u30ff]{1,4}?)(?=[，。！？、,.!?\s]|です|$)"
    ),
)
# Words after such phrases that are not names, although a transcript may write them in capitals.
_NOT_A_NAME = re.compile(
    "a|an|the|at|by|for|from|in|it|my|no|not|of|off|on|so|that|this|to|up|with|yes|back|done|fine|good|here|late|lost|"
    "ok|okay|ready|sorry|sure|there|well|dich|dir|euch|ihnen|sie|uns|le|la|les|el|los|las|un|una|une|il|lo",
    re.IGNORECASE,
)
# A quote ends at the last end mark before the next quote, because speech may contain such marks.
_QUOTE = re.compile("“(.*?)”(?=[^”]*(?:“|$))", re.DOTALL)

# The fields of each record in which people are quoted or words are said.
_WORD_FIELDS: dict[type, tuple[str, ...]] = {
    Utterance: ("text",),
    RobotSpeech: ("text",),
    SocialFlag: ("rationale", "correction"),
    Decision: ("situation", "question", "explanation", "justification", "trade_off"),
    Review: ("note",),
    Label: ("comment",),
}


class RedactionPolicy(Config):
    """Which words may be stored. By default, all words without names."""

    words: bool = Field(default=True, description="whether transcripts are stored at all")
    redact_names: bool = Field(default=True, description="whether names are replaced by pseudonyms, or by [name]")
    redact_introductions: bool = Field(
        default=True, description="whether a name is also removed after somebody introduces themselves with it"
    )
    known_only: bool = Field(
        default=False, description="whether words of a person id that no participant has are withheld (passers-by)"
    )
    also: tuple[Annotated[str, Field(pattern=r"\w")], ...] = Field(
        default=(), description="further names and words to remove, such as those of passers-by"
    )


@record
class NamesToRemove:
    """Real names and their replacements. They come from the key file and never enter a log."""

    by_name: tuple[tuple[str, str], ...] = ()


class Redactor:
    """Redact the records of one log. It remembers spoken names, so that later mentions are removed too."""

    def __init__(
        self,
        policy: RedactionPolicy | None = None,
        names: NamesToRemove | None = None,
        participants: Iterable[Participant] = (),
        withheld: WordRuns | None = None,
    ) -> None:
        """Prepare for a log. `withheld` are words that are removed wherever they occur."""
        self._policy = policy or RedactionPolicy()
        self._participants = tuple(participants)
        self._stand_ins: dict[str, str] = {}  # by name in lower case
        self._parts: dict[str, tuple[str, str]] = {}  # by part of a name in lower case: as written, and its stand-in
        self._name_pattern: re.Pattern[str] | None = None  # None until it is built for the names that are known
        self._protected_words: set[str] = set()  # stand-ins, out of which no name is cut
        self._withheld_ids: set[str] = set()  # of utterances with withheld words
        self._withheld_words = ""
        self._withheld_runs = withheld or WordRuns()
        self._robot_words: dict[str, str] = {}  # the robot's stated texts with their normalized words
        self._stored_words: dict[str, str] = {}  # by speaker: words that a flag may quote
        for name, stand_in in (names or NamesToRemove()).by_name:
            self._learn_person(name, stand_in)
        for word in self._policy.also:
            self._learn(word, NAME)

    def clean(self, entry: Any) -> Any:  # noqa: PLR0911 one return for each kind of record
        """Redact a record for storage."""
        match entry:
            case SessionInfo():
                self._participants = entry.participants or self._participants
                return entry
            case Utterance():
                return self._redact_utterance(entry)
            case RobotSpeech():
                return self._redact_robot_speech(entry)
            case SocialFlag():
                return self._redact_flag(entry)
            case Decision():
                return self._redact_decision(entry)
            case Review():
                return replace(entry, note=self.clean_text(entry.note))
            case Label():
                return replace(entry, comment=self.clean_text(entry.comment))
            case _:
                return entry

    def clean_text(self, text: str) -> str:
        """Remove names and repetitions of withheld words from a text."""
        if not text:
            return text
        text = self._withheld_runs.replace_in(text, WITHHELD)
        if not self._policy.redact_names:
            return text
        if self._policy.redact_introductions:
            for name in _find_introduced_names(text):
                _, stand_in = self._parts.get(name.casefold(), (name, NAME))
                self._learn_person(name, stand_in)
        if not self._stand_ins:
            return text
        if self._name_pattern is None:
            self._name_pattern = self._build_name_pattern()
        return self._name_pattern.sub(self._replace_name, text)

    def _build_name_pattern(self) -> re.Pattern[str]:
        """Build a pattern for all names and their parts. Stand-ins match too, so that nothing is cut out of them."""
        stand_ins = {*self._stand_ins.values(), *(p.pseudonym for p in self._participants), WITHHELD}
        self._protected_words = {words.casefold() for words in stand_ins}
        names = sorted({*self._stand_ins, *stand_ins}, key=len, reverse=True)
        parts = [part for key, (part, _) in self._parts.items() if key not in self._stand_ins]
        parts.sort(key=len, reverse=True)
        patterns = [*map(make_name_pattern, names), *map(make_part_pattern, parts)]
        return re.compile("|".join(patterns), re.IGNORECASE)

    def _learn_person(self, name: str, stand_in: str) -> None:
        """Learn a name and its parts. A part that several people share is replaced by [name]."""
        self._learn(name, stand_in)
        for part in split_names([name]):
            _, other_stand_in = self._parts.get(part.casefold(), (part, stand_in))
            self._parts[part.casefold()] = (part, stand_in if other_stand_in == stand_in else NAME)
            self._name_pattern = None

    def _learn(self, name: str, stand_in: str) -> None:
        """Learn what replaces a name, unless it is known already."""
        if name.casefold() not in self._stand_ins:
            self._stand_ins[name.casefold()] = stand_in
            self._name_pattern = None

    def _replace_name(self, match: re.Match[str]) -> str:
        """Return the stand-in of a matched name or part; a matched stand-in stays."""
        key = match[0].casefold()
        _, part_stand_in = self._parts.get(key, ("", NAME))
        return self._stand_ins.get(key) or (match[0] if key in self._protected_words else part_stand_in)

    def _redact_robot_speech(self, speech: RobotSpeech) -> RobotSpeech:
        if speech.text:
            self._robot_words[speech.text] = normalize_words(speech.text)
        if not self._policy.words:
            return replace(speech, text=WITHHELD if speech.text else "")
        self._allow_quotes("the robot by its own account", speech.text)
        return replace(speech, text=self.clean_text(speech.text))

    def _redact_utterance(self, utterance: Utterance) -> Utterance:
        if not self._may_store(utterance):
            self._withhold(utterance)
            return replace(utterance, text=WITHHELD, words=())
        if utterance.speaker is Speaker.ROBOT and not self._may_store_echo(utterance.text):
            return replace(utterance, text=WITHHELD, words=())
        self._allow_quotes(utterance.speaker_id or utterance.speaker, utterance.text)
        text = self.clean_text(utterance.text)
        # Word timings would reveal the removed words.
        words = utterance.words if text == utterance.text else ()
        return replace(utterance, text=text, words=words)

    def _may_store_echo(self, text: str) -> bool:
        """Whether words that were heard as the robot's may be stored: a person's may be among them.

        If words are withheld and the robot states its own, the stated words that remain must contain those heard.
        """
        if not (self._withholds_words() and self._robot_words):
            return True
        heard_words = normalize_words(text)
        candidates = (stated for stated, words in self._robot_words.items() if heard_words in words)
        return any(
            heard_words in normalize_words(self._withheld_runs.replace_in(stated, WITHHELD)) for stated in candidates
        )

    def _allow_quotes(self, speaker: str, text: str) -> None:
        """Remember stored words, which flags may quote. The start and stop of one speech repeat its text."""
        stored_words = self._stored_words.get(speaker, " ")
        words = normalize_words(text)
        if self._withholds_words() and not stored_words.endswith(words):
            self._stored_words[speaker] = stored_words + words[1:]

    def _withhold(self, utterance: Utterance) -> None:
        """Remember withheld words, because flags and other people may repeat them."""
        self._withheld_ids.add(utterance.utterance_id)
        self._withheld_words += normalize_words(utterance.text)
        self._withheld_runs.add(utterance.text)

    def _withholds_words(self) -> bool:
        """Whether the words of anybody are withheld."""
        return not self._policy.words or self._policy.known_only or not all(p.transcript for p in self._participants)

    def _may_store(self, utterance: Utterance) -> bool:
        """Whether policy and consents allow to store the words of an utterance."""
        if not self._policy.words:
            return False
        if utterance.speaker is Speaker.ROBOT:
            return True
        speaker = next((p for p in self._participants if utterance.speaker_id in p.person_ids), None)
        if speaker is None and not all(p.transcript for p in self._participants):
            return False  # the speaker may be a person without consent
        return speaker.transcript if speaker else not (self._policy.known_only and utterance.speaker_id)

    def _redact_flag(self, flag: SocialFlag) -> SocialFlag:
        evidence = tuple(
            replace(fact, quote=self._redact_quote(fact.quote, is_withheld=fact.utterance_id in self._withheld_ids))
            for fact in flag.evidence
        )
        rationale = self._redact_with_quotes(flag.rationale)
        return replace(flag, evidence=evidence, rationale=rationale, correction=self.clean_text(flag.correction))

    def _redact_decision(self, decision: Decision) -> Decision:
        return replace(
            decision,
            situation=self._redact_with_quotes(decision.situation),  # may hold the rationale of a flag
            question=self.clean_text(decision.question),
            explanation=self.clean_text(decision.explanation),
            justification=self.clean_text(decision.justification),
        )

    def _redact_with_quotes(self, text: str) -> str:
        """Redact a text in which people are quoted."""
        return self.clean_text(_QUOTE.sub(lambda match: f"“{self._redact_quote(match[1])}”", text))

    def _redact_quote(self, quote: str, *, is_withheld: bool = False) -> str:
        """Redact a quote. If words are withheld, only words that the log stores may be quoted."""
        if not quote or not self._withholds_words():
            return self.clean_text(quote)
        words = normalize_words(quote)
        is_stored = any(words in stored_words for stored_words in self._stored_words.values())
        may_stay = is_stored and not is_withheld and words not in self._withheld_words
        return self.clean_text(quote) if may_stay else WITHHELD


def withhold_words(entry: Any) -> Any:
    """Withhold everything that a record quotes or says in words."""
    changes: dict[str, Any] = {name: WITHHELD for name in _WORD_FIELDS.get(type(entry), ()) if getattr(entry, name)}
    if isinstance(entry, Utterance):
        changes = {"text": WITHHELD, "words": ()}
    if isinstance(entry, SocialFlag):
        changes["evidence"] = tuple(replace(fact, quote=fact.quote and WITHHELD) for fact in entry.evidence)
    return replace(entry, **changes) if changes else entry


def clean_texts(value: Any, clean: Callable[[str], str]) -> Any:
    """Clean all texts of a record or message, including ids. Return the same object if nothing changes."""
    if isinstance(value, str) and not isinstance(value, StrEnum):
        cleaned = clean(value)
        return value if cleaned == value else cleaned
    if isinstance(value, tuple | list):
        items = [clean_texts(item, clean) for item in value]
        return value if all(map(is_, items, value)) else type(value)(items)
    if is_dataclass(value) and not isinstance(value, type):
        old_values = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
        new_values = {name: clean_texts(old, clean) for name, old in old_values.items()}
        changes = {name: new for name, new in new_values.items() if new is not old_values[name]}
        return replace(value, **changes) if changes else value
    return value


def _find_introduced_names(text: str) -> Iterator[str]:
    """Yield the names with which people introduce themselves. A name has a capital where its script has capitals."""
    for pattern in _INTRODUCTIONS:
        for match in pattern.finditer(text):
            name = match[1]
            if name[0].isalpha() and not name[0].islower() and not _NOT_A_NAME.fullmatch(name.split()[0]):
                yield name


def find_quotes(text: str) -> list[str]:
    """Return the quotes in the rationale of a flag."""
    return _QUOTE.findall(text)
