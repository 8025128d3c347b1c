"""`tactful doctor`: check what works on this machine, and print remedies."""

import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from enum import StrEnum
from importlib.metadata import distributions
from pathlib import Path

import typer
from rich.table import Table

from norm_core.bags.types import find_interfaces_folder, typestore
from norm_core.engines.talk_reader import open_reader
from norm_core.models.reader_folder import AUTO
from norm_core.records.messages import RECORDS
from norm_core.runtime.bounded_command import run_bounded
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.wording import count_of
from norm_monitor.senses.camera.faults import IMAGE_TYPES
from tactful_cli.console import print_result
from tactful_cli.up.input_check import is_microphone
from tactful_cli.verb_options import AsJson, make_app

app = make_app()

ROOT = Path(__file__).resolve().parents[1]
PROBE_TIMEOUT_S = 30.0
DRIVER_TIMEOUT_S = 10.0
ROUNDTRIP_DOMAIN = "95"
LOW_DISK_GB = 2.0
_GPU_MEND = f"run {PROGRAM} setup gpu"


class CheckResult(StrEnum):
    """The verdict of one check."""

    OK = "ok"
    ABSENT = "absent"  # missing, and not needed by the default set-up
    BROKEN = "broken"  # the default set-up does not work


@dataclass(frozen=True, slots=True)
class CheckRow:
    """One line of the table: what was checked, what was found and how to fix it."""

    check: str
    verdict: CheckResult
    found: str
    fix: str = ""


class CheckError(Exception):
    """A check found something broken, or absent; its text says what."""

    def __init__(self, state: str, fix: str, verdict: CheckResult = CheckResult.BROKEN) -> None:
        super().__init__(state)
        self.fix, self.verdict = fix, verdict


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """Check this installation. Exits with 1 only if the default set-up is broken."""
    with ThreadPoolExecutor() as pool:  # most checks wait for a child process
        rows = list(pool.map(examine, CHECKS))
    healthy = all(row.verdict is not CheckResult.BROKEN for row in rows)
    result = {"healthy": healthy, "checks": [asdict(row) for row in rows]}
    print_result(result, _table(rows), as_json=as_json)
    if not healthy:
        raise typer.Exit(1)


def _table(rows: list[CheckRow]) -> Table:
    colours = {CheckResult.OK: "green", CheckResult.ABSENT: "yellow", CheckResult.BROKEN: "bold red"}
    table = Table("check", "", "found")
    for row in rows:
        fix = f"\n[bold]fix:[/] {row.fix}" if row.fix else ""
        table.add_row(row.check, f"[{colours[row.verdict]}]{row.verdict}[/]", row.found + fix)
    return table


def examine(name: str) -> CheckRow:
    """Run the check of this name."""
    try:
        return CheckRow(name, CheckResult.OK, CHECKS[name]())
    except CheckError as fault:
        return CheckRow(name, fault.verdict, str(fault), fault.fix)
    except subprocess.TimeoutExpired as error:
        why = f"gave no answer in {error.timeout:.0f} s"
        return CheckRow(name, CheckResult.BROKEN, why, "look at the machine's load")
    except (OSError, ValueError, RuntimeError) as error:
        fix = f"run {PROGRAM} doctor again after you fix what it reports"
        return CheckRow(name, CheckResult.BROKEN, str(error), fix)


def _python() -> str:
    state = f"{platform.python_version()} on {platform.machine()}, {sys.prefix}"
    if not (3, 11) <= sys.version_info < (3, 14):
        raise CheckError(state, "name a Python 3.11 to 3.13 in TACTFUL_PYTHON and remove .venv")
    return state


def _checkout() -> str:
    """Check that Python imports our packages from this checkout alone."""
    installed = {Path(str(copy.locate_file(""))).resolve() for copy in distributions(name="tactful")}
    lying = {Path(entry).resolve() for entry in sys.path if Path(entry, "norm_core", "__init__.py").is_file()}
    if copies := sorted(map(str, (installed | lying) - {ROOT})):
        fix = f"run {sys.executable} -m pip uninstall tactful, or take the folder off PYTHONPATH"
        raise CheckError(f"a second copy of Tactful lies in {', '.join(copies)}", fix)
    return str(ROOT)


def _ros() -> str:
    code = "import rclpy, rclpy.utilities as u; print(u.get_rmw_implementation_identifier())"
    middleware = _run_python(code, fix=f"remove .venv and run {PROGRAM} doctor").strip()
    source = "installed" if os.environ.get("ROS_DISTRO") else "wheels"
    distro = os.environ.get("ROS_DISTRO") or os.environ.get("TACTFUL_ROS") or "jazzy"
    return f"{distro.capitalize()} from {source}, {middleware}, domain {os.environ.get('ROS_DOMAIN_ID', '0')}"


def _interfaces() -> str:
    types = {name.split("/")[-1]: name for name in sorted(RECORDS) if name.startswith("norm_interfaces/")}
    code = (
        "import json, norm_interfaces.msg as m, norm_interfaces.srv, norm_interfaces.action\n"
        f"print(json.dumps({{n: list(getattr(m, n).get_fields_and_field_types()) for n in {list(types)!r}}}))"
    )
    fix = f"run {PROGRAM} doctor again; if that does not help, remove .tactful"
    built = json.loads(_run_python(code, fix=fix))
    defined = {name: [field for field, _ in typestore().fielddefs[type_name][1]] for name, type_name in types.items()}
    if stale := [name for name in types if built[name] != defined[name]]:
        raise CheckError(f"built before {', '.join(stale)} changed", fix)
    folder = find_interfaces_folder()
    return f"{count_of(len(types), 'message')} as in {folder.relative_to(ROOT) if ROOT in folder.parents else folder}"


