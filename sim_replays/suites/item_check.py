"""A check of a set of items: what scores without seeing the scene, beside people, a model and the published rows."""

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
from sim_replays.items.dataset_files import read_entries
from sim_replays.items.run_config import RunConfig
from sim_replays.items.target import Key, Prediction, Predictions, SuiteError, Target, read_predictions
from sim_replays.suites import hsri_segments, videonorms
from sim_replays.suites.controls import choose_best_position, score_uniform_choice
from sim_replays.suites.leaks import holds_right_option
from sim_replays.suites.report import PublishedTable, load_published_tables
from sim_replays.suites.suite import SUITE_FILE, Suite

# Rows of the table.
CHANCE = "chance"
POSITION = "position"
MODEL = "model"
HUMAN = "people"

NEAR_POINTS = 5.0  # A control this close to a figure without an interval comes near it.
_MIN_HUMAN_QUESTIONS = 50
_DEFAULT_QUESTION = "What is the most fitting thing to do next in this situation?"
_SUITE_BY_FILE = {hsri_segments.FILE: "hsri", videonorms.FILE: "videonorms"}
_SUITE_BY_KEY = {"mcq_items": "egogapbench", "behaviors": "egonormia"}
_SETTINGS_IN_WORDS = {"pipeline", "captions", "given"}  # that give the scene as text

# Of the classifier of wording: the parts of a cross-validation, and the strength of its ridge regression.
_FOLDS = 10
_RIDGE = 1.0


@record
class AskedItem:
    """A question with its options in the dataset's own order, and its scene in words."""

    target: Target
    options: tuple[str, ...]
    question: str = ""
    scene: str = ""


@record
class ItemCheck:
    """The figures of each control, of people and of a model, and the faults of the set."""

    suite: str
    items: int
    rows: Mapping[str, Figures]
    published: PublishedTable | None
    warnings: tuple[str, ...]


def name_suite(path: Path) -> str:
    """Return the name of the suite to which a file or folder of items belongs."""
    if (path / SUITE_FILE).is_file():
        return str(path)
    files = [path] if path.is_file() else [*sorted(path.glob("*.jsonl")), *sorted(path.glob("*.json"))]
    for file in files:
        if file.name in _SUITE_BY_FILE:
            return _SUITE_BY_FILE[file.name]
        _, entry = next(read_entries(file), ("", {}))
        for key, suite_name in _SUITE_BY_KEY.items():
            if key in entry:
                return suite_name
    raise SuiteError(f"{path}: holds no items of a suite that is known; name the suite with --suite, or another path")


def read_items(suite: Suite, data: Path) -> list[AskedItem]:
    """Read each question with its options, and its scene in words if the suite gives one."""
    items: dict[Key, AskedItem] = {}
    blind_setting = "blind" if "blind" in suite.settings else suite.settings[0]
    for setting in (blind_setting, *(name for name in suite.settings if name in _SETTINGS_IN_WORDS)):
        run = suite.make_items(RunConfig(suite=suite.name, data=str(data), setting=setting))
        targets = {target.key: target for target in run.targets if target.options}
        for episode in run.episodes:
            for query in episode.queries:
                key = episode.item or episode.id, query.task
                if key not in targets:
                    continue
                options = query.justifications or query.options
                order = episode.orders[query.query_id]
                earlier_scene = items[key].scene if key in items else ""
                items[key] = AskedItem(
                    target=targets[key],
                    options=tuple(options[order.index(index)] for index in range(len(order))),
                    question=query.question,
                    scene=query.viewpoint.description or earlier_scene,
                )
    if not items:
        raise SuiteError(f"{data}: asks no question with options; name data that does")
    return list(items.values())


def check_items(
    suite: Suite,
    items: Sequence[AskedItem],
    encoder: SentenceVectors,
    blind_model: Engine,
    *,
    answers: Mapping[str, Path | None],
    progress: Callable[[str], None],
) -> ItemCheck:
    """Score each control, and compare it with the answers of HUMAN and MODEL, which are files of predictions."""
    targets = [item.target for item in items]
    repeats = Counter((item.target.group, item.target.task, option) for item in items for option in item.options)
    controls: dict[str, Callable[[], Predictions]] = {
        POSITION: lambda: choose_best_position(targets),
        "longest option": lambda: _choose_highest(items, lambda item: list(map(len, item.options))),
        "least repeated option": lambda: _choose_highest(
            items, lambda item: [-repeats[item.target.group, item.target.task, option] for option in item.options]
        ),
        "options alone": lambda: _choose_by_wording(items, encoder),
        "blind: encoder": lambda: _ask_without_scene(blind_model, items),
    }
    rows: dict[str, Figures] = {CHANCE: score_uniform_choice(suite, targets)}
    for name, choose in controls.items():
        progress(name)
        if chosen := choose():  # The classifier chooses nothing if it has nothing to be fitted on.
            rows[name] = suite.compute_figures(targets, chosen)
    control_names = [name for name in rows if name != CHANCE]
    for name, path in answers.items():
        if path:
            predictions = read_predictions(path, targets).predictions
            # A person may answer a part of the questions.
            asked = [target for target in targets if name == MODEL or target.key in predictions]
            rows[name] = suite.compute_figures(asked, predictions)
    count = len({target.id for target in targets})
    tables = load_published_tables(suite)
    main_table = next(iter(tables), None)
    table = next((table for table in tables if f"{count:,} items" in table.source), main_table)
    warnings = [*_list_warnings(suite, rows, control_names, table)]
    leaks = [
        item.target.id
        for item in items
        if holds_right_option(f"{item.question} {item.scene}", item.options, item.target.right)
    ]
    if leaks:
        warnings.append(f"the right option stands in the scene or question of {leaks[0]} ({len(leaks)} in all)")
    return ItemCheck(suite=suite.name, items=count, rows=rows, published=table, warnings=tuple(warnings))


