"""Install Tactful's Python packages, and what they need, in a virtual environment in the install space."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path
from typing import Any


def main(checkout: Path, source: Path, prefix: Path) -> None:
    """Make or update `lib/tactful/venv` and the command `bin/tactful` under the prefix."""
    if not (checkout / "pyproject.toml").is_file():
        sys.exit(f"tactful: {checkout} has no pyproject.toml; put the whole repository into the workspace")
    project = tomllib.loads((checkout / "pyproject.toml").read_text(encoding="utf-8"))
    folder = prefix / "lib/tactful/venv"
    _make_environment(folder)
    _install_requirements(folder, project, checkout / "requirements/robot.lock")
    _copy_source(project, checkout, source)
    if _run_pip(folder, "install", "--no-index", "--no-deps", "--no-build-isolation", "--force-reinstall", str(source)):
        sys.exit("tactful: the Python packages were not installed; see pip's message above")
    command = prefix / "bin/tactful"
    command.parent.mkdir(exist_ok=True)
    command.unlink(missing_ok=True)
    command.symlink_to(os.path.relpath(folder / "bin/tactful", command.parent))


def _make_environment(folder: Path) -> None:
    """Make an environment that sees the packages of the system, or of the environment that builds."""
    if (folder / "bin/python").exists():
        return
    venv.create(folder, system_site_packages=True, symlinks=True)
    if sys.prefix != sys.base_prefix:
        site = sysconfig.get_path("purelib", "venv", {"base": str(folder)})
        Path(site, "building_environment.pth").write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")


def _install_requirements(folder: Path, project: dict[str, Any], lock: Path) -> None:
    """Install the locked packages, unless sufficient ones are here and the lock was never used."""
    needed = [
        *project["build-system"]["requires"],
        *project["project"]["dependencies"],
        *project["project"]["optional-dependencies"]["weights"],
    ]
    installed = folder / lock.name
    if installed.is_file():
        if installed.read_bytes() == lock.read_bytes():
            return
    elif not _run_pip(folder, "install", "--quiet", "--no-index", "--dry-run", *needed, stderr=subprocess.DEVNULL):
        return
    if _run_pip(folder, "install", "--no-deps", "--require-hashes", "--requirement", str(lock)):
        sys.exit(
            f"tactful: the packages of {lock} were not installed; connect the network, "
            "or name a folder that has them in PIP_FIND_LINKS, and build again"
        )
    shutil.copy(lock, installed)


def _copy_source(project: dict[str, Any], checkout: Path, source: Path) -> None:
    """Copy the sources of the wheel, because setuptools writes beside them."""
    shutil.rmtree(source, ignore_errors=True)
    for pattern in project["tool"]["setuptools"]["packages"]["find"]["include"]:
        name = pattern.rstrip("*")
        shutil.copytree(checkout / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(checkout / name, source / name)


def _run_pip(folder: Path, *arguments: str, stderr: int | None = None) -> int:
    command = [sys.executable, "-m", "pip", "--python", str(folder / "bin/python"), "--disable-pip-version-check"]
    return subprocess.run([*command, *arguments], stderr=stderr, check=False).returncode


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:]))
