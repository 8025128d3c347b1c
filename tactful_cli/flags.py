"""`tactful flags`: what the monitor flags in a bag, as a coder would note it."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from norm_core.bags.reader import BagReader
from norm_core.records.flag import Polarity, SocialFlag
from norm_core.records.json_codec import to_plain
from norm_core.records.speech import Utterance
from norm_core.runtime.time import ReplayClock, ns_to_s
from norm_monitor.fusion.explanation import explain
from norm_monitor.fusion.fusion import FusionConfig
from norm_monitor.senses.speech.hearing import HearingConfig, Listener
from norm_monitor.senses.speech.segmenter import SegmentConfig
from norm_monitor.senses.speech.whisper import Whisper, WhisperConfig
from sim_replays.drivers.bag_driver import BagSenses, monitored, replay_monitor
from tactful_cli.console import complain, err, out, print_json
from tactful_cli.hear import RobotTopics, audio_topics, only_audio_topic
from tactful_cli.verb import single

app = single()


@app.command()
def flags(  # noqa: PLR0917
    bag: Annotated[Path, typer.Argument(metavar="BAG", help="Folder of a rosbag2 bag.")],
    topic: Annotated[str, typer.Option(help="Audio topic; the only one where it is left out.")] = "",
    robot_topic: RobotTopics = None,
    language: Annotated[str, typer.Option(help="Language code of the speech, as en or zh.")] = "en",
    floor: Annotated[float, typer.Option(min=0, max=1, help="Probability below which nothing is flagged.")] = 0.5,
    errors_only: Annotated[bool, typer.Option("--errors-only", help="Leave competencies out.")] = False,
    explained: Annotated[bool, typer.Option("--explain", help="Say how each was measured.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON alone.")] = False,
) -> None:
    """Flag social errors and competencies in a bag, by cues alone, as the monitor's node does."""
    with BagReader(bag) as reader:
        start_ns = (reader.bounds_ns or (0, 0))[0]
        senses = senses_of(reader, topic, language, robot_topic or ())
        clock = ReplayClock()
        monitor = replay_monitor(senses.sources, clock, FusionConfig(confidence_floor=floor))
        found: dict[str, SocialFlag] = {}
        with err.status("listening") as progress:
            for now_ns, record in monitored(senses, monitor, clock):
                if isinstance(record, SocialFlag):
                    found[record.event_id] = record
                elif isinstance(record, Utterance) and record.final:
                    start_ns = min(start_ns, record.start_ns)  # a recorder has it once it is over
                progress.update(f"{ns_to_s(now_ns - start_ns):.0f} s, {len(found)} events")
    for reason in senses.ledger.reasons:
        complain(reason)
    if not monitor.robot_is_heard:
        complain(
            f"{bag}: nothing is heard of the robot, so nothing it says is flagged, and it may have said what is "
            "flagged as unsaid; name its speech topic with --robot-topic"
        )
    listed = sorted(found.values(), key=lambda flag: flag.onset_ns)
    shown = [flag for flag in listed if not errors_only or flag.polarity is Polarity.ERROR]
    if as_json:
        print_json([to_plain(flag) for flag in shown])
        return
    for flag in shown:
        _print(flag, start_ns, explained)
    errors = sum(flag.polarity is Polarity.ERROR for flag in listed)
    out.print(f"{errors} social errors and {len(listed) - errors} competencies in {bag}", soft_wrap=True)
    for counter in (*senses.ledger.counters, *monitor.counters):
        err.print(f"{counter.name}: {counter.count}")


def senses_of(
    reader: BagReader, topic: str, language: str, robot_topics: Iterable[str] = (), *, needs_words: bool = True
) -> BagSenses:
    """What is heard and seen in a bag: by its utterances where it has any and no topic is named, else by its sound."""
    hearing = HearingConfig(segments=SegmentConfig(partial_every_s=0), whisper=WhisperConfig(language=language))
    given = any(summary.type_name.endswith("/Utterance") for summary in reader.topics)
    listener = Listener(hearing)
    if not topic and not given and (needs_words or audio_topics(reader, listener)):
        topic = only_audio_topic(reader, listener)
    return BagSenses(reader, hearing, Whisper(hearing.whisper) if topic else None, topic, robot_topics)


def _print(flag: SocialFlag, start_ns: int, explained: bool) -> None:
    colour = "red" if flag.polarity is Polarity.ERROR else "green"
    end = f"-{ns_to_s(flag.offset_ns - start_ns):.1f}" if flag.offset_ns >= 0 else " on"
    about = ", ".join(attribute.value.replace("_", " ") for attribute in flag.attributes)
    kind = f"{flag.severity} error" if flag.polarity is Polarity.ERROR else "competence"
    out.print(f"[bold]{ns_to_s(flag.onset_ns - start_ns):6.1f}{end} s[/]  [{colour}]{kind}[/]  {about}", soft_wrap=True)
    for line in explain(flag).splitlines()[1:] if explained else [flag.rationale, *_instead(flag)]:
        out.print(f"          {escape(line)}", soft_wrap=True)


def _instead(flag: SocialFlag) -> list[str]:
    return [f"Instead: {flag.correction}"] if flag.correction else []