def _dds_round_trip() -> str:
    environment = {**os.environ, "ROS_DOMAIN_ID": ROUNDTRIP_DOMAIN}
    command = [sys.executable, "-m", "norm_nodes.tools.roundtrip"]
    echo = subprocess.Popen([*command, "echo"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        asked = _run(command, environment)
    finally:
        echo.terminate()
        echo.communicate()
    fix = "allow loopback multicast and UDP ports from 7400 up; look at ROS_LOCALHOST_ONLY and RMW_IMPLEMENTATION"
    if asked.returncode:
        raise CheckError(_last_line(asked.stdout or asked.stderr), fix)
    return "two processes exchange messages"


def _log_folder() -> str:
    ros_home = Path(os.environ.get("ROS_HOME", Path.home() / ".ros"))
    folder = Path(os.environ.get("ROS_LOG_DIR", ros_home / "log"))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return str(folder)
    except OSError as error:
        fix = "set ROS_LOG_DIR to a folder that can be written to"
        raise CheckError(f"{folder}: {error.strerror}", fix) from error


def _disk() -> str:
    free_gb = shutil.disk_usage(os.environ.get("TACTFUL_STATE", ROOT)).free / 1e9
    state = f"{free_gb:.1f} GB free"
    if free_gb < LOW_DISK_GB:
        raise CheckError(state, "free some room: recording and studies write here")
    return state


def _gpu() -> str:
    tool = shutil.which("nvidia-smi")
    if tool is None:
        raise CheckError("no NVIDIA driver; cues and the encoder do not need one", "", CheckResult.ABSENT)
    query = [tool, "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    try:
        asked = run_bounded(query, DRIVER_TIMEOUT_S)
    except subprocess.TimeoutExpired as error:
        why = f"nvidia-smi gave no answer in {DRIVER_TIMEOUT_S:g} s: the driver hangs"
        raise CheckError(why, "reload the driver, or restart the computer", CheckResult.ABSENT) from error
    state = "; ".join(asked.stdout.split("\n")).strip("; ")
    if asked.returncode or not state:
        why = _last_line(asked.stderr or asked.stdout)
        raise CheckError(why, "reload or reinstall the driver", CheckResult.ABSENT)
    return state


def _onnx_runtime() -> str:
    code = "import onnxruntime as o; print(o.__version__, *o.get_available_providers())"
    version, *providers = _run_python(code, fix=f"remove .venv and run {PROGRAM} doctor").split()
    state = f"{version}: {', '.join(p.removesuffix('ExecutionProvider') for p in providers)}"
    both = [name for name in ("onnxruntime", "onnxruntime-gpu") if any(distributions(name=name))]
    if len(both) > 1:  # they overwrite each other's files, and removing one removes those of both
        raise CheckError(f"{' and '.join(both)} are both installed", _GPU_MEND)
    if shutil.which("nvidia-smi") and "CUDAExecutionProvider" not in providers:
        raise CheckError(f"{state}; the GPU is not used", _GPU_MEND, CheckResult.ABSENT)
    return state


def _voice_activity_model() -> str:
    spec = importlib.util.find_spec("faster_whisper")
    assets = Path(spec.origin).parent / "assets" if spec and spec.origin else None
    weights = sorted(assets.glob("silero_vad*.onnx")) if assets else []
    if not weights:
        raise CheckError("not in the faster-whisper package", "remove .venv and set up again")
    return weights[-1].name


def _talk_reader() -> str:
    reader = open_reader(AUTO)
    if reader is None:
        state = "none, so fewer errors are flagged, and later"
        raise CheckError(state, f"run {PROGRAM} models setup reader", CheckResult.ABSENT)
    return f"{reader.manifest.size}, {reader.manifest.source}"


def _topics_that(fit: Callable[[str, str], bool]) -> str:
    seen = _run([sys.executable, "-m", "norm_nodes.tools.topic_survey", "graph"])
    if seen.returncode:
        raise CheckError(_last_line(seen.stderr), "see the rows on ROS and the log folder")
    topics: dict[str, list[str]] = json.loads(seen.stdout)["topics"]
    names = [name for name, types in topics.items() if any(fit(name, type_name) for type_name in types)]
    if not names:
        fix = "start the robot's driver, and use its ROS_DOMAIN_ID"
        raise CheckError("none on this domain", fix, CheckResult.ABSENT)
    return ", ".join(names)


CHECKS: Mapping[str, Callable[[], str]] = {
    "python": _python,
    "checkout": _checkout,
    "ros": _ros,
    "interfaces": _interfaces,
    "dds round trip": _dds_round_trip,
    "log folder": _log_folder,
    "disk": _disk,
    "gpu": _gpu,
    "onnx runtime": _onnx_runtime,
    "voice activity model": _voice_activity_model,
    "talk reader": _talk_reader,
    "camera topics": lambda: _topics_that(lambda _, type_name: type_name in IMAGE_TYPES),
    "audio topics": lambda: _topics_that(is_microphone),
}


def _run(command: list[str], environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=PROBE_TIMEOUT_S, check=False
    )


def _run_python(code: str, *, fix: str) -> str:
    probe = _run([sys.executable, "-c", code])
    if probe.returncode:
        raise CheckError(_last_line(probe.stderr), fix)
    return probe.stdout


def _last_line(text: str) -> str:
    return next(reversed(text.strip().splitlines()), "it said nothing")
