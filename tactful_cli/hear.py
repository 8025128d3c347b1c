"""`tactful hear`: the speech path over a sound file or a bag."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from norm_core.bags.reader import BagError, BagReader
from norm_core.speech import RobotSpeech, Utterance
from norm_core.time import ns_to_s
from norm_monitor.senses.audio_message import SoundChunk, decode
from norm_monitor.senses.hearing import HearingConfig, Listener, Scribe
from norm_monitor.senses.pcm import SoundError
from norm_monitor.senses.segments import Segment, SegmentConfig
from norm_monitor.senses.sound_file import SoundFileError, chunks_of
from norm_monitor.senses.whisper import Whisper, WhisperConfig
from tactful_cli.console import complain, err, out, print_json
from tactful_cli.verb import single

app = single()


@app.command()
def hear(  # noqa: PLR0917
    source: Annotated[Path, typer.Argument(metavar="FILE|BAG", help="Sound file (wav, flac, ...) or rosbag2 folder.")],
    channel: Annotated[int, typer.Option(min=-1, max=7, help="Channel to hear; -1 for the mean of all.")] = 0,
    topic: Annotated[str, typer.Option(help="Audio topic of the bag; the only one where it is left out.")] = "",
    language: Annotated[str, typer.Option(help="Language code, as en or zh.")] = "en",
    model: Annotated[str, typer.Option(help="Folder of a CTranslate2 Whisper model; the packaged one if empty.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON alone.")] = False,
) -> None:
    """Print who said what, and when, in a sound file or a bag."""
    config = HearingConfig(
        channel=channel,
        segments=SegmentConfig(partial_every_s=0),
        whisper=WhisperConfig(model=model, language=language),
    )
    scribe = Scribe(config, Whisper(config.whisper), str(source))
    listener = Listener(config)
    start_ns, segments = _from_bag(source, topic, listener, scribe) if source.is_dir() else _from_file(source, listener)
    utterances = [utterance for segment in segments for utterance in scribe.write(segment)]
    rows = [_row(utterance, start_ns) for utterance in utterances]
    if as_json:
        print_json(rows)
    else:
        _print_table(rows)
    for name, count in sorted((listener.counts + scribe.counts).items()):
        err.print(f"{name}: {count}")


def _from_file(path: Path, listener: Listener) -> tuple[int, Iterator[Segment]]:
    if not path.exists():
        raise SoundFileError(f"{path}: there is no such file")
    # A file begins at one second, as a stamp of zero would be one that was never set.
    start_ns = 1_000_000_000

    def segments() -> Iterator[Segment]:
        for chunk in chunks_of(path, start_ns):
            yield from listener.hear(chunk, start_ns)
        yield from listener.flush()

    return start_ns, segments()


def _from_bag(path: Path, topic: str, listener: Listener, scribe: Scribe) -> tuple[int, Iterator[Segment]]:
    with BagReader(path) as bag:
        topic = topic or _only_audio_topic(bag, listener)
        wanted = [t.topic for t in bag.topics if t.topic == topic or t.type_name == "norm_interfaces/msg/RobotSpeech"]
        entries = [(message.stamp_ns, bag.decode(message), message.topic) for message in bag.messages(wanted)]
        bounds = bag.bounds_ns
    for _, message, _ in entries:
        if isinstance(message, RobotSpeech):
            scribe.robot_speaks(message)
    sounds = [(stamp_ns, message) for stamp_ns, message, name in entries if name == topic]
    faults: Counter[str] = Counter()

    def segments() -> Iterator[Segment]:
        for stamp_ns, message in sounds:
            try:
                yield from listener.hear_message(message, stamp_ns)
            except SoundError as error:
                faults[str(error)] += 1
        yield from listener.flush()
        for fault, count in faults.items():
            complain(f"{topic}: {count} messages not heard: {fault}")

    return (bounds or (0, 0))[0], segments()


def _only_audio_topic(bag: BagReader, listener: Listener) -> str:
    """The one topic whose first message has the fields of an audio message."""
    heard = [t.topic for t in bag.topics if t.message_count and _is_sound(_first(bag, t.topic), listener)]
    if len(heard) == 1:
        return heard[0]
    present = ", ".join(heard) or "none"
    raise BagError(f"the bag's audio topics are {present}: name one with --topic")


def _first(bag: BagReader, topic: str) -> Any:
    message = next(iter(bag.messages([topic])))
    try:
        return bag.decode(message)
    except BagError:  # a type without a definition is no audio that could be heard
        return None


def _is_sound(message: Any, listener: Listener) -> bool:
    try:
        return isinstance(decode(message, listener.stated), SoundChunk)
    except SoundError as error:
        return error.fault not in ("audio_type_unknown", "audio_without_info")
    except (TypeError, ValueError):
        return False


def _row(utterance: Utterance, start_ns: int) -> dict[str, Any]:
    def seconds(stamp_ns: int) -> float:
        return round(ns_to_s(stamp_ns - start_ns), 3)

    return {
        "speaker": utterance.speaker.value,
        "text": utterance.text,
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
    table = Table("speaker", "text", "start_s", "end_s", "confidence", "words")
    for row in rows:
        times = (f"{row['start_s']:.2f}", f"{row['end_s']:.2f}")
        table.add_row(row["speaker"], row["text"], *times, f"{row['confidence']:.2f}", str(len(row["words"])))
    out.print(table)
