"""Write the analysis of a study into a folder: tables, data dictionary, report, figures and scripts."""

import csv
import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from norm_core.records.json_codec import to_plain
from norm_core.records.record import record
from norm_core.runtime.atomic_file import write_atomic
from norm_core.runtime.data_files import shipped_file
from study_desk.analysis.study_report import study_figures, study_report
from study_desk.analysis.study_tables import Column, Row, StudyTables
from study_desk.coding.labels import one_line
from study_desk.study.outputs import note_study_output
from study_desk.study.study_folder import Study, StudyError, writing

ANALYSIS = "analysis"
_SCRIPTS = shipped_file("study_desk.analysis", "scripts")


@record
class WrittenAnalysis:
    """The files of an analysis. `kept` are scripts that were changed since, so were not replaced."""

    files: tuple[Path, ...]
    kept: tuple[Path, ...]


def write_analysis(study: Study, tables: StudyTables, folder: Path) -> WrittenAnalysis:
    """Write every file, readable by its owner alone, and note them as outputs of the study.

    Raises StudyError for a folder that holds something else than an analysis.
    """
    _check_free(folder)
    private_folder(folder)
    private_folder(folder / "figures")
    contents = {
        "sessions.csv": _csv(_columns(tables, "sessions"), tables.sessions),
        "events.csv": _csv(_columns(tables, "events"), tables.events),
        "dictionary.csv": _csv(
            ("table", "name", "unit", "levels", "description"),
            [to_plain(column) | {"levels": "; ".join(column.levels)} for column in tables.columns],
        ),
        "dictionary.json": json.dumps(_dictionary(tables.columns), indent=2, ensure_ascii=False) + "\n",
        "report.html": study_report(tables),
    }
    contents |= {f"figures/{name}.svg": svg for name, svg in study_figures(tables).items()}
    kept = []
    for script in sorted(_SCRIPTS.glob("analysis.*")):
        text, there = script.read_text(encoding="utf-8"), folder / script.name
        if there.is_file() and there.read_text(encoding="utf-8", errors="replace") != text:
            kept.append(there)
        else:
            contents[script.name] = text
    for name, text in contents.items():
        write_private(folder / name, text)
        note_study_output(study, folder / name, ANALYSIS)
    return WrittenAnalysis(files=tuple(folder / name for name in contents), kept=tuple(kept))


def _check_free(folder: Path) -> None:
    is_analysis = all((folder / name).is_file() for name in ("sessions.csv", "dictionary.json"))
    if folder.exists() and not (folder.is_dir() and (is_analysis or not any(folder.iterdir()))):
        raise StudyError(
            f"{folder}: is there, and is no analysis: name a new folder, an empty one or an earlier analysis"
        )


def private_folder(folder: Path) -> None:
    """Make a folder that its owner alone can enter."""
    with writing(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)


def write_private(path: Path, text: str) -> None:
    """Write a text that its owner alone can read."""
    with writing(path):
        write_atomic(path, text.encode("utf-8", "replace"), mode=0o600)


def _csv(columns: Sequence[str], rows: Iterable[Row]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {key: one_line(cell) if isinstance(cell, str) else cell for key, cell in row.items()} for row in rows
    )
    return text.getvalue()


def _columns(tables: StudyTables, table: str) -> list[str]:
    return [column.name for column in tables.columns if column.table == table]


def _dictionary(columns: Iterable[Column]) -> dict[str, dict[str, dict[str, object]]]:
    dictionary: dict[str, dict[str, dict[str, object]]] = {}
    for column in columns:
        about: dict[str, object] = {"description": column.description}
        about |= {"unit": column.unit} if column.unit else {}
        about |= {"levels": list(column.levels)} if column.levels else {}
        dictionary.setdefault(f"{column.table}.csv", {})[column.name] = about
    return dictionary
