"""The folder of a run over bags: settings, the flags of each finished bag, and two CSV tables.

The folder is readable by its owner alone, because the flags quote what people said.
"""

import csv
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import Any

from norm_core.records.json_codec import RecordError, from_json, to_json
from norm_core.records.record import record
from norm_core.runtime.atomic_file import write_atomic
from norm_core.runtime.time import s_to_ns
from sim_replays.flag_runs.bag_flags import BagFlags, errors_per_hour
from sim_replays.runs.results.json_lines import drop_cut_line
from sim_replays.runs.results.run_folder import RAW, RunError, begin, read_config
from study_desk.coding.forms.sheet import Sheet
from study_desk.coding.forms.tables import write_csv
from study_desk.coding.labels import flag_labels, in_order

FLAGS, BAGS = "flags.csv", "bags.csv"
COLUMNS = ("bag", "start_ns", "length_s", "errors", "competences", "errors_per_hour", "remarks", "problem")


@record
class FlagRun:
    """An earlier run: its settings and its bags by name."""

    settings: Mapping[str, Any]
    bags: Mapping[str, BagFlags]


def begin_run(folder: Path, settings: Mapping[str, Any]) -> dict[str, BagFlags]:
    """Make the folder, or return the bags of an unfinished run with the same settings. Raises RunError."""
    begin(folder, settings)
    folder.chmod(0o700)
    return _read(folder)


def open_flag_run(folder: Path) -> FlagRun:
    """Read an earlier run. Raises RunError."""
    return FlagRun(settings=read_config(folder), bags=_read(folder))


def append_bag(folder: Path, done: BagFlags) -> None:
    """Store a finished bag. Raises RunError, and keeps the bags before it."""
    try:
        with (folder / RAW).open("a", encoding="utf-8") as file:
            file.write(f"{to_json(done)}\n")
    except OSError as error:
        drop_cut_line(folder / RAW)
        raise RunError(f"{folder}: cannot be written to: {error}; make room, then repeat the command") from error


def write_tables(folder: Path) -> None:
    """Write one table of flags, with the columns of `study export`, and one of bags. Raises RunError."""
    results = _read(folder).values()
    sheets = [
        Sheet(
            session=one.bag,
            origin_ns=one.start_ns,
            end_ns=one.start_ns + s_to_ns(one.length_s),
            labels=in_order(label for flag in one.flags for label in flag_labels(flag)),
        )
        for one in results
    ]
    write_csv(folder / FLAGS, *sheets)
    text = StringIO()
    table = csv.writer(text)
    table.writerow(COLUMNS)
    for one in results:
        rate = errors_per_hour([one])
        counts = (len(one.errors), one.competences, "" if rate is None else f"{rate:.1f}")
        table.writerow((one.bag, one.start_ns, f"{one.length_s:.3f}", *counts, "; ".join(one.remarks), one.problem))
    try:
        write_atomic(folder / BAGS, text.getvalue())
    except OSError as error:
        raise RunError(f"{folder / BAGS}: cannot be written: {error.strerror}; make room there") from error


def _read(folder: Path) -> dict[str, BagFlags]:
    path = folder / RAW
    if not path.is_file():
        return {}
    *lines, _ = path.read_text(encoding="utf-8").split("\n")  # drops a line that a killed run cut
    try:
        bags = [from_json(BagFlags, line) for line in lines]
    except RecordError as error:
        raise RunError(f"{path}: is not of a run of `flags`: {error}; name another folder") from error
    return {one.bag: one for one in bags}  # a bag that was run again stands for the last time
