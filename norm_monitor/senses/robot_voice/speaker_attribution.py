"""Attribute words to the robot or the user by time, sound and loudness.

Each word has a weight for the robot or the user. The likeliest sequence of speakers is chosen; a change of speaker has
a cost. No word outside the robot's speech is the robot's. Balanced weights give an unknown speaker.
"""

import math
from collections import deque
from dataclasses import replace
from itertools import groupby
from statistics import median

import numpy as np

from norm_core.records.record import record
from norm_core.records.speech import Speaker, Utterance, Word
from norm_core.runtime.time import NS_PER_MS, NS_PER_S
from norm_monitor.context.spoken_words import join_words, likeness, normalize, reduce_to_consonants
from norm_monitor.senses.microphone.block_stream import RATE_HZ
from norm_monitor.senses.robot_voice.robot_voice import LEAD_NS, RobotContext
from norm_monitor.senses.speech.recognition import ESTIMATE_DIGITS, RecognizedSpeech
from norm_monitor.senses.speech.segmenter import AudioSegment, SegmentStage

_KEPT = 8
_FLOOR = 1e-10

# The longest delay of an echo after the robot's speech.
_ECHO_DELAY_NS = 400 * NS_PER_MS
# Weights in units of one fully recognized word of the robot's text; set by hand, not fitted.
_UNLIKE = 0.45  # a word less similar to the robot's text counts for the user
_PER_LIKENESS = 1.8
_LOUDER, _AS_LOUD = -1.5, 0.8
_BEGAN_TOGETHER, _BOTH_TOGETHER = 1.0, 2.0
_CHANGE = 1.5
_DOUBT, _DOUBT_UNTOLD = 0.3, 1.5  # the latter if the robot's text is unknown
_SURELY_ROBOT = 0.6
_CERTAIN = 1e6
# How long the robot must speak beyond a person's words before its voice is cut from their utterance.
_BEYOND_WORDS_NS = 800 * NS_PER_MS


