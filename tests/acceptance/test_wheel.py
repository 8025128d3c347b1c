"""The robot's wheel alone, then with the parts bench and study, in an empty environment away from the checkout."""

import json
import os
import shutil
import signal
import subprocess
import sys
import urllib.request
import venv
import zipfile
from pathlib import Path

import pytest

from norm_core.models.catalogue import Catalogue
from tests.goldens import compare
from tests.goldens.collect import lasting
from tests.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]
OURS = {"norm_core", "norm_monitor", "action_selector", "scoring", "tactful_cli"}
PARTS = ("sim_replays", "study_desk")
INTERFACES = ("ros2_ws/src/norm_interfaces", "ros2_ws/src/norm_bench_interfaces")
BUILT_FROM = (*OURS, *PARTS, "models", *INTERFACES, "pyproject.toml", "README.md", "LICENSE")
SHIPPED = ROOT / "norm_monitor/encounters/shipped"
OF_A_CHECKOUT = ("PYTHONPATH", "PYTHONHOME", "AMENT_PREFIX_PATH", "TACTFUL_STATE", "TACTFUL_HOME", "TACTFUL_WEIGHTS")

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]


def run(*command: object, cwd: Path, **environment: str) -> str:
    kept = {name: value for name, value in os.environ.items() if name not in OF_A_CHECKOUT}
    ended = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**kept, "PIP_NO_INDEX": "1", **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr + ended.stdout
    return ended.stdout


def lend(environment: Path) -> None:
    """Put what is installed here on its path; the .pth files there, one of which names this checkout, are not read."""
    program = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(run(environment / "bin/python", "-c", program, cwd=environment).strip())
    lent = [path for path in sys.path if Path(path).name in {"site-packages", "dist-packages"}]
    (site / "lent.pth").write_text("\n".join(lent) + "\n", encoding="utf-8")


def is_data(path: Path) -> bool:
    """Whether a file is one that the code reads; encounters are chosen for the wheel, and links are checked apart."""
    return path.is_file() and path.suffix not in {".py", ".pyc", ".toml"} and "encounters" not in path.parts


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build all in a copy, as setuptools leaves folders beside what it builds, and takes old files from them."""
    source, built = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("built")
    for name in BUILT_FROM:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, source / name)
    pip = (sys.executable, "-m", "pip", "wheel", "--disable-pip-version-check", "--quiet", "--no-cache-dir")
    for project in (source, *(source / part for part in PARTS)):
        run(*pip, "--no-deps", "--no-build-isolation", "--wheel-dir", built, project, cwd=built)
    return built


@pytest.fixture(scope="module")
def wheel(wheels: Path) -> Path:
    (built,) = wheels.glob("tactful-*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel where there was nothing; what it depends on is lent by this environment, and comes after it."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, symlinks=True)
    python = folder / "bin/python"
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--disable-pip-version-check", "--quiet")
    run(*pip, "--no-deps", wheel, cwd=folder)
    lend(folder)
    return folder


@pytest.fixture(scope="module")
def with_parts(wheels: Path, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the robot's wheel with its extras `bench` and `study`."""
    folder = tmp_path_factory.mktemp("with_parts")
    venv.create(folder, symlinks=True)
    pip = (sys.executable, "-m", "pip", "--python", folder / "bin/python", "install", "--disable-pip-version-check")
    run(*pip, "--quiet", "--no-deps", wheel, *wheels.glob("tactful_*.whl"), cwd=folder)
    lend(folder)
    return folder


@pytest.fixture
def away(tmp_path: Path) -> Path:
    """A folder outside the checkout with two shipped bags in it."""
    for name in ("zh_clinic", "garden_centre"):
        shutil.copytree(SHIPPED / name, tmp_path / name)
    return tmp_path


