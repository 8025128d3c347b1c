"""Read restricted datasets: one annotation per line, all checked, with the place of every fault."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from norm_core.runtime.config import Config, ConfigError, check_config
from sim_replays.suites.dataset_files import entries
from sim_replays.suites.target import SuiteError

C = TypeVar("C", bound=Config)

_SHOWN = 20


def annotations(path: Path, name: str, model: type[C], key: Callable[[C], str]) -> list[C]:
    """Read every annotation from a folder's file of that name, or from the file itself. Reports all faults at once."""
    if not path.exists():
        raise SuiteError(f"{path}: there is no such folder or file; check the path")
    file = path / name if path.is_dir() else path
    if not file.is_file():
        raise SuiteError(f"{path}: has no {name}; see docs/reference/file_formats_selection_and_models.md")
    found: list[C] = []
    faults: list[str] = []
    seen: dict[str, str] = {}
    for where, entry in entries(file):
        try:
            annotation = check_config(model, entry, where)
        except ConfigError as error:
            faults += str(error).splitlines()
            continue
        if (first := seen.setdefault(key(annotation), where)) != where:
            faults.append(f"{where}: id: {key(annotation)!r} stands in {first} already")
        found.append(annotation)
    raise_for(faults)
    if not found:
        raise SuiteError(f"{file}: holds no annotations; write one object a line")
    return found


def raise_for(faults: Sequence[str]) -> None:
    """Raise one error that names the faults, the first in full."""
    if faults:
        more = [f"and {len(faults) - _SHOWN} more faults"] if len(faults) > _SHOWN else []
        raise SuiteError("\n".join([*faults[:_SHOWN], *more]))
