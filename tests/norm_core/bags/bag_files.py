"""Small bags of every kind of storage, with the same messages in each."""

import sqlite3
from pathlib import Path

from mcap.writer import CompressionType, IndexType
from mcap.writer import Writer as McapWriter
from rosbags.interfaces import Qos, QosDurability, QosHistory, QosLiveliness, QosReliability, QosTime
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer

from norm_core.bags.reader import BagReader
from norm_core.bags.types import make, typestore

STRING = "std_msgs/msg/String"
COUNT = 40
LATCHED = Qos(
    QosHistory.KEEP_LAST, 1, QosReliability.RELIABLE, QosDurability.TRANSIENT_LOCAL, QosTime(0, 0), QosTime(0, 0),
    QosLiveliness.AUTOMATIC, QosTime(0, 0), False,
)  # fmt: skip


def read(bag: Path) -> list[tuple[str, int, bytes]]:
    with BagReader(bag) as reader:
        return [(m.topic, m.stamp_ns, m.data) for m in reader.messages()]


def cdr(text: str) -> bytes:
    return bytes(typestore().serialize_cdr(make(STRING, {"data": text}), STRING))


def entries(count: int = COUNT) -> list[tuple[str, int, bytes]]:
    """Topic, stamp and bytes of messages of growing length, one in four on a second topic."""
    return [
        ("/b" if i % 4 == 3 else "/a", 1_000_000_000 + i * 100_000_000, cdr(f"{i} " + "x" * 37 * i))
        for i in range(count)
    ]


def write_rosbags(
    path: Path,
    storage: StoragePlugin = StoragePlugin.MCAP,
    mode: CompressionMode = CompressionMode.NONE,
    messages: list[tuple[str, int, bytes]] | None = None,
    latched: tuple[str, ...] = (),
) -> Path:
    writer = Writer(path, version=9, storage_plugin=storage)
    writer.set_compression(mode, CompressionFormat.ZSTD)
    with writer:
        connections = {}
        for topic, stamp_ns, data in entries() if messages is None else messages:
            if topic not in connections:
                qos = [LATCHED] if topic in latched else []
                connections[topic] = writer.add_connection(
                    topic, STRING, typestore=typestore(), offered_qos_profiles=qos
                )
            writer.write(connections[topic], stamp_ns, data)
    return path


def write_mcap(
    path: Path, compression: CompressionType = CompressionType.NONE, chunked: bool = True, chunk_bytes: int = 4_000
) -> Path:
    """A folder without metadata.yaml, its one file as other MCAP writers make it: with checksums."""
    path.mkdir()
    index = IndexType.ALL if chunked else IndexType.NONE
    with (path / "bag_0.mcap").open("wb") as file:
        writer = McapWriter(
            file, chunk_size=chunk_bytes, compression=compression, index_types=index, use_chunking=chunked
        )
        writer.start(profile="ros2", library="tests")
        definition, _ = typestore().generate_msgdef(STRING, ros_version=2)
        schema = writer.register_schema(STRING, "ros2msg", definition.encode())
        channels = {topic: writer.register_channel(topic, "cdr", schema) for topic in ("/a", "/b")}
        for topic, stamp_ns, data in entries():
            writer.add_message(channels[topic], log_time=stamp_ns, publish_time=stamp_ns, data=data)
        writer.finish()
    return path


def write_before_iron(
    path: Path, type_name: str = STRING, messages: list[tuple[str, int, bytes]] | None = None
) -> Path:
    """A sqlite3 bag as Humble and older write it: no definitions, no metadata.yaml."""
    path.mkdir()
    database = sqlite3.connect(path / "bag_0.db3")
    database.executescript(
        "CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT NOT NULL, type TEXT NOT NULL, "
        "serialization_format TEXT NOT NULL, offered_qos_profiles TEXT NOT NULL);"
        "CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER NOT NULL, timestamp INTEGER NOT NULL, "
        "data BLOB NOT NULL); CREATE INDEX timestamp_idx ON messages (timestamp ASC);"
    )
    written = entries() if messages is None else messages
    topics = {topic: index for index, topic in enumerate(dict.fromkeys(topic for topic, _, _ in written), 1)}
    for topic, index in topics.items():
        database.execute("INSERT INTO topics VALUES(?, ?, ?, 'cdr', '')", (index, topic, type_name))
    for topic, stamp_ns, data in written:
        database.execute(
            "INSERT INTO messages(topic_id, timestamp, data) VALUES(?, ?, ?)", (topics[topic], stamp_ns, data)
        )
    database.commit()
    database.close()
    return path
