"""The verdict on a talk in one line, with which `flags`, `up` and `watch` end."""

from collections import Counter
from typing import Any

from norm_core.records.flag import Attribute, FlagState, Polarity, SocialFlag
from norm_core.records.speech import RobotSpeech, Speaker, SpeechEdge, Utterance
from norm_core.runtime.wording import count_of, to_words


class TalkSummary:
    """Count turns, errors by attribute and competences. Closed flags are counted and not stored."""

    def __init__(self) -> None:
        self.turn_count = 0
        self._last_speaker = ("", "")
        self._open_flags: dict[str, SocialFlag] = {}
        self._error_count = 0
        self._competence_count = 0
        self._attributes: Counter[Attribute] = Counter()

    def add_record(self, record: Any) -> None:
        """Add an utterance, the start of robot speech, or one state of a flag. Ignores other records."""
        match record:
            case Utterance(final=True) if record.text.strip():
                self.add_speech(record.speaker, record.speaker_id)
            case RobotSpeech(state=SpeechEdge.START):
                self.add_speech(Speaker.ROBOT)
            case SocialFlag():
                self.add_flag(record)

    def add_speech(self, speaker: str, speaker_id: str = "") -> None:
        """Count a turn where the speaker changes."""
        who = (speaker, "" if speaker == Speaker.ROBOT else speaker_id)
        self.turn_count += who != self._last_speaker
        self._last_speaker = who

    def add_flag(self, flag: SocialFlag) -> None:
        """Add one state of a flag. Withdrawn flags do not count."""
        self._open_flags[flag.event_id] = flag
        if flag.state is FlagState.WITHDRAWN:
            del self._open_flags[flag.event_id]
        elif flag.state is FlagState.CLOSED:
            self._count(self._open_flags.pop(flag.event_id))

    def format(self) -> str:
        """Format the verdict, as in "12 turns: 2 errors (engagement 2) and 1 competence"."""
        for event_id in list(self._open_flags):
            self._count(self._open_flags.pop(event_id))
        attributes = ", ".join(f"{to_words(name.value)} {count}" for name, count in self._attributes.most_common())
        errors = count_of(self._error_count, "error") + (f" ({attributes})" if attributes else "")
        return f"{count_of(self.turn_count, 'turn')}: {errors} and {count_of(self._competence_count, 'competence')}"

    def _count(self, flag: SocialFlag) -> None:
        if flag.polarity is Polarity.ERROR:
            self._error_count += 1
            self._attributes.update(flag.attributes)
        else:
            self._competence_count += 1
