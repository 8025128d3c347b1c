"""Questions as a project of Label Studio (tasks and a labelling configuration), and answers from its JSON export.

Each person has projects of their own, so that nobody sees another's answers there.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

from pydantic import BaseModel, TypeAdapter, ValidationError

from norm_core.records.record import record
from sim_replays.own_items.item_run import PROJECTS, ItemError, ItemRun

# Where Label Studio serves files below LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT, here the folder of the run.
_LOCAL_FILE = "/data/local-files/?d="
_PICTURES = "pictures"
Answers = Mapping[str, Sequence[str]]  # by question
Questions = Mapping[str, Mapping[str, Any]]


@record
class Task:
    """What one person is asked about a scene in one round; `asked` is a digest of it."""

    person: str
    round: str
    scene: str
    asked: str
    about: str
    pictures: tuple[str, ...]
    questions: Questions


def write_projects(run: ItemRun, tasks: Sequence[Task], instructions: str) -> list[Path]:
    """Write a folder for each person and round, to be made a project; return the folders."""
    projects: dict[str, list[Task]] = {}
    for task in tasks:
        projects.setdefault(f"{PROJECTS}/{task.person}-{task.round}", []).append(task)
    for folder, of_project in projects.items():
        # Scenes have different questions, and a project has one configuration: it has the questions of all.
        questions = {name: question for task in of_project for name, question in task.questions.items()}
        plain = [_task_json(task, questions) for task in of_project]
        run.write(f"{folder}/tasks.json", json.dumps(plain, indent=1, ensure_ascii=False) + "\n")
        run.write(f"{folder}/config.xml", _config_xml(questions))
        run.write(f"{folder}/instructions.md", instructions)
    return [run.folder / folder for folder in projects]


def _task_json(task: Task, questions: Questions) -> dict[str, Any]:
    data: dict[str, Any] = {
        "person": task.person,
        "round": task.round,
        "scene": task.scene,
        "asked": task.asked,
        "about": task.about,
        _PICTURES: [f"{_LOCAL_FILE}{quote(path)}" for path in task.pictures],
    }
    for name in questions:
        question = task.questions.get(name, {"text": "", "answers": {}})
        data[f"{name}_text"] = question["text"]
        if not question.get("writes"):
            options = question["answers"].items()
            data[name] = [{"value": text, "alias": answer} for answer, text in options]
    return {"data": data}


def _config_xml(questions: Questions) -> str:
    view = ElementTree.Element("View")
    ElementTree.SubElement(view, "Header", value="$about", size="5")
    ElementTree.SubElement(view, "Image", name=_PICTURES, valueList=f"${_PICTURES}")
    for name, question in questions.items():
        ElementTree.SubElement(view, "Header", value=f"${name}_text")
        if question.get("writes"):
            ElementTree.SubElement(view, "TextArea", name=name, toName=_PICTURES, editable="true", maxSubmissions="1")
        else:
            choice = "multiple" if question.get("several") else "single-radio"
            ElementTree.SubElement(view, "Choices", name=name, toName=_PICTURES, value=f"${name}", choice=choice)
    ElementTree.indent(view)
    return ElementTree.tostring(view, encoding="unicode") + "\n"


class _Value(BaseModel):
    choices: list[str] = []
    text: list[str] | str = []


class _Result(BaseModel):
    from_name: str = ""  # relations have none
    value: _Value = _Value()


class _Annotation(BaseModel):
    result: list[_Result]
    was_cancelled: bool = False
    completed_by: int | str | dict[str, Any] | None = None
    updated_at: str = ""


class _Data(BaseModel):
    person: str
    round: str
    scene: str
    asked: str


class _ExportedTask(BaseModel):
    data: _Data
    annotations: list[_Annotation] = []


@record
class ExportedAnswers:
    """The newest answers to a task; choices are those of the export, an answer or its text."""

    person: str
    round: str
    scene: str
    asked: str
    answers: Answers


def read_export(path: Path) -> Iterator[ExportedAnswers]:
    """Yield the answers of a JSON export, without tasks that nobody answered or that were skipped. Raises ItemError."""
    try:
        tasks = TypeAdapter(list[_ExportedTask]).validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ItemError(
            f"{path}: is no JSON export of a project that was made here ({where}: {first['msg']}); export it as JSON"
        ) from error
    annotators: dict[tuple[str, str], set[str]] = {}
    for task in tasks:
        annotations = [annotation for annotation in task.annotations if not annotation.was_cancelled]
        by = annotators.setdefault((task.data.person, task.data.round), set())
        by.update(json.dumps(annotation.completed_by, sort_keys=True) for annotation in annotations)
        if len(by) > 1:
            raise ItemError(f"{path}: more than one person answered for {task.data.person}; make a project for each")
        if annotations:
            newest = max(annotations, key=lambda annotation: annotation.updated_at)
            answers = {
                result.from_name: [*result.value.choices, *([text] if isinstance(text, str) else text)]
                for result in newest.result
                if (text := result.value.text) or result.value.choices
            }
            yield ExportedAnswers(**task.data.model_dump(), answers=answers)


def answers_of(questions: Questions, exported: Answers) -> dict[str, list[str]]:
    """Return the answers by question, with the names of choices in place of their texts."""
    answers = {}
    for name, texts in exported.items():
        options = questions[name].get("answers", {}) if name in questions else {}
        by_text = {text: answer for answer, text in options.items()}
        answers[name] = [text if text in options else by_text.get(text, text) for text in texts]
    return answers
