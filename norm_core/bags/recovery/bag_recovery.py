"""Rebuild a valid bag from a damaged one, and report the losses."""

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from norm_core.bags.recovery.mcap_salvage import McapSalvage
from norm_core.bags.recovery.report import (
    UNKNOWN_TOPIC,
    BagRecoveryReport,
    Fragment,
    FragmentCounter,
    Hole,
    Repair,
    SalvagedMessage,
)
from norm_core.bags.storage import UNMERGED, is_packed, list_files, unpack_file
from norm_core.bags.topic import BagError, BagTopic, read_qos
from norm_core.bags.types import Definitions
from norm_core.bags.writer import BagWriteError, BagWriter, atomic_bag, partial_folder
from norm_core.runtime.unpacking import UnpackError, unpack_zstd_file

_MAGIC = b"SQLite format 3\0"
_ROWS = "SELECT id, topic_id, timestamp, data FROM messages WHERE id >= ? ORDER BY id"
_MAX_STEP = 1 << 40


class SqliteSalvage:
    """One pass over a file, one row at a time; repairs are made in a copy in `scratch`."""

    def __init__(self, path: Path, scratch: Path, progress: Callable[[int], None]) -> None:
        self._path = path
        self._scratch = scratch
        self._progress = progress
        self._topics: dict[int, BagTopic] = {}
        self.expected: dict[str, int] | None = None  # a damaged table cannot be counted

    def fragments(self) -> Iterator[Fragment]:
        """Yield messages, holes and repairs in recording order; iterate only once."""
        size = self._path.stat().st_size
        with self._path.open("rb") as file:
            header = file.read(100)
        if not header.startswith(_MAGIC):
            yield self._hole(0, size, "does not begin as a sqlite3 file does")
            return
        page_bytes = int.from_bytes(header[16:18], "big") or 0
        page_bytes = 65_536 if page_bytes == 1 else max(page_bytes, 512)
        workable, repairs = self._workable(size // page_bytes * page_bytes, size)
        for repair in repairs:
            yield Repair(file=self._path.name, what=repair)
        if (pages := int.from_bytes(header[28:32], "big")) > size // page_bytes:
            missing = pages * page_bytes - size
            yield self._hole(size, missing, "was cut short: its header tells of as many bytes more")
        with closing(sqlite3.connect(workable, uri=True, isolation_level=None)) as database:
            database.text_factory = lambda text: text.decode("utf-8", "replace")
            # Lets SQLite read a file that is shorter than its header states.
            database.execute("PRAGMA writable_schema=ON")
            try:
                self._topics = _topics(database)
            except (sqlite3.DatabaseError, TypeError) as error:
                yield self._hole(0, size, f"has no table of topics that can be read ({error})")
                return
            yield from self._rows(database, size)

    def _rows(self, database: sqlite3.Connection, size: int) -> Iterator[Fragment]:
        next_id, wrong = -(1 << 62), ""
        last_id = 0
        while True:
            try:
                for row_id, topic_id, stamp_ns, data in database.execute(_ROWS, (next_id,)):
                    if wrong or row_id > last_id + 1 > 1:
                        lost = max(0, row_id - last_id - 1)
                        yield self._hole(0, 0, wrong or "rows are missing", {UNKNOWN_TOPIC: lost} if lost else {})
                        wrong = ""
                    next_id, last_id = row_id + 1, row_id
                    yield self._message(topic_id, stamp_ns, data)
                break
            except sqlite3.DatabaseError as error:
                wrong = f"has rows that cannot be read ({error})"
                after = _readable_after(database, max(next_id, 1))
                if after is None:
                    break
                next_id = after
        if wrong:
            yield self._hole(0, 0, wrong)
        self._progress(size)

    def _message(self, topic_id: Any, stamp_ns: Any, data: Any) -> Fragment:
        topic = self._topics.get(topic_id)
        name = topic.topic if topic else UNKNOWN_TOPIC
        if topic is None or not isinstance(stamp_ns, int) or not isinstance(data, bytes) or stamp_ns < 0:
            return self._hole(0, 0, "holds a row that is no message of a stated topic", {name: 1})
        try:
            return SalvagedMessage(topic=topic, stamp_ns=stamp_ns, data=unpack_file(data))
        except BagError:
            return self._hole(0, 0, "holds a compressed message that is damaged", {name: 1})

    def _workable(self, whole_bytes: int, size: int) -> tuple[str, list[str]]:
        """Return the address of a readable database, and the repairs made to it."""
        left = [end for end in UNMERGED if self._path.with_name(self._path.name + end).is_file()]
        if not left and whole_bytes == size:
            return f"file:{quote(str(self._path.resolve()))}?immutable=1", []
        copy = self._scratch / self._path.name
        for end in ("", *left):
            shutil.copyfile(self._path.with_name(self._path.name + end), self._scratch / (self._path.name + end))
        repairs = []
        if left:
            repairs.append(f"what its recorder left in {', '.join(self._path.name + end for end in left)} was merged")
        elif whole_bytes != size:
            # SQLite would read the missing rest of a page as zeros.
            with copy.open("r+b") as file:
                file.truncate(whole_bytes)
            repairs.append(f"its last page is cut: {size - whole_bytes} bytes of it were left out")
        return f"file:{quote(str(copy.resolve()))}", repairs

    def _hole(self, offset: int, length_bytes: int, why: str, lost: dict[str, int] | None = None) -> Hole:
        return Hole(file=self._path.name, offset=offset, length_bytes=length_bytes, why=why, lost=lost or {})


def _topics(database: sqlite3.Connection) -> dict[int, BagTopic]:
    names = [column[1] for column in database.execute("PRAGMA table_info(topics)")]
    definitions: dict[str, tuple[str, str]] = {}
    with suppress(sqlite3.DatabaseError):  # sqlite3 bags have had this table since Iron
        for name, encoding, text in database.execute(
            "SELECT topic_type, encoding, encoded_message_definition FROM message_definitions"
        ):
            definitions[name] = (encoding, text)
    topics = {}
    for values in database.execute("SELECT * FROM topics"):
        row = dict(zip(names, values, strict=False))
        encoding, definition = definitions.get(row["type"], ("", ""))
        topics[row["id"]] = BagTopic(
            topic=row["name"],
            type_name=row["type"],
            definition=definition,
            is_idl=encoding == "ros2idl",
            digest=row.get("type_description_hash") or "",
            serialization=row["serialization_format"],
            qos=tuple(read_qos(row.get("offered_qos_profiles") or "")),
        )
    return topics


def _readable_after(database: sqlite3.Connection, bad_id: int) -> int | None:
    """Return the smallest readable id after a damaged one; None if there is none."""
    step = 1
    while not _is_readable(database, bad_id + step):
        step *= 2
        if step > _MAX_STEP:
            return None
    bad, good = bad_id + step // 2, bad_id + step
    while good - bad > 1:
        middle = (bad + good) // 2
        bad, good = (bad, middle) if _is_readable(database, middle) else (middle, good)
    return good


def _is_readable(database: sqlite3.Connection, row_id: int) -> bool:
    try:
        database.execute(f"{_ROWS} LIMIT 1", (row_id,)).fetchone()
    except sqlite3.DatabaseError:
        return False
    return True


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