def _ask_without_scene(model: Engine, items: Sequence[AskedItem]) -> Predictions:
    """Let a model score the options of each question alone, in a drawn order."""
    predictions = {}
    for item in items:
        order = _seed_draw(item).sample(range(len(item.options)), len(item.options))
        options = tuple(item.options[index] or "none of these" for index in order)
        question = Question(parts=(Text(text=item.question or _DEFAULT_QUESTION),), options=options, step="check")
        [scores] = model.ask_many(Prompt(version="check_items-1", parts=()), [question])
        chosen = () if scores.best is None else (order[scores.best],)
        predictions[item.target.key] = _make_prediction(item, chosen, scores.outcome)
    return predictions


def _choose_highest(items: Sequence[AskedItem], score: Callable[[AskedItem], Sequence[float]]) -> Predictions:
    """Choose the option with the highest score; of several, one that the id of the question draws."""
    predictions = {}
    for item in items:
        scores = score(item)
        highest = [index for index, value in enumerate(scores) if value == max(scores)]
        predictions[item.target.key] = _make_prediction(item, (_seed_draw(item).choice(highest),))
    return predictions


def _seed_draw(item: AskedItem) -> random.Random:
    return random.Random(":".join(item.target.key))


def _make_prediction(item: AskedItem, chosen: tuple[int, ...], outcome: Outcome = Outcome.ANSWERED) -> Prediction:
    return Prediction(id=item.target.id, task=item.target.task, outcome=outcome, chosen=chosen)


def _choose_by_wording(items: Sequence[AskedItem], encoder: SentenceVectors) -> Predictions:
    """Choose by a linear classifier of the options' wording, which is fitted on other pictures or videos alone."""
    scores: dict[Key, Sequence[float]] = {}
    vectors = [np.asarray(encoder.encode(item.options), np.float64) for item in items]
    vectors = [of_item - of_item.mean(axis=0) for of_item in vectors]
    groups = sorted({item.target.group for item in items})
    shuffled = random.Random(0).sample(groups, len(groups))
    fold_by_group = {group: index % _FOLDS for index, group in enumerate(shuffled)}
    for task in {item.target.task for item in items}:
        task_indices = [index for index, item in enumerate(items) if item.target.task == task]
        for fold in range(min(_FOLDS, len(groups))):
            fitted = [index for index in task_indices if fold_by_group[items[index].target.group] != fold]
            if not fitted:
                continue
            features = np.concatenate([vectors[index] for index in fitted])
            is_right = [
                option in items[index].target.right for index in fitted for option in range(len(vectors[index]))
            ]
            signs = np.where(is_right, 1.0, -1.0)
            square = features.T @ features + _RIDGE * np.eye(features.shape[1])
            weights = np.linalg.solve(square, features.T @ (signs - signs.mean()))
            for index in {*task_indices} - {*fitted}:
                scores[items[index].target.key] = list(vectors[index] @ weights)
    return _choose_highest([item for item in items if item.target.key in scores], lambda item: scores[item.target.key])


def _list_warnings(
    suite: Suite, rows: Mapping[str, Figures], controls: Sequence[str], table: PublishedTable | None
) -> Iterator[str]:
    """Yield a warning for each control that is above chance, or near the model, people or the best published model."""
    name = suite.columns[0]
    figures = {row: row_figures[name] for row, row_figures in rows.items()}
    # The tasks of an item share their right index, which one position chosen in all of them meets at once.
    position_chance = max(rows[CHANCE][task].value for task in suite.joint_tasks.get(name, (name,)))
    for control in controls:
        chance = position_chance if control == POSITION else figures[CHANCE].value
        if figures[control].low > chance:
            yield f"{control} scores {figures[control]} in {name}, above chance ({chance:.1f}): it sees no scene"
    limits = {row: (figures[row].value, figures[row].low) for row in (MODEL, HUMAN) if row in rows}
    if not limits and table and name in table.columns:
        column = table.columns.index(name)
        models = {row: cells[column] for row, cells in table.rows.items() if not row.startswith(("Human", "Random"))}
        best = max(models, key=models.__getitem__)
        limits = {f"the best published model, {best}": (models[best], models[best] - NEAR_POINTS)}
    for row, (value, low) in limits.items():
        for control in controls:
            if figures[control].value >= low:
                yield f"{control} comes near {row} ({value:.1f} in {name}): such a score is no evidence of sight"
    if HUMAN in figures and figures[HUMAN].count < min(_MIN_HUMAN_QUESTIONS, figures[CHANCE].count):
        answered = count_of(figures[HUMAN].count, "question")
        yield f"{HUMAN} answered {answered}: ask for {_MIN_HUMAN_QUESTIONS} or more"