def level_db(segment: AudioSegment, start_ns: int, end_ns: int) -> float:
    """Return the power of a stretch of a segment's sound in dB full scale."""
    first = max(0, (start_ns - segment.sound_ns) * RATE_HZ // NS_PER_S)
    last = max(first + 1, (end_ns - segment.sound_ns) * RATE_HZ // NS_PER_S)
    samples = segment.samples[first:last]
    return 10 * math.log10(max(float(np.mean(np.square(samples))) if len(samples) else 0.0, _FLOOR))


class EchoLevel:
    """The typical level of the robot's most recent words."""

    def __init__(self) -> None:
        self._levels_db: deque[float] = deque(maxlen=_KEPT)

    @property
    def usual_db(self) -> float | None:
        """The median level in dB full scale, or None before the first segment."""
        return median(self._levels_db) if self._levels_db else None

    def learn(self, level_db: float) -> None:
        """Add the level of a segment that is certainly the robot's."""
        self._levels_db.append(level_db)


@record
class AttributedSpeech:
    """One segment, its recognized text, and the robot's speech around it."""

    segment: AudioSegment
    recognized: RecognizedSpeech
    robot: RobotContext
    source_topic: str
    speaker_id: str = ""


def attribute_words(speech: AttributedSpeech, echo: EchoLevel, louder_db: float) -> list[Utterance]:
    """Return a segment's utterances: one, unless robot and user spoke in it in sequence."""
    segment, robot = speech.segment, speech.robot
    others = Speaker.USER if robot.is_known else Speaker.UNKNOWN
    if robot.late:
        return [_make_utterance(speech, Speaker.UNKNOWN)]
    words = speech.recognized.words
    timed = words or _spread_words(speech)
    in_robots_time = [robot.turn_at((word.start_ns + word.end_ns) // 2) is not None for word in timed]
    if not any(in_robots_time):
        return [_make_utterance(_cut_to_words(speech), others)]
    weights = _weigh_words(speech, timed, in_robots_time, echo.usual_db, louder_db)
    began, ended = _weigh_common_edges(segment, robot)
    robots = _find_robot_words(weights, began, ended, _CHANGE if words else _CERTAIN)
    if segment.final and words:
        _learn_echo(segment, robot, timed, robots, echo)
    if len(set(robots)) > 1:
        runs = [
            (own, [word for _, word in run]) for own, run in groupby(zip(robots, words, strict=True), lambda r: r[0])
        ]
        return [
            _make_part(speech, Speaker.ROBOT if own else others, run, i, len(runs)) for i, (own, run) in enumerate(runs)
        ]
    doubt = _DOUBT if any(turn.text for turn in robot.turns) else _DOUBT_UNTOLD
    if all(in_robots_time) and abs(began + ended + sum(weights)) < doubt:
        return [_make_utterance(speech, Speaker.UNKNOWN)]
    return [_make_utterance(speech, Speaker.ROBOT) if robots[0] else _make_utterance(_cut_to_words(speech), others)]


def attribute_text(utterance: Utterance, robot: RobotContext) -> Utterance:
    """Attribute an external recognizer's utterance by text and times alone, without its sound."""
    segment = AudioSegment(
        start_ns=utterance.start_ns,
        end_ns=utterance.end_ns,
        sound_ns=utterance.start_ns,
        samples=np.zeros(0, np.float32),
        timing=utterance.timing,
        stage=SegmentStage.FINAL if utterance.final else SegmentStage.PARTIAL,
    )
    recognized = RecognizedSpeech(
        text=utterance.text, locale=utterance.locale, words=(), confidence=1.0, no_speech_probability=0.0
    )
    speech = AttributedSpeech(segment=segment, recognized=recognized, robot=robot, source_topic=utterance.source_topic)
    (judged,) = attribute_words(speech, EchoLevel(), math.inf)
    # An external recognizer that identifies a voice means a person's, unless the robot was speaking.
    speaker = judged.speaker if robot.turns else utterance.speaker
    return replace(utterance, speaker=speaker, overlap_ns=judged.overlap_ns, late=judged.late)


def _weigh_words(
    speech: AttributedSpeech,
    words: tuple[Word, ...],
    in_robots_time: list[bool],
    echo_db: float | None,
    louder_db: float,
) -> list[float]:
    """Return each word's weight for the robot; below zero for the user."""
    robot_words = normalize(" ".join(turn.text for turn in speech.robot.turns))
    tokens = [normalize(word.text) for word in words]
    like = iter(likeness([token for of_word in tokens for token in of_word], robot_words))
    weights = []
    for word, of_word, inside in zip(words, tokens, in_robots_time, strict=True):
        alike = [next(like) for _ in of_word]
        # A short word matches easily in any text.
        bulk = min(1.0, sum(max(len(reduce_to_consonants(token)), 1) for token in of_word) / 3)
        weight = 0.0
        # A recognizer writes numbers in digits, which resemble no word and so tell nothing.
        if robot_words and alike and not all(token.isdigit() for token in of_word):
            weight += bulk * _PER_LIKENESS * (sum(alike) / len(alike) - _UNLIKE)
        if echo_db is not None and speech.recognized.words:
            above_db = level_db(speech.segment, word.start_ns, word.end_ns) - echo_db
            weight += bulk * (_LOUDER if above_db > louder_db else _AS_LOUD if above_db < louder_db / 2 else 0.0)
        weights.append(weight if inside else -_CERTAIN)
    return weights


def _weigh_common_edges(segment: AudioSegment, robot: RobotContext) -> tuple[float, float]:
    """Return the weights of a common start and of a common end of segment and robot speech."""
    for turn in robot.turns:
        if -LEAD_NS <= segment.start_ns - turn.start_ns <= _ECHO_DELAY_NS:
            if turn.has_ended and turn.end_ns - LEAD_NS <= segment.end_ns <= turn.rings_until_ns:
                return _BOTH_TOGETHER, _BOTH_TOGETHER
            return _BEGAN_TOGETHER, 0.0
    return 0.0, 0.0


def _find_robot_words(weights: list[float], began: float, ended: float, change: float) -> list[bool]:
    """Run Viterbi over the two speakers; True if the word is the robot's."""
    weights = [*weights]
    weights[0] += began
    weights[-1] += ended
    user, robot = 0.0, weights[0]
    came_from: list[tuple[bool, bool]] = []  # for user and robot: whether the robot spoke the word before
    for weight in weights[1:]:
        came_from.append((robot - change >= user, robot >= user - change))
        user, robot = max(user, robot - change), weight + max(robot, user - change)
    path = [robot > user]
    for of_user, of_robot in reversed(came_from):
        path.append(of_robot if path[-1] else of_user)
    return path[::-1]


def _learn_echo(
    segment: AudioSegment, robot: RobotContext, words: tuple[Word, ...], robots: list[bool], echo: EchoLevel
) -> None:
    """Learn the level of a segment that is certainly the robot's alone."""
    if not all(robots):
        return
    robot_words = normalize(" ".join(turn.text for turn in robot.turns))
    alike = likeness([token for word in words for token in normalize(word.text)], robot_words)
    if alike and sum(alike) / len(alike) >= _SURELY_ROBOT:
        echo.learn(level_db(segment, segment.start_ns, segment.end_ns))


def _spread_words(speech: AttributedSpeech) -> tuple[Word, ...]:
    """Spread words without times evenly."""
    texts = speech.recognized.text.split() or [speech.recognized.text]
    start_ns, length_ns = speech.segment.start_ns, speech.segment.end_ns - speech.segment.start_ns
    bounds = [start_ns + length_ns * index // len(texts) for index in range(len(texts) + 1)]
    return tuple(
        Word(text=text, start_ns=start, end_ns=end) for text, start, end in zip(texts, bounds, bounds[1:], strict=False)
    )


def _make_utterance(speech: AttributedSpeech, speaker: Speaker, index: int = 0) -> Utterance:
    segment, recognized = speech.segment, speech.recognized
    overlap_ns = 0 if speaker is Speaker.ROBOT else speech.robot.overlap_ns(segment.start_ns, segment.end_ns)
    return Utterance(
        stamp_ns=segment.start_ns,
        utterance_id=f"{speech.source_topic}@{segment.start_ns}" + (f"#{index}" if index else ""),
        speaker=speaker,
        speaker_id="" if speaker is Speaker.ROBOT else speech.speaker_id,
        text=recognized.text,
        locale=recognized.locale,
        start_ns=segment.start_ns,
        end_ns=segment.end_ns,
        words=recognized.words,
        confidence=recognized.confidence,
        no_speech_probability=recognized.no_speech_probability,
        overlap_ns=overlap_ns,
        final=segment.final,
        timing=segment.timing,
        late=speech.robot.late,
        source_topic=speech.source_topic,
    )


def _cut_to_words(speech: AttributedSpeech) -> AttributedSpeech:
    """Cut the robot's unrecognized voice before and after a person's words from their segment."""
    segment, words = speech.segment, speech.recognized.words
    if not words:
        return speech
    first_ns, last_ns = max(words[0].start_ns, segment.start_ns), min(words[-1].end_ns, segment.end_ns)
    is_late = speech.robot.overlap_ns(segment.start_ns, first_ns) > _BEYOND_WORDS_NS
    is_early = speech.robot.overlap_ns(last_ns, segment.end_ns) > _BEYOND_WORDS_NS
    start_ns, end_ns = first_ns if is_late else segment.start_ns, last_ns if is_early else segment.end_ns
    return replace(speech, segment=replace(segment, start_ns=start_ns, end_ns=max(start_ns, end_ns)))


def _make_part(speech: AttributedSpeech, speaker: Speaker, words: list[Word], index: int, parts: int) -> Utterance:
    """Return one speaker's run of words; it starts or ends with the segment at the edges."""
    segment, recognized = speech.segment, speech.recognized
    start_ns = segment.start_ns if index == 0 else max(words[0].start_ns, segment.start_ns)
    end_ns = max(start_ns, segment.end_ns if index == parts - 1 else words[-1].end_ns)
    probabilities = [word.probability for word in words if word.probability is not None]
    part = replace(
        speech,
        segment=replace(segment, start_ns=start_ns, end_ns=end_ns),
        recognized=replace(
            recognized,
            text=join_words(word.text for word in words),
            words=tuple(words),
            confidence=round(sum(probabilities) / len(probabilities), ESTIMATE_DIGITS)
            if probabilities
            else recognized.confidence,
        ),
    )
    return _make_utterance(part if speaker is Speaker.ROBOT else _cut_to_words(part), speaker, index)
