"""Choose what the monitor hears and sees of a bag, and run it on one bag after another for `tactful flags`."""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer

from norm_core import __version__
from norm_core.bags.reader import BagError, BagReader
from norm_core.engines.talk_reader import open_reader
from norm_core.health.counters import describe
from norm_core.models.reader_folder import AUTO
from norm_core.records.flag import FlagState, SocialFlag
from norm_core.records.messages import MessageError
from norm_core.records.record import record
from norm_core.records.speech import Utterance
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.time import ReplayClock, ns_to_s
from norm_core.runtime.wording import count_of
from norm_core.streams.watermarks import UTTERANCES
from norm_monitor.assessment.cues import load_custom_cues, source_sha256
from norm_monitor.assessment.fusion_config import FusionConfig
from norm_monitor.assessment.rejection import TurnRejection, shipped_rejection_model
from norm_monitor.assessment.unit_evidence import UnitEvidence
from norm_monitor.assessment.unit_model import Sensitivity, shipped_unit_model
from norm_monitor.judge.triggers import NO_CEILING
from norm_monitor.monitor import ROBOT_MISSING, Monitor, MonitorConfig
from norm_monitor.replay.bag_driver import (
    BagSenses,
    feed_monitor,
    find_likely_words_topics,
    find_robot_topics,
    make_replay_monitor,
)
from norm_monitor.replay.flag_runs import BagFlags, append_bag, bag_digest, begin_run, write_tables
from norm_monitor.replay.judge_stand_in import Attend, attend_nothing
from norm_monitor.senses.robot_voice.robot_messages import is_likely_type
from norm_monitor.senses.speech.audio_front_end import HearingConfig
from norm_monitor.senses.speech.whisper import Whisper, WhisperConfig
from tactful_cli.console import complain, err
from tactful_cli.hear import audio_topics, check_audio_topic, only_audio_topic
from tactful_cli.talk_summary import TalkSummary
from tactful_cli.verb_options import Language, RobotTopics, WhisperModel, WordsTopics


def senses_of(
    bag: BagReader,
    topic: str,
    whisper: WhisperConfig,
    robot_topics: Iterable[str] = (),
    *,
    words_topics: Sequence[str] = (),
    robot_offset_ms: int = 0,
    load: Callable[[WhisperConfig], Whisper] = Whisper,
) -> BagSenses:
    """Choose a bag's senses: the words of `words_topics`, or its utterances if no topic is named, or its sound, if any.

    Raises BagError for a topic that is no audio, or where the audio topic is ambiguous.
    """
    hearing = HearingConfig(partial_every_s=0, whisper=whisper)
    named = tuple(robot_topics)
    robot_topics = find_robot_topics(bag, named)
    sounds = audio_topics(bag, hearing.stated)
    if topic:
        check_audio_topic(bag, topic, hearing.stated)
    elif (
        not words_topics
        and not any(summary.type_name.endswith("/Utterance") for summary in bag.topics)
        and not robot_topics.issuperset(sounds)
    ):
        topic = only_audio_topic(bag, hearing.stated, robot_topics)
    has_sound = topic or not robot_topics.isdisjoint(sounds)
    recognizer = load(hearing.whisper) if has_sound else None
    return BagSenses(bag, hearing, recognizer, topic, named, words_topics=words_topics, robot_offset_ms=robot_offset_ms)


def remarks_of(bag: BagReader, senses: BagSenses, monitor: Monitor) -> tuple[str, ...]:
    """Say what was wrong with a bag's messages, and of whom nothing is heard."""
    remarks = list(senses.remarks)
    if UTTERANCES not in senses.sources:
        remarks.append(explain_missing_words(bag, senses))
    if not monitor.has_robot_speech:
        remarks.append(_explain_missing_robot(bag, senses))
    return tuple(remarks)


def explain_missing_words(bag: BagReader, senses: BagSenses) -> str:
    """Say that nothing is heard of people, and which topics of the bag may hold their words."""
    likely = find_likely_words_topics(bag, senses.topics)
    remedy = "record the microphone or the texts of the robot's recognizer"
    if likely:
        remedy = f"name the topic of the robot's recognizer with --words-topic (as {' or '.join(likely)})"
    return f"people's words: there are none in this bag; {remedy}"


def _explain_missing_robot(bag: BagReader, senses: BagSenses) -> str:
    """Say that nothing is heard of the robot, and which topics of the bag may tell its speech."""
    others = senses.topics
    likely = [
        topic.topic
        for topic in bag.topics
        if topic.message_count and topic.topic not in others and is_likely_type(topic.type_name)
    ]
    such = f" (as {' or '.join(likely)})" if likely else ""
    return f"robot speech: {ROBOT_MISSING} with --robot-topic{such}"


