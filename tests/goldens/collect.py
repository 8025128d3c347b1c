"""Run the system on each known input and collect what it says, item by item."""

import gzip
import json
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from norm_core.records.flag import SocialFlag
from norm_core.records.json_codec import from_json, to_json, to_plain
from norm_core.runtime.time import ReplayClock
from norm_core.streams.watermarks import UTTERANCES
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.context.meaning import EncoderMatcher
from norm_monitor.encounters.demo_session import write_demo_session
from norm_monitor.encounters.library import encounters, paths, shipped
from norm_monitor.monitor import Monitor, MonitorConfig
from norm_monitor.senses.speech.recognition import RecognizedSpeech
from norm_monitor.senses.speech.segmenter import AudioSegment
from norm_monitor.senses.speech.whisper import Whisper
from norm_monitor.session_log.reader import read as read_log
from norm_monitor.windows.cutter import Entry, WindowConfig
from sim_replays.items.item_bag import write_item_bag
from sim_replays.items.run_config import RunConfig
from sim_replays.monitor_bench.script_driver import SensedEncounter, make_script_records
from sim_replays.runs.players import open_players
from sim_replays.runs.robot_config import ENCODER, make_selector_files
from sim_replays.suites.suite import make_suite_items
from tests.command_line import tactful
from tests.goldens.compare import DATA, Items
from tests.session_parity import items
from tests.session_replay import replay_in_process
from tests.study_session import write_log

ROOT = Path(__file__).resolve().parents[2]
SOUND = DATA / "sound"
# What Whisper recognized in each recording; remove a file to record it anew.
SPEECH = DATA / "speech"
# Of the development encounters, each fifth is also kept as what the senses made of its sound and pictures.
BY_SOUND = 5
EGOGAPBENCH_ITEMS = 120


def shipped_bags(names: Collection[str] = ()) -> Items:
    """Collect the flags that the command line gives for each shipped bag, or for those named."""
    found: Items = {}
    for bag in (bag for bag in shipped() if not names or bag.name in names):
        options = ["--topic", "/audio"] if not bag.name.startswith("zh_") else []
        with kept_speech(bag.name):
            flags = json.loads(_tactful("flags", str(bag), *options, "--json"))
        for flag in flags:
            found[f"{bag.name} {flag['onset_ns']:>14} {flag['event_id']}"] = lasting(flag)
    return found


@contextmanager
def kept_speech(name: str) -> Iterator[None]:
    """Recognize speech as once kept: Whisper's words differ by processor, and what is made of them must not."""
    path = SPEECH / f"{name}.json.gz"
    kept: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes())) if path.is_file() else {}
    is_recording, recognize = not path.is_file(), Whisper.recognize

    def recognize_as_kept(whisper: Whisper, segment: AudioSegment) -> RecognizedSpeech:
        key = f"{segment.start_ns} {segment.end_ns}"
        if is_recording:
            kept[key] = to_plain(recognize(whisper, segment))
        assert key in kept, f"{path}: holds no words of the segment {key}; remove the file, and record the goldens anew"
        return from_json(RecognizedSpeech, json.dumps(kept[key]))

    with patch.object(Whisper, "recognize", recognize_as_kept):
        yield
    if is_recording and kept:
        SPEECH.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(json.dumps(kept, ensure_ascii=False, sort_keys=True).encode(), mtime=0))


def demo() -> Items:
    """Collect every window, utterance, flag and answer of the demo's session."""
    with tempfile.TemporaryDirectory() as folder:
        session = write_demo_session(Path(folder, "session"))
        with kept_speech("demo"):
            outputs = list(replay_in_process(session.bag))
        return {_padded(name): lasting(item) for name, item in items(outputs).items()}


def development_by_script(names: Collection[str] = ()) -> Items:
    """Collect the flags of every development encounter, or of those named, fed from its script."""
    found: Items = {}
    for encounter in (one for one in encounters("development") if not names or one.id in names):
        given, _ = make_script_records(encounter)
        found.update(_flags(encounter.id, given, (UTTERANCES,)))
    return found


