"""Read rosbag2 bags, MCAP and sqlite3 alike, in recording order."""

from collections.abc import Collection, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from norm_core.bags.storage import Listing, StorageFile, list_files, suggest_recovery
from norm_core.bags.topic import BagError, BagTopic, describe_topic
from norm_core.bags.types import Definitions, serialize
from norm_core.records.messages import RECORDS, from_message
from norm_core.records.record import record
from norm_core.runtime.wording import count_of

__all__ = ["BagError", "BagMessage", "BagReader", "BagTopic"]


@record
class BagMessage:
    """One serialized message; `stamp_ns` is its recording time."""

    topic: str
    type_name: str
    stamp_ns: int
    data: bytes


class BagReader:
    """An open bag, from a folder or one file; use it in a with statement."""

    def __init__(self, path: Path) -> None:
        """Open every file of the bag. Raises BagError if a file cannot be read."""
        self._path = path
        self._definitions = Definitions()
        self._files: list[StorageFile] = []
        listing = list_files(path)
        self.notes = listing.notes
        with ExitStack() as stack:
            for file in listing.files:
                try:
                    storage = StorageFile(file)
                except BagError as error:
                    raise BagError(f"{path}: cannot be opened as a bag: {error}") from error
                stack.callback(storage.close)
                self._files.append(storage)
            self._topics = self._merge_topics(listing)
            self._check_counts(listing)
            self._stack = stack.pop_all()

    @property
    def topics(self) -> tuple[BagTopic, ...]:
        """The bag's contents by topic."""
        return tuple(self._topics[key] for key in sorted(self._topics))

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files of the bag."""
        return tuple(file.path for file in self._files)

    @property
    def message_count(self) -> int:
        """The number of messages in the bag."""
        return sum(file.message_count for file in self._files)

    @property
    def bounds_ns(self) -> tuple[int, int] | None:
        """The recording times of the first and the last message; None for an empty bag."""
        bounds = [file.bounds_ns for file in self._files if file.bounds_ns]
        return (min(first for first, _ in bounds), max(last for _, last in bounds)) if bounds else None

    def messages(
        self, topics: Collection[str] | None = None, start_ns: int | None = None, stop_ns: int | None = None
    ) -> Iterator[BagMessage]:
        """Yield all messages, or those of some topics; `stop_ns` is exclusive. Raises BagError for a missing topic."""
        self.check_topics(topics or ())
        expected = sum(
            topic.message_count for topic in self._topics.values() if topics is None or topic.topic in topics
        )
        read_count = 0
        for file in self._files:
            connections = [
                connection for connection in file.connections if topics is None or connection.topic in topics
            ]
            try:
                for connection, stamp_ns, data in file.messages(connections, start_ns, stop_ns):
                    yield BagMessage(topic=connection.topic, type_name=connection.msgtype, stamp_ns=stamp_ns, data=data)
                    read_count += 1
            except BagError as error:
                raise BagError(
                    f"{self._path}: is damaged after {read_count} of {count_of(expected, 'message')}: {error}"
                ) from error
        if start_ns is None and stop_ns is None and read_count != expected:
            raise BagError(
                f"{self._path}: is damaged: {read_count} of {count_of(expected, 'message')} could be read; "
                f"{suggest_recovery(self._files[0].path)}"
            )

    def check_topics(self, topics: Collection[str]) -> None:
        """Check that the bag has some topics. Raises BagError with the missing ones."""
        present = {topic for topic, _ in self._topics}
        if missing := sorted(set(topics) - present):
            raise BagError(
                f"{self._path}: has no topic {', '.join(missing)}; it has {', '.join(sorted(present)) or 'none'}"
            )

    def decode(self, message: BagMessage) -> Any:
        """Return a record for a message of Tactful, or else a message of the bag library."""
        topic = self._topics[message.topic, message.type_name]
        try:
            decoded = self._definitions.decode(topic, message.data)
        except BagError as error:
            raise BagError(f"{self._path}: {error}") from error
        except Exception as error:  # generated code may raise any error on damaged bytes
            raise BagError(
                f"{self._path}: a message on {message.topic} at {message.stamp_ns} ns "
                f"is not a valid {message.type_name}: {error}"
            ) from error
        cls = RECORDS.get(message.type_name)
        return from_message(cls, decoded) if cls else decoded

    def encode_playable(self, message: BagMessage) -> bytes:
        """Return the bytes to publish; a message recorded by another version of Tactful is encoded anew."""
        topic = self._topics[message.topic, message.type_name]
        if message.type_name in RECORDS and self._definitions.is_of_another_version(topic):
            return serialize(self.decode(message))
        return message.data

    def close(self) -> None:
        """Close the bag's files."""
        self._stack.close()

    def __enter__(self) -> Self:
        """Return the open bag."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close all files of the bag."""
        self.close()

    def _merge_topics(self, listing: Listing) -> dict[tuple[str, str], BagTopic]:
        """Merge the topics of all files; take a definition from any file that has it."""
        merged: dict[tuple[str, str], BagTopic] = {}
        for file in self._files:
            for connection in file.connections:
                topic = describe_topic(connection, listing.digests.get(connection.topic, ""))
                merged[topic.key] = merged[topic.key].with_messages_of(topic) if topic.key in merged else topic
        return merged

    def _check_counts(self, listing: Listing) -> None:
        """Compare the files with metadata.yaml; add a note if they hold more messages. Raises BagError if fewer."""
        counts: dict[str, int] = {}
        for topic in self._topics.values():
            counts[topic.topic] = counts.get(topic.topic, 0) + topic.message_count
        stated_counts = listing.promised
        short_topics = [name for name, count in stated_counts.items() if counts.get(name, 0) < count]
        if short_topics:
            promised_count = sum(stated_counts[topic] for topic in short_topics)
            present_count = sum(counts.get(topic, 0) for topic in short_topics)
            raise BagError(
                f"{self._path}: is damaged: metadata.yaml promises "
                f"{count_of(promised_count, 'message')} on {', '.join(short_topics[:3])}"
                f"{' and others' if len(short_topics) > 3 else ''}, and its files hold {present_count}"
                f"{'; ' + listing.notes[-1] if listing.notes else ''}; "
                f"{suggest_recovery(self._files[0].path)}"
            )
        if stated_counts and counts != {name: n for name, n in stated_counts.items() if n or name in counts}:
            self.notes += ("metadata.yaml is out of date: the files hold more messages than it counts",)
