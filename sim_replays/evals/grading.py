"""Models that score: one grades written answers against every reference, one coerces replies into the options."""

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
from sim_replays.suites.suite import FORMS, letter, letters

GRADER, COERCER = "grader", "coercer"  # roles of models: --model-role grader=NAME
_VERDICT = re.compile(r"(?i:final verdict)\W*([1-5])(?!\.?\d)")
_PROMPTS = load_prompt_file("grades", "sim_replays.evals")
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
    """Ask for the grades of a sample's texts, and return the best of each, by task and the scorer's names.

    A reply without one final verdict gives no grade.
    """
    best: dict[str, dict[str, float]] = {}
    for target, kind, reference, written in pairs(targets, predictions):
        reply = await grader.generate(_PROMPTS.texts[kind].format(reference=reference, written=written))
        verdicts = set(_VERDICT.findall(reply.completion))
        if len(verdicts) == 1 and reply.stop_reason != "max_tokens":
            names, name = best.setdefault(target.task, {}), FIELDS[target.task][kind]
            names[name] = max(names.get(name, 0.0), float(verdicts.pop()))
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


async def coerced(answer: SampleAnswer, query: Query, order: Sequence[int], coercer: Model) -> SampleAnswer:
    """Let a model say which option a whole reply states, as HSRI's paper does.

    A cut or refused reply stays as it is.
    """
    prediction, reply = answer.prediction, answer.details.get("reply", "")
    is_unread = prediction.outcome in {Outcome.ANSWERED, Outcome.UNPARSED}
    if query.style not in FORMS or not reply.strip() or not is_unread:
        return answer
    query = replace(query, options=query.justifications or query.options, justifications=())
    listed = [f"{name}. {option or 'None'}" for name, option in zip(OPTION_LETTERS, query.options, strict=False)]
    several = ", or all of their letters if it states several" if query.several else ""
    output = await coercer.generate(
        _PROMPTS.texts["coerce"].format(options="\n".join(listed), reply=reply, several=several)
    )
    reading = (letters if query.several else letter)(query, output.completion)
    if reading is None or not reading.strict:
        reason = f"the coercing model read no option: {output.completion!r:.80}"
        return replace(answer, prediction=replace(prediction, outcome=Outcome.UNPARSED, chosen=(), reason=reason))
    chosen = tuple(sorted(order[place] for place in reading.chosen))
    read = replace(prediction, outcome=Outcome.ANSWERED, chosen=chosen, reading=ReplyReading.COERCED)
    return replace(answer, prediction=read)
