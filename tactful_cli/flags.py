"""`tactful flags`: run the monitor on a bag, and list its flags like a coder's notes."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from norm_core.bags.reader import BagReader
from norm_core.engines.engine_registry import model_info_of
from norm_core.engines.reply import ModelInfo
from norm_core.models.catalogue import Catalogue
from norm_core.records.flag import FlagState, Polarity, SocialFlag
from norm_core.records.json_codec import to_plain
from norm_core.records.speech import Utterance
from norm_core.runtime.counters import describe
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import ReplayClock, ns_to_s
from norm_core.runtime.wording import count_of
from norm_monitor.fusion.explanation import explain
from norm_monitor.fusion.fusion import FusionConfig
from norm_monitor.fusion.unit_model import Sensitivity
from norm_monitor.judge.deployment_context import DeploymentContext
from norm_monitor.judge.judge import JudgeConfig
from norm_monitor.judge.prompt_files import PromptFiles
from norm_monitor.monitor import Monitor
from norm_monitor.senses.speech.hearing import HearingConfig
from norm_monitor.senses.speech.segmenter import SegmentConfig
from norm_monitor.senses.speech.whisper import Whisper, WhisperConfig
from sim_replays.drivers.bag_driver import BagSenses, feed_monitor, replay_monitor
from tactful_cli.console import complain, err, out, print_json
from tactful_cli.hear import RobotTopics, audio_topics, only_audio_topic
from tactful_cli.verb import Language, WhisperModel, single

app = single()

CALLS_PER_HOUR = JudgeConfig().calls_per_hour


@app.command()
def flags(  # noqa: PLR0917
    bag: Annotated[Path, typer.Argument(metavar="BAG", help="Folder of a rosbag2 bag.")],
    topic: Annotated[str, typer.Option(help="Audio topic; default: the only one.")] = "",
    robot_topic: RobotTopics = None,
    language: Language = "en",
    whisper: WhisperModel = "",
    sensitivity: Annotated[
        Sensitivity, typer.Option(help="How many false errors are accepted for more true ones.")
    ] = Sensitivity.BALANCED,
    prompts: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder for the prompts that a judge would receive about this bag: JSON and images. Loads no model.",
        ),
    ] = None,
    model: Annotated[
        str,
        typer.Option(help="Model whose limits --prompts respects; default: a model on this machine."),
    ] = "",
    context: Annotated[
        DeploymentContext, typer.Option(help="Where the robot works; limits what --prompts may ask about images.")
    ] = DeploymentContext.UNSPECIFIED,
    errors_only: Annotated[bool, typer.Option("--errors-only", help="Show only errors.")] = False,
    explained: Annotated[bool, typer.Option("--explain", help="Show how each flag was measured.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print only JSON.")] = False,
) -> None:
    """List social errors and competences in a bag. Runs cues only, like the monitor node without a judge."""
    with BagReader(bag) as reader:
        start_ns = (reader.bounds_ns or (0, 0))[0]
        senses = senses_of(reader, topic, WhisperConfig(model=whisper, language=language), robot_topic or ())
        clock = ReplayClock()
        budget = CALLS_PER_HOUR if prompts else 0.0
        monitor = replay_monitor(senses.sources, clock, FusionConfig(sensitivity=sensitivity), calls_per_hour=budget)
        written = _prompt_files(prompts, model, context) if prompts else None
        found: dict[str, SocialFlag] = {}
        with err.status("listening") as progress:
            for now_ns, record in feed_monitor(senses, monitor, clock):
                if isinstance(record, SocialFlag):
                    found[record.event_id] = record
                    if record.state is FlagState.WITHDRAWN:
                        del found[record.event_id]
                elif isinstance(record, Utterance) and record.final:
                    start_ns = min(start_ns, record.start_ns)  # a recorder stores an utterance only after it ends
                if written:
                    _write_prompts(written, monitor, prompts)
                progress.update(f"{ns_to_s(now_ns - start_ns):.0f} s, {count_of(len(found), 'event')}")
    for reason in senses.health_log.reasons:
        complain(reason)
    if not monitor.hears_robot:
        complain(
            f"{bag}: the robot's speech is missing, so nothing it says is flagged, and it may have said what is "
            "flagged as unsaid; name its speech topic with --robot-topic"
        )
    if written:
        _write_prompts(written, monitor, prompts)
        err.print(f"{prompts}: {count_of(written.count, 'prompt')} of the judge written", soft_wrap=True)
    listed = sorted(found.values(), key=lambda flag: flag.onset_ns)
    shown = [flag for flag in listed if not errors_only or flag.polarity is Polarity.ERROR]
    if as_json:
        print_json([to_plain(flag) for flag in shown])
        return
    for flag in shown:
        _print(flag, start_ns, explained)
    errors = sum(flag.polarity is Polarity.ERROR for flag in listed)
    out.print(
        f"{count_of(errors, 'social error')} and {count_of(len(listed) - errors, 'competence')} in {bag}",
        soft_wrap=True,
    )
    for line in describe((*senses.health_log.counters, *monitor.counters)):
        err.print(line, soft_wrap=True)


def _prompt_files(folder: Path, model: str, context: DeploymentContext) -> PromptFiles:
    """Create the prompt writer for a judge that is not loaded, with the limits of its manifest."""
    model_info = model_info_of(Catalogue().manifest(model)) if model else ModelInfo(model="", engine="")
    config = JudgeConfig(deployment_context=context)
    if not model_info.on_this_machine:
        err.print(f"{model} does not run on this machine, so its prompts hold no pictures", soft_wrap=True)
    try:
        return PromptFiles(folder.expanduser(), config, model_info)
    except OSError as error:
        raise TactfulError(
            f"{folder}: prompts cannot be written there: {error.strerror}; name another folder"
        ) from error


def _write_prompts(written: PromptFiles, monitor: Monitor, folder: Path | None) -> None:
    """Write prompts as units fall due, because the monitor keeps only the newest units."""
    for view in monitor.units_to_judge():
        try:
            written.write(view)
        except OSError as error:
            raise TactfulError(
                f"{folder}: a prompt cannot be written: {error.strerror}; free some room there"
            ) from error


def senses_of(
    reader: BagReader, topic: str, whisper: WhisperConfig, robot_topics: Iterable[str] = (), *, needs_words: bool = True
) -> BagSenses:
    """Choose the senses for a bag: its utterances if present and no topic is named, otherwise its sound."""
    hearing = HearingConfig(segments=SegmentConfig(partial_every_s=0), whisper=whisper)
    given = any(summary.type_name.endswith("/Utterance") for summary in reader.topics)
    if not topic and not given and (needs_words or audio_topics(reader, hearing.stated)):
        topic = only_audio_topic(reader, hearing.stated)
    return BagSenses(reader, hearing, Whisper(hearing.whisper) if topic else None, topic, robot_topics)


def _print(flag: SocialFlag, start_ns: int, explained: bool) -> None:
    colour = "red" if flag.polarity is Polarity.ERROR else "green"
    end = " on" if flag.offset_ns is None else f"-{ns_to_s(flag.offset_ns - start_ns):.1f}"
    about = ", ".join(attribute.value.replace("_", " ") for attribute in flag.attributes)
    kind = f"{flag.severity} error" if flag.polarity is Polarity.ERROR else "competence"
    out.print(f"[bold]{ns_to_s(flag.onset_ns - start_ns):6.1f}{end} s[/]  [{colour}]{kind}[/]  {about}", soft_wrap=True)
    for line in explain(flag).splitlines()[1:] if explained else [flag.rationale, *_instead(flag)]:
        out.print(f"          {escape(line)}", soft_wrap=True)


def _instead(flag: SocialFlag) -> list[str]:
    return [f"Instead: {flag.correction}"] if flag.correction else []
