"""Run a profile in this terminal: one log file, one screen of what is missing, then a line for each change."""

import json
import logging
import logging.handlers
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import dropwhile
from pathlib import Path
from queue import Empty, Queue
from typing import Any

from rich.markup import escape
from rich.table import Table

from norm_core.records.flag import SocialFlag
from norm_core.records.json_codec import from_plain
from norm_core.records.speech import RobotSpeech, Utterance
from norm_core.records.status import MonitorStatus
from tactful_cli.console import complain, err, out
from tactful_cli.talk_summary import TalkSummary
from tactful_cli.up.access import enclave_environment
from tactful_cli.up.input_check import InputVerdict
from tactful_cli.up.node_board import HANGS_AFTER_S, NodeBoard
from tactful_cli.up.process import BAD_INPUT_DELAY_S, Backoff, ChildProcess, Event, OutputLine, ProcessEnd
from tactful_cli.up.profile import Profile, about_of, running_nodes


class RuntimeSettings:
    """What was set of each node of a profile since it was started; the profile's file stays as it is."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._set: dict[str, dict[str, Any]] = {}

    def take(self, node: str, settings: Mapping[str, Any]) -> None:
        """Take the changed parameters of a node."""
        prefix, _, name = node.rpartition("/")
        if prefix == self._profile.node_namespace and name in self._profile.nodes:
            self._set.setdefault(name, {}).update(settings)

    def keeping(self, node: str) -> str:
        """Say what a node that starts again keeps; nothing if nothing was set."""
        remedy = f"write it into {self._profile.source} to keep it after up ends"
        return f"{node}: keeps {_listed(self._set[node])}; {remedy}" if self._set.get(node) else ""

    def drop(self, nodes: Iterable[str]) -> str:
        """Forget what was set of nodes that refuse to start so; say what is lost, or nothing."""
        lost = {node: settings for node in nodes if (settings := self._set.pop(node, None))}
        return "; ".join(f"{node}: cannot start with {_listed(names)}, and loses it" for node, names in lost.items())

    def write_parameters(self, nodes: Sequence[str], path: Path) -> None:
        """Write the parameters of some nodes as a file for ROS, what was set among them."""
        parameters = {**self._profile.parameters}
        for node in nodes:
            parameters[node] = merged(parameters[node], self._set.get(node, {}))
        replace(self._profile, parameters=parameters).write_parameters(nodes, path)


def merged(parameters: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters of a file with others in place; an empty list leaves the default, as ROS gives it no type."""
    return {name: value for name, value in {**parameters, **settings}.items() if settings.get(name) != []}


