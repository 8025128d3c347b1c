"""Models that score: one grades written answers by their references, another reads the options of replies."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from inspect_ai.model import Model

from norm_core.engines.options import OPTION_LETTERS
from norm_core.engines.prompt_file import load_prompt_file
from norm_core.records.episode import Query
from norm_core.records.outcome import Outcome
from sim_replays.evals.samples import SampleAnswer
from sim_replays.items.target import Predictions, ReplyReading, Target
from sim_replays.suites.suite import REPLY_PARSERS, read_letter, read_letters

# Roles of models, as in --model-role grader=NAME.
GRADER = "grader"
COERCER = "coercer"

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


async def coerce_answer(answer: SampleAnswer, query: Query, order: Sequence[int], coercer: Model) -> SampleAnswer:
    """Let a model say which option a whole reply states, as in the paper of HSRI.

    A cut or refused reply stays as it is.
    """
    prediction = answer.prediction
    reply = answer.details.get("reply", "")
    is_whole = prediction.outcome in {Outcome.ANSWERED, Outcome.UNPARSED}
    if query.style not in REPLY_PARSERS or not reply.strip() or not is_whole:
        return answer
    query = replace(query, options=query.justifications or query.options, justifications=())
    lettered = [f"{letter}. {option or 'None'}" for letter, option in zip(OPTION_LETTERS, query.options, strict=False)]
    several = ", or all of their letters if it states several" if query.several else ""
    output = await coercer.generate(
        _PROMPTS.texts["coerce"].format(options="\n".join(lettered), reply=reply, several=several)
    )
    parse_reply = read_letters if query.several else read_letter
    parsed = parse_reply(query, output.completion)
    if parsed is None or not parsed.is_strict:
        reason = f"the coercing model read no option: {output.completion!r:.80}"
        return replace(answer, prediction=replace(prediction, outcome=Outcome.UNPARSED, chosen=(), reason=reason))
    chosen = tuple(sorted(order[index] for index in parsed.chosen))
    coerced = replace(prediction, outcome=Outcome.ANSWERED, chosen=chosen, reading=ReplyReading.COERCED)
    return replace(answer, prediction=coerced)
