"""Rebuild a valid bag from a damaged one, and report the losses."""

from collections.abc import Callable
from pathlib import Path

from norm_core.bags.atomic_bag import atomic_bag, partial_folder
from norm_core.bags.definitions import Definitions
from norm_core.bags.errors import BagError
from norm_core.bags.listing import is_packed, list_files
from norm_core.bags.recovery.mcap_salvage import McapSalvage
from norm_core.bags.recovery.report import BagRecoveryReport, FragmentCounter, Hole, SalvagedMessage
from norm_core.bags.recovery.sqlite_salvage import SqliteSalvage
from norm_core.bags.writer import BagWriteError, BagWriter
from norm_core.runtime.unpacking import UnpackError, unpack_zstd_file


def recover_bag(
    bag: Path, made: Path, progress: Callable[[int, int], None] = lambda done, size: None
) -> BagRecoveryReport:
    """Write all intact messages of `bag` to a new MCAP bag at `made`; `progress` gets the bytes done and the total."""
    listing = list_files(bag)
    size = sum(file.stat().st_size for file in listing.files)
    counter, passed = FragmentCounter(listing), 0
    with atomic_bag(made) as writer:
        scratch = partial_folder(made) / "scratch"
        scratch.mkdir()
        for file in listing.files:

            def tell(done: int, passed: int = passed) -> None:
                progress(passed + done, size)

            try:
                _recover_file(_unpacked(file, scratch, counter), scratch, counter, writer, tell)
            except OSError as error:
                if isinstance(error, BagWriteError):
                    raise
                raise BagError(f"{bag}: cannot be recovered: {error}") from error
            passed += file.stat().st_size
            progress(passed, size)
        if not counter.messages and counter.is_damaged:
            raise BagError(f"{bag}: nothing in it can be recovered: {counter.reason_for_no_messages()}")
    return counter.recovery(str(bag), str(made), size)


def _recover_file(
    file: Path, scratch: Path, counter: FragmentCounter, writer: BagWriter, progress: Callable[[int], None]
) -> None:
    definitions = Definitions()
    salvage: McapSalvage | SqliteSalvage
    salvage = SqliteSalvage(file, scratch, progress) if file.suffix == ".db3" else McapSalvage(file, progress)
    for fragment in salvage.fragments():
        if isinstance(fragment, SalvagedMessage):
            topic = definitions.completed(fragment.topic, fragment.data)
            writer.write_copied(topic, fragment.data, fragment.stamp_ns)
        counter.add(fragment)
    counter.add_stated(salvage.expected)


def _unpacked(file: Path, scratch: Path, counter: FragmentCounter) -> Path:
    """Decompress a compressed file as far as possible."""
    if not is_packed(file):
        return file
    target = scratch / file.stem
    with file.open("rb") as packed:
        try:
            unpack_zstd_file(packed, target)
        except UnpackError as error:
            why = f"can be decompressed only in part: {error}"
            counter.add(Hole(file=file.name, offset=packed.tell(), length_bytes=0, why=why, lost={}))
    return target
