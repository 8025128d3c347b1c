"""Run a profile in this terminal: one log file, one screen of what is missing, then a line for each change."""

import logging
import logging.handlers
import os
import signal
import tempfile
import time
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from norm_core.runtime.errors import TactfulError
from tactful_cli.console import complain, err, out, print_table
from tactful_cli.up.node_board import NodeBoard
from tactful_cli.up.profile import Profile, about_of
from tactful_cli.up.ros_tools import running_nodes
from tactful_cli.up.supervisor import SUPERSEDED, Supervisor

LOG_BYTES, LOGS_KEPT = 5_000_000, 2


def run(profile: Profile, log: Path | None) -> int:
    """Start the nodes and watch them until Ctrl-C; return the exit code. Nodes that run already are left alone."""
    if running := running_nodes(profile):
        names = " and ".join(running)
        remedy = "end what started them, give --namespace for another robot, or set ROS_DOMAIN_ID"
        complain(f"up: already running in {profile.node_namespace} on this ROS domain: {names}; {remedy}")
        return SUPERSEDED
    path = log or default_log(profile.namespace)
    logger = open_log(path)

    def tell(line: str) -> None:
        out.print(f"{time.strftime('%H:%M:%S')} {escape(line)}", soft_wrap=True)
        logger.info(line)

    err.print(f"Starting {', '.join(profile.nodes)} of {profile.source}; log: {path}", soft_wrap=True)
    if about := about_of(profile.source):
        err.print(about, soft_wrap=True)
    logger.info("starting %s of %s", ", ".join(profile.nodes), profile.source)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what it starts with &
    with tempfile.TemporaryDirectory(prefix="tactful-up-") as folder:
        try:
            return Supervisor(profile, Path(folder), tell, show, logger.info).run()
        except KeyboardInterrupt:
            tell("all nodes have ended")
            return 0


def default_log(namespace: str) -> Path:
    """Return the log's place, beside ROS's own logs."""
    ros_home = Path(os.environ.get("ROS_HOME") or Path.home() / ".ros")
    name = "-".join(["tactful", "up", *filter(None, namespace.split("/"))])
    return Path(os.environ.get("ROS_LOG_DIR") or ros_home / "log", f"{name}.log")


def open_log(path: Path) -> logging.Logger:
    """Open a log that only its owner can read and that does not grow without end."""
    logger = logging.Logger("tactful_up")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
        handler = logging.handlers.RotatingFileHandler(path, maxBytes=LOG_BYTES, backupCount=LOGS_KEPT)
    except OSError as error:
        raise TactfulError(f"{path}: the log cannot be written: {error.strerror}; name another with --log") from error
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    logger.addHandler(handler)
    return logger


def show(board: NodeBoard) -> None:
    """Print every node with what it lacks, if any lacks something."""
    if board.all_active and not any(view.missing for view in board.nodes.values()):
        return
    table = Table("node", "", "missing")
    for node, view in board.nodes.items():
        state = "[green]active[/]" if view.is_active else "[bold red]not active[/]"
        table.add_row(node, state, escape("\n".join(view.missing)))
    print_table(table)
    active = sum(view.is_active for view in board.nodes.values())
    if not board.all_active:
        out.print(f"{active} of {len(board.nodes)} nodes are active", soft_wrap=True)
