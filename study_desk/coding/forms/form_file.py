"""Open a coded file of any form that is read."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from norm_core.runtime.errors import TactfulError
from norm_monitor.session_log.schema import Label
from study_desk.coding.forms.boris import BorisProject
from study_desk.coding.forms.eaf import EafForm
from study_desk.coding.forms.sheet import CodingTarget, FormError, FormPart
from study_desk.coding.forms.tables import LabelTable

_MAX_BYTES = 200_000_000  # of a coded file
# The errors that parsers raise over a damaged file, also deep in a library. An error of XML is a SyntaxError.
_PARSER_ERRORS = (
    ArithmeticError, AttributeError, LookupError, MemoryError, OSError, RuntimeError, SyntaxError, TypeError,
    ValueError,
)  # fmt: skip
# A coded file, with a part for each session. Each raises FormError that names the place of the fault.
CodedForm = BorisProject | EafForm | LabelTable


class CheckedForm:
    """A coded file of any form. Every fault of its reader becomes a FormError that names the file."""

    def __init__(self, path: Path) -> None:
        """Raises FormError for a file that cannot be read."""
        self._path = path
        with _convert_errors(path):
            if path.stat().st_size > _MAX_BYTES:
                raise FormError(f"{path}: is larger than {_MAX_BYTES // 1_000_000} MB; divide it")
            ending = path.suffix.lower()
            if ending not in _READERS:
                raise FormError(f"{path}: {ending or 'no ending'} is not read; save it as one of {', '.join(_READERS)}")
            self._form = _READERS[ending](path)

    @property
    def parts(self) -> tuple[FormPart, ...]:
        """The parts of the file, one for each session."""
        with _convert_errors(self._path):
            return self._form.parts

    def read_labels(self, target: CodingTarget) -> tuple[Label, ...]:
        """Read the labels of one part. Raises FormError that names the place of the fault."""
        with _convert_errors(self._path):
            return self._form.read_labels(target)


@contextmanager
def _convert_errors(path: Path) -> Iterator[None]:
    """Convert each error of a reader to a FormError that names the file."""
    try:
        yield
    except TactfulError:
        raise
    except _PARSER_ERRORS as error:
        problem = (error.strerror if isinstance(error, OSError) else "") or str(error) or type(error).__name__
        raise FormError(
            f"{path}: cannot be read: {problem}; check the path, and save the file again in the program that wrote it"
        ) from error


_READERS: dict[str, Callable[[Path], CodedForm]] = {
    ".boris": BorisProject,
    ".csv": LabelTable,
    ".eaf": EafForm,
    ".tsv": LabelTable,
}
