"""`tactful doctor`: check what works on this machine, and print remedies."""

import importlib.util
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from enum import StrEnum
from importlib.metadata import distributions
from pathlib import Path

import typer
from rich.table import Table

from norm_core.bags.types import interfaces_folder, typestore
from norm_core.records.messages import RECORDS
from norm_core.runtime.bounded_command import run_bounded
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.wording import count_of
from norm_monitor.senses.camera.faults import IMAGE_TYPES
from tactful_cli.console import print_json, print_table
from tactful_cli.up.inputs import is_microphone
from tactful_cli.verb import AsJson, single

app = single()

ROOT = Path(__file__).resolve().parents[1]
PROBE_TIMEOUT_S = 30.0
DRIVER_TIMEOUT_S = 10.0
ROUNDTRIP_DOMAIN = "95"
LOW_DISK_GB = 2.0
_GPU_MEND = f"run {PROGRAM} setup gpu"
CPU_INFO = Path("/proc/cpuinfo")
_INSTRUCTIONS = {"avx2": "AVX2", "avx512f": "AVX-512", "vnni": "VNNI", "amx_int8": "AMX"}


class CheckResult(StrEnum):
    """The verdict of one check."""

    OK = "ok"
    ABSENT = "absent"  # missing, and not needed by the default set-up
    BROKEN = "broken"  # the default set-up does not work


@dataclass(frozen=True, slots=True)
class CheckRow:
    """One line of the table: what was checked, what was found and how to mend it."""

    check: str
    verdict: CheckResult
    found: str
    mend: str = ""


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """Check this installation. Exits with 1 only if the default set-up is broken."""
    with ThreadPoolExecutor() as pool:  # most checks wait for a child process
        rows = [row for found in pool.map(_examine, CHECKS) for row in found]
    healthy = all(row.verdict is not CheckResult.BROKEN for row in rows)
    if as_json:
        print_json({"healthy": healthy, "checks": [asdict(row) for row in rows]})
    else:
        print_table(_table(rows))
    if not healthy:
        raise typer.Exit(1)


def _table(rows: list[CheckRow]) -> Table:
    colours = {CheckResult.OK: "green", CheckResult.ABSENT: "yellow", CheckResult.BROKEN: "bold red"}
    table = Table("check", "", "found")
    for row in rows:
        mend = f"\n[bold]mend:[/] {row.mend}" if row.mend else ""
        table.add_row(row.check, f"[{colours[row.verdict]}]{row.verdict}[/]", row.found + mend)
    return table


def _examine(check: Callable[[], Iterator[CheckRow]]) -> list[CheckRow]:
    name = check.__name__.removeprefix("_").replace("_", " ")
    try:
        return list(check())
    except subprocess.TimeoutExpired as error:
        return [
            CheckRow(name, CheckResult.BROKEN, f"gave no answer in {error.timeout:.0f} s", "look at the machine's load")
        ]
    except (OSError, ValueError, RuntimeError) as error:
        return [
            CheckRow(name, CheckResult.BROKEN, str(error), f"run {PROGRAM} doctor again after mending what it says")
        ]


def _python() -> Iterator[CheckRow]:
    fits = (3, 11) <= sys.version_info < (3, 14)
    verdict = CheckResult.OK if fits else CheckResult.BROKEN
    mend = "" if fits else "name a Python 3.11 to 3.13 in TACTFUL_PYTHON and remove .venv"
    yield CheckRow("python", verdict, f"{platform.python_version()} on {platform.machine()}, {sys.prefix}", mend)


def _processor() -> Iterator[CheckRow]:
    """Name the instruction sets on which speed and int8 models depend."""
    lines = CPU_INFO.read_text(encoding="utf-8", errors="replace").splitlines() if CPU_INFO.is_file() else []
    flags = next((line.partition(":")[2].split() for line in lines if line.startswith("flags")), [])
    known = [name for flag, name in _INSTRUCTIONS.items() if any(flag in each for each in flags)]
    found = f"{platform.machine()}, {', '.join(known) or 'no instruction set that models depend on'}"
    if flags and "AVX2" not in known:
        found += "; speech recognition and models are several times slower without AVX2"
    elif flags and "VNNI" not in known:
        found += (
            "; int8 models are slower without VNNI, and those quantized elsewhere at full range are less accurate; "
            f"those of {PROGRAM} models quantize are exact"
        )
    yield CheckRow("processor", CheckResult.OK, found)


def _checkout() -> Iterator[CheckRow]:
    """Check that Python imports our packages from this checkout alone."""
    installed = {Path(str(copy.locate_file(""))).resolve() for copy in distributions(name="tactful")}
    lying = {Path(entry).resolve() for entry in sys.path if Path(entry, "norm_core", "__init__.py").is_file()}
    copies = sorted(map(str, (installed | lying) - {ROOT}))
    if copies:
        mend = f"run {sys.executable} -m pip uninstall tactful, or take the folder off PYTHONPATH"
        yield CheckRow("checkout", CheckResult.BROKEN, f"a second copy of Tactful lies in {', '.join(copies)}", mend)
    else:
        yield CheckRow("checkout", CheckResult.OK, str(ROOT))