def development_by_sound() -> Items:
    """Collect the flags of every fifth development encounter, fed from what the senses once made of its sound."""
    found: Items = {}
    for path in sorted(SOUND.glob("*.json.gz")):
        sensed = from_json(SensedEncounter, gzip.decompress(path.read_bytes()).decode())
        given = [(one.at_ns, one.entry) for one in sensed.given]
        found.update(_flags(path.name.split(".")[0], given, sensed.sources))
    return found


def egogapbench(data: Path) -> Items:
    """Collect the selector's answers to the first items of EgoGapBench's development part, others given."""
    with tempfile.TemporaryDirectory() as folder:
        asking = RunConfig(suite="egogapbench", data=str(data / "egogapbench"), setting="others-given")
        items = make_suite_items(asking).episodes[:EGOGAPBENCH_ITEMS]
        write_item_bag(Path(folder, "bag"), asking, items)
        [player] = open_players(make_selector_files(ENCODER), "direct", hosts=1, seed=0)
        answers = [to_plain(played.answer) for played in player.play(Path(folder, "bag"))]
    return {answer["query_id"]: lasting(answer) for answer in answers}


def study_log() -> Items:
    """Collect the records of the generated session's log."""
    found: Items = {}
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "S07")
        write_log(log)
        for number, entry in enumerate(read_log(log).entries):
            found[f"log:{number:05}"] = to_plain(entry.record)
    return found


SOURCES: dict[str, Callable[[], Items]] = {
    "shipped_bags": shipped_bags,
    "demo": demo,
    "development_by_script": development_by_script,
    "development_by_sound": development_by_sound,
    "study_log": study_log,
}

# What the quick test takes of a source whose whole takes minutes; the whole is marked thorough.
IN_TESTS: dict[str, tuple[Callable[[Collection[str]], Items], tuple[str, ...]]] = {
    "shipped_bags": (shipped_bags, ("factory_shift", "zh_teahouse", "zoo_keeper")),
    "development_by_script": (development_by_script, tuple(path.stem for path in paths("development")[::6])),
}


def keep_sound(sensed: Iterable[SensedEncounter]) -> None:
    """Keep what the senses made of encounters, as input of development_by_sound."""
    SOUND.mkdir(parents=True, exist_ok=True)
    for one in sensed:
        packed = gzip.compress(to_json(one).encode(), mtime=0)
        (SOUND / f"{one.truth.encounter_id}.json.gz").write_bytes(packed)


def _flags(name: str, given: Iterable[tuple[int, Entry]], sources: Sequence[str]) -> Items:
    clock = ReplayClock()
    config = MonitorConfig(windows=WindowConfig(sources=tuple(sources), lateness_s=0))
    monitor = Monitor(config, ThresholdTable.shipped(), EncoderMatcher.shipped(), clock)
    states: dict[str, list[SocialFlag]] = {}
    for flag in _watch(monitor, clock, given):
        states.setdefault(flag.event_id, []).append(flag)
    return {
        f"{name} {flags[-1].onset_ns:>14} {event_id}": {
            "states": [[flag.state.value, flag.decision_ns] for flag in flags],
            "flag": lasting(to_plain(flags[-1])),
        }
        for event_id, flags in states.items()
    }


def _watch(monitor: Monitor, clock: ReplayClock, given: Iterable[tuple[int, Entry]]) -> Iterator[SocialFlag]:
    for at_ns, entry in given:
        clock.advance_to(max(at_ns, clock.now_ns()))
        yield from monitor.take(entry)
    yield from monitor.end_input()


def lasting(item: dict[str, Any]) -> dict[str, Any]:
    """Leave out what measures this machine: how long each step took. The windows of the demo hold their digests."""
    plain = dict(item)
    if "provenance" in plain:
        left_out = {"latency", "window_digest"}
        plain["provenance"] = {name: value for name, value in item["provenance"].items() if name not in left_out}
    return plain


def _padded(name: str) -> str:
    stamp, rest = name.split(maxsplit=1)
    return f"{stamp:>14} {rest}"


def _tactful(*arguments: str) -> str:
    done = tactful(*arguments)
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout
