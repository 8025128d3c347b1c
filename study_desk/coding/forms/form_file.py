"""Open a coded file of any form that is read."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from norm_core.runtime.errors import TactfulError
from norm_monitor.session_log.schema import Label
from study_desk.coding.forms.boris import BorisProject, BorisTable, is_boris_table
from study_desk.coding.forms.eaf import EafForm
from study_desk.coding.forms.elan_table import ElanTable, is_elan_table
from study_desk.coding.forms.sheet import CodingTarget, FormError, FormPart
from study_desk.coding.forms.tables import LabelTable, read_table

_MAX_BYTES = 200_000_000
# What the parsers raise over a damaged file, also deep in a library. An error of XML is a SyntaxError.
_DAMAGE = (
    ArithmeticError, AttributeError, LookupError, MemoryError, OSError, RuntimeError, SyntaxError, TypeError,
    ValueError,
)  # fmt: skip


# A coded file, with a part for each session. Each raises FormError that names the place of the fault.
CodedForm = BorisProject | BorisTable | EafForm | ElanTable | LabelTable


class CheckedForm:
    """A coded file of any form. Every fault of its reader becomes a FormError that names the file."""

    def __init__(self, path: Path) -> None:
        """Raises FormError for a file that cannot be read."""
        self._path = path
        with _clear_errors(path):
            if path.stat().st_size > _MAX_BYTES:
                raise FormError(f"{path}: is larger than {_MAX_BYTES // 1_000_000} MB; divide it")
            ending = path.suffix.lower()
            if ending not in _READERS:
                raise FormError(f"{path}: {ending or 'no ending'} is not read; save it as one of {', '.join(_READERS)}")
            self._form = _READERS[ending](path)

    @property
    def parts(self) -> tuple[FormPart, ...]:
        """List what the file holds for each session."""
        with _clear_errors(self._path):
            return self._form.parts

    def labels(self, target: CodingTarget) -> tuple[Label, ...]:
        """Read the labels of one part. Raises FormError that names the place of the fault."""
        with _clear_errors(self._path):
            return self._form.labels(target)


@contextmanager
def _clear_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except TactfulError:
        raise
    except _DAMAGE as error:
        what = error.strerror if isinstance(error, OSError) else ""
        raise FormError(
            f"{path}: cannot be read: {what or str(error) or type(error).__name__}; check the path, and save the file "
            "again in the program that wrote it"
        ) from error


def _read_table(path: Path) -> CodedForm:
    """Open a table by its columns."""
    if is_elan_table(path):
        return ElanTable(path)
    header, rows = read_table(path)
    return (BorisTable if is_boris_table(header) else LabelTable)(path, header, rows)


_READERS: dict[str, Callable[[Path], CodedForm]] = {
    ".boris": BorisProject,
    ".csv": _read_table,
    ".eaf": EafForm,
    ".tsv": _read_table,
    ".txt": ElanTable,
}