def _ros() -> Iterator[CheckRow]:
    source = "installed" if os.environ.get("ROS_DISTRO") else "wheels"
    probe = _run_python("import rclpy, rclpy.utilities as u; print(u.get_rmw_implementation_identifier())")
    if probe.returncode:
        yield CheckRow("ros", CheckResult.BROKEN, _last_line(probe.stderr), f"remove .venv and run {PROGRAM} doctor")
        return
    domain = os.environ.get("ROS_DOMAIN_ID", "0")
    yield CheckRow("ros", CheckResult.OK, f"Jazzy from {source}, {probe.stdout.strip()}, domain {domain}")


def _interfaces() -> Iterator[CheckRow]:
    names = sorted(name.split("/")[-1] for name in RECORDS)
    code = (
        "import json, norm_interfaces.msg as m, norm_interfaces.srv, norm_interfaces.action\n"
        f"print(json.dumps({{n: list(getattr(m, n).get_fields_and_field_types()) for n in {names!r}}}))"
    )
    probe = _run_python(code)
    mend = f"run {PROGRAM} doctor again; if that does not help, remove .tactful"
    if probe.returncode:
        yield CheckRow("interfaces", CheckResult.BROKEN, _last_line(probe.stderr), mend)
        return
    built = json.loads(probe.stdout)
    defined = {n: [f for f, _ in typestore().fielddefs[f"norm_interfaces/msg/{n}"][1]] for n in names}
    stale = [name for name in names if built[name] != defined[name]]
    if stale:
        yield CheckRow("interfaces", CheckResult.BROKEN, f"built before {', '.join(stale)} changed", mend)
    else:
        yield CheckRow(
            "interfaces", CheckResult.OK, f"{count_of(len(names), 'message')} as in {_short(interfaces_folder())}"
        )


