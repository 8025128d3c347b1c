"""Run a profile in this terminal: one log file, one screen of what is missing, then a line for each change."""

import logging
import logging.handlers
import os
import shutil
import signal
import tempfile
import time
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from norm_core.runtime.errors import TactfulError
from tactful_cli.console import complain, err, out
from tactful_cli.up.node_board import NodeBoard
from tactful_cli.up.profile import Profile, about_of
from tactful_cli.up.ros_tools import running_nodes
from tactful_cli.up.supervisor import SUPERSEDED, Supervisor

LOG_BYTES, LOGS_KEPT = 5_000_000, 2
_FOLDER = "tactful-up-"  # then the process that made it


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
    remove_leftovers(Path(tempfile.gettempdir()))
    with tempfile.TemporaryDirectory(prefix=f"{_FOLDER}{os.getpid()}-") as folder:
        try:
            return Supervisor(profile, Path(folder), tell, show, logger.info).run()
        except KeyboardInterrupt:
            tell("all nodes have ended")
            return 0


def remove_leftovers(temporary: Path) -> None:
    """Remove the folders of parameters that runs of this user left when they were killed."""
    for folder in temporary.glob(f"{_FOLDER}*"):
        pid = folder.name.removeprefix(_FOLDER).partition("-")[0]
        if pid.isdecimal() and folder.lstat().st_uid == os.getuid() and not _runs(int(pid)):
            shutil.rmtree(folder)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # of another user
    return True


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
    """Print every node with what it lacks, if any lacks something: a table, or lines where that is no terminal."""
    if board.all_active and not any(view.missing for view in board.nodes.values()):
        return
    table = Table("node", "", "missing")
    for node, view in board.nodes.items():
        state = "[green]active[/]" if view.is_active else "[bold red]not active[/]"
        table.add_row(node, state, escape("\n".join(view.missing)))
        if not out.is_terminal:
            for line in view.missing:
                out.print(f"{node}: {escape(line)}", soft_wrap=True)
    if out.is_terminal:
        out.print(table)
    active = sum(view.is_active for view in board.nodes.values())
    if not board.all_active:
        out.print(f"{active} of {len(board.nodes)} nodes are active", soft_wrap=True)
