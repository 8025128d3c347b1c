"""The page of one or two runs: each question with its prompt, pictures, replies and right answer, in one HTML file."""

import base64
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import cv2

from norm_core import __version__
from norm_core.bags.reader import BagReader
from norm_core.records.decision import Decision, Veto
from norm_core.records.episode import Query
from norm_core.records.frame import Frame
from norm_core.records.json_codec import to_plain
from norm_core.records.outcome import Outcome
from norm_core.records.speech import Utterance
from norm_core.runtime.extras import ExtraMissingError, install_command
from norm_core.runtime.wording import count_of
from sim_replays.runs.asked_model import AskedRequest
from sim_replays.runs.items.item_bag import QUERIES, episodes
from sim_replays.runs.results.json_lines import RunError, read_lines
from sim_replays.runs.results.run_folder import (
    ASKED,
    BAG,
    Run,
    mark,
    open_run,
    predictions,
    why_not_paired,
    write_whole,
)
from sim_replays.runs.transport import TimedAnswer
from sim_replays.suites.report import KINDS, MISSING, ROBOT_KIND
from sim_replays.suites.suite import suite_called
from sim_replays.suites.target import Target
from study_desk.report.page_items import VoiceNumbers, decision_item, speech_item
from study_desk.report.page_server import fill_page
from study_desk.report.pictures import small_pixels

Row = dict[str, Any]


def frames(run_folder: str | Path) -> Any:
    """Return a run as a pandas data frame with the rows of `question_rows`.

    pandas comes with the extra `study`; without it, this raises ExtraMissingError.
    """
    try:
        from pandas import DataFrame  # noqa: PLC0415  of an extra
    except ImportError as error:
        raise ExtraMissingError(f"A data frame needs pandas; install it with {install_command('study')}") from error
    return DataFrame(question_rows(run_folder))


def question_rows(run_folder: str | Path) -> list[Row]:
    """Return one row a question, in the order of the bag; unasked questions have the outcome "missing".

    Places in `right` and `chosen` count from 0 in `options`, which are in the order of the question; `order` holds
    their places in the data. `score` is 1 for right and 0 for wrong, for sets the overlap, and None for written
    answers; these have `grades`.
    """
    return rows_of(open_run(Path(run_folder), with_decisions=True))


def rows_of(run: Run) -> list[Row]:
    """Return the rows of an open run."""
    with BagReader(run.folder / BAG) as reader:
        queries: dict[str, Query] = {
            query.query_id: query for message in reader.messages([QUERIES]) if (query := reader.decode(message))
        }
    targets = {target.key: target for target in run.key.targets}
    answers, asked = predictions(run).predictions, read_asked(run.folder)
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


def read_asked(folder: Path) -> Mapping[str, Sequence[AskedRequest]]:
    """Return the requests of each question, as far as the run noted them: none over DDS. Raises RunError."""
    asked: dict[str, list[AskedRequest]] = {}
    for request in read_lines(folder / ASKED, AskedRequest):
        asked.setdefault(request.query_id, []).append(request)
    return asked


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


PICTURES_A_QUESTION = 8  # spread over the episode
_QUALITY = 70
# What a browser still opens quickly. Questions beyond lack pictures or prompts, and a note counts them.
PICTURE_BYTES, PROMPT_BYTES = 48_000_000, 32_000_000
_ANSWER = (
    "scene",
    "question",
    "outcome",
    "score",
    "text",
    "reason",
    "grades",
    "explanation",
    "by_text",
    "took_s",
    "probabilities",
)
_PROVENANCE = (
    "query_id",
    "model",
    "weights_sha256",
    "prompt_version",
    "prompt_digest",
    "window_digest",
    "config_sha256",
)


def write_page(path: Path, runs: Sequence[Run]) -> int:
    """Write the page, and return its number of questions. Raises RunError."""
    if not 1 <= len(runs) <= 2:
        raise RunError(f"--page: shows one or two runs, and {len(runs)} are named; leave some out")
    data = page_data(runs)
    title = f"{data['suite']}: {' and '.join(run['name'] for run in data['runs'])}"
    write_whole(path, fill_page("run", ("page", "run"), ("dom", "display", "run"), title, data))
    return len(data["questions"])


def page_data(runs: Sequence[Run]) -> Row:
    """Collect the page's data: the questions of all runs, each with an answer or None for each run."""
    questions: dict[tuple[str, str], Row] = {}
    pictures = _Pictures()
    notes: list[str] = []
    for place, run in enumerate(runs):
        asked, prompts = read_asked(run.folder), _Budget(PROMPT_BYTES)
        seen = {name: _seen(records, pictures) for name, records in _episodes(run)}
        targets = {target.key: target for target in run.key.targets}
        for row in rows_of(run):
            key = row["item"], row["task"]
            question = questions.setdefault(key, {**_question(row, targets[key]), "answers": [None] * len(runs)})
            question["answers"][place] = {
                **_answer(row, run),
                **seen.get(row["episode_id"], {}),
                "requests": [prompts.cut(request) for request in asked.get(row["query_id"], ())],
            }
        notes += [f"{run.name}: {note}" for note in _notes(run, asked, prompts)]
    if pictures.left_out:
        notes.append(f"pictures of {count_of(pictures.left_out, 'episode')} left out, to keep this page small")
    if len(runs) == 2 and (why := why_not_paired(*runs)):
        notes.append(why)
    for question in questions.values():
        asked_in = [answer for answer in question["answers"] if answer and answer["outcome"] != MISSING]
        question["common"] = len(asked_in) == len(runs)  # what the figures count
        choices = [(answer["answered"], answer["chosen"]) for answer in asked_in]
        question["differs"] = question["common"] and any(choice != choices[0] for choice in choices)
    return {
        "suite": suite_called(runs[0].key.suite).name,
        "runs": [
            {
                "name": run.name,
                "kind": KINDS[run.kind],
                "is_robot": run.kind == ROBOT_KIND,
                "setting": run.key.setting,
            }
            for run in runs
        ],
        "version": __version__,
        "notes": notes,
        "questions": list(questions.values()),
        "pictures": pictures.data_urls,
    }


class _Pictures:
    """Small pictures by the digest of what was shown, as data URLs, up to a number of bytes."""

    def __init__(self) -> None:
        self.data_urls: dict[str, str] = {}
        self.left_out = 0  # episodes
        self._bytes = 0

    def take(self, frames: Sequence[Frame]) -> list[str]:
        """Return the digests of some of an episode's frames."""
        count = min(len(frames), PICTURES_A_QUESTION)
        chosen = [frames[place * (len(frames) - 1) // max(count - 1, 1)] for place in range(count)]
        if self._bytes > PICTURE_BYTES:
            self.left_out += bool(frames)
            return []
        return [frame.payload_sha256 for frame in chosen if self._hold(frame)]

    def _hold(self, frame: Frame) -> bool:
        if frame.payload_sha256 not in self.data_urls:
            pixels = small_pixels(frame)
            if pixels is None:
                return False
            data = cv2.imencode(".jpg", pixels, (cv2.IMWRITE_JPEG_QUALITY, _QUALITY))[1].tobytes()
            url = f"data:image/jpeg;base64,{base64.b64encode(data).decode()}"
            self.data_urls[frame.payload_sha256] = url
            self._bytes += len(url)
        return True


class _Budget:
    """Cut the prompts of requests beyond a number of bytes."""

    def __init__(self, size: int) -> None:
        self._left = size
        self.cut_count = 0

    def cut(self, request: AskedRequest) -> Row:
        """Return the request as JSON, without its prompt if there is no room for it."""
        self._left -= len(request.prompt) + len(request.reply)
        if self._left >= 0:
            return dict(to_plain(request))
        self.cut_count += 1
        return {**to_plain(request), "prompt": ""}


def _episodes(run: Run) -> Iterable[tuple[str, list[Any]]]:
    for records in episodes(run.folder / BAG):
        if query := next((record for record in records if isinstance(record, Query)), None):
            yield query.episode_id, records


def _seen(records: Sequence[Any], pictures: _Pictures) -> Row:
    """Return what an episode showed and what was said in it."""
    frames = [record for record in records if isinstance(record, Frame)]
    voices, start_ns = VoiceNumbers(), records[0].stamp_ns
    return {
        "pictures": pictures.take(frames),
        "frames": len(frames),
        "speech": [
            speech_item(record, start_ns, voices)
            for record in records
            if isinstance(record, Utterance) and record.final
        ],
    }


def _question(row: Row, target: Target) -> Row:
    return {
        **{name: row[name] for name in ("item", "task", "group")},
        "by": dict(target.by),
        "options": dict(zip(row["order"], row["options"], strict=False)),
        "right": list(target.right),
        "references": list(target.references),
        "evidence": {kind: list(texts) for kind, texts in target.evidence.items()},
    }


def _answer(row: Row, run: Run) -> Row:
    timed = run.told.get(row["query_id"])
    decision = decision_item(timed.decision, timed.decision.stamp_ns) if timed and timed.decision else None
    return {
        **{name: row.get(name) for name in _ANSWER},
        "chosen": sorted(row["order"][place] for place in row["chosen"]),
        "offered": row["order"],
        "answered": row["outcome"] == Outcome.ANSWERED,
        "candidates": decision["candidates"] if decision else None,
        "choice": decision["choice"] if decision else None,
        "provenance": {name: row[name] for name in _PROVENANCE if row.get(name)},
    }


def _notes(run: Run, asked: Mapping[str, Any], prompts: _Budget) -> Iterable[str]:
    if not asked:
        yield f"no prompts are shown: a run over DDS or without a model has no {ASKED}; see --transport direct"
    if prompts.cut_count:
        yield f"{count_of(prompts.cut_count, 'prompt')} left out, to keep this page small; see {ASKED}"
    if run.left:
        yield f"{count_of(run.left, 'question')} not asked yet"