def _dds_round_trip() -> Iterator[CheckRow]:
    environment = {**os.environ, "ROS_DOMAIN_ID": ROUNDTRIP_DOMAIN}
    command = [sys.executable, "-m", "norm_nodes.roundtrip"]
    echo = subprocess.Popen([*command, "echo"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        asked = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=PROBE_TIMEOUT_S, check=False
        )
    finally:
        echo.terminate()
        echo.communicate()
    mend = "allow loopback multicast and UDP ports from 7400 up; look at ROS_LOCALHOST_ONLY and RMW_IMPLEMENTATION"
    if not asked.stdout.strip():
        yield CheckRow("dds round trip", CheckResult.BROKEN, _last_line(asked.stderr), mend)
        return
    result = json.loads(asked.stdout.splitlines()[-1])
    if "error" in result:
        yield CheckRow("dds round trip", CheckResult.BROKEN, result["error"], mend)
        return
    figures = (
        f"median {result['median_ms']:.2f} ms, p99 {result['p99_ms']:.2f} "
        f"ms over {count_of(result['rounds'], 'message')}"
    )
    yield CheckRow("dds round trip", CheckResult.OK, f"two processes, {figures}")


def _log_folder() -> Iterator[CheckRow]:
    ros_home = Path(os.environ.get("ROS_HOME", Path.home() / ".ros"))
    folder = Path(os.environ.get("ROS_LOG_DIR", ros_home / "log"))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        mend = "set ROS_LOG_DIR to a folder that can be written to"
        yield CheckRow("log folder", CheckResult.BROKEN, f"{folder}: {error.strerror}", mend)
        return
    yield CheckRow("log folder", CheckResult.OK, str(folder))


def _disk() -> Iterator[CheckRow]:
    free_gb = shutil.disk_usage(os.environ.get("TACTFUL_STATE", ROOT)).free / 1e9
    low = free_gb < LOW_DISK_GB
    mend = "free some room: recording and studies write here" if low else ""
    yield CheckRow("disk", CheckResult.BROKEN if low else CheckResult.OK, f"{free_gb:.1f} GB free", mend)


def _gpu() -> Iterator[CheckRow]:
    tool = shutil.which("nvidia-smi")
    if tool is None:
        yield CheckRow("gpu", CheckResult.ABSENT, "no NVIDIA driver; cues and the encoder do not need one")
        return
    query = [tool, "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    try:
        asked = run_bounded(query, DRIVER_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        why = f"nvidia-smi gave no answer in {DRIVER_TIMEOUT_S:g} s: the driver hangs"
        yield CheckRow("gpu", CheckResult.ABSENT, why, "reload the driver, or restart the computer")
        return
    found = "; ".join(asked.stdout.split("\n")).strip("; ")
    if asked.returncode or not found:
        yield CheckRow(
            "gpu", CheckResult.ABSENT, _last_line(asked.stderr or asked.stdout), "reload or reinstall the driver"
        )
    else:
        yield CheckRow("gpu", CheckResult.OK, found)


def _onnx_runtime() -> Iterator[CheckRow]:
    probe = _run_python("import onnxruntime as o; print(o.__version__, *o.get_available_providers())")
    if probe.returncode:
        yield CheckRow(
            "onnx runtime", CheckResult.BROKEN, _last_line(probe.stderr), f"remove .venv and run {PROGRAM} doctor"
        )
        return
    version, *providers = probe.stdout.split()
    found = f"{version}: {', '.join(p.removesuffix('ExecutionProvider') for p in providers)}"
    both = [name for name in ("onnxruntime", "onnxruntime-gpu") if any(distributions(name=name))]
    if len(both) > 1:  # they overwrite each other's files, and removing one removes those of both
        yield CheckRow("onnx runtime", CheckResult.BROKEN, f"{' and '.join(both)} are both installed", _GPU_MEND)
    elif shutil.which("nvidia-smi") and "CUDAExecutionProvider" not in providers:
        yield CheckRow("onnx runtime", CheckResult.ABSENT, f"{found}; the GPU is not used", _GPU_MEND)
    else:
        yield CheckRow("onnx runtime", CheckResult.OK, found)


def _llama_cpp() -> Iterator[CheckRow]:
    """Ask llama.cpp a question where it is installed; a build that does not fit the processor crashes."""
    if importlib.util.find_spec("llama_cpp") is None:
        yield CheckRow("llama.cpp", CheckResult.ABSENT, "not installed", f"run {PROGRAM} setup llama")
        return
    command = [sys.executable, "-m", "norm_core.engines.llama_cpp.probe"]
    asked = subprocess.run(command, capture_output=True, text=True, timeout=PROBE_TIMEOUT_S, check=False)
    flags = Path(os.environ.get("TACTFUL_STATE", ROOT / ".tactful"), "llama-named")
    built = f"; built with {flags.read_text().strip()}, as it crashed with all instructions" if flags.is_file() else ""
    if asked.returncode < 0:
        why = f"ends with {signal.Signals(-asked.returncode).name} at a question{built}"
        yield CheckRow("llama.cpp", CheckResult.ABSENT, why, f"run {PROGRAM} setup llama, which builds it again")
    elif asked.returncode:
        yield CheckRow("llama.cpp", CheckResult.ABSENT, _last_line(asked.stderr) + built, f"run {PROGRAM} setup llama")
    else:
        yield CheckRow("llama.cpp", CheckResult.OK, f"answers a question{built}")


def _models() -> Iterator[CheckRow]:
    spec = importlib.util.find_spec("faster_whisper")
    assets = Path(spec.origin).parent / "assets" if spec and spec.origin else None
    weights = sorted(assets.glob("silero_vad*.onnx")) if assets else []
    if weights:
        yield CheckRow("voice activity model", CheckResult.OK, weights[-1].name)
    else:
        yield CheckRow(
            "voice activity model",
            CheckResult.BROKEN,
            "not in the faster-whisper package",
            "remove .venv and set up again",
        )


def _topics() -> Iterator[CheckRow]:
    seen = subprocess.run(
        [sys.executable, "-m", "norm_nodes.graph_listing"],
        capture_output=True,
        text=True,
        timeout=PROBE_TIMEOUT_S,
        check=False,
    )
    if seen.returncode:
        yield CheckRow("topics", CheckResult.BROKEN, _last_line(seen.stderr), "see the rows on ROS and the log folder")
        return
    topics = json.loads(seen.stdout)["topics"]
    cameras = [name for name, types in topics.items() if set(types) & set(IMAGE_TYPES)]
    audio = [name for name, types in topics.items() if any(is_microphone(name, t) for t in types)]
    mend = "start the robot's driver, and use its ROS_DOMAIN_ID"
    for what, names in (("camera topics", cameras), ("audio topics", audio)):
        if names:
            yield CheckRow(what, CheckResult.OK, ", ".join(names))
        else:
            yield CheckRow(what, CheckResult.ABSENT, "none on this domain", mend)


CHECKS: tuple[Callable[[], Iterator[CheckRow]], ...] = (
    _python, _processor, _checkout, _ros, _interfaces, _dds_round_trip, _log_folder, _disk, _gpu,
    _onnx_runtime, _llama_cpp, _models, _topics,
)  # fmt: skip


def _run_python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PROBE_TIMEOUT_S, check=False
    )


def _last_line(text: str) -> str:
    return next(reversed(text.strip().splitlines()), "it said nothing")


def _short(path: Path) -> str:
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)