NOTHING_TO_WATCH = f"holds nothing to watch: no speech, sound, camera or people; {PROGRAM} bag info lists its topics"
load_whisper = cache(Whisper)  # several bags share one


@record
class FlagOptions:
    """What decides about the flags of a bag."""

    topic: str = ""
    robot_topics: tuple[str, ...] = ()
    words_topics: tuple[str, ...] = ()
    whisper: WhisperConfig = WhisperConfig()
    fusion: FusionConfig = FusionConfig()
    cues: tuple[str, ...] = ()
    robot_offset_ms: int = 0
    answers_sha256: str = ""  # of a judge that answered elsewhere

    def senses(self, bag: BagReader, name: str) -> BagSenses:
        """Choose what the monitor hears and sees of a bag. Raises BagError where that is nothing."""
        senses = senses_of(
            bag,
            self.topic,
            self.whisper,
            self.robot_topics,
            words_topics=self.words_topics,
            robot_offset_ms=self.robot_offset_ms,
            load=load_whisper,
        )
        if not senses.topics:
            raise BagError(f"{name}: {NOTHING_TO_WATCH}")
        return senses

    def settings(self) -> dict[str, Any]:
        """Return what a stored run must have in common with its continuation."""
        reader = open_reader(AUTO)
        return {
            "kind": "flags",
            "software_version": __version__,
            "thresholds": MonitorConfig(cues=self.cues).table().sha256(),
            **(
                {"cues": [source_sha256(cue.find) for cue in load_custom_cues(self.cues).values()]} if self.cues else {}
            ),
            "weights": shipped_unit_model(has_reader=reader is not None).sha256(),
            "rejection_weights": shipped_rejection_model().sha256(),
            **({"reader": reader.sha256} if reader else {}),
            "sensitivity": self.fusion.sensitivity.value,
            **({"answer_within_s": self.fusion.answer_within_s} if self.fusion.answer_within_s else {}),
            **({"min_probability": list(self.fusion.min_probability)} if self.fusion.min_probability else {}),
            **({"answers": self.answers_sha256} if self.answers_sha256 else {}),
            "topic": self.topic,
            "robot_topics": list(self.robot_topics),
            **({"robot_offset_ms": self.robot_offset_ms} if self.robot_offset_ms else {}),
            "words_topics": list(self.words_topics),
            "whisper": self.whisper.model_dump(mode="json"),
        }


@dataclass(frozen=True, kw_only=True)
class WatchOptions:
    """The options of a verb that say which topics of a bag hold sound and words, and how the monitor weighs them."""

    topic: Annotated[str, typer.Option(help="Audio topic; default: the only one.")] = ""
    robot_topic: RobotTopics = None
    words_topic: WordsTopics = None
    language: Language = "en"
    whisper: WhisperModel = ""
    sensitivity: Annotated[
        Sensitivity, typer.Option(help="How many false errors to accept in order to find more true ones.")
    ] = Sensitivity.BALANCED
    answer_within: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            min=0,
            max=120,
            help="Silence of the robot, from 2 s on, that counts as an error, whatever was said; 0: as fitted.",
        ),
    ] = 0.0

    def for_flags(self, **others: Any) -> FlagOptions:
        """Return what decides about the flags of a bag."""
        return FlagOptions(
            topic=self.topic,
            robot_topics=tuple(self.robot_topic or ()),
            words_topics=tuple(self.words_topic or ()),
            whisper=WhisperConfig(model=self.whisper, language=self.language),
            fusion=FusionConfig(sensitivity=self.sensitivity, answer_within_s=self.answer_within),
            **others,
        )


@record
class BagRun:
    """What running the monitor on a bag gave, and counts for the reader."""

    result: BagFlags
    counts: tuple[str, ...] = ()


