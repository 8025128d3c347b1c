"""The model that grades written answers by their references."""

import json
import re
from collections.abc import Mapping, Sequence

from inspect_ai.model import Model

from norm_core.engines.prompt_file import load_prompt_file
from norm_core.records.outcome import Outcome
from sim_replays.items.target import Predictions, Target

# The role of the model, as in --model-role grader=NAME.
GRADER = "grader"

_VERDICT = re.compile(r"(?i:final verdict)\W*([1-5])(?!\.?\d)")
_PROMPTS = load_prompt_file("grades", "sim_replays.evals")
# By task, the graded fields of the written answer, and what the scorer calls their grades.
FIELDS = {"norm": {"norm": "grade"}, "evidence": {"verbal": "verbal_grade", "nonverbal": "nonverbal_grade"}}


def list_graded_texts(targets: Sequence[Target], predictions: Predictions) -> list[tuple[Target, str, str, str]]:
    """List what to grade: target, field, reference and text. Evidence counts only where the label was right."""
    graded_texts = []
    for target in targets:
        prediction = predictions.get(target.key)
        if prediction is None or prediction.outcome is not Outcome.ANSWERED or target.task not in FIELDS:
            continue
        if target.right and prediction.chosen != target.right:
            continue
        written = _split_fields(prediction.text)
        for field in FIELDS[target.task]:
            if field in written:
                references = target.evidence.get(field, target.references)
                graded_texts += [(target, field, reference, written[field]) for reference in references]
    return graded_texts


async def ask_grades(
    targets: Sequence[Target], predictions: Predictions, grader: Model
) -> Mapping[str, Mapping[str, float]]:
    """Ask for the grades of a sample's texts, and return the best of each, by task and name of the grade.

    A reply without one final verdict gives no grade.
    """
    best_grades: dict[str, dict[str, float]] = {}
    for target, field, reference, written in list_graded_texts(targets, predictions):
        reply = await grader.generate(_PROMPTS.texts[field].format(reference=reference, written=written))
        verdicts = set(_VERDICT.findall(reply.completion))
        if len(verdicts) == 1 and reply.stop_reason != "max_tokens":
            grades = best_grades.setdefault(target.task, {})
            name = FIELDS[target.task][field]
            grades[name] = max(grades.get(name, 0.0), float(verdicts.pop()))
    return best_grades


def _split_fields(text: str) -> dict[str, str]:
    """Split a written answer into fields. A text that is not JSON counts as a norm."""
    try:
        fields = json.loads(text)
    except ValueError:
        return {"norm": text}
    if not isinstance(fields, dict):
        return {}
    return {str(name): value for name, value in fields.items() if isinstance(value, str)}
