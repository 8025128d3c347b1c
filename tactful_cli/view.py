"""`tactful view`: a local page over what the robot noticed in a bag."""

import heapq
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from norm_core.bags.reader import BagError, BagReader
from norm_core.records.decision import Decision
from norm_core.records.messages import MessageError, message_type
from norm_core.records.status import MonitorStatus
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import ReplayClock
from norm_core.runtime.wording import count_of
from norm_monitor.senses.speech.whisper import WhisperConfig
from sim_replays.drivers.bag_driver import BagSenses, feed_monitor, replay_monitor
from study_desk.log.recording import BAGGED
from study_desk.report.page_server import LOOPBACK
from study_desk.view.stills import BagStills
from study_desk.view.timeline import SessionTimeline
from study_desk.view.view_server import ViewServer
from tactful_cli.bag_senses import remarks_of, senses_of
from tactful_cli.console import complain, err, print_json
from tactful_cli.flag_watch import NOTHING_TO_WATCH
from tactful_cli.study.pages import face_finder
from tactful_cli.study.watch import holds_flags
from tactful_cli.verb import AsJson, Language, RobotTopics, WhisperModel, WordsTopics, single

app = single()


@app.command()
def view(  # noqa: PLR0917
    bag: Annotated[Path, typer.Argument(metavar="BAG", help="Folder of a rosbag2 bag.")],
    topic: Annotated[str, typer.Option(help="Audio topic, if the bag holds no flags; default: the only one.")] = "",
    robot_topic: RobotTopics = None,
    words_topic: WordsTopics = None,
    language: Language = "en",
    whisper: WhisperModel = "",
    show_faces: Annotated[bool, typer.Option("--show-faces", help="Do not blur faces.")] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="TCP port; 0: a free one.")] = 0,
    host: Annotated[
        str, typer.Option(help="Address to listen on. Any address other than loopback exposes the page to the network.")
    ] = "127.0.0.1",
    as_json: AsJson = False,
) -> None:
    """Serve a page that replays a bag: camera, speech, people, flags, decisions and health. Ctrl-C ends it.

    Runs the monitor on a bag without flags, and the page fills as it goes.
    """
    with BagReader(bag) as reader:
        start_ns, end_ns = reader.bounds_ns or (0, 0)
        timeline = SessionTimeline(bag.resolve().name, start_ns)
        timeline.extend_to(end_ns)
        if holds_flags(reader):
            records = _recorded(reader, timeline, (*BAGGED, MonitorStatus))
        else:
            hearing = WhisperConfig(model=whisper, language=language)
            senses = senses_of(reader, topic, hearing, robot_topic or (), words_topics=words_topic or ())
            records = _monitored(reader, timeline, senses)
        stills = BagStills(bag, None if show_faces else face_finder(), shows_faces=show_faces)
        with _serving(timeline, stills, host, port) as server:
            if as_json:
                print_json({"url": server.url})
            else:
                print(server.url, flush=True)
                err.print("Ctrl-C ends it.")
            for known_ns, record in records:
                timeline.take(record, known_ns)
            timeline.complete()
            threading.Event().wait()  # until Ctrl-C


@contextmanager
def _serving(timeline: SessionTimeline, stills: BagStills, host: str, port: int) -> Iterator[ViewServer]:
    try:
        server = ViewServer(timeline, stills.at if stills.topic else None, host=host, port=port)
    except OSError as error:
        raise TactfulError(f"{host}:{port}: cannot be listened on: {error.strerror}; give another --port") from error
    if host not in LOOPBACK:
        complain(f"listening on {host}: whoever reaches this machine and has the link sees the bag, unencrypted")
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        yield server
    finally:
        server.close()
        thread.join()


def _recorded(bag: BagReader, timeline: SessionTimeline, kinds: Iterable[type]) -> Iterator[tuple[int, Any]]:
    """Yield the records of some kinds that the nodes published."""
    wanted = {message_type(kind) for kind in kinds}
    topics = [topic.topic for topic in bag.topics if topic.type_name in wanted]
    unreadable = 0
    for message in bag.messages(topics) if topics else ():
        try:
            yield message.stamp_ns, bag.decode(message)
        except MessageError:
            unreadable += 1
    if unreadable:
        timeline.note(f"{count_of(unreadable, 'message')} of the bag cannot be read")


def _monitored(bag: BagReader, timeline: SessionTimeline, senses: BagSenses) -> Iterator[tuple[int, Any]]:
    """Return what the senses and the monitor make of the bag. Raises BagError for no input."""
    if not senses.topics:
        raise BagError(f"{timeline.title}: {NOTHING_TO_WATCH}")
    timeline.note("The bag holds no flags, so the monitor runs on it here, without a judge.")

    def run() -> Iterator[tuple[int, Any]]:
        clock = ReplayClock()
        monitor = replay_monitor(senses.sources, clock)
        published = list(
            _recorded(bag, timeline, (Decision, MonitorStatus))
        )  # read first: a bag is read once at a time
        yield from heapq.merge(feed_monitor(senses, monitor, clock), published, key=lambda pair: pair[0])
        for remark in remarks_of(bag, senses, monitor):
            timeline.note(remark)

    return run()
