"""Check a set of items: what scores without seeing the scene, beside people, a model and the published rows."""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from norm_core.engines.engine import Engine
from norm_core.engines.prompt import Prompt, Question, Text
from norm_core.engines.sentences.sentence_encoder import SentenceVectors
from norm_core.records.outcome import Outcome
from norm_core.records.record import record
from norm_core.runtime.wording import count_of
from scoring.figures import Figures
from sim_replays.items.dataset_files import entries
from sim_replays.items.run_config import RunConfig
from sim_replays.items.target import Key, Prediction, Predictions, SuiteError, Target, read_predictions
from sim_replays.suites import hsri_segments, videonorms
from sim_replays.suites.controls import best_constant, uniform
from sim_replays.suites.leaks import holds_right
from sim_replays.suites.report import PublishedTable, published_results
from sim_replays.suites.suite import FILE as SUITE_FILE
from sim_replays.suites.suite import Suite

CHANCE, POSITION, MODEL, HUMAN = "chance", "position", "model", "people"
NEAR_POINTS = 5.0  # within which a control comes near a figure without an interval
_ASK = "What is the most fitting thing to do next in this situation?"
_FOLDS, _RIDGE = 10, 1.0
_SUITE_BY_FILE = {hsri_segments.FILE: "hsri", videonorms.FILE: "videonorms"}
_SUITE_BY_KEY = {"mcq_items": "egogapbench", "behaviors": "egonormia"}
_IN_WORDS = {"pipeline", "captions", "given"}


@record
class AskedItem:
    """A question with its options in the dataset's own order, and its scene in words."""

    target: Target
    options: tuple[str, ...]
    ask: str = ""
    scene: str = ""


@record
class ItemCheck:
    """The figures of each control, of people and of a model, and what is wrong with the set."""

    suite: str
    items: int
    rows: Mapping[str, Figures]
    published: PublishedTable | None
    warnings: tuple[str, ...]


def name_suite(path: Path) -> str:
    """Name the suite that a file or folder of items belongs to. Raises SuiteError where none is recognized."""
    if (path / SUITE_FILE).is_file():
        return str(path)
    files = [path] if path.is_file() else [*sorted(path.glob("*.jsonl")), *sorted(path.glob("*.json"))]
    for file in files:
        _, entry = next(entries(file), ("", {}))
        names = [_SUITE_BY_FILE.get(file.name), *(name for key, name in _SUITE_BY_KEY.items() if key in entry)]
        if suite_name := next(filter(None, names), None):
            return suite_name
    raise SuiteError(f"{path}: holds no items of a suite that is known; name the suite with --suite, or another path")


def read_items(suite: Suite, data: Path) -> list[AskedItem]:
    """Read each question with its options, and its scene in words where the suite gives one."""
    read: dict[Key, AskedItem] = {}
    blind = "blind" if "blind" in suite.settings else suite.settings[0]
    for setting in (blind, *(name for name in suite.settings if name in _IN_WORDS)):
        run = suite.items(RunConfig(suite=suite.name, data=str(data), setting=setting))
        targets = {target.key: target for target in run.targets if target.options}
        asked = [(item, query, (item.item or item.id, query.task)) for item in run.asked for query in item.queries]
        for item, query, key in asked:
            if key in targets:
                offered, order = query.justifications or query.options, item.orders[query.query_id]
                read[key] = AskedItem(
                    target=targets[key],
                    options=tuple(offered[order.index(place)] for place in range(len(order))),
                    ask=query.question,
                    scene=query.viewpoint.description or (read[key].scene if key in read else ""),
                )
    if not read:
        raise SuiteError(f"{data}: asks no question with options; name data that does")
    return list(read.values())


def check_items(
    suite: Suite,
    items: Sequence[AskedItem],
    encoder: SentenceVectors,
    blind: Engine,
    *,
    answers: Mapping[str, Path | None],
    progress: Callable[[str], None],
) -> ItemCheck:
    """Score each control, and compare them with the answers of HUMAN and MODEL, which are files of predictions."""
    targets = [item.target for item in items]
    repeats = Counter((item.target.group, item.target.task, option) for item in items for option in item.options)
    choices: dict[str, Callable[[], Predictions]] = {
        POSITION: lambda: best_constant(targets),
        "longest option": lambda: _choose(items, lambda item: list(map(len, item.options))),
        "least repeated option": lambda: _choose(
            items, lambda item: [-repeats[item.target.group, item.target.task, option] for option in item.options]
        ),
        "options alone": lambda: _by_wording(items, encoder),
        "blind: encoder": lambda: _ask_blind(blind, items),
    }
    rows: dict[str, Figures] = {CHANCE: uniform(suite, targets)}
    for name, choose in choices.items():
        progress(name)
        if chosen := choose():  # none where there is nothing to fit on
            rows[name] = suite.figures(targets, chosen)
    controls = [name for name in rows if name != CHANCE]
    for name, path in answers.items():
        if path:
            predictions = read_predictions(path, targets).predictions  # a person may answer a part
            rows[name] = suite.figures([t for t in targets if name == MODEL or t.key in predictions], predictions)
    count, tables = len({target.id for target in targets}), published_results(suite)
    table = next((table for table in tables if f"{count:,} items" in table.source), next(iter(tables), None))
    warnings = [*_warnings(suite, rows, controls, table)]
    leaks = [
        item.target.id for item in items if holds_right(f"{item.ask} {item.scene}", item.options, item.target.right)
    ]
    if leaks:
        warnings.append(f"the right option stands in the scene or question of {leaks[0]} ({len(leaks)} in all)")
    return ItemCheck(suite=suite.name, items=count, rows=rows, published=table, warnings=tuple(warnings))