def test_the_wheel_holds_our_packages_and_their_data_alone(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == OURS
    for shipped in ("norm_core/models/shipped", "norm_core/bags/interfaces/msg", "norm_core/bags/bench_interfaces/msg"):
        assert {f"{shipped}/{path.name}" for path in (ROOT / shipped).iterdir()} <= set(names)
    files = (path for name in OURS for path in (ROOT / name).rglob("*.*") if is_data(path))
    assert {str(path.relative_to(ROOT)) for path in files} - set(names) == set()
    left_out = ("many_hands/", "shipped/zoo_keeper", "tests/", "benchmarks/", "calibration/")
    assert [name for name in names if any(part in name for part in left_out)] == []
    assert [name for name in names if "talks/" in name and not name.endswith(".py")] == []


def test_it_runs_from_where_it_was_installed(installed: Path, away: Path) -> None:
    program = "import norm_core, tactful_cli; print(norm_core, tactful_cli)"
    assert str(ROOT) not in run(installed / "bin/python", "-c", program, cwd=away)


def test_it_brings_neither_bench_nor_study(installed: Path, away: Path) -> None:
    program = "from importlib.util import find_spec; print([find_spec(name) for name in ('sim_replays', 'study_desk')])"
    assert run(installed / "bin/python", "-c", program, cwd=away) == "[None, None]\n"
    listed = run(installed / "bin/tactful", "--help", cwd=away)
    assert not {"bench", "study"} & {line.split()[0] for line in listed.splitlines() if line.strip()}
    for verb, remedy in (("study", "pip install 'tactful[study]'"), ("bench", "pip install 'tactful[bench]'")):
        refused = subprocess.run(
            [installed / "bin/tactful", verb, "--help"], cwd=away, capture_output=True, text=True, check=False
        )
        assert refused.returncode == 3
        assert refused.stderr.strip().endswith(f"is not installed; install it with {remedy}")


def test_its_extras_bring_the_parts(with_parts: Path, wheels: Path, away: Path) -> None:
    for part in PARTS:
        (built,) = wheels.glob(f"tactful_{'bench' if part == 'sim_replays' else 'study'}-*.whl")
        with zipfile.ZipFile(built) as archive:
            names = set(archive.namelist())
        files = {path for path in (ROOT / part).rglob("*.*") if path.suffix == ".py" or is_data(path)}
        assert {str(path.relative_to(ROOT)) for path in files} - names == set()
    assert "coders" in run(with_parts / "bin/tactful", "study", "participant", "--help", cwd=away)
    assert "egonormia" in run(with_parts / "bin/tactful", "bench", "run", "--help", cwd=away)


def test_it_lists_the_models(installed: Path, away: Path) -> None:
    listed = json.loads(run(installed / "bin/tactful", "models", "list", "--json", cwd=away, HOME=str(away)))
    assert [model["name"] for model in listed] == Catalogue((ROOT / "models",)).list_names()


def test_its_messages_name_the_command_that_exists(installed: Path, away: Path) -> None:
    program = "from tactful_cli.flag_watch import NOTHING_TO_WATCH; print(NOTHING_TO_WATCH)"
    assert "; tactful bag info lists its topics" in run(installed / "bin/python", "-c", program, cwd=away)


@pytest.mark.parametrize("bag", ["zh_clinic", "garden_centre"])
def test_it_flags_what_the_checkout_flags(installed: Path, away: Path, bag: str) -> None:
    """The first bag holds the words that were said, the second their sound."""
    found = json.loads(run(installed / "bin/tactful", "flags", away / bag, "--json", cwd=away, HOME=str(away)))
    named = {f"{bag} {flag['onset_ns']:>14} {flag['event_id']}": lasting(flag) for flag in found}
    golden = compare.read("shipped_bags", compare.renames())
    assert named
    assert list(compare.differences({key: golden[key] for key in golden if key.startswith(f"{bag} ")}, named)) == []


def test_it_shows_a_bag(installed: Path, away: Path) -> None:
    kept = {name: value for name, value in os.environ.items() if name not in OF_A_CHECKOUT}
    command = [str(installed / "bin/tactful"), "view", str(away / "zh_clinic")]
    with subprocess.Popen(
        command, cwd=away, env={**kept, "HOME": str(away)}, stdout=subprocess.PIPE, text=True
    ) as view:
        try:
            assert view.stdout is not None
            with urllib.request.urlopen(view.stdout.readline().strip(), timeout=PATIENCE_S) as page:
                assert "zh_clinic" in page.read().decode()
        finally:
            view.send_signal(signal.SIGINT)
            assert view.wait(PATIENCE_S) == 130
