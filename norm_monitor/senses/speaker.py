"""Who said what was heard: the robot's own words are told from the user's by time and by text."""

from itertools import groupby

from norm_core.speech import Speaker, Utterance, Word
from norm_core.time import NS_PER_MS
from norm_monitor.senses.recognised import Recognised
from norm_monitor.senses.robot_voice import RobotVoice
from norm_monitor.senses.segments import Segment
from norm_monitor.senses.words import normalised, share_found

# A word may be timed this far before the robot's speech and still be its own.
_LEAD_NS = 200 * NS_PER_MS


def attribute(
    segment: Segment, heard: Recognised, robot: RobotVoice, same_words: float, source_topic: str
) -> list[Utterance]:
    """The utterances in one segment: one, unless robot and user spoke in it one after the other."""
    others = Speaker.USER if robot.was_heard_of else Speaker.UNKNOWN
    turns = robot.turns(segment.start_ns - _LEAD_NS, segment.end_ns + _LEAD_NS, tail=True)
    if not turns:
        return [_utterance(segment, heard, robot, others, source_topic)]

    def within(word: Word) -> bool:
        middle_ns = (word.start_ns + word.end_ns) // 2
        return any(start_ns - _LEAD_NS <= middle_ns <= end_ns for start_ns, end_ns, _ in turns)

    said = [text for *_, turn in turns for text in normalised(turn.text)]
    inside = [word for word in heard.words if within(word)]
    whole_lies_within = len(inside) == len(heard.words) and (
        bool(inside) or robot.overlap_ns(segment.start_ns, segment.end_ns) > 0
    )
    words = normalised(" ".join(word.text for word in inside)) if inside else normalised(heard.text)
    if not said:  # its text is unknown, so only the time tells
        speaker = Speaker.UNKNOWN if whole_lies_within else others
        return [_utterance(segment, heard, robot, speaker, source_topic)]
    if share_found(words, said) < same_words or not (inside or whole_lies_within):
        return [_utterance(segment, heard, robot, others, source_topic)]
    if whole_lies_within:
        return [_utterance(segment, heard, robot, Speaker.ROBOT, source_topic)]
    runs = [(robots, list(words)) for robots, words in groupby(heard.words, within)]
    return [
        _part(segment, heard, robot, Speaker.ROBOT if robots else others, source_topic, words, index, len(runs))
        for index, (robots, words) in enumerate(runs)
    ]


def _utterance(
    segment: Segment, heard: Recognised, robot: RobotVoice, speaker: Speaker, source_topic: str
) -> Utterance:
    return Utterance(
        stamp_ns=segment.start_ns,
        utterance_id=f"{source_topic}@{segment.start_ns}",
        speaker=speaker,
        text=heard.text,
        locale=heard.locale,
        start_ns=segment.start_ns,
        end_ns=segment.end_ns,
        words=heard.words,
        confidence=heard.confidence,
        no_speech_probability=heard.no_speech_probability,
        overlap_ns=0 if speaker is Speaker.ROBOT else robot.overlap_ns(segment.start_ns, segment.end_ns),
        final=segment.final,
        timing=segment.timing,
        source_topic=source_topic,
    )


def _part(  # noqa: PLR0917
    segment: Segment,
    heard: Recognised,
    robot: RobotVoice,
    speaker: Speaker,
    source_topic: str,
    words: list[Word],
    index: int,
    parts: int,
) -> Utterance:
    """One speaker's run of words; the segment's own bounds hold at its ends."""
    bounds = Segment(
        start_ns=segment.start_ns if index == 0 else max(words[0].start_ns, segment.start_ns),
        end_ns=segment.end_ns if index == parts - 1 else words[-1].end_ns,
        sound_ns=segment.sound_ns,
        samples=segment.samples,
        timing=segment.timing,
        final=segment.final,
    )
    probabilities = [word.probability for word in words if word.probability is not None]
    part = Recognised(
        text=" ".join(word.text for word in words),
        locale=heard.locale,
        words=tuple(words),
        confidence=sum(probabilities) / len(probabilities) if probabilities else heard.confidence,
        no_speech_probability=heard.no_speech_probability,
    )
    return _utterance(bounds, part, robot, speaker, source_topic)
