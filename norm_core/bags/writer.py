"""Write a rosbag2 folder (MCAP) that ROS 2 Jazzy plays."""

from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from rosbags.interfaces import Connection
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.rosbag2.errors import WriterError
from rosbags.rosbag2.storage_mcap import McapWriter

from norm_core.bags.topic import BagTopic
from norm_core.bags.types import serialize, typestore
from norm_core.records.messages import message_type
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import NS_PER_S
from norm_core.runtime.wording import count_of

# The longest time that a message waits for its chunk.
FLUSH_PERIOD_NS = NS_PER_S
# Pictures and voices are for their owner alone.
FOLDER_MODE = 0o700


class BagWriteError(TactfulError, OSError):
    """A bag cannot be written; earlier messages stay on disk."""


class BagWriter:
    """A new bag, complete after `close`; compression does not affect reading."""

    def __init__(self, path: Path, compressed: bool = False) -> None:
        """Make the bag's folder and open its MCAP file. Raises BagWriteError, also if the path exists."""
        self._path = path
        self._connections: dict[tuple[str, str], Connection] = {}
        self._flushed_ns: int | None = None
        self.message_count = 0
        try:
            self._writer = Writer(path, version=Writer.VERSION_LATEST, storage_plugin=StoragePlugin.MCAP)
            self._writer.set_compression(
                CompressionMode.STORAGE if compressed else CompressionMode.NONE, CompressionFormat.ZSTD
            )
            self._writer.open()
            with suppress(PermissionError):  # on a file system without modes, as of a memory stick
                path.chmod(FOLDER_MODE)
        except (WriterError, OSError) as error:
            raise BagWriteError(f"cannot make a bag at {path}: {error}") from error

    def write(self, topic: str, record: object, stamp_ns: int) -> None:
        """Write a record's message, received at `stamp_ns`."""
        self.write_serialized(topic, message_type(type(record)), serialize(record), stamp_ns)

    def write_message(self, topic: str, message: Any, stamp_ns: int) -> None:
        """Write a message of the bag library, such as a sensor_msgs/msg/CompressedImage."""
        data = bytes(typestore().serialize_cdr(message, message.__msgtype__))
        self.write_serialized(topic, message.__msgtype__, data, stamp_ns)

    def write_serialized(self, topic: str, type_name: str, data: bytes, stamp_ns: int) -> None:
        """Write a message that is already CDR."""
        try:
            connection = self._connections.get((topic, type_name)) or self._connect(topic, type_name)
            self._writer.write(connection, stamp_ns, data)
        except OSError as error:
            raise self._write_error(error) from error
        self.message_count += 1

    def write_copied(self, topic: BagTopic, data: bytes, stamp_ns: int) -> None:
        """Write a message of another bag, of any type; the first message of a topic declares it."""
        if topic.key not in self._connections:
            self._declare(topic)
        self.write_serialized(topic.topic, topic.type_name, data, stamp_ns)

    def flush_if_due(self, now_ns: int) -> None:
        """Write the messages so far to the disk as a whole chunk, once a second; after a kill they can be recovered.

        `now_ns` comes from any clock that never goes back.
        """
        if self._flushed_ns is None or now_ns - self._flushed_ns >= FLUSH_PERIOD_NS:
            self._flushed_ns = now_ns
            storage = self._writer.storage
            if isinstance(storage, McapWriter):
                try:
                    if storage.chunk.msgs:
                        storage.close_chunk()
                    storage.bio.flush()
                except OSError as error:
                    raise self._write_error(error) from error

    def close(self) -> None:
        """Complete the bag; a second call does nothing."""
        if self._writer.storage is None:
            return
        try:
            self._writer.close()
        except OSError as error:
            raise BagWriteError(f"{self._path}: could not be completed: {error}") from error
        finally:
            self._writer.storage = None

    def __enter__(self) -> Self:
        """Return the open bag."""
        return self

    def __exit__(self, *_: object) -> None:
        """Complete the bag, also after an error."""
        self.close()

    def _write_error(self, error: OSError) -> BagWriteError:
        return BagWriteError(f"{self._path}: writing failed after {count_of(self.message_count, 'message')}: {error}")

    def _declare(self, topic: BagTopic) -> None:
        connection = self._writer.add_connection(
            topic.topic,
            topic.type_name,
            msgdef=topic.definition,
            rihs01=topic.digest or "unknown",  # the library requires one; it is removed below
            serialization_format=topic.serialization,
            offered_qos_profiles=topic.qos,
        )
        if not topic.digest:
            connection = self._writer.connections[-1] = connection._replace(digest="")
        self._connections[topic.key] = connection

    def _connect(self, topic: str, type_name: str) -> Connection:
        if type_name not in typestore().fielddefs:
            raise BagWriteError(f"{self._path}: {topic} has the type {type_name}, which is not known here")
        connection = self._writer.add_connection(topic, type_name, typestore=typestore())
        self._connections[topic, type_name] = connection
        return connection