def _ask_blind(model: Engine, items: Sequence[AskedItem]) -> Predictions:
    """Let a model score the options of each question alone, in a drawn order."""
    replies = {}
    for item in items:
        order = _draw(item).sample(range(len(item.options)), len(item.options))
        options = tuple(item.options[place] or "none of these" for place in order)
        question = Question(parts=(Text(text=item.ask or _ASK),), options=options, step="check")
        [scores] = model.ask_many(Prompt(version="check_items-1", parts=()), [question])
        picked = () if scores.best is None else (order[scores.best],)
        replies[item.target.key] = _prediction(item, picked, scores.outcome)
    return replies


def _choose(items: Sequence[AskedItem], score: Callable[[AskedItem], Sequence[float]]) -> Predictions:
    """Choose the option with the highest score; of several, one that the question's id draws."""
    scored = [(item, score(item)) for item in items]
    best = [(item, [at for at, value in enumerate(values) if value == max(values)]) for item, values in scored]
    return {item.target.key: _prediction(item, (_draw(item).choice(places),)) for item, places in best}


def _draw(item: AskedItem) -> random.Random:
    return random.Random(":".join(item.target.key))


def _prediction(item: AskedItem, chosen: tuple[int, ...], outcome: Outcome = Outcome.ANSWERED) -> Prediction:
    return Prediction(id=item.target.id, task=item.target.task, outcome=outcome, chosen=chosen)


def _by_wording(items: Sequence[AskedItem], encoder: SentenceVectors) -> Predictions:
    """Choose by a linear classifier of the options' wording, fitted on other pictures or videos alone."""
    scores: dict[Key, Sequence[float]] = {}
    vectors = [np.asarray(encoder.encode(item.options), np.float64) for item in items]
    vectors = [rows - rows.mean(axis=0) for rows in vectors]
    groups = sorted({item.target.group for item in items})
    fold_of = {group: place % _FOLDS for place, group in enumerate(random.Random(0).sample(groups, len(groups)))}
    for task in {item.target.task for item in items}:
        for fold in range(min(_FOLDS, len(groups))):
            of_task = [number for number, item in enumerate(items) if item.target.task == task]
            fitted = [number for number in of_task if fold_of[items[number].target.group] != fold]
            if not fitted:
                continue
            rows = np.concatenate([vectors[number] for number in fitted])
            rights = [at in items[number].target.right for number in fitted for at in range(len(vectors[number]))]
            wanted = np.where(rights, 1.0, -1.0)
            square = rows.T @ rows + _RIDGE * np.eye(rows.shape[1])
            weights = np.linalg.solve(square, rows.T @ (wanted - wanted.mean()))
            scores |= {items[n].target.key: list(vectors[n] @ weights) for n in {*of_task} - {*fitted}}
    return _choose([item for item in items if item.target.key in scores], lambda item: scores[item.target.key])


def _warnings(
    suite: Suite, rows: Mapping[str, Figures], controls: Sequence[str], table: PublishedTable | None
) -> Iterator[str]:
    """Say which control is above chance, and which comes near the model, people or the best published model."""
    name = suite.columns[0]
    figures = {row: of_row[name] for row, of_row in rows.items()}
    # The tasks of an item share their right place, which one place chosen in all of them meets at once.
    joint = max(rows[CHANCE][task].value for task in suite.joint.get(name, (name,)))
    for control in controls:
        level = joint if control == POSITION else figures[CHANCE].value
        if figures[control].low > level:
            yield f"{control} scores {figures[control]} in {name}, above chance ({level:.1f}): it sees no scene"
    limits = {row: (figures[row].value, figures[row].low) for row in (MODEL, HUMAN) if row in rows}
    if not limits and table and name in table.columns:
        published = {row: values[table.columns.index(name)] for row, values in table.rows.items()}
        models = {row: value for row, value in published.items() if not row.startswith(("Human", "Random"))}
        best = max(models, key=models.__getitem__)
        limits = {f"the best published model, {best}": (models[best], models[best] - NEAR_POINTS)}
    for row, (value, low) in limits.items():
        for control in controls:
            if figures[control].value >= low:
                yield f"{control} comes near {row} ({value:.1f} in {name}): such a score is no evidence of sight"
    if HUMAN in figures and figures[HUMAN].count < min(50, figures[CHANCE].count):
        yield f"{HUMAN} answered {count_of(figures[HUMAN].count, 'question')}: ask for 50 or more"
