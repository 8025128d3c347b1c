"""What makes a suite of your own from its questions: multiple choice, for the robot's steps and a model alone."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path

from action_selector.request_limits import find_repeat
from norm_core.engines.options import OPTION_LETTERS as LETTERS
from norm_core.records.decision import Viewpoint
from norm_core.records.episode import Query
from norm_core.records.record import record
from scoring.figures import Figures, estimate_share
from sim_replays.items.clip import list_shots_by_second
from sim_replays.items.run_config import RunConfig, RunItem, RunItems
from sim_replays.items.target import Predictions, SuiteError, Target, find_first_pick, read_predictions
from sim_replays.suites.controls import score_uniform_choice
from sim_replays.suites.suite import KnownAnswer, Suite

TASK = "action"
SETTING = "given"
ACCURACY = "accuracy"

_TOLERANCE_POINTS = 0.05  # The figures of a known answer are stated to a tenth.

__all__ = [
    "Figures",
    "KnownAnswer",
    "Predictions",
    "Question",
    "Target",
    "check_known_answer",
    "estimate_share",
    "find_first_pick",
    "make_suite",
    "score_accuracy",
]


@record
class Question:
    """One question with its options; `right` is the index of the right one, and `group` its picture, video or talk.

    `scene` and `pictures` (JPEGs, one a second) show the situation; `by` are groups of figures.
    """

    id: str
    ask: str
    options: Sequence[str]
    right: int
    group: str = ""
    scene: str = ""
    pictures: Sequence[Path] = ()
    by: Mapping[str, str] = field(default_factory=dict)


def score_accuracy(targets: Sequence[Target], predictions: Predictions) -> Figures:
    """Compute the share of right answers. A question without an answer counts as wrong."""
    hits = [float(find_first_pick(target, predictions) in target.right) for target in targets]
    return {ACCURACY: estimate_share(hits, [target.group for target in targets])}


def make_suite(
    name: str,
    read: Callable[[Path], Iterable[Question]],
    *,
    score: Callable[[Sequence[Target], Predictions], Figures] = score_accuracy,
    columns: tuple[str, ...] = (ACCURACY,),
    known_answer: KnownAnswer | None = None,
) -> Suite:
    """Make a suite of the questions that `read` finds in a path."""

    def make_items(run_config: RunConfig) -> RunItems:
        data = Path(run_config.data)
        questions = list(read(data))
        files = [data] if data.is_file() else [path for path in sorted(data.rglob("*")) if path.is_file()]
        return RunItems(
            episodes=tuple(_make_item(question, is_bare=run_config.bare) for question in questions),
            targets=tuple(_make_targets(questions)),
            files=tuple(files),
        )

    return Suite(
        name=name,
        tasks=(TASK,),
        columns=columns,
        settings=(SETTING,),
        bare_settings=(SETTING,),
        read_targets=lambda path, _: _make_targets(list(read(path))),
        make_items=make_items,
        compute_figures=score,
        controls={"uniform": score_uniform_choice},
        known_answer=known_answer,
    )


def check_known_answer(suite: Suite) -> None:
    """Score the known answer of a suite."""
    known_answer = suite.known_answer
    if known_answer is None:
        return
    targets = suite.read_targets(known_answer.data, "default")
    figures = suite.compute_figures(targets, read_predictions(known_answer.predictions, targets).predictions)
    for name, stated in known_answer.figures.items():
        value = figures[name].value if name in figures else float("nan")
        if not abs(value - stated) < _TOLERANCE_POINTS:
            raise SuiteError(
                f"{suite.name}: its known answer scores {name} {value:.1f} and should score {stated:.1f}; "
                "correct the scorer or the known answer"
            )


def _make_targets(questions: Sequence[Question]) -> list[Target]:
    """Make the targets of questions."""
    ids = [question.id for question in questions]
    if len(set(ids)) < len(ids):
        repeated_id = next(name for name in ids if ids.count(name) > 1)
        raise SuiteError(f"{repeated_id}: the id appears twice in the data; give each question one of its own")
    for question in questions:
        if indices := find_repeat(question.options):
            letters = " and ".join(LETTERS[index] for index in indices)
            raise SuiteError(f"{question.id}: the options {letters} are the same; change or remove one")
    return [
        Target(
            id=question.id,
            task=TASK,
            group=question.group or question.id,
            options=len(question.options),
            right=(question.right,),
            by=question.by,
        )
        for question in questions
    ]


def _make_item(question: Question, *, is_bare: bool) -> RunItem:
    """Make the episode of a question; `is_bare` puts the scene and the options into the text of its query."""
    options = tuple(question.options)
    if not 0 <= question.right < len(options) <= len(LETTERS):
        raise SuiteError(f"{question.id}: there is no option {question.right} among {len(options)}, from 0; correct it")
    lettered = [f"({letter}) {option}" for letter, option in zip(LETTERS, options, strict=False)]
    lines = filter(None, (question.scene, question.ask, *lettered, "Answer with the letter."))
    query = Query(
        stamp_ns=0,
        query_id=question.id,
        episode_id=question.id,
        task=TASK,
        question="\n".join(lines) if is_bare else question.ask,
        style="letter" if is_bare else "",
        options=options,
        others_given=not question.pictures,
        viewpoint_given=bool(question.scene),
        viewpoint=Viewpoint(description=question.scene),
    )
    shots = list_shots_by_second(list(question.pictures))
    return RunItem(id=question.id, queries=(query,), shots=shots, orders={question.id: tuple(range(len(options)))})
