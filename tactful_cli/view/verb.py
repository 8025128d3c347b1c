"""`tactful view`: a local page over what the robot notices in a bag, or in a running graph."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from norm_core.bags.reader import BagReader
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.time import NS_PER_S
from norm_monitor.senses.speech.whisper import WhisperConfig
from study_desk.report.page_server import LOOPBACK
from study_desk.view.stills import BagStills, LiveStills
from study_desk.view.timeline import SessionTimeline
from study_desk.view.view_server import StillAt, ViewServer
from tactful_cli.bag_senses import senses_of
from tactful_cli.console import complain, err, print_json
from tactful_cli.graph_stream import GraphStream
from tactful_cli.study.pages import face_finder
from tactful_cli.verb import AsJson, Language, RobotTopics, WhisperModel, WordsTopics, single
from tactful_cli.view.bag_feed import bag_records
from tactful_cli.view.live_controls import LiveControls
from tactful_cli.view.live_feed import LiveFeed

app = single()

KEEP_S = 3 * 3600.0  # of a running graph
WAIT_S = 0.25
TICK_NS = NS_PER_S


@app.command()
def view(  # noqa: PLR0917
    bag: Annotated[
        Path | None, typer.Argument(metavar="BAG", help="Folder of a rosbag2 bag; default: the running graph.")
    ] = None,
    namespace: Annotated[
        str, typer.Option(help=f"Namespace of the robot, where several share a ROS domain, as of {PROGRAM} up.")
    ] = "",
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
    """Serve a page that shows camera, speech, people, flags, decisions and health. Ctrl-C ends it.

    It shows a running graph, or replays a bag. Runs the monitor on a bag without flags, and the page fills as it goes.
    """
    if bag and namespace:
        raise TactfulError("--namespace: belongs to a running graph; leave it out, or leave out the bag")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what it starts with &

    @contextmanager
    def serving(
        timeline: SessionTimeline, still_at: StillAt | None, controls: LiveControls | None = None
    ) -> Iterator[None]:
        try:
            server = ViewServer(timeline, still_at, controls=controls, is_live=bag is None, host=host, port=port)
        except OSError as error:
            raise TactfulError(
                f"{host}:{port}: cannot be listened on: {error.strerror}; give another --port"
            ) from error
        if host not in LOOPBACK:
            complain(f"listening on {host}: whoever reaches this machine and has the link sees the page, unencrypted")
        thread = threading.Thread(target=server.serve)
        thread.start()
        try:
            if as_json:
                print_json({"url": server.url})
            else:
                print(server.url, flush=True)
                err.print("Ctrl-C ends it.")
            yield
        finally:
            server.close()
            thread.join()

    find = None if show_faces else face_finder()
    if bag is None:

        def log(line: str) -> None:
            complain(f"view: {line}")

        with closing(GraphStream(namespace, "view", log, frames=True, commands=True)) as stream:
            timeline = SessionTimeline(stream.namespace, time.time_ns(), keep_s=KEEP_S)
            live_stills = LiveStills(find, shows_faces=show_faces)
            controls = LiveControls(stream, timeline)
            with serving(timeline, live_stills.at, controls):
                _follow(stream, LiveFeed(stream.namespace, timeline, live_stills), controls)
    else:
        with BagReader(bag) as reader:
            start_ns, end_ns = reader.bounds_ns or (0, 0)
            timeline = SessionTimeline(bag.resolve().name, start_ns)
            timeline.extend_to(end_ns)
            hearing = WhisperConfig(model=whisper, language=language)
            senses_for = partial(
                senses_of, topic=topic, whisper=hearing, robot_topics=robot_topic or (), words_topics=words_topic or ()
            )
            records = bag_records(reader, timeline, senses_for)
            stills = BagStills(bag, find, shows_faces=show_faces)
            with serving(timeline, stills.at if stills.topic else None):
                for known_ns, record in records:
                    timeline.take(record, known_ns)
                timeline.complete()
                threading.Event().wait()  # until Ctrl-C


def _follow(stream: GraphStream, feed: LiveFeed, controls: LiveControls) -> None:
    ticked_ns = 0
    while True:
        line = stream.get(WAIT_S)
        if line:
            feed.take(line)
            controls.take(line)
        now_ns = time.time_ns()
        if now_ns - ticked_ns >= TICK_NS:
            feed.take_time(now_ns)
            ticked_ns = now_ns
