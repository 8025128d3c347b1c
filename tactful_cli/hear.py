"""`tactful hear`: run the speech path on a sound file or a bag."""

from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from norm_core.bags.reader import BagError, BagReader
from norm_core.health.counters import describe
from norm_core.health.health_log import HealthLog
from norm_core.records.messages import MessageError
from norm_core.records.speech import Utterance
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.time import NS_PER_MS, NS_PER_S, ns_to_s
from norm_core.runtime.wording import count_of
from norm_monitor.ears import Ears, HeardRecord
from norm_monitor.replay.bag_driver import (
    RecognizerTopics,
    find_likely_words_topics,
    find_robot_topics,
    sort_words_topics,
    take_words,
)
from norm_monitor.senses.microphone.audio_message import SoundFileError, decode, read_sound_file
from norm_monitor.senses.microphone.pcm import PcmFormat, SoundError
from norm_monitor.senses.robot_voice.robot_messages import NotRobotSpeechError, extract_sound
from norm_monitor.senses.speech.audio_front_end import HearingConfig
from norm_monitor.senses.speech.external_recognizer import NotSpeechError
from norm_monitor.senses.speech.whisper import Whisper, WhisperConfig
from tactful_cli.console import complain, err, print_json, print_table
from tactful_cli.verb_options import WHISPER_HELP, Language, RobotOffset, RobotTopics, WordsTopics, make_app

app = make_app()


@app.command()
def hear(  # noqa: PLR0917
    source: Annotated[Path, typer.Argument(metavar="FILE|BAG", help="Sound file (wav, flac, ...) or rosbag2 folder.")],
    channel: Annotated[int, typer.Option(min=-1, max=7, help="Audio channel to use; -1: the mean of all.")] = 0,
    topic: Annotated[str, typer.Option(help="Audio topic of the bag; default: the only one.")] = "",
    robot_topic: RobotTopics = None,
    words_topic: WordsTopics = None,
    language: Language = "en",
    model: Annotated[str, typer.Option(help=WHISPER_HELP)] = "",
    robot_offset_ms: RobotOffset = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print only JSON.")] = False,
) -> None:
    """Print who said what, and when, in a sound file or a bag."""
    config = HearingConfig(
        channel=channel,
        partial_every_s=0,
        whisper=WhisperConfig(model=model, language=language),
    )
    health_log = HealthLog()
    if source.is_dir():
        with BagReader(source) as bag:
            if topic:
                check_audio_topic(bag, topic, config.stated)
            robot_topics, words = (
                find_robot_topics(bag, robot_topic or ()),
                sort_words_topics(bag, words_topic or (), topic),
            )
            if not words.names:
                topic = topic or only_audio_topic(bag, config.stated, robot_topics)
            whisper = Whisper(config.whisper) if topic else None
            ears = Ears(config, health_log, whisper, topic, robot_offset_ns=robot_offset_ms * NS_PER_MS)
            start_ns = (bag.bounds_ns or (0, 0))[0]
            _show(_from_bag(bag, topic, robot_topics, words, ears), health_log, start_ns, as_json)
    else:
        # A file starts at one second, because a stamp of zero means "not set".
        ears = Ears(config, health_log, Whisper(config.whisper), str(source))
        _show(_from_file(source, ears, NS_PER_S), health_log, NS_PER_S, as_json)


def _show(heard: Iterator[HeardRecord], health_log: HealthLog, start_ns: int, as_json: bool) -> None:
    rows: list[dict[str, Any]] = []
    damage: BagError | None = None
    try:
        for heard_record in heard:
            if isinstance(heard_record, Utterance) and heard_record.final:  # the rest mark silence
                rows.append(_row(heard_record, start_ns))
    except BagError as error:
        damage = error
    if as_json:
        print_json(rows)
    elif rows:
        _print_table(rows)
    elif not damage:
        err.print("hear: no speech was found; name another --topic or --channel")
    for line in describe(health_log.counters):
        err.print(line)
    if damage:
        raise damage


def _from_file(path: Path, ears: Ears, start_ns: int) -> Iterator[HeardRecord]:
    if not path.exists():
        raise SoundFileError(f"{path}: there is no such file; check the path")
    for chunk in read_sound_file(path, start_ns):
        yield from ears.take_sound(chunk, start_ns)
    yield from ears.end_input()


