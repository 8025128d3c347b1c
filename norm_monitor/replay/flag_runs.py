"""Run the monitor over many bags: their flags in a folder, and as tables.

The folder is readable by its owner alone, because the flags quote what people said.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from norm_core.bags.reader import BagError, BagReader
from norm_core.bags.storage import is_bag, make_natural_key
from norm_core.records.flag import Polarity, SocialFlag
from norm_core.records.json_codec import sha256_of
from norm_core.records.record import record
from norm_core.runtime.time import s_to_ns
from norm_monitor.assessment.rejection import TurnRejection
from norm_monitor.replay.run_folder import RunError, append_record, begin_or_resume, read_records
from norm_monitor.session_log.labels import (
    Sheet,
    fold_lines,
    format_seconds,
    make_flag_labels,
    sort_labels,
    write_csv,
    write_rows,
)

S_PER_HOUR = 3600

FLAGS_FILE = "flags.csv"
BAGS_FILE = "bags.csv"
TURNS_FILE = "turns.csv"
COLUMNS = ("bag", "start_ns", "length_s", "errors", "competences", "errors_per_hour", "remarks", "problem")
TURN_COLUMNS = (
    "session", "rejection", "rejection_at_once", "start_s", "end_s", "start_ns", "text", "next_words", "reasons",
)  # fmt: skip


@record
class BagFlags:
    """The flags of the monitor in one bag, or the reason why it could not be run."""

    bag: str  # its name in the run
    bag_digest: str = ""  # of its topics, counts, times and sizes
    start_ns: int = 0
    length_s: float = 0.0
    turn_count: int = 0
    flags: tuple[SocialFlag, ...] = ()
    turns: tuple[TurnRejection, ...] = ()
    remarks: tuple[str, ...] = ()
    problem: str = ""

    @property
    def errors(self) -> tuple[SocialFlag, ...]:
        """The social errors."""
        return tuple(flag for flag in self.flags if flag.polarity is Polarity.ERROR)

    @property
    def competences(self) -> int:
        """The number of competences."""
        return len(self.flags) - len(self.errors)


def errors_per_hour(results: Iterable[BagFlags]) -> float | None:
    """Return the errors per hour of the bags together; None for no time at all."""
    results = tuple(results)
    hours = sum(result.length_s for result in results) / S_PER_HOUR
    return sum(len(result.errors) for result in results) / hours if hours else None


def find_bags(paths: Iterable[Path]) -> dict[str, Path]:
    """Find the bags at and below the paths, by name: the path below the folder, or the whole path if names repeat.

    Raises BagError for a path without a bag.
    """
    names: dict[Path, str] = {}
    for path in paths:
        if path.is_dir() and not is_bag(path):
            bags = [folder for folder in path.rglob("*") if folder.is_dir() and is_bag(folder)]
            if not bags:
                raise BagError(f"{path}: is not a bag and holds none; name a bag or a folder with bags")
            names |= {bag: str(bag.relative_to(path)) for bag in sorted(bags, key=make_natural_key)}
        else:
            names[path] = path.name or str(path)
    shared_names = {name for name, count in Counter(names.values()).items() if count > 1}
    return {str(path) if name in shared_names else name: path for path, name in names.items()}


def bag_digest(bag: BagReader) -> str:
    """Hash the topics, types, counts, times and file sizes of a bag."""
    topics = [(topic.topic, topic.type_name, topic.message_count) for topic in bag.topics]
    return sha256_of([topics, bag.bounds_ns, [path.stat().st_size for path in bag.paths]])


def begin_run(folder: Path, settings: Mapping[str, Any]) -> dict[str, BagFlags]:
    """Make the folder of a run, or return the bags of an unfinished one. Raises RunError for other settings."""
    begin_or_resume(folder, settings)
    folder.chmod(0o700)
    return _read_bags(folder)


def append_bag(folder: Path, done: BagFlags) -> None:
    """Store a finished bag. Raises RunError if that fails; the bags before it remain."""
    append_record(folder, done)


def write_tables(folder: Path) -> None:
    """Write tables of the flags' labels, of the robot's turns and of the bags. Raises RunError if that fails."""
    results = list(_read_bags(folder).values())
    sheets = [
        Sheet(
            session=result.bag,
            origin_ns=result.start_ns,
            end_ns=result.start_ns + s_to_ns(result.length_s),
            labels=sort_labels(label for flag in result.flags for label in make_flag_labels(flag)),
        )
        for result in results
    ]
    try:
        write_csv(folder / FLAGS_FILE, *sheets)
        write_rows(folder / TURNS_FILE, TURN_COLUMNS, (row for result in results for row in _make_turn_rows(result)))
        write_rows(folder / BAGS_FILE, COLUMNS, map(_make_bag_row, results))
    except OSError as error:
        raise RunError(f"{folder}: its tables cannot be written: {error.strerror}; make room there") from error


def _make_turn_rows(result: BagFlags) -> Iterator[dict[str, Any]]:
    for turn in result.turns:
        yield {
            "session": result.bag,
            "rejection": turn.rejection,
            "rejection_at_once": turn.rejection_at_once,
            "start_s": format_seconds(turn.start_ns - result.start_ns),
            "end_s": format_seconds(turn.end_ns - result.start_ns),
            "start_ns": turn.start_ns,
            "text": fold_lines(turn.text),
            "next_words": fold_lines(turn.next_words),
            "reasons": "; ".join(turn.reasons),
        }


def _make_bag_row(result: BagFlags) -> dict[str, Any]:
    rate = errors_per_hour([result])
    return {
        "bag": result.bag,
        "start_ns": result.start_ns,
        "length_s": f"{result.length_s:.3f}",
        "errors": len(result.errors),
        "competences": result.competences,
        "errors_per_hour": "" if rate is None else f"{rate:.1f}",
        "remarks": "; ".join(result.remarks),
        "problem": result.problem,
    }


def _read_bags(folder: Path) -> dict[str, BagFlags]:
    bags = read_records(folder, BagFlags)
    return {bag.bag: bag for bag in bags}  # of a bag that was run again, the last run counts
