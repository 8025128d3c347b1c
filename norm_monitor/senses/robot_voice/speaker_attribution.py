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

# The number of segments from which the level of the robot's echo is learnt.
_MAX_LEVELS = 8
# The power that stands for silence, whose logarithm is finite.
_MIN_POWER = 1e-10
# The longest delay of an echo after the robot's speech.
_MAX_ECHO_DELAY_NS = 400 * NS_PER_MS
# How long the robot must speak beyond a person's words before its voice is cut from their utterance.
_MIN_ROBOT_ALONE_NS = 800 * NS_PER_MS

# All weights are in units of one fully recognized word of the robot's text. They are set by hand, not fitted.
# A word that is less similar to the robot's text counts for the user.
_LIKENESS_THRESHOLD = 0.45
_WEIGHT_PER_LIKENESS = 1.8
# Sound that exceeds the usual echo by more is a person.
_LOUDER_DB = 6.0
# A word that is louder than the usual echo, and one that is about as loud.
_LOUDER_WEIGHT = -1.5
_AS_LOUD_WEIGHT = 0.8
# Segment and robot speech start together, and both start and end together.
_START_WEIGHT = 1.0
_START_AND_END_WEIGHT = 2.0
# The cost of a change of speaker within a segment.
_CHANGE_COST = 1.5
# A sum closer to zero leaves the speaker unknown; the second one if the robot's text is unknown.
_MIN_SUM = 0.3
_MIN_SUM_WITHOUT_TEXT = 1.5
# The mean similarity from which a segment is certainly the robot's.
_CERTAIN_LIKENESS = 0.6
# A weight that no other evidence outweighs.
_CERTAIN_WEIGHT = 1e6


def measure_level_db(segment: AudioSegment, start_ns: int, end_ns: int) -> float:
    """Return the power of a part of a segment's sound, in dB full scale."""
    first = max(0, (start_ns - segment.sound_ns) * RATE_HZ // NS_PER_S)
    last = max(first + 1, (end_ns - segment.sound_ns) * RATE_HZ // NS_PER_S)
    samples = segment.samples[first:last]
    return 10 * math.log10(max(float(np.mean(np.square(samples))) if len(samples) else 0.0, _MIN_POWER))


class EchoLevel:
    """The typical level of the robot's most recent words."""

    def __init__(self) -> None:
        self._levels_db: deque[float] = deque(maxlen=_MAX_LEVELS)

    @property
    def usual_db(self) -> float | None:
        """The median level in dB full scale; None before the first segment."""
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


def attribute_words(speech: AttributedSpeech, echo: EchoLevel) -> list[Utterance]:
    """Return a segment's utterances: one, unless robot and user spoke in it in sequence."""
    segment, robot = speech.segment, speech.robot
    others = Speaker.USER if robot.is_known else Speaker.UNKNOWN
    if robot.late:
        return [_make_utterance(speech, Speaker.UNKNOWN)]
    words = speech.recognized.words
    timed_words = words or _spread_words(speech)
    are_audible = [robot.turn_at((word.start_ns + word.end_ns) // 2) is not None for word in timed_words]
    if not any(are_audible):
        return [_make_utterance(_cut_to_words(speech), others)]
    weights = _weigh_words(speech, timed_words, are_audible, echo.usual_db)
    start_weight, end_weight = _weigh_common_edges(segment, robot)
    change_cost = _CHANGE_COST if words else _CERTAIN_WEIGHT
    are_robots = _find_robot_words(weights, start_weight, end_weight, change_cost)
    if segment.final and words:
        _learn_echo(segment, robot, timed_words, are_robots, echo)
    if len(set(are_robots)) > 1:
        runs = [
            (is_robot, [word for _, word in run])
            for is_robot, run in groupby(zip(are_robots, words, strict=True), lambda pair: pair[0])
        ]
        return [
            _make_part(speech, Speaker.ROBOT if is_robot else others, run, index, len(runs))
            for index, (is_robot, run) in enumerate(runs)
        ]
    min_sum = _MIN_SUM if any(turn.text for turn in robot.turns) else _MIN_SUM_WITHOUT_TEXT
    if all(are_audible) and abs(start_weight + end_weight + sum(weights)) < min_sum:
        return [_make_utterance(speech, Speaker.UNKNOWN)]
    return [_make_utterance(speech, Speaker.ROBOT) if are_robots[0] else _make_utterance(_cut_to_words(speech), others)]


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
    (attributed,) = attribute_words(speech, EchoLevel())
    # A voice that an external recognizer identifies is a person's, unless the robot was speaking.
    speaker = attributed.speaker if robot.turns else utterance.speaker
    return replace(utterance, speaker=speaker, overlap_ns=attributed.overlap_ns, late=attributed.late)


def _weigh_words(
    speech: AttributedSpeech,
    words: tuple[Word, ...],
    are_audible: list[bool],
    echo_db: float | None,
) -> list[float]:
    """Return the weight of each word for the robot, which is negative for the user."""
    robot_words = normalize(" ".join(turn.text for turn in speech.robot.turns))
    tokens = [normalize(word.text) for word in words]
    likenesses = iter(likeness([token for word_tokens in tokens for token in word_tokens], robot_words))
    weights = []
    for word, word_tokens, is_audible in zip(words, tokens, are_audible, strict=True):
        word_likenesses = [next(likenesses) for _ in word_tokens]
        # A short word matches easily in any text, so it weighs less.
        length_factor = min(1.0, sum(max(len(reduce_to_consonants(token)), 1) for token in word_tokens) / 3)
        weight = 0.0
        # A recognizer writes numbers in digits, which resemble no word, so they are no evidence.
        if robot_words and word_likenesses and not all(token.isdigit() for token in word_tokens):
            mean_likeness = sum(word_likenesses) / len(word_likenesses)
            weight += length_factor * _WEIGHT_PER_LIKENESS * (mean_likeness - _LIKENESS_THRESHOLD)
        if echo_db is not None and speech.recognized.words:
            above_db = measure_level_db(speech.segment, word.start_ns, word.end_ns) - echo_db
            if above_db > _LOUDER_DB:
                weight += length_factor * _LOUDER_WEIGHT
            elif above_db < _LOUDER_DB / 2:
                weight += length_factor * _AS_LOUD_WEIGHT
        weights.append(weight if is_audible else -_CERTAIN_WEIGHT)
    return weights


def _weigh_common_edges(segment: AudioSegment, robot: RobotContext) -> tuple[float, float]:
    """Return the weights of a common start and of a common end of segment and robot speech."""
    for turn in robot.turns:
        if -LEAD_NS <= segment.start_ns - turn.start_ns <= _MAX_ECHO_DELAY_NS:
            if turn.has_ended and turn.end_ns - LEAD_NS <= segment.end_ns <= turn.rings_until_ns:
                return _START_AND_END_WEIGHT, _START_AND_END_WEIGHT
            return _START_WEIGHT, 0.0
    return 0.0, 0.0


def _find_robot_words(weights: list[float], start_weight: float, end_weight: float, change_cost: float) -> list[bool]:
    """Run Viterbi over the two speakers, and return for each word whether it is the robot's."""
    weights = [*weights]
    weights[0] += start_weight
    weights[-1] += end_weight
    user_sum, robot_sum = 0.0, weights[0]
    came_from: list[tuple[bool, bool]] = []  # for user and robot: whether the robot spoke the word before
    for weight in weights[1:]:
        came_from.append((robot_sum - change_cost >= user_sum, robot_sum >= user_sum - change_cost))
        best_user_sum = max(user_sum, robot_sum - change_cost)
        robot_sum = weight + max(robot_sum, user_sum - change_cost)
        user_sum = best_user_sum
    path = [robot_sum > user_sum]
    for before_user, before_robot in reversed(came_from):
        path.append(before_robot if path[-1] else before_user)
    return path[::-1]


def _learn_echo(
    segment: AudioSegment, robot: RobotContext, words: tuple[Word, ...], are_robots: list[bool], echo: EchoLevel
) -> None:
    """Learn the level of a segment that is certainly the robot's alone."""
    if not all(are_robots):
        return
    robot_words = normalize(" ".join(turn.text for turn in robot.turns))
    likenesses = likeness([token for word in words for token in normalize(word.text)], robot_words)
    if likenesses and sum(likenesses) / len(likenesses) >= _CERTAIN_LIKENESS:
        echo.learn(measure_level_db(segment, segment.start_ns, segment.end_ns))


def _spread_words(speech: AttributedSpeech) -> tuple[Word, ...]:
    """Spread words without times evenly over their segment."""
    texts = speech.recognized.text.split() or [speech.recognized.text]
    start_ns = speech.segment.start_ns
    length_ns = speech.segment.end_ns - start_ns
    bounds = [start_ns + length_ns * index // len(texts) for index in range(len(texts) + 1)]
    return tuple(
        Word(text=text, start_ns=start, end_ns=end) for text, start, end in zip(texts, bounds, bounds[1:], strict=False)
    )


def _make_utterance(speech: AttributedSpeech, speaker: Speaker, index: int = 0) -> Utterance:
    """Make the utterance of a whole segment, or of its part with an index."""
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
    """Cut the unrecognized robot speech before and after a person's words from their segment."""
    segment, words = speech.segment, speech.recognized.words
    if not words:
        return speech
    first_ns = max(words[0].start_ns, segment.start_ns)
    last_ns = min(words[-1].end_ns, segment.end_ns)
    is_robot_before = speech.robot.overlap_ns(segment.start_ns, first_ns) > _MIN_ROBOT_ALONE_NS
    is_robot_after = speech.robot.overlap_ns(last_ns, segment.end_ns) > _MIN_ROBOT_ALONE_NS
    start_ns = first_ns if is_robot_before else segment.start_ns
    end_ns = last_ns if is_robot_after else segment.end_ns
    return replace(speech, segment=replace(segment, start_ns=start_ns, end_ns=max(start_ns, end_ns)))


def _make_part(speech: AttributedSpeech, speaker: Speaker, words: list[Word], index: int, count: int) -> Utterance:
    """Make the utterance of one speaker's run of words. The first and the last run reach to the segment's edges."""
    segment, recognized = speech.segment, speech.recognized
    start_ns = segment.start_ns if index == 0 else max(words[0].start_ns, segment.start_ns)
    end_ns = max(start_ns, segment.end_ns if index == count - 1 else words[-1].end_ns)
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