def _listed(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {json.dumps(value, ensure_ascii=False)}" for name, value in settings.items())


HOST, GRAPH_PRINTER = "norm_nodes.node_host", "norm_nodes.tools.graph_printer"
_RECORDS: dict[str, type] = {
    "status": MonitorStatus,
    "flag": SocialFlag,
    "utterance": Utterance,
    "robot_speech": RobotSpeech,
}
CLEAN, BAD_INPUT, SUPERSEDED = 0, 2, 4  # exit codes of a host
TYPED = "typed_robot"  # the node that reads this terminal
POLL_S, END_TIMEOUT_S = 0.2, 30.0
LATE_AFTER_S = 20.0

Tell = Callable[[str], None]


class Supervisor:
    """Run a profile until it is interrupted, or until no process is left to run."""

    def __init__(
        self, profile: Profile, folder: Path, tell: Tell, show: Callable[[NodeBoard], None], log: Tell
    ) -> None:
        """`tell` prints a line, `show` prints what is missing, `log` takes all output; `folder` is for parameters."""
        self._profile, self._folder, self._tell, self._show, self._log = profile, folder, tell, show, log
        self._events: Queue[Event] = Queue()
        self._board = NodeBoard(profile.nodes, profile.node_namespace)
        self._hosts: dict[ChildProcess, tuple[str, ...]] = {}
        self._backoffs: dict[ChildProcess, Backoff] = {}
        self._due_s: dict[ChildProcess, float] = {}
        # Processes whose end is not yet taken from the events; an ended one may be about to be started again.
        self._launched: set[ChildProcess] = set()
        self._refusals: dict[ChildProcess, str] = {}
        self._settings = RuntimeSettings(profile)
        self.talk = TalkSummary()
        self._last_code = CLEAN
        self._shown: set[str] = set()  # at which moments
        self._check_output: list[str] = []

    def run(self) -> int:
        """Run until nothing is left to run; return the exit code. An interrupt ends every process."""
        try:
            self._start_all()
            while self._due_s or self._launched.intersection(self._hosts):
                with suppress(Empty):
                    self._take(self._events.get(timeout=POLL_S))
                self._launch_due()
                self._watch_silence(time.monotonic())
                self._show_missing()
            return self._last_code
        finally:
            self._end_all()
            # The verdict counts what had come before the end.
            with suppress(Empty):
                while event := self._events.get_nowait():
                    if isinstance(event, OutputLine) and event.process is self._watcher:
                        self.talk.add_record(read_line(event.text)[1])

    def _start_all(self) -> None:
        namespace = ["--namespace", self._profile.namespace] if self._profile.namespace else []
        arguments = ["up", str(self._profile.source), "--check", "--json", *namespace]
        self._check = ChildProcess("check", "tactful_cli", arguments, self._events, stdin=False)
        watched = [self._profile.node_namespace, "--kinds", *_RECORDS, "settings"]
        self._watcher = ChildProcess("status", GRAPH_PRINTER, watched, self._events, stdin=False)
        self._backoffs[self._watcher] = Backoff()
        self._due_s[self._watcher] = self._began_s = time.monotonic()
        for nodes in self._profile.processes():
            if len(nodes) > 1:
                names, model = " and ".join(nodes), self._profile.shared_model(nodes)
                self._tell(
                    f"{names}: share a process and {model}; if one crashes, both start again; --apart parts them"
                )
            self._add_host(nodes)

    def _add_host(self, nodes: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        path = self._parameter_file(nodes)
        self._settings.write_parameters(nodes, path)
        options = ["--autostart", f"--parent={os.getpid()}", "--ros-args", "--params-file", str(path)]
        remap = ["-r", f"__ns:={self._profile.node_namespace}"] if self._profile.namespace else []
        host = ChildProcess("+".join(nodes), HOST, [*nodes, *options, *remap], self._events, stdin=TYPED in nodes)
        host.environment = environment or enclave_environment(self._profile.node_namespace, "_".join(nodes))
        self._hosts[host], self._backoffs[host] = tuple(nodes), Backoff()
        self._due_s[host] = time.monotonic()

    def _parameter_file(self, nodes: Sequence[str]) -> Path:
        return self._folder / f"{'-'.join(nodes)}.json"

    def _launch_due(self) -> None:
        for process, due_s in list(self._due_s.items()):
            if time.monotonic() >= due_s:
                del self._due_s[process]
                for node in (nodes := self._hosts.get(process, ())):
                    if line := self._settings.keeping(node):
                        self._tell(line)
                if nodes:
                    self._settings.write_parameters(nodes, self._parameter_file(nodes))
                launched_ns = process.launch()
                self._launched.add(process)
                if process in self._hosts:
                    self._board.take_launch(self._hosts[process], launched_ns, self._backoffs[process].restarts)

    def _watch_silence(self, now_s: float) -> None:
        """Tell of silent nodes, and kill a process that hangs, which `_take_end` then starts again."""
        if not self._watcher.is_running:
            self._board.restart_silences(now_s)
        for line in self._board.take_time(now_s):
            self._tell(line)
        hanging = self._board.find_silent(now_s, HANGS_AFTER_S)
        for host, nodes in self._hosts.items():
            if silent := hanging.intersection(nodes):
                names = " and ".join(sorted(silent))
                self._say_end(nodes, f"no heartbeat of {names} came for {HANGS_AFTER_S:.0f} s; its process is killed")
                host.end(signal.SIGKILL)

    def _take(self, event: Event) -> None:
        if event.process is self._check:
            self._take_check(event)
        elif isinstance(event, ProcessEnd):
            self._take_end(event.process, event.code)
        elif event.process is self._watcher:
            self._take_status(event)
        else:
            self._log(f"[{event.process.name}] {event.text}")

    def _take_status(self, line: OutputLine) -> None:
        kind, record = read_line(line.text)
        if kind == "settings":
            self._settings.take(**record)
        elif kind != "status":
            self.talk.add_record(record)
            if kind not in _RECORDS:
                self._log(f"[status] {line.text}")
        else:
            for text in self._board.take_status(record, time.monotonic()):
                self._tell(text)
            for host, nodes in self._hosts.items():
                if all(self._board.nodes[node].is_active for node in nodes):
                    self._refusals.pop(host, None)

    def _take_check(self, event: Event) -> None:
        """Tell what of a topic no heartbeat can tell: a type or a QoS for which nothing ever arrives."""
        if isinstance(event, OutputLine):
            self._check_output.append(event.text)
            return
        try:
            # The complaints about the profile come first, from its standard error.
            checked = json.loads("\n".join(dropwhile(lambda line: not line.startswith("["), self._check_output)))
        except ValueError:
            self._log(f"[check] {self._check.complaint()}")
            return
        for row in checked:
            if row["verdict"] == InputVerdict.WRONG:
                wanted = row["input"]
                self._tell(f"{wanted['node']}: {wanted['topic']}: {row['found']}; {row['remedy']}")

    def _take_end(self, process: ChildProcess, code: int) -> None:
        nodes = self._hosts.get(process, ())
        self._launched.discard(process)
        if nodes:
            self._last_code = code if code >= 0 else 1
        if code in {BAD_INPUT, SUPERSEDED} and len(nodes) > 1:
            # One cannot be configured or gives way: each starts alone, so that the others work and keep what was set.
            # The policy names no enclave but the one that they shared.
            del self._hosts[process]
            for node in nodes:
                self._add_host([node], process.environment)
            return
        if code == BAD_INPUT and (lost := self._settings.drop(nodes)):
            self._tell(lost)
            self._due_s[process] = time.monotonic()
            return
        if code == SUPERSEDED or (code == CLEAN and nodes):
            self._say_end(nodes, f"{process.complaint()}; it is not started again")
            return
        is_refused = code == BAD_INPUT and bool(nodes)
        ran_s = time.monotonic() - process.launched_s
        self._backoffs[process], delay_s = self._backoffs[process].after(ran_s, bad_input=is_refused)
        self._due_s[process] = time.monotonic() + delay_s
        if is_refused:
            self._take_refusal(process)
        else:
            why = f"ended: {process.complaint()}" if code >= 0 else f"was ended by {signal.Signals(-code).name}"
            when = f"in {delay_s:.0f} s" if delay_s else "now"
            self._say_end(nodes, f"{why}; restart {self._backoffs[process].restarts} {when}")

    def _take_refusal(self, process: ChildProcess) -> None:
        """Tell why a node cannot be configured, once for each reason; give up where that holds for every node."""
        why = process.complaint()
        if self._refusals.get(process) != why:
            self._refusals[process] = why
            self._say_end(self._hosts[process], f"{why}; it is tried again every {BAD_INPUT_DELAY_S:.0f} s")
        if self._refusals.keys() >= self._hosts.keys():
            self._due_s.clear()

    def _say_end(self, nodes: Sequence[str], problem: str) -> None:
        if not nodes:
            self._log(f"[status] {problem}")
            return
        self._board.take_end(nodes, problem)
        self._tell(f"{', '.join(nodes)}: {problem}")

    def _show_missing(self) -> None:
        """Show what is missing when a node is awaited for long, and when the board is settled."""
        is_late = time.monotonic() > self._began_s + LATE_AFTER_S
        moment = "settled" if self._board.is_settled else "late" if is_late and not self._board.all_active else ""
        if moment and moment not in self._shown:
            if not self._shown:
                self._check.launch()
            self._shown.add(moment)
            self._show(self._board)

    def _end_all(self) -> None:
        """End every process and wait for it; what does not end in time, or a second interrupt, kills."""
        processes = [*self._hosts, self._watcher, self._check]
        try:
            for process in processes:
                process.end(signal.SIGTERM)
            until_s = time.monotonic() + END_TIMEOUT_S
            for process in processes:
                process.wait(until_s)
        finally:
            for process in processes:
                process.end(signal.SIGKILL)
                process.wait(time.monotonic() + END_TIMEOUT_S)


def read_line(text: str) -> tuple[str, Any]:
    """Return the kind of a line about the graph and its record; an empty kind for a log message of ROS."""
    try:
        line = json.loads(text)
        kind, fields = line["kind"], line["record"]
    except (ValueError, TypeError, KeyError):
        return "", None
    return kind, from_plain(_RECORDS[kind], fields) if kind in _RECORDS else fields


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
        out.print(f"{time.strftime('%H:%M:%S')} {escape(line)}")
        logger.info(line)

    err.print(f"Starting {', '.join(profile.nodes)} of {profile.source}; log: {path}")
    if about := about_of(profile.source):
        err.print(about)
    logger.info("starting %s of %s", ", ".join(profile.nodes), profile.source)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what it starts with &
    remove_leftovers(Path(tempfile.gettempdir()))
    with tempfile.TemporaryDirectory(prefix=f"{_FOLDER}{os.getpid()}-") as folder:
        supervisor = Supervisor(profile, Path(folder), tell, show, logger.info)
        try:
            return supervisor.run()
        except KeyboardInterrupt:
            tell("all nodes have ended")
            tell(supervisor.talk.format())
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
    path.parent.mkdir(parents=True, exist_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
    handler = logging.handlers.RotatingFileHandler(path, maxBytes=LOG_BYTES, backupCount=LOGS_KEPT)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    logger.addHandler(handler)
    return logger


def show(board: NodeBoard) -> None:
    """Print every node with what it lacks, if any lacks something: a table, or lines where that is not a terminal."""
    if board.all_active and not any(view.missing for view in board.nodes.values()):
        return
    table = Table("node", "", "missing")
    for node, view in board.nodes.items():
        state = "[green]active[/]" if view.is_active else "[bold red]not active[/]"
        table.add_row(node, state, escape("\n".join(view.missing)))
        if not out.is_terminal:
            for line in view.missing:
                out.print(f"{node}: {escape(line)}")
    if out.is_terminal:
        out.print(table, soft_wrap=False)
    active = sum(view.is_active for view in board.nodes.values())
    if not board.all_active:
        out.print(f"{active} of {len(board.nodes)} nodes are active")
