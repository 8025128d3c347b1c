"""Grade written answers from 1 to 5 with a model, against every reference; the best one counts."""

import json
import re
from collections.abc import Mapping, Sequence

from inspect_ai.model import Model

from norm_core.engines.prompt import Prompt, Quoted, Text
from norm_core.engines.prompt_file import prompt_file
from norm_core.records.outcome import Outcome
from sim_replays.items.target import Predictions, Target

GRADER = "grader"  # the role of the model that grades: --model-role grader=NAME
_PROMPTS = prompt_file("grades", "sim_replays.evals")
# By task: the graded fields of the written answer, and the scorer's names of their grades.
FIELDS = {"norm": {"norm": "grade"}, "evidence": {"verbal": "verbal_grade", "nonverbal": "nonverbal_grade"}}


def pairs(targets: Sequence[Target], predictions: Predictions) -> list[tuple[Target, str, str, str]]:
    """List what to grade: question, kind, reference and text. Evidence counts only where the label was right."""
    to_grade = []
    for target in targets:
        prediction = predictions.get(target.key)
        if prediction is None or prediction.outcome is not Outcome.ANSWERED or target.task not in FIELDS:
            continue
        if target.right and prediction.chosen != target.right:
            continue
        written = _fields(prediction.text)
        for kind in FIELDS[target.task]:
            texts = target.evidence.get(kind, target.references)
            to_grade += [(target, kind, text, written[kind]) for text in texts if kind in written]
    return to_grade


async def grades_of(
    targets: Sequence[Target], predictions: Predictions, grader: Model
) -> Mapping[str, Mapping[str, float]]:
    """Ask for the grades of a sample's texts, and return the best of each, by task and the scorer's names."""
    best: dict[str, dict[str, float]] = {}
    for target, kind, reference, written in pairs(targets, predictions):
        reply = await grader.generate(_prompt(kind, reference, written))
        digits = set(re.findall(r"(?<![\d.])[1-5](?![\d.]*\d)", reply.completion))
        if len(digits) == 1:  # else the grader gave none
            names, name = best.setdefault(target.task, {}), FIELDS[target.task][kind]
            names[name] = max(names.get(name, 0.0), float(digits.pop()))
    return best


def _fields(text: str) -> dict[str, str]:
    """Split a written answer into fields. Text that is no such JSON counts as a norm."""
    try:
        plain = json.loads(text)
    except ValueError:
        return {"norm": text}
    if not isinstance(plain, dict):
        return {}
    return {str(name): value for name, value in plain.items() if isinstance(value, str)}


def _prompt(kind: str, reference: str, written: str) -> str:
    """Return the two texts and the meaning of each grade for texts of that kind."""
    parts = (
        Text(text=_PROMPTS.texts["task"]),
        Text(text=_PROMPTS.texts["rubric"][kind]),
        Quoted(text=reference, label="reference"),
        Quoted(text=written, label="to be graded"),
        Text(text="Which grade does the text get? Answer with the number alone."),
    )
    return Prompt(version=_PROMPTS.version, parts=parts).as_text()
