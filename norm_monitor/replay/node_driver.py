"""Play a bag to the robot's nodes, each host in its own process.

A session's bag holds sound and images, or the senses' records of them. Recorded utterances need silence marks among
them, as the ears publish them.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from threading import Thread
from typing import Any

from norm_core.bags.reader import BagReader
from norm_core.records.episode import Query
from norm_core.records.frame import Frame
from norm_core.records.messages import message_type
from norm_core.records.record import record
from norm_core.records.speech import Utterance
from norm_core.records.topics import ANSWERS_TOPIC, FLAGS_TOPIC, WINDOWS_TOPIC, full_topic
from norm_core.runtime.config import Config
from norm_core.runtime.errors import TactfulError
from norm_core.streams.watermarks import FRAMES, PRESENCE, UTTERANCES
from norm_monitor.replay.node_process import NodeProcess, claim_domain, end_process, has_room
from norm_monitor.senses.camera.faults import IMAGE_TYPES

_END_TIMEOUT_S = 30.0
# The interval at which the end of a node is looked for.
_CHECK_S = 0.2
# The topics of the first and the last output, which are not of a node.
BEGIN = "begin"
END = "end"

# An entry of a node's qos_overrides, for a subscription that keeps every message.
LOSSLESS = {"subscription": {"reliability": "reliable", "history": "keep_all"}}

# The nodes of each process, with the parameters of each node.
Hosts = Sequence[Mapping[str, Mapping[str, Any]]]

WINDOWS = full_topic(WINDOWS_TOPIC)
FLAGS = full_topic(FLAGS_TOPIC)
ANSWERS = full_topic(ANSWERS_TOPIC)
# The longest turn plus the time to transcribe it. A window waits this long for words at a live pace.
LIVE_LATENESS_S = 15.0


class TransportError(TactfulError, RuntimeError):
    """The nodes or the player failed. Earlier answers remain."""

    exit_code = 1


@record
class NodeOutput:
    """A message on a topic, with the bag position `at_ns` and the time `wall_s` in seconds since the start.

    The last one, on END, is the summary.
    """

    topic: str
    at_ns: int
    wall_s: float
    message: dict[str, Any]


def play_to_nodes(
    bag: Path,
    hosts: Hosts,
    *,
    rate: float = 0.0,
    in_lockstep: bool = False,
    domain_id: int | None = None,
) -> Iterator[NodeOutput]:
    """Play a bag to the nodes. The nodes end after the last message.

    With a rate, messages are sent at that multiple of the recorded pace; without, or `in_lockstep` too, the player
    waits for the nodes.
    """
    with ExitStack() as stack:
        if domain_id is None:
            domain_id = stack.enter_context(claim_domain())
        started = [NodeProcess(list(host), host, domain_id) for host in hosts]
        for process in started:
            process.begin()
            stack.push(process)
        for process in started:
            process.await_start()
        overrides = [parameters.get("qos_overrides", {}) for host in hosts for parameters in host.values()]
        lossless = [topic for override in overrides for topic, qos in override.items() if qos == LOSSLESS]
        options = ["--rate", str(rate)] + ["--lockstep"] * in_lockstep + ["--lossless", *lossless]
        yield from play_to_running_nodes(bag, started, domain_id, *options)


def play_to_running_nodes(
    bag: Path, nodes: Sequence[NodeProcess], domain_id: int, *options: str
) -> Iterator[NodeOutput]:
    """Play a bag to nodes that run already, with further options of the player; by default in lockstep."""
    names = [name for process in nodes for name in process.nodes]
    options = (*["--roomy"] * has_room(), *options)
    player = [sys.executable, "-m", "norm_bench.lockstep_player", str(bag), *names, *options]
    for line in lines_of(player, domain_id, nodes):
        yield NodeOutput(**line)


def lines_of(command: Sequence[str], domain_id: int, nodes: Sequence[NodeProcess]) -> Iterator[dict[str, Any]]:
    """Yield the lines that a player prints. Raises TransportError, with all last outputs, where it fails."""
    environment = {**os.environ, "ROS_DOMAIN_ID": str(domain_id)}
    # Its log goes to a file, because an unread pipe would fill and block it.
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as log,
        subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
        ) as driver,
    ):
        assert driver.stdout
        # The middleware takes many seconds to notice a killed node.
        for node in nodes:
            Thread(target=_end_player_with, args=(driver, node), daemon=True).start()
        try:
            for line in driver.stdout:
                if line.startswith("{"):  # the middleware writes its complaints there too
                    yield json.loads(line)
            if driver.wait(_END_TIMEOUT_S):
                log.seek(0)
                last_lines = log.read().strip().splitlines()[-5:]
                ended = [f"{node.describe_exit()} and said: {node.last_output()}" for node in nodes]
                raise TransportError("\n".join([*last_lines, *ended]))
        finally:
            end_process(driver, _END_TIMEOUT_S)


def _end_player_with(driver: subprocess.Popen[str], node: NodeProcess) -> None:
    while driver.poll() is None:
        if node.ended.wait(_CHECK_S):
            driver.terminate()
            return


class SessionTopics(Config):
    """The topics of a bag by content; empty where there is none."""

    audio: str = ""
    audio_type: str = ""
    camera: str = ""
    sources: tuple[str, ...] = ()
    has_queries: bool = False

    @property
    def sensed(self) -> tuple[str, ...]:
        """The sources derived from sound and images, which arrive with a delay."""
        return (*((FRAMES, PRESENCE) if self.camera else ()), *((UTTERANCES,) if self.audio else ()))


def topics_of(bag: Path) -> SessionTopics:
    """Find the topics of a bag, with its sound on the topic /audio."""
    with BagReader(bag) as reader:
        types = {topic.topic: topic.type_name for topic in reader.topics if topic.message_count}
    camera = next((topic for topic, type_name in types.items() if type_name in IMAGE_TYPES), "")
    audio = "/audio" if "/audio" in types else ""
    type_names = set(types.values())
    available = {
        FRAMES: camera or message_type(Frame) in type_names,
        PRESENCE: camera or "norm_interfaces/msg/Presence" in type_names,
        UTTERANCES: audio or message_type(Utterance) in type_names,
    }
    return SessionTopics(
        audio=audio,
        audio_type=types.get(audio, ""),
        camera=camera,
        sources=tuple(source for source, is_available in available.items() if is_available),
        has_queries=message_type(Query) in type_names,
    )


def play_over_dds(
    bag: Path, rate: float = 0.0, *, in_lockstep: bool = False, domain_id: int | None = None
) -> Iterator[NodeOutput]:
    """Yield the nodes' output, with each sense in its own process; `play_to_nodes` explains the pace."""
    topics = topics_of(bag)
    hosts = list_hosts(topics, 0.0 if in_lockstep else rate)
    for output in play_to_nodes(bag, hosts, rate=rate, in_lockstep=in_lockstep, domain_id=domain_id):
        for topic, why in output.message.get("skipped_topics", {}).items():
            if topic in {topics.audio, topics.camera}:
                raise TransportError(f"{topic} cannot be played: {why}")
        yield output


def list_hosts(topics: SessionTopics, rate: float) -> Hosts:
    """List the nodes that a bag needs."""
    lateness_s = LIVE_LATENESS_S if rate else 0.0
    hosts: list[Mapping[str, Mapping[str, Any]]] = []
    # A pause of the sound shows only that the replay waits for a slow node. Speech continues after it.
    patient = {"stale_after_s": 0.0}
    if topics.camera:
        hosts.append({"camera": {"topic": topics.camera, **patient, "qos_overrides": {topics.camera: LOSSLESS}}})
    if topics.audio:
        ears = {"audio_topic": topics.audio, "audio_type": topics.audio_type, "partial_every_s": 0.0}
        hosts.append({"ears": {**ears, **patient, "qos_overrides": {topics.audio: LOSSLESS}}})
    deciding: dict[str, Mapping[str, Any]] = {
        "monitor": {"windows": {"sources": list(topics.sources), "lateness_s": lateness_s}},
    }
    if topics.has_queries:
        # ROS cannot infer the type of an empty list.
        deciding["selector"] = {"sources": list(topics.sensed)} if topics.sensed else {}
    return [*hosts, deciding]
