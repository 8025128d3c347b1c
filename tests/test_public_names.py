"""What a library user imports from each package, and what importing it costs."""

import ast
import pkgutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

PACKAGES = (
    "norm_core",
    "norm_core.engines",
    "norm_core.models",
    "norm_core.bags",
    "scoring",
    "norm_monitor",
    "action_selector",
    "study_desk",
    "sim_replays",
)
HEAVY = ("cv2", "onnxruntime", "faster_whisper", "numpy", "pydantic")


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_that_of_its_module(package: str) -> None:
    face = import_module(package)
    typed = typed_exports(package)
    assert sorted(typed) == sorted(face.__all__) == dir(face)
    for name, module in typed.items():
        assert getattr(face, name) is getattr(import_module(module), name)


@pytest.mark.parametrize("package", PACKAGES)
def test_no_public_name_is_that_of_a_submodule(package: str) -> None:
    """Importing the submodule would replace the name."""
    face = import_module(package)
    assert {module.name for module in pkgutil.iter_modules(face.__path__)} & set(face.__all__) == set()


def test_importing_the_packages_loads_nothing_heavy() -> None:
    code = f"import sys, {', '.join(PACKAGES)}; print([name for name in {HEAVY} if name in sys.modules])"
    assert run_python(code) == "[]"


def test_the_monitor_needs_neither_camera_nor_speech_libraries() -> None:
    code = "import sys; from norm_monitor import Monitor; print({'cv2', 'faster_whisper'} & set(sys.modules))"
    assert run_python(code) == "set()"


def typed_exports(package: str) -> dict[str, str]:
    """Return the names that a type checker sees in a package, each with its module."""
    stub = Path(import_module(package).__file__ or "").with_suffix(".pyi")
    imports = (node for node in ast.parse(stub.read_text(encoding="utf-8")).body if isinstance(node, ast.ImportFrom))
    return {alias.name: f"{package}.{node.module}" for node in imports for alias in node.names}


def run_python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
