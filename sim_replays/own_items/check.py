"""Check a set of items: what scores without seeing the scene, beside people, a model and the published rows."""

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from norm_core.engines.backend import AnsweringModel
from norm_core.engines.prompt import Image, Part, Prompt, Question, Quoted, Text
from norm_core.engines.sentences.sentence_encoder import SentenceVectors
from norm_core.evaluation.figures import Figures
from norm_core.records.outcome import Outcome
from norm_core.records.record import record
from norm_core.runtime.wording import count_of
from sim_replays.runs.items.clip import Shot, jpegs
from sim_replays.runs.run_config import RunConfig
from sim_replays.suites.controls import best_constant, uniform
from sim_replays.suites.dataset_files import entries
from sim_replays.suites.hsri_segments import FILE as HSRI_FILE
from sim_replays.suites.predictions import read_predictions
from sim_replays.suites.report import PublishedTable, published_results
from sim_replays.suites.suite import FILE as SUITE_FILE
from sim_replays.suites.suite import Suite
from sim_replays.suites.target import Prediction, Predictions, SuiteError, Target
from sim_replays.suites.videonorms import FILE as VIDEONORMS_FILE

CHANCE, POSITION, MODEL, HUMAN = "chance", "position", "model", "people"
_ASK = "What is the most fitting thing to do next in this situation?"
_FOLDS, _RIDGE = 10, 1.0
NEAR_POINTS = 5.0  # within which a control comes near a figure without an interval
_KEYS = {"mcq_items": "egogapbench", "behaviors": "egonormia"}
_FILES = {SUITE_FILE: "", HSRI_FILE: "hsri", VIDEONORMS_FILE: "videonorms"}


@record
class AskedItem:
    """A question with its options in the dataset's own order, its scene in words and its pictures."""

    target: Target
    options: tuple[str, ...]
    ask: str = ""
    scene: str = ""
    shots: tuple[Shot, ...] = ()


@record
class ItemCheck:
    """The figures of each control, of people and of a model, and what is wrong with the set."""

    suite: Suite
    items: int
    rows: Mapping[str, Figures]
    published: PublishedTable | None
    warnings: tuple[str, ...]


def suite_name_of(path: Path) -> str:
    """Name the suite that a file or folder of items belongs to. Raises SuiteError where none is recognized."""
    for marker, name in _FILES.items():
        if (path / marker).is_file() or path.name == marker:
            return name or str(path)
    files = [path] if path.is_file() else [*sorted(path.glob("*.jsonl")), *sorted(path.glob("*.json"))]
    for file in files:
        _, entry = next(iter(entries(file)), ("", {}))
        for key, name in _KEYS.items():
            if key in entry:
                return name
    raise SuiteError(f"{path}: holds no items of a suite that is known; name the suite with --suite, or another path")


def read_items(suite: Suite, data: Path, pictures: Path | None = None) -> list[AskedItem]:
    """Read each question with its options, its scene in words where the suite gives one, and its pictures if asked."""
    read: dict[tuple[str, str], AskedItem] = {}
    blind = "blind" if "blind" in suite.settings else suite.settings[0]
    seeing = {"images", "video", "transcript-given", "given"} & {*suite.settings} if pictures else set()
    for setting in (blind, *(name for name in suite.settings if name in {"pipeline", "captions", "given"}), *seeing):
        asking = RunConfig(suite=suite.name, data=str(data), setting=setting, pictures=str(pictures or ""))
        run = suite.items(asking)
        targets = {target.key: target for target in run.targets}
        for item in run.asked:
            for query in item.queries:
                target = targets[item.item or item.id, query.task]
                if not target.options:
                    continue
                offered = query.justifications or query.options
                order = item.orders[query.query_id]
                options = tuple(offered[order.index(place)] for place in range(len(order)))
                before = read.get(target.key)
                read[target.key] = AskedItem(
                    target=target,
                    options=options,
                    ask=query.question,
                    scene=query.viewpoint.description or (before.scene if before else ""),
                    shots=item.shots if pictures else (),
                )
    return list(read.values())


def check_items(
    suite: Suite,
    items: Sequence[AskedItem],
    encoder: SentenceVectors,
    models: Mapping[str, AnsweringModel],
    *,
    human: Path | None = None,
    answers: Path | None = None,
    pictures_may_leave: bool = False,
    progress: Callable[[str], None] = lambda name: None,
) -> ItemCheck:
    """Score each control, and compare them with people's answers and a model's, which are files of predictions."""
    targets = [item.target for item in items]
    rows: dict[str, Figures] = {CHANCE: uniform(suite, targets)}
    chosen: dict[str, Callable[[], Predictions]] = {
        POSITION: lambda: best_constant(targets),
        "longest option": lambda: _choose(items, lambda item: list(map(len, item.options))),
        "least repeated option": lambda: _least_repeated(items),
        "options alone": lambda: _by_wording(items, encoder),
    }
    for name, model in models.items():
        chosen |= _model_controls(name, model, items, pictures_may_leave)
    for name, choose in chosen.items():
        progress(name)
        rows[name] = suite.figures(targets, choose())
    controls = [name for name in rows if name != CHANCE]
    for name, path in ((HUMAN, human), (MODEL, answers)):
        if path:
            read = read_predictions(path, targets)
            asked = targets if name == MODEL else [target for target in targets if target.key in read.predictions]
            rows[name] = suite.figures(asked, read.predictions)
    count = len({target.id for target in targets})
    table = published_table(suite, count)
    warnings = tuple(_warnings(suite, rows, controls, table))
    return ItemCheck(suite=suite, items=count, rows=rows, published=table, warnings=warnings)


def _model_controls(
    name: str, model: AnsweringModel, items: Sequence[AskedItem], pictures_may_leave: bool
) -> dict[str, Callable[[], Predictions]]:
    """List what a model is asked: nothing but the options, the scene in words, another's, and both with pictures."""
    others = _others(items)
    controls: dict[str, Callable[[], Predictions]] = {f"blind: {name}": lambda: _ask(model, items, lambda item: ())}
    if any(item.scene for item in items):
        controls[f"scene in words: {name}"] = lambda: _ask(model, items, _words)
        controls[f"another's scene: {name}"] = lambda: _ask(model, items, lambda item: _words(others[item.target.key]))
    most = model.model_info.most_images(pictures_may_leave, max(len(item.shots) for item in items))
    if most:
        controls[f"pictures: {name}"] = lambda: _ask(model, items, lambda item: _images(item, most))
        controls[f"another's pictures: {name}"] = lambda: _ask(
            model, items, lambda item: _images(others[item.target.key], most)
        )
    return controls


def _words(item: AskedItem) -> tuple[Part, ...]:
    return (Quoted(text=item.scene, label="scene"),) if item.scene else ()


def _images(item: AskedItem, most: int) -> tuple[Part, ...]:
    return tuple(Image(jpeg=jpeg) for _, jpeg in jpegs(item.shots[-most:]))


def _others(items: Sequence[AskedItem]) -> dict[tuple[str, str], AskedItem]:
    """Assign each question an item of the next picture or video, in a drawn order of all."""
    first: dict[str, AskedItem] = {}
    for item in items:
        first.setdefault(item.target.group, item)
    order = sorted(first)
    random.Random(0).shuffle(order)
    after = dict(zip(order, [*order[1:], *order[:1]], strict=True))
    return {item.target.key: first[after[item.target.group]] for item in items}


def _ask(
    model: AnsweringModel, items: Sequence[AskedItem], given: Callable[[AskedItem], tuple[Part, ...]]
) -> Predictions:
    """Let a model score the options of each question after what it is given."""
    found = {}
    for item in items:
        prefix = Prompt(version="check_items-1", parts=given(item))
        order = random.Random(":".join(item.target.key)).sample(range(len(item.options)), len(item.options))
        options = tuple(item.options[place] or "none of these" for place in order)
        question = Question(parts=(Text(text=item.ask or _ASK),), options=options, step="check")
        [scores] = model.ask_many(prefix, [question])
        picked = () if scores.best is None else (order[scores.best],)
        found[item.target.key] = _prediction(item.target, picked, scores.outcome)
    return found


def _choose(items: Sequence[AskedItem], score: Callable[[AskedItem], Sequence[float]]) -> Predictions:
    """Choose the option with the highest score; of several, one that the question's id draws."""
    found = {}
    for item in items:
        scores, draw = score(item), random.Random(":".join(item.target.key))
        best = [place for place, value in enumerate(scores) if value == max(scores)]
        found[item.target.key] = _prediction(item.target, (draw.choice(best),))
    return found


def _prediction(target: Target, chosen: tuple[int, ...], outcome: Outcome = Outcome.ANSWERED) -> Prediction:
    return Prediction(id=target.id, task=target.task, outcome=outcome, chosen=chosen)


def _least_repeated(items: Sequence[AskedItem]) -> Predictions:
    """Choose the option that stands in the fewest items of the same picture or video: distractors are shared."""
    counts = Counter((item.target.group, item.target.task, option) for item in items for option in item.options)
    return _choose(
        items, lambda item: [-counts[item.target.group, item.target.task, option] for option in item.options]
    )


def _by_wording(items: Sequence[AskedItem], encoder: SentenceVectors) -> Predictions:
    """Choose by a linear classifier of the options' wording, fitted on other pictures or videos alone."""
    found: dict[tuple[str, str], Prediction] = {}
    for task in dict.fromkeys(item.target.task for item in items):
        asked = [item for item in items if item.target.task == task]
        groups = sorted({item.target.group for item in asked})
        random.Random(0).shuffle(groups)
        fold_of = {group: place % _FOLDS for place, group in enumerate(groups)}
        vectors = [np.asarray(encoder.encode(item.options), np.float64) for item in asked]
        vectors = [rows - rows.mean(axis=0) for rows in vectors]
        for fold in range(min(_FOLDS, len(groups))):
            is_left_out = [fold_of[item.target.group] == fold for item in asked]
            fitted = [number for number, left_out in enumerate(is_left_out) if not left_out]
            if not fitted:
                continue
            rows = np.concatenate([vectors[number] for number in fitted])
            rights = [place in asked[n].target.right for n in fitted for place in range(len(asked[n].options))]
            wanted = np.where(rights, 1.0, -1.0)
            square = rows.T @ rows + _RIDGE * np.eye(rows.shape[1])
            weights = np.linalg.solve(square, rows.T @ (wanted - wanted.mean()))
            left = {asked[n].target.key: vectors[n] @ weights for n, is_left in enumerate(is_left_out) if is_left}
            found |= _choose([item for item in asked if item.target.key in left], lambda i: list(left[i.target.key]))  # noqa: B023  called at once
    return found


def _warnings(
    suite: Suite, rows: Mapping[str, Figures], controls: Sequence[str], table: PublishedTable | None
) -> list[str]:
    """Say which control is above chance, and which comes near the model, people or the best published model."""
    name = suite.columns[0]
    chance = rows[CHANCE][name].value
    # The tasks of an item share their right place, which one place chosen in all of them meets at once.
    joint = max(rows[CHANCE][task].value for task in suite.joint.get(name, (name,)))
    warnings = [
        f"{control} scores {rows[control][name]} in {name}, above chance ({level:.1f}): it sees no scene"
        for control in controls
        if rows[control][name].low > (level := joint if control == POSITION else chance)
        and not control.startswith(("pictures", "scene in words"))
    ]
    limits = {row: (rows[row][name].value, rows[row][name].low) for row in (MODEL, HUMAN) if row in rows}
    if not limits and (best := _best_published(table, name)):
        limits[f"the best published model, {best[0]}"] = best[1], best[1] - NEAR_POINTS
    for row, (value, low) in limits.items():
        near = [control for control in controls if rows[control][name].value >= low]
        warnings += [
            f"{control} comes near {row} ({value:.1f} in {name}): it is no evidence of sight" for control in near
        ]
    if (people := rows.get(HUMAN)) and people[name].count < min(50, rows[CHANCE][name].count):
        warnings.append(f"{HUMAN} answered {count_of(people[name].count, 'question')}: ask for 50 or more")
    return warnings


def published_table(suite: Suite, items: int) -> PublishedTable | None:
    """Return the paper's table of a set with this number of items, or else its main one."""
    published = published_results(suite)
    if published is None:
        return None
    return next((table for table in published.tables if f"{items:,} items" in table.source), published.table())


def _best_published(table: PublishedTable | None, column: str) -> tuple[str, float] | None:
    if table is None or column not in table.columns:
        return None
    place = table.columns.index(column)
    models = {
        row: values[place] for row, values in table.rows.items() if not row.startswith(("Human", "blind", "Random"))
    }
    return max(models.items(), key=lambda pair: pair[1])
