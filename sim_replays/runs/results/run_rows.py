"""The questions of a run as rows: each with its answer, the right one, and what led to it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from norm_core.bags.reader import BagReader
from norm_core.records.decision import Decision, Veto
from norm_core.records.episode import Query
from norm_core.runtime.extras import ExtraMissingError, install_command
from norm_core.runtime.json_lines import read_lines
from sim_replays.items.item_bag import QUERIES
from sim_replays.runs.asked_model import AskedRequest
from sim_replays.runs.results.run_folder import ASKED, BAG, mark, open_run, predictions
from sim_replays.runs.transport import TimedAnswer
from sim_replays.suites.report import MISSING

Row = dict[str, Any]


def frames(run_folder: str | Path) -> Any:
    """Return a run as a pandas data frame with the rows of `question_rows`.

    pandas comes with the extra `bench`; without it, this raises ExtraMissingError.
    """
    try:
        from pandas import DataFrame  # noqa: PLC0415  of an extra
    except ImportError as error:
        raise ExtraMissingError(f"A data frame needs pandas; install it with {install_command('bench')}") from error
    return DataFrame(question_rows(run_folder))


def question_rows(run_folder: str | Path) -> list[Row]:
    """Return one row a question, in the order of the bag; unasked questions have the outcome "missing".

    Places in `right` and `chosen` count from 0 in `options`, which are in the order of the question; `order` holds
    their places in the data. `score` is 1 for right and 0 for wrong, for sets the overlap, and None for written
    answers; these have `grades`.
    """
    run = open_run(Path(run_folder), with_decisions=True)
    with BagReader(run.folder / BAG) as reader:
        queries: dict[str, Query] = {
            query.query_id: query for message in reader.messages([QUERIES]) if (query := reader.decode(message))
        }
    targets = {target.key: target for target in run.key.targets}
    answers, asked = predictions(run).predictions, _requests_of(run.folder)
    rows = []
    for query_id, order in run.key.orders.items():
        query, timed = queries[query_id], run.told.get(query_id)
        target = targets[run.key.items[query_id], query.task]
        prediction = answers.get(target.key)
        options = query.justifications or query.options
        right = [place for place, at in enumerate(order) if at in target.right]
        chosen = list(timed.answer.chosen) if timed else []
        score = mark(target, answers) if target.options else None
        requests = asked.get(query_id, ())
        rows.append({
            "run": run.name,
            "suite": run.key.suite,
            "setting": run.key.setting,
            "query_id": query_id,
            "episode_id": query.episode_id,
            "item": target.id,
            "task": target.task,
            "group": target.group,
            **{f"by_{name}": value for name, value in target.by.items()},
            "scene": query.viewpoint.description,
            "question": query.question,
            "style": query.style,
            "options": list(options),
            "order": list(order),
            "right": right,
            "chosen": chosen,
            "right_texts": [options[place] for place in right if place < len(options)] or list(target.references),
            "chosen_texts": [options[place] for place in chosen if place < len(options)],
            "score": score,
            "is_right": None if score is None else score == 1.0,
            "grades": dict(prediction.grades) if prediction else {},
            **_answer_columns(timed),
            "requests": len(requests),
            "prompt_tokens": sum(request.prompt_tokens for request in requests),
            "completion_tokens": sum(request.completion_tokens for request in requests),
        })  # fmt: skip
    return rows


def _requests_of(folder: Path) -> Mapping[str, Sequence[AskedRequest]]:
    """Return the requests of each question, as far as the run noted them: none over DDS. Raises RunError."""
    requests: dict[str, list[AskedRequest]] = {}
    for request in read_lines(folder / ASKED, AskedRequest):
        requests.setdefault(request.query_id, []).append(request)
    return requests


def _answer_columns(timed: TimedAnswer | None) -> Row:
    if timed is None:
        return {"outcome": MISSING}
    answer, provenance = timed.answer, timed.answer.provenance
    return {
        "outcome": answer.outcome.value,
        "probabilities": list(answer.probabilities),
        "text": answer.text,
        "reason": answer.reason,
        "by_text": timed.by_text,
        "took_s": timed.took_s,
        "explanation": timed.decision.explanation if timed.decision else "",
        "vetoes": _vetoes(timed.decision),
        "model": provenance.model,
        "weights_sha256": provenance.weights_sha256,
        "prompt_version": provenance.prompt_version,
        "prompt_digest": provenance.prompt_digest,
        "window_digest": provenance.window_digest,
        "config_sha256": provenance.config_sha256,
    }


def _vetoes(decision: Decision | None) -> list[dict[str, str]]:
    return [
        {"option": candidate.action, "veto": candidate.veto.value, "reason": candidate.veto_reason}
        for candidate in (decision.candidates if decision else ())
        if candidate.veto is not Veto.NONE
    ]
