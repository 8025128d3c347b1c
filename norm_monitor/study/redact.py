"""What of people's words enters a log: names out, by policy; words of who did not consent out."""

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from pydantic import Field

from norm_core.config import Config
from norm_core.decision import Decision
from norm_core.flag import SocialFlag
from norm_core.record import record
from norm_core.speech import RobotSpeech, Speaker, Utterance
from norm_monitor.study.schema import Label, Participant, Review, SessionInfo

WITHHELD = "[not consented]"
NAME = "[name]"

# Where people say their own names. A name ends at what is no word; Chinese names have two to four characters.
_INTRODUCTIONS = (
    re.compile(r"(?i:\bmy name(?: is|'s|’s)|\bcall me|\bI am called)\s+((?-i:\w[\w'’-]*(?:\s+[A-Z]\w+)?))"),
    re.compile(r"(?i:\bI(?:'m|’m| am))\s+([A-Z][\w'’-]+)(?=[.,!?]|$|\s+and\b)"),
    re.compile(r"(?i:\bich hei(?:ß|ss)e|\bmein name ist|\bje m['’]appelle|\bme llamo|\bmi chiamo)\s+(\w[\w'’-]*)"),
    re.compile(r"(?:我叫|我的名字是|名前は)\s*([\u4e00-\u9fff\u3040-\u30ff]{1,4}?)(?=[，。！？、,.!?\s]|です|$)"),
)


class Policy(Config):
    """What may be kept of words. The default keeps words without names."""

    words: bool = Field(default=True, description="whether transcripts are kept at all")
    redact_names: bool = Field(default=True, description="whether names are replaced by pseudonyms, or by [name]")
    redact_introductions: bool = Field(default=True, description="whether a name is also taken from how it is said")
    known_only: bool = Field(
        default=False, description="whether words of a person id that no participant has are withheld (passers-by)"
    )
    also: tuple[str, ...] = Field(default=(), description="further names and words to take out, of whoever passes by")


@record
class Names:
    """Real names with what stands for them; they come from the key file and never enter a log."""

    by_name: tuple[tuple[str, str], ...] = ()


class Redactor:
    """Cleans records for one log. It remembers names that were said, so that later mentions go too."""

    def __init__(
        self, policy: Policy | None = None, names: Names | None = None, participants: Iterable[Participant] = ()
    ) -> None:
        self._policy = policy or Policy()
        self._names = dict((names or Names()).by_name) | dict.fromkeys(self._policy.also, NAME)
        self._participants = tuple(participants)
        self._withheld: set[str] = set()  # utterances whose words were withheld, as quotes repeat them

    def clean(self, entry: Any) -> Any:  # noqa: PLR0911 one a kind of record
        """The record as it may be kept."""
        match entry:
            case SessionInfo():
                self._participants = entry.participants or self._participants
                return entry
            case Utterance():
                return self._utterance(entry)
            case RobotSpeech():
                return replace(entry, text=self.text(entry.text))
            case SocialFlag():
                return self._flag(entry)
            case Decision():
                return replace(
                    entry, explanation=self.text(entry.explanation), justification=self.text(entry.justification)
                )
            case Review():
                return replace(entry, note=self.text(entry.note))
            case Label():
                return replace(entry, comment=self.text(entry.comment))
            case _:
                return entry

    def text(self, text: str) -> str:
        """Text without names."""
        if not text or not self._policy.redact_names:
            return text
        if self._policy.redact_introductions:
            for pattern in _INTRODUCTIONS:
                for match in pattern.finditer(text):
                    self._names.setdefault(match[1], NAME)
        for name, stand_in in sorted(self._names.items(), key=lambda pair: -len(pair[0])):
            text = _pattern(name).sub(stand_in, text)
        return text

    def _utterance(self, utterance: Utterance) -> Utterance:
        if not self._may_keep(utterance):
            self._withheld.add(utterance.utterance_id)
            return replace(utterance, text=WITHHELD, words=())
        text = self.text(utterance.text)
        # Timed words would spell out what the text no longer says.
        words = utterance.words if text == utterance.text else ()
        return replace(utterance, text=text, words=words)

    def _may_keep(self, utterance: Utterance) -> bool:
        if not self._policy.words:
            return False
        if utterance.speaker is Speaker.ROBOT:
            return True
        speaker = next((p for p in self._participants if utterance.speaker_id in p.person_ids), None)
        if speaker is None and len(self._participants) == 1 and not utterance.speaker_id:
            speaker = self._participants[0]
        return speaker.transcript if speaker else not (self._policy.known_only and utterance.speaker_id)

    def _flag(self, flag: SocialFlag) -> SocialFlag:
        touched = not self._policy.words or any(fact.utterance_id in self._withheld for fact in flag.evidence)
        evidence = tuple(
            replace(fact, quote=WITHHELD if touched and fact.quote else self.text(fact.quote)) for fact in flag.evidence
        )
        # A rationale quotes between these marks.
        rationale = re.sub(r"“[^”]*”", f"“{WITHHELD}”", flag.rationale) if touched else self.text(flag.rationale)
        return replace(flag, evidence=evidence, rationale=rationale, correction=self.text(flag.correction))


def _pattern(name: str) -> re.Pattern[str]:
    # Word boundaries mean nothing in scripts without spaces.
    edge = r"\b" if name.isascii() or any(c.islower() or c.isupper() for c in name) else ""
    return re.compile(edge + re.escape(name) + edge, re.IGNORECASE)