class BagWatch:
    """Iterate over bags, and run the monitor on each that a stored run does not hold yet."""

    def __init__(self, options: FlagOptions, bags: Mapping[str, Path], folder: Path | None, *, is_alone: bool) -> None:
        """Begin or resume the run in `folder`. A bag that is alone raises its errors; others store them."""
        self._options, self._bags, self._folder = options, bags, folder
        self._stored = begin_run(folder, options.settings()) if folder else {}
        self.is_alone = is_alone
        self.results: list[BagFlags] = []
        self.counts: tuple[str, ...] = ()  # of the latest bag
        self.attend_of: Callable[[str], Attend] | None = None  # a judge for each bag by its name
        self.run_bags: Callable[[Mapping[str, Path]], Generator[BagRun]] = self._run_in_turn

    def __iter__(self) -> Iterator[BagFlags]:
        """Yield the flags of each bag. After an interruption, say how to go on."""
        try:
            for run, is_new in self._run_all():
                self.counts = run.counts
                if is_new:
                    self._store(run.result)
                self.results.append(run.result)
                yield run.result
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            remedy = "the same command goes on" if self._folder else "with --out, the same command would go on"
            complain(f"{len(self.results)} of {count_of(len(self._bags), 'bag')} are done; {remedy}")
            raise
        finally:
            if self._folder:
                write_tables(self._folder)

    def _run_all(self) -> Iterator[tuple[BagRun, bool]]:
        """Yield the run of each bag in order, and whether it is new."""
        stored = {name: run for name, path in self._bags.items() if (run := self._find_stored(name, path))}
        waiting = {name: path for name, path in self._bags.items() if name not in stored}
        with closing(self.run_bags(waiting)) as new_runs:
            for name in self._bags:
                yield (stored[name], False) if name in stored else (next(new_runs), True)

    def _run_in_turn(self, bags: Mapping[str, Path]) -> Generator[BagRun]:
        names = list(self._bags)
        for name, path in bags.items():
            place = "" if self.is_alone else f"bag {names.index(name) + 1} of {len(names)}, {name}: "
            attend_of = self.attend_of
            yield run_bag(self._options, name, path, place=place, attend_of=attend_of, raises_errors=self.is_alone)

    def _find_stored(self, name: str, path: Path) -> BagRun | None:
        """Return the stored run of a bag that has not changed since."""
        result = self._stored.get(name)
        if result and not result.problem:
            with suppress(TactfulError), BagReader(path) as bag:
                if result.bag_digest == bag_digest(bag):
                    return BagRun(result=result)
        return None

    def _store(self, result: BagFlags) -> None:
        if result.problem:
            complain(f"{result.bag}: not run: {result.problem}")
        for remark in result.remarks:
            complain(f"{result.bag}: {remark}")
        if self._folder:
            append_bag(self._folder, result)


def run_bag(
    options: FlagOptions,
    name: str,
    path: Path,
    place: str = "",
    attend_of: Callable[[str], Attend] | None = None,
    *,
    raises_errors: bool = False,
) -> BagRun:
    """Run the monitor on a bag; `place` stands before its progress. An error is the problem of the bag, or raised."""
    try:
        with BagReader(path) as bag:
            return _watch_bag(options, name, bag, place, attend_of)
    except (TactfulError, MessageError) as error:
        if raises_errors:
            raise
        return BagRun(result=BagFlags(bag=name, problem=str(error)))


def _watch_bag(
    options: FlagOptions, name: str, bag: BagReader, place: str, attend_of: Callable[[str], Attend] | None
) -> BagRun:
    start_ns, end_ns = bag.bounds_ns or (0, 0)
    length_s = ns_to_s(end_ns - start_ns)
    senses = options.senses(bag, name)
    clock = ReplayClock()
    per_hour = NO_CEILING if attend_of else 0.0
    turns: list[TurnRejection] = []
    rejections = shipped_rejection_model()

    def note_turn(evidence: UnitEvidence) -> None:
        if turn := rejections.read(evidence):
            turns.append(turn)

    monitor = make_replay_monitor(
        senses.sources, clock, options.fusion, calls_per_hour=per_hour, cues=options.cues, note_closed=note_turn
    )
    attend = attend_of(name) if attend_of else attend_nothing
    flags_by_id: dict[str, SocialFlag] = {}
    talk = TalkSummary()
    with err.status(f"{place}listening") as progress:
        for now_ns, taken in feed_monitor(senses.records(), monitor, clock, attend):
            talk.add_record(taken)
            if isinstance(taken, SocialFlag):
                flags_by_id[taken.event_id] = taken
                if taken.state is FlagState.WITHDRAWN:
                    del flags_by_id[taken.event_id]
            elif isinstance(taken, Utterance) and taken.final:
                start_ns = min(start_ns, taken.start_ns)  # a recorder stores an utterance only after it ends
            progress.update(f"{place}{ns_to_s(now_ns - start_ns):.0f} s, {count_of(len(flags_by_id), 'event')}")
    result = BagFlags(
        bag=name,
        bag_digest=bag_digest(bag),
        start_ns=start_ns,
        length_s=length_s,
        turn_count=talk.turn_count,
        flags=tuple(sorted(flags_by_id.values(), key=lambda flag: flag.onset_ns)),
        turns=tuple(sorted(turns, key=lambda turn: turn.start_ns)),
        remarks=remarks_of(bag, senses, monitor),
    )
    return BagRun(
        result=result,
        counts=tuple(describe((*senses.health_log.counters, *monitor.counters))),
    )
