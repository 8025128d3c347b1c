"""Utterances and the robot's own speech, with speakers and times."""

from enum import StrEnum

from norm_core.records.record import record


class Speaker(StrEnum):
    """The speaker of an utterance."""

    UNKNOWN = "unknown"
    ROBOT = "robot"
    USER = "user"


# What a speaker is called where people look.
SPEAKER_NAMES = {Speaker.ROBOT: "robot", Speaker.USER: "person", Speaker.UNKNOWN: "someone"}


class Timing(StrEnum):
    """The origin of an utterance's times."""

    SOURCE = "source"  # stamped by the recording device
    ARRIVAL = "arrival"  # degraded: stamped on arrival
    ABSENT = "absent"  # no usable times


class SpeechEdge(StrEnum):
    """The start or stop of speech."""

    START = "start"
    STOP = "stop"


class SpeechContent(StrEnum):
    """The content of a topic about the robot's speech."""

    WORDS = "words"
    TIMES = "times"
    SOUND = "sound"
    NOTHING = "nothing"


@record
class Word:
    """One recognized word with its times."""

    text: str
    start_ns: int
    end_ns: int
    probability: float | None = None


@record
class Utterance:
    """One stretch of speech by one speaker; `stamp_ns` is its onset."""

    stamp_ns: int
    frame_id: str = ""
    utterance_id: str
    speaker: Speaker
    speaker_id: str = ""
    text: str
    locale: str = ""
    start_ns: int
    end_ns: int
    words: tuple[Word, ...] = ()
    confidence: float | None = None
    no_speech_probability: float | None = None
    overlap_ns: int = 0
    final: bool = True
    timing: Timing = Timing.SOURCE
    late: bool = False  # news of the robot's speech came too late to identify the speaker
    source_topic: str = ""

    @property
    def language(self) -> str:
        """The language part of the locale, such as zh; empty where it is unknown."""
        return self.locale.replace("_", "-").partition("-")[0].lower()


def make_silence_mark(until_ns: int, source_topic: str, *, is_rough: bool = False) -> Utterance:
    """Return a mark that no later utterance starts before `until_ns`; it moves the source's watermark.

    `is_rough` states that what came since the mark before came late, so that no timing is to be trusted.
    """
    return Utterance(
        stamp_ns=until_ns,
        utterance_id=f"{source_topic}@silence",
        speaker=Speaker.UNKNOWN,
        text="",
        start_ns=until_ns,
        end_ns=until_ns,
        final=False,
        timing=Timing.ABSENT if is_rough else Timing.SOURCE,
        source_topic=source_topic,
    )


@record
class RobotSpeech:
    """The start or stop of the robot's own speech; `estimated` if the source does not give the time."""

    stamp_ns: int
    frame_id: str = ""
    speech_id: str
    state: SpeechEdge
    text: str = ""
    locale: str = ""
    estimated: bool = False
