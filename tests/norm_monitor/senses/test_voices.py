"""Whose words: a recognizer's texts, the voices of REP-155, their persons, and the robot's turns that answer them."""

from collections.abc import Iterable
from types import SimpleNamespace as Fields
from typing import Any

import pytest

from norm_core.health.health_log import HealthLog
from norm_core.records.speech import RobotSpeech, SpeechEdge, Timing, Utterance
from norm_core.runtime.time import NS_PER_S, s_to_ns
from norm_monitor.assessment.unit import Unit
from norm_monitor.context.turns import turns_of
from norm_monitor.ears import Ears
from norm_monitor.senses.speech.audio_front_end import HearingConfig
from norm_monitor.senses.speech.external_recognizer import LiveSpeechAdapter
from norm_monitor.senses.speech.voices import MAX_VOICES, VOICE_TEXTS, Voices

START_NS = 1_000 * NS_PER_S


def header(stamp_ns: int) -> Fields:
    return Fields(stamp=Fields(sec=stamp_ns // NS_PER_S, nanosec=stamp_ns % NS_PER_S), frame_id="")


def said(text: str, stamp_ns: int = 0) -> Fields:
    return Fields(header=header(stamp_ns), incremental="", final=text, confidence=1.0, locale="en")


def match(voice_id: str, person_id: str, confidence: float) -> Fields:
    return Fields(id1=person_id, id1_type=1, id2=voice_id, id2_type=4, confidence=confidence)


def ids(*tracked: str, at_s: float = 0) -> Fields:
    return Fields(header=header(START_NS + s_to_ns(at_s) if at_s else 0), ids=list(tracked))


class Hearing:
    """Ears that take messages about voices, each at its time."""

    def __init__(self) -> None:
        self.health_log = HealthLog()
        self.ears = Ears(HearingConfig(), self.health_log)
        self.ears.expect_words(f"/humans/{VOICE_TEXTS}")
        self.records: list[Utterance] = []

    def take(self, at_s: float, topic: str, message: Any) -> None:
        arrival_ns = START_NS + s_to_ns(at_s)
        heard = [*self.ears.advance(arrival_ns), *self.ears.take_voice(message, arrival_ns, topic)]
        self.records += [record for record in heard if isinstance(record, Utterance)]

    def speak(self, at_s: float, voice_id: str, text: str) -> str:
        """One second of speech and its text; returns the speaker."""
        for later_s, speaking in ((0, True), (1, False)):
            self.take(at_s + later_s, f"voices/{voice_id}/is_speaking", Fields(data=speaking))
        self.take(at_s + 1.1, f"voices/{voice_id}/speech", said(text))
        return self.records[-1].speaker_id

    @property
    def words(self) -> list[Utterance]:
        return [record for record in self.records if record.text]


@pytest.fixture
def hearing() -> Hearing:
    return Hearing()


@pytest.mark.parametrize(
    ("messages", "speaker_id"),
    [
        ([], "v1"),
        ([("persons/ann/voice_id", Fields(data="v1"))], "ann"),
        ([("persons/ann/voice_id", Fields(data="v1")), ("persons/ann/voice_id", Fields(data=""))], "v1"),
        ([("persons/ann/voice_id", Fields(data="v1")), ("persons/bob/voice_id", Fields(data="v1"))], "bob"),
        ([("persons/ann/voice_id", Fields(data="v2")), ("candidate_matches", match("v1", "bob", 0.5))], "v1"),
        ([("candidate_matches", match("v1", person, how)) for person, how in (("ann", 0.6), ("bob", 0.8))], "bob"),
        ([("candidate_matches", match("v1", "ann", how)) for how in (0.9, 0.0)], "v1"),
        ([("persons/ann/voice_id", Fields(data="v1")), ("candidate_matches", match("v1", "bob", 0.9))], "ann"),
        ([("candidate_matches", Fields(id1="f", id1_type=2, id2="v1", id2_type=4, confidence=0.9))], "v1"),
    ],
)
def test_words_are_of_the_person_whose_voice_it_is(
    hearing: Hearing, messages: Iterable[tuple[str, Any]], speaker_id: str
) -> None:
    for topic, message in messages:
        hearing.take(0, topic, message)
    assert hearing.speak(1, "v1", "Hello.") == speaker_id


def test_the_anonymous_voice_has_no_speaker(hearing: Hearing) -> None:
    """PAL's recognizer gives all words to one voice, for which its tracker of persons makes up a person."""
    hearing.take(0, "persons/anonymous_person_1/voice_id", Fields(data="anonymous_speaker"))
    assert hearing.speak(1, "anonymous_speaker", "Hello.") == ""
    hearing.take(3, "candidate_matches", match("anonymous_speaker", "ann", 0.9))
    assert hearing.speak(4, "anonymous_speaker", "Hello.") == "ann"


def test_a_late_text_keeps_the_person_of_its_speech(hearing: Hearing) -> None:
    hearing.take(0, "voices/tracked", ids("v1"))
    hearing.take(0, "persons/ann/voice_id", Fields(data="v1"))
    hearing.take(1, "voices/v1/is_speaking", Fields(data=True))
    hearing.take(2, "persons/ann/voice_id", Fields(data=""))
    hearing.take(2, "voices/tracked", ids())  # ends the speech, of which no edge tells
    hearing.take(3, "voices/v1/speech", said("Hello."))
    assert [(word.speaker_id, word.start_ns, word.end_ns) for word in hearing.words] == [
        ("ann", START_NS + NS_PER_S, START_NS + 2 * NS_PER_S)
    ]
    assert hearing.speak(60, "v1", "Who?") == "v1"  # its id was given to another voice


def test_overlapping_voices_have_their_own_times_without_silence_between(hearing: Hearing) -> None:
    for at_s, voice, speaking in ((1, "a", True), (2, "b", True), (2.5, "a", False), (3, "b", False)):
        hearing.take(at_s, f"voices/{voice}/is_speaking", Fields(data=speaking))
    hearing.take(3.2, "voices/b/speech", said("Second."))
    assert max(record.end_ns for record in hearing.records if not record.text) <= START_NS + NS_PER_S
    hearing.take(3.4, "voices/a/speech", said("First."))
    hearing.take(3.6, "voices/tracked", ids("a", "b", "never_spoke"))
    spans = {word.speaker_id: (word.start_ns - START_NS, word.end_ns - START_NS) for word in hearing.words}
    assert spans == {"a": (s_to_ns(1), s_to_ns(2.5)), "b": (s_to_ns(2), s_to_ns(3))}
    assert hearing.records[-1].start_ns == START_NS + s_to_ns(3.6)  # by now, silence
    assert {word.source_topic for word in hearing.words} == {"/humans/voices/a/speech", "/humans/voices/b/speech"}
    assert len({word.utterance_id for word in hearing.words}) == 2


def test_a_late_list_of_voices_is_counted_and_ends_no_speech(hearing: Hearing) -> None:
    hearing.take(1, "voices/tracked", ids("v1", at_s=1))
    hearing.take(1, "voices/v1/is_speaking", Fields(data=True))
    hearing.take(2, "voices/tracked", ids(at_s=0.5))
    hearing.take(3, "voices/v1/is_speaking", Fields(data=False))
    hearing.take(3, "voices/v1/speech", said("Hello."))
    assert hearing.words[0].end_ns == START_NS + 3 * NS_PER_S
    assert {counter.name: counter.count for counter in hearing.health_log.counters} == {"voice_lists_late": 1}


def test_voices_are_bounded() -> None:
    voices = Voices("/humans/voices/{}/speech")
    for number in range(3 * MAX_VOICES):
        voices.set_speaking(True, START_NS + number, f"v{number}")
    assert voices.quiet_until_ns(START_NS + NS_PER_S) == START_NS + 2 * MAX_VOICES  # the oldest are gone


def edges(at_s: float, until_s: float) -> list[RobotSpeech]:
    stamped = ((at_s, SpeechEdge.START), (until_s, SpeechEdge.STOP))
    return [
        RobotSpeech(stamp_ns=START_NS + s_to_ns(edge_s), speech_id=f"{at_s}", state=state, text="Well.")
        for edge_s, state in stamped
    ]


@pytest.mark.parametrize(
    ("speakers", "addressees"),
    [
        (("ann", "ann"), ["", "ann", "ann"]),
        (("ann", "bob"), ["", "", ""]),
        (("ann", ""), ["", "", ""]),
        (("", ""), ["", "", ""]),
    ],
)
def test_a_robot_turn_has_the_person_id_of_the_only_speaker(
    hearing: Hearing, speakers: tuple[str, str], addressees: list[str]
) -> None:
    for at_s, speaker in zip((3, 6), speakers, strict=True):
        hearing.speak(at_s, speaker or "anonymous_speaker", "Hello.")
    robot = [*edges(0, 1), *edges(9, 10), *edges(12, 13)]
    turns = turns_of(hearing.words, robot, START_NS + 20 * NS_PER_S)
    assert [Unit.of_turn(turn).person_id for turn in turns if turn.is_robot] == addressees
    assert [Unit.of_turn(turn).person_id for turn in turns if not turn.is_robot] == list(speakers)


AT_NS = 1_000 * NS_PER_S
HEADER = Fields(stamp=Fields(sec=1_000, nanosec=0), frame_id="")


@pytest.mark.parametrize(
    ("fields", "locale"),
    [({"language": "en"}, "en"), ({"locale": "en_US", "language": "en"}, "en-US"), ({"locale": "zh_CN"}, "zh-CN")],
)
def test_live_speech_is_timed_by_the_edges_of_is_speaking(fields: dict[str, str], locale: str) -> None:
    adapter = LiveSpeechAdapter("/humans/voices/v1/speech")
    adapter.set_speaking(True, AT_NS - 3 * NS_PER_S)
    adapter.set_speaking(False, AT_NS - NS_PER_S)
    message = Fields(header=HEADER, incremental="", final="hello there", confidence=0.8, **fields)
    utterance = adapter.take_text(message, AT_NS, "v1")
    assert utterance is not None
    assert (utterance.start_ns, utterance.end_ns) == (AT_NS - 3 * NS_PER_S, AT_NS - NS_PER_S)
    assert (utterance.text, utterance.locale, utterance.speaker_id) == ("hello there", locale, "v1")
    assert (utterance.final, utterance.timing) == (True, Timing.ARRIVAL)


def test_live_speech_without_edges_has_no_times() -> None:
    message = Fields(header=HEADER, incremental="hel", final="", confidence=0.0, locale="en")
    utterance = LiveSpeechAdapter("/speech").take_text(message, AT_NS)
    assert utterance is not None
    assert (utterance.timing, utterance.final, utterance.confidence) == (Timing.ABSENT, False, None)
