"""Read predictions from a plain file, one per line: `{id, task, answer, outcome}`. Nothing is guessed."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from norm_core.records.outcome import Outcome
from norm_core.records.record import record
from sim_replays.suites.target import Key, Prediction, SuiteError, Target

_GRADES = ("grade", "verbal_grade", "nonverbal_grade")
_SHOWN = 5


@record
class PredictionFile:
    """The predictions of known questions, the unknown ids, and the invalid answers."""

    predictions: dict[Key, Prediction]
    unknown: tuple[str, ...]
    unusable: tuple[str, ...]


def read_predictions(path: Path, targets: Sequence[Target]) -> PredictionFile:
    """Read every line. Raises an error for an invalid line, an unknown task or a repeated id."""
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise SuiteError(f"{path}: cannot be read: {error}; check the path, and save it as UTF-8") from error
    by_key = {target.key: target for target in targets}
    tasks = tuple(dict.fromkeys(target.task for target in targets))
    seen: dict[Key, int] = {}
    found: dict[Key, Prediction] = {}
    unknown: dict[str, None] = {}
    unusable: list[str] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        entry = _entry(line, where)
        key = _key(entry, tasks, where)
        if key in seen:
            raise SuiteError(f"{where}: {key[0]!r} ({key[1]}) stands in line {seen[key]} already: give each id once")
        seen[key] = number
        if (target := by_key.get(key)) is None:
            unknown[key[0] if len(tasks) == 1 else f"{key[0]} ({key[1]})"] = None
            continue
        found[key] = prediction = _prediction(entry, target, where)
        if prediction.outcome is Outcome.UNPARSED and prediction.reason:
            unusable.append(f"line {number}, {key[0]}: {prediction.reason}")
    if unknown and not found:
        raise SuiteError(
            f"{path}: no id in it is in the data: {prediction_by_name(unknown)}; name the data that it answers"
        )
    return PredictionFile(predictions=found, unknown=tuple(unknown), unusable=tuple(unusable))


def prediction_by_name(ids: Iterable[str]) -> str:
    """List the first few ids, and count the rest."""
    every = list(ids)
    more = f" and {len(every) - _SHOWN} more" if len(every) > _SHOWN else ""
    return f"{', '.join(every[:_SHOWN])}{more}"


def _entry(line: str, where: str) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise SuiteError(f"{where}: is not JSON: {error}; write one object a line") from error
    if not isinstance(entry, dict) or "id" not in entry:
        raise SuiteError(f"{where}: is no object with an id: a line is {{id, task, answer, outcome}}")
    return entry


def _key(entry: dict[str, Any], tasks: tuple[str, ...], where: str) -> Key:
    task = entry.get("task") or (tasks[0] if len(tasks) == 1 else "")
    if task not in tasks:
        raise SuiteError(f"{where}: task: {task!r} is unknown; write one of {', '.join(tasks)}")
    return str(entry["id"]), str(task)


def _prediction(entry: dict[str, Any], target: Target, where: str) -> Prediction:
    answer = entry.get("answer")
    stated = entry.get("outcome") or Outcome.ANSWERED
    try:
        outcome = Outcome(stated)
    except ValueError as error:
        known = ", ".join(Outcome)
        raise SuiteError(f"{where}: outcome: {stated!r} is unknown; write one of {known}") from error
    if outcome is not Outcome.ANSWERED:
        return Prediction(id=target.id, task=target.task, outcome=outcome, reason=str(entry.get("reason", "")))
    grades = {name: float(entry[name]) for name in _GRADES if _is_grade(entry.get(name), where, name)}
    if not target.options:
        text = answer if isinstance(answer, str) else ""
        outcome = Outcome.ANSWERED if text.strip() else Outcome.UNPARSED
        reason = "" if text.strip() else f"its answer is {answer!r}, and should be text"
        return Prediction(id=target.id, task=target.task, outcome=outcome, text=text, grades=grades, reason=reason)
    places = prediction_by_index(answer, target)
    if places is None:
        reason = f"its answer is {answer!r:.60}, and {_wanted(target)}"
        return Prediction(id=target.id, task=target.task, outcome=Outcome.UNPARSED, reason=reason)
    return Prediction(id=target.id, task=target.task, outcome=outcome, chosen=places, grades=grades)


def prediction_by_index(answer: Any, target: Target) -> tuple[int, ...] | None:
    """Return the positions an answer names. None for no valid name, or several where one is expected."""
    if isinstance(answer, list):
        places = [_place(one, target) for one in answer]
        if any(place is None for place in places) or (len(places) != 1 and not target.several):
            return None
        return tuple(sorted({place for place in places if place is not None}))
    place = _place(answer, target)
    return None if place is None else (place,)


def _place(answer: Any, target: Target) -> int | None:
    if isinstance(answer, bool):
        answer = str(answer)
    if isinstance(answer, str):
        words = [word.casefold() for word in target.words]
        said = answer.strip().casefold()
        return words.index(said) if said in words else None
    if isinstance(answer, float) and answer.is_integer():
        answer = int(answer)
    return answer if isinstance(answer, int) and 0 <= answer < target.options else None


def _wanted(target: Target) -> str:
    words = f", or of {', '.join(target.words)}" if target.words else ""
    return f"should be {'a list of places' if target.several else 'a place'} from 0 to {target.options - 1}{words}"


def _is_grade(value: Any, where: str, name: str) -> bool:
    if value is None:
        return False
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value <= 5:
        raise SuiteError(f"{where}: {name}: {value!r} is no grade; write a number from 1 to 5")
    return True
