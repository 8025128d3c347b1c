"""Open a coded file of any form that is read."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from norm_core.runtime.errors import TactfulError
from study_desk.coding.forms.boris import BorisProject, BorisTable, is_boris_table
from study_desk.coding.forms.eaf import EafForm
from study_desk.coding.forms.elan_table import ElanTable, is_elan_table
from study_desk.coding.forms.sheet import CodingTarget, FormError, FormPart, Mark
from study_desk.coding.forms.tables import TidyTable, read_text, read_text_table
from study_desk.log.schema import Label

_MAX_BYTES = 200_000_000
# What the parsers raise over a damaged file, also deep in a library. An error of XML is a SyntaxError.
_DAMAGE = (
    ArithmeticError, AttributeError, LookupError, MemoryError, OSError, RuntimeError, SyntaxError, TypeError,
    ValueError,
)  # fmt: skip


# A coded file, with a part for each session. Each raises FormError with the place of what is wrong.
CodedForm = BorisProject | BorisTable | EafForm | ElanTable | TidyTable


class CheckedForm:
    """A coded file of any form: whatever fails in its reader is a FormError that names the file."""

    def __init__(self, path: Path) -> None:
        """Raises FormError for a file that cannot be read."""
        self._path = path
        with _clear_errors(path):
            if path.stat().st_size > _MAX_BYTES:
                raise FormError(f"{path}: is larger than {_MAX_BYTES // 1_000_000} MB; divide it")
            self._form = _read_form(path)

    @property
    def parts(self) -> tuple[FormPart, ...]:
        """List what the file holds for each session."""
        with _clear_errors(self._path):
            return self._form.parts

    def labels(self, target: CodingTarget) -> tuple[Label, ...]:
        """Read the labels of one part. Raises FormError with the place of what is wrong."""
        with _clear_errors(self._path):
            return self._form.labels(target)

    def marks(self, part: str = "") -> tuple[Mark, ...]:
        """Read what one part of an EAF or of a file of BORIS marks, speech and labels alike."""
        with _clear_errors(self._path):
            if not isinstance(self._form, BorisProject | BorisTable | EafForm):
                raise FormError(f"{self._path}: is no file of BORIS or ELAN; name one that it saved or exported")
            return tuple(self._form.marks(part))


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


def _read_form(path: Path) -> CodedForm:
    """Open a file by its ending; a table also by its columns."""
    ending = path.suffix.lower()
    if ending in (".csv", ".tsv", ".txt") and (ending == ".txt" or is_elan_table(read_text(path))):
        return ElanTable(path, read_text(path))
    if ending in (".csv", ".tsv"):
        table = read_text_table(path)
        return BorisTable(path, table) if is_boris_table(table) or ending == ".tsv" else TidyTable(path, table)
    openers: dict[str, Callable[[Path], CodedForm]] = {
        ".eaf": EafForm,
        ".boris": BorisProject,
    }
    if ending not in openers:
        endings = ", ".join(sorted({".csv", ".tsv", ".txt", *openers}))
        raise FormError(f"{path}: {ending or 'no ending'} is not read; save it as one of {endings}")
    return openers[ending](path)
