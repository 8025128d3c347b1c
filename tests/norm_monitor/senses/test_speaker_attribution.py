"""Whose words are whose in one segment of sound."""

import numpy as np

from norm_core.records.speech import Speaker, Timing, Utterance, Word
from norm_core.runtime.time import NS_PER_S, ns_to_s, s_to_ns
from norm_monitor.senses.robot_voice.robot_voice import RobotContext, RobotTurn
from norm_monitor.senses.robot_voice.speaker_attribution import AttributedSpeech, EchoLevel, attribute_words
from norm_monitor.senses.speech.recognition import RecognizedSpeech
from norm_monitor.senses.speech.segmenter import AudioSegment, SegmentStage

START_NS = 1_000 * NS_PER_S


def at(seconds: float) -> int:
    return START_NS + s_to_ns(seconds)


def robot_turn(start_s: float, end_s: float, text: str) -> RobotContext:
    turn = RobotTurn(
        speech_id="r",
        start_ns=at(start_s),
        end_ns=at(end_s),
        rings_until_ns=at(end_s),
        text=text,
        has_ended=True,
    )
    return RobotContext(turns=(turn,), is_known=True)


def attributed(robot: RobotContext, text: str, words_s: tuple[float, float], length_s: float) -> list[Utterance]:
    """Attribute evenly spread words in a segment that starts at second 0."""
    texts = text.split()
    bounds = np.linspace(*words_s, len(texts) + 1)
    words = tuple(
        Word(text=word, start_ns=at(start_s), end_ns=at(end_s))
        for word, start_s, end_s in zip(texts, bounds, bounds[1:], strict=False)
    )
    segment = AudioSegment(
        start_ns=at(0),
        end_ns=at(length_s),
        sound_ns=at(0),
        samples=np.zeros(int(16_000 * length_s), np.float32),
        timing=Timing.SOURCE,
        stage=SegmentStage.FINAL,
    )
    recognized = RecognizedSpeech(text=text, locale="en", words=words, confidence=0.9, no_speech_probability=0.0)
    heard = AttributedSpeech(segment=segment, recognized=recognized, robot=robot, source_topic="mic")
    return attribute_words(heard, EchoLevel())


def seconds(stamp_ns: int) -> float:
    return ns_to_s(stamp_ns - START_NS)


def test_a_question_ends_with_its_words_though_the_robot_talks_on() -> None:
    [utterance] = attributed(robot_turn(2, 14, "They met in the canteen."), "Why would you paint it?", (0, 2.4), 14)
    assert (utterance.speaker, seconds(utterance.start_ns), seconds(utterance.end_ns)) == (Speaker.USER, 0, 2.4)
    assert ns_to_s(utterance.overlap_ns) == 0.4


def test_words_over_a_garbled_robot_begin_at_their_own_time() -> None:
    [utterance] = attributed(robot_turn(0.5, 9, "They met in the canteen."), "Stop, that's not mine!", (7, 10), 10)
    assert (utterance.speaker, seconds(utterance.start_ns), seconds(utterance.end_ns)) == (Speaker.USER, 7, 10)


def test_a_person_alone_keeps_the_bounds_of_the_voice() -> None:
    [utterance] = attributed(robot_turn(9, 11, "You're welcome."), "Thank you so much.", (0.3, 1.5), 3)
    assert (seconds(utterance.start_ns), seconds(utterance.end_ns)) == (0, 3)


def test_a_number_in_digits_stays_with_the_words_before_it() -> None:
    robot = robot_turn(0, 9, "The lighthouse was built in eighteen eighty by two brothers.")
    utterances = attributed(robot, "The lighthouse was built in 1880 wait, I never asked for history!", (0, 6), 6)
    assert [(utterance.speaker, utterance.text) for utterance in utterances] == [
        (Speaker.ROBOT, "The lighthouse was built in 1880"),
        (Speaker.USER, "wait, I never asked for history!"),
    ]