def _from_bag(
    bag: BagReader, topic: str, robot_topics: Collection[str], words: RecognizerTopics, ears: Ears
) -> Iterator[HeardRecord]:
    """Feed the ears every message that concerns speech, in recorded order."""
    infos = {t.topic for t in bag.topics if t.type_name.endswith("/AudioInfo")}
    faults: Counter[str] = Counter()
    damage: BagError | None = None
    try:
        for stored in bag.messages({topic, *infos, *robot_topics, *words.names} - {""}):
            try:
                message = bag.decode(stored)
                yield from ears.advance(stored.stamp_ns)
                if stored.topic == topic:
                    yield from ears.take_audio(message, stored.stamp_ns)
                elif stored.topic in words.names:
                    yield from take_words(ears, words, stored, message)
                elif stored.topic in infos:
                    ears.set_audio_format(message)
                else:
                    yield from ears.take_robot_speech(message, stored.stamp_ns, stored.topic)
            except (SoundError, NotSpeechError, NotRobotSpeechError, MessageError, BagError) as error:
                if isinstance(error, SoundError) and error.fault == "audio_channel_missing":
                    raise SoundError(error.fault, f"{stored.topic}: {error}") from error
                faults[f"{stored.topic}: {error}"] += 1
    except BagError as error:
        damage = error
    yield from ears.end_input()
    for fault, count in faults.items():
        complain(f"{fault} ({count_of(count, 'message')} not used)")
    if damage:
        raise damage


def audio_topics(bag: BagReader, stated: PcmFormat) -> list[str]:
    """List the topics whose first message has the fields of an audio message."""
    return [t.topic for t in bag.topics if t.message_count and _is_sound(_read_first_message(bag, t.topic), stated)]


def only_audio_topic(bag: BagReader, stated: PcmFormat, robot_topics: Collection[str] = ()) -> str:
    """Find the bag's only audio topic beside the robot's. Raises BagError if there is none, or more than one."""
    audible = [topic for topic in audio_topics(bag, stated) if topic not in robot_topics]
    if len(audible) == 1:
        return audible[0]
    if not audible:
        likely = " or ".join(find_likely_words_topics(bag, robot_topics))
        remedy = f"name its people's words with --words-topic (as {likely}); " if likely else ""
        raise BagError(f"the bag has no audio topic; {remedy}{PROGRAM} bag info lists its topics")
    raise BagError(f"the bag's audio topics are {', '.join(audible)}; name one with --topic")


def check_audio_topic(bag: BagReader, topic: str, stated: PcmFormat) -> None:
    """Raise BagError where a topic's first message is not audio."""
    bag.check_topics([topic])
    if _is_sound(_read_first_message(bag, topic), stated):
        return
    summary = next(t for t in bag.topics if t.topic == topic)
    problem = f"holds {summary.type_name}, which is not audio" if summary.message_count else "holds no message"
    others = ", ".join(audio_topics(bag, stated)) or "none"
    raise BagError(f"{topic} {problem}; the bag's audio topics: {others}")


def _read_first_message(bag: BagReader, topic: str) -> Any:
    try:
        return next((bag.decode(message) for message in bag.messages([topic])), None)
    except (BagError, MessageError):  # a type without a definition cannot be decoded as audio
        return None


# A shorter array of numbers holds readings of something else.
_MIN_ARRAY = 80


def _is_sound(message: Any, stated: PcmFormat) -> bool:
    try:
        samples = decode(extract_sound(message), stated).samples
        return not hasattr(message, "layout") or samples.size >= _MIN_ARRAY
    except SoundError as error:
        return error.fault not in ("audio_type_unknown", "audio_without_info")
    except (TypeError, ValueError):
        return False


def _row(utterance: Utterance, start_ns: int) -> dict[str, Any]:
    def seconds(stamp_ns: int) -> float:
        return round(ns_to_s(stamp_ns - start_ns), 3)

    return {
        "speaker": utterance.speaker.value,
        "speaker_id": utterance.speaker_id,
        "text": utterance.text,
        "language": utterance.language,
        "start_s": seconds(utterance.start_ns),
        "end_s": seconds(utterance.end_ns),
        "confidence": None if utterance.confidence is None else round(utterance.confidence, 3),
        "overlap_s": round(ns_to_s(utterance.overlap_ns), 3),
        "words": [
            {
                "text": word.text,
                "start_s": seconds(word.start_ns),
                "end_s": seconds(word.end_ns),
                "probability": None if word.probability is None else round(word.probability, 3),
            }
            for word in utterance.words
        ],
    }


def _print_table(rows: list[dict[str, Any]]) -> None:
    table = Table("speaker", "language", "text", "start_s", "end_s", "confidence", "words")
    for row in rows:
        times = (f"{row['start_s']:.2f}", f"{row['end_s']:.2f}")
        columns = (row["speaker"], row["language"], row["text"])
        confidence = "–" if row["confidence"] is None else f"{row['confidence']:.2f}"
        table.add_row(*columns, *times, confidence, str(len(row["words"])))
    print_table(table)
