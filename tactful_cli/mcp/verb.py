"""`tactful mcp`: give a language model the flags, the talk and advice of a running graph or a bag, as tools."""

import os
import secrets
import signal
import socket
import time
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Annotated, Any

import typer

from action_selector.selector import SelectorFiles, open_selector
from norm_core.bags.storage import is_bag
from norm_core.bags.topic import BagError
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.extras import ExtraMissingError, install_command, is_installed
from norm_core.runtime.time import WallClock
from study_desk.log.session_config import WordsPolicy
from tactful_cli.console import complain
from tactful_cli.flag_watch import FlagOptions
from tactful_cli.graph_stream import GraphStream
from tactful_cli.main import EXIT_INTERRUPTED
from tactful_cli.mcp.feeds import GraphFeed, policy_of, read_bag
from tactful_cli.mcp.session import Session
from tactful_cli.verb import RobotTopics, WordsTopics, single

TOKEN, SHORTEST_TOKEN = "TACTFUL_MCP_TOKEN", 16
LOOPBACK = "127.0.0.1"

app = single()


@app.command()
def mcp(  # noqa: PLR0917
    bag: Annotated[
        Path | None, typer.Option(metavar="BAG", help="Read a rosbag2 bag in place of the running graph.")
    ] = None,
    namespace: Annotated[str, typer.Option(help="Namespace of the robot, where several share a ROS domain.")] = "",
    http: Annotated[
        int | None,
        typer.Option(
            metavar="PORT",
            min=0,
            max=65535,
            help="Serve streamable HTTP on this machine alone, in place of standard input and output; 0: any free "
            f"port. It asks for a token, that of {TOKEN} or a new one.",
        ),
    ] = None,
    deadline: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.5, max=600, help="Longest time for one request.")
    ] = 10.0,
    skills: Annotated[str, typer.Option(metavar="FILE", help="YAML catalogue of the robot's skills.")] = "",
    house_rules: Annotated[str, typer.Option(metavar="FILE", help="YAML file of house rules.")] = "",
    robot_topic: RobotTopics = None,
    words_topic: WordsTopics = None,
) -> None:
    """Serve flags, explanations, the talk so far and advice to a language model, until it goes or Ctrl-C.

    It speaks the Model Context Protocol. It only reads and advises: nothing moves the robot or says anything.
    """
    if not is_installed("mcp"):
        raise ExtraMissingError(f"mcp: the package mcp is missing; run {install_command('mcp')}")
    from tactful_cli.mcp.server import build_server  # noqa: PLC0415  of the extra

    files = SelectorFiles(skills=skills, house_rules=house_rules)
    selector = open_selector(files, WallClock())
    if bag:
        if not is_bag(bag):
            raise BagError(f"{bag}: is no rosbag2 bag; name the folder of one")
        options = FlagOptions(robot_topics=tuple(robot_topic or ()), words_topics=tuple(words_topic or ()))
        session = Session(f"bag {bag.name}", policy_of(bag), selector)
        works = [partial(read_bag, bag, options, session, _complain)]
    else:
        stream = GraphStream(namespace, "mcp", _complain, commands=True)
        name, unknown = f"graph {stream.namespace}", WordsPolicy(is_known=False)
        session = Session(name, unknown, selector, lambda: time.time_ns() - feed.behind_ns)
        feed = GraphFeed(stream, session, _complain)
        works = [partial(feed.listen), partial(feed.follow)]
    server = build_server(session, files, deadline)
    for work in works:
        Thread(target=work, daemon=True).start()
    if http is not None:
        _serve_http(server, http)
        return
    # The SDK's thread waits for the input and cannot be interrupted. What listens to a graph ends with this process.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: os._exit(EXIT_INTERRUPTED))
    server.run()


def _serve_http(server: Any, port: int) -> None:
    import uvicorn  # noqa: PLC0415  of the extra

    from tactful_cli.mcp.server import gated  # noqa: PLC0415

    token = os.environ.get(TOKEN) or secrets.token_urlsafe(24)
    if len(token) < SHORTEST_TOKEN:
        raise TactfulError(f"mcp: {TOKEN} has {len(token)} characters; give {SHORTEST_TOKEN} or more")
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((LOOPBACK, port))
            listening.listen()
        except OSError as error:
            raise TactfulError(f"mcp: port {port} cannot be used: {error.strerror}; name another") from error
        told = TOKEN if os.environ.get(TOKEN) else token
        _complain(f"http://{LOOPBACK}:{listening.getsockname()[1]}/mcp, Authorization: Bearer {told}")
        app = gated(server.streamable_http_app(host=LOOPBACK), token)
        config = uvicorn.Config(app, log_level="warning", limit_concurrency=64, timeout_graceful_shutdown=2)
        uvicorn.Server(config).run(sockets=[listening])


def _complain(text: str) -> None:
    complain(f"mcp: {text}")
