"""Open a coded file of any form that is read."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from norm_core.records.json_codec import RecordError, from_json
from study_desk.coding.forms.boris_project import BorisProject
from study_desk.coding.forms.boris_table import BorisTable, is_boris_table, read_boris_table
from study_desk.coding.forms.coding_target import CodingTarget, FormPart
from study_desk.coding.forms.eaf_reader import EafForm
from study_desk.coding.forms.sheet import FormError
from study_desk.coding.forms.table_reader import TidyTable, read_jsonl
from study_desk.coding.forms.text_table import read_text, read_text_table
from study_desk.coding.forms.textgrid_reader import TextGridForm
from study_desk.log.schema import Label, Review


class CodedForm(Protocol):
    """A coded file, with a part for each session."""

    @property
    def parts(self) -> tuple[FormPart, ...]:
        """List what the file holds for each session."""
        ...

    def labels(self, target: CodingTarget) -> tuple[Label, ...]:
        """Read the labels of one part. Raises FormError with the place of what is wrong."""
        ...


class ReviewFile:
    """The verdicts that a report exports as JSON."""

    def __init__(self, path: Path) -> None:
        """Raises FormError for another file."""
        try:
            plain = json.loads(read_text(path))
            self._path, self._session = path, str(plain["session"])
            self._reviews = tuple(from_json(Review, json.dumps(review)) for review in plain["reviews"])
        except (ValueError, KeyError, TypeError, RecordError, RecursionError) as error:
            if isinstance(error, FormError):
                raise
            raise FormError(f"{path}: is no review that the report exported: {error}") from error
        if any("\0" in review.note for review in self._reviews):
            raise FormError(f"{path}: holds a NUL character; take it out")

    @property
    def parts(self) -> tuple[FormPart, ...]:
        """Name the session."""
        return (FormPart(name=self._session),)

    def labels(self, target: CodingTarget) -> tuple[Label, ...]:
        """Verdicts are no labels."""
        return ()

    def verdicts(self, reviewer: str = "", session: str = "") -> tuple[Review, ...]:
        """Read the verdicts, under another reviewer's name if one is given."""
        if session and self._session != session:
            raise FormError(f"{self._path}: is of session {self._session}, and the log of {session}")
        return tuple(replace(review, reviewer=reviewer or review.reviewer) for review in self._reviews)


def open_form(path: Path) -> CodedForm:
    """Open a file by its ending; a table also by its columns."""
    ending = path.suffix.lower()
    if ending in (".csv", ".tsv"):
        table = read_text_table(path)
        return BorisTable(path, table) if is_boris_table(table) or ending == ".tsv" else TidyTable(path, table)
    openers: dict[str, Callable[[Path], CodedForm]] = {
        ".eaf": EafForm,
        ".xlsx": read_boris_table,
        ".boris": BorisProject,
        ".textgrid": TextGridForm,
        ".jsonl": read_jsonl,
        ".json": ReviewFile,
    }
    if ending not in openers:
        known = ", ".join(sorted({".csv", ".tsv", *openers}))
        raise FormError(f"{path}: {ending or 'no ending'} is not read; name a file with one of {known}")
    return openers[ending](path)


def verdicts_of(form: CodedForm, reviewer: str, session: str) -> tuple[Review, ...]:
    """Read the verdicts in a form that may hold some."""
    return form.verdicts(reviewer, session) if isinstance(form, EafForm | ReviewFile) else ()
