"""Make a suite of one's own from its questions: multiple choice, asked of the robot's steps and of a model alone."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path

from action_selector.request_limits import find_repeat
from norm_core.engines.options import OPTION_LETTERS as LETTERS
from norm_core.records.decision import Viewpoint
from norm_core.records.episode import Query
from norm_core.records.record import record
from scoring.figures import Figures, estimate_share
from sim_replays.items.clip import one_a_second
from sim_replays.items.run_config import RunConfig, RunItem, RunItems
from sim_replays.items.target import Predictions, SuiteError, Target, first_pick, read_predictions
from sim_replays.suites.controls import uniform
from sim_replays.suites.suite import KnownAnswer, Suite

TASK, SETTING, ACCURACY = "action", "given", "accuracy"

__all__ = [
    "Figures",
    "KnownAnswer",
    "Predictions",
    "Question",
    "Target",
    "accuracy",
    "check_known_answer",
    "estimate_share",
    "first_pick",
    "multiple_choice",
]


@record
class Question:
    """One question with its options and the place of the right one. `group` is its picture, video or talk.

    `scene` and `pictures` (JPEGs, one a second) are what is known of the situation; `by` are groups of figures.
    """

    id: str
    ask: str
    options: Sequence[str]
    right: int
    group: str = ""
    scene: str = ""
    pictures: Sequence[Path] = ()
    by: Mapping[str, str] = field(default_factory=dict)


def accuracy(targets: Sequence[Target], predictions: Predictions) -> Figures:
    """Score the share of right answers. A question without an answer counts as wrong."""
    hits = [float(first_pick(target, predictions) in target.right) for target in targets]
    return {ACCURACY: estimate_share(hits, [target.group for target in targets])}


def multiple_choice(
    name: str,
    read: Callable[[Path], Iterable[Question]],
    *,
    figures: Callable[[Sequence[Target], Predictions], Figures] = accuracy,
    columns: tuple[str, ...] = (ACCURACY,),
    known: KnownAnswer | None = None,
) -> Suite:
    """Make a suite of the questions that `read` finds in a path."""

    def items(asking: RunConfig) -> RunItems:
        data = Path(asking.data)
        questions = list(read(data))
        files = [data] if data.is_file() else [path for path in sorted(data.rglob("*")) if path.is_file()]
        return RunItems(
            asked=tuple(_item(question, bare=asking.bare) for question in questions),
            targets=tuple(_targets(questions)),
            files=tuple(files),
        )

    return Suite(
        name=name,
        tasks=(TASK,),
        columns=columns,
        settings=(SETTING,),
        bare_settings=(SETTING,),
        read=lambda path, _: _targets(list(read(path))),
        items=items,
        figures=figures,
        controls={"uniform": uniform},
        known=known,
    )


def check_known_answer(suite: Suite) -> None:
    """Score a suite's known answer. Raises SuiteError where a figure differs from what it has to be."""
    if suite.known is None:
        return
    targets = suite.read(suite.known.data, "default")
    figures = suite.figures(targets, read_predictions(suite.known.predictions, targets).predictions)
    for name, wanted in suite.known.figures.items():
        value = figures[name].value if name in figures else float("nan")
        if not abs(value - wanted) < 0.05:
            raise SuiteError(
                f"{suite.name}: its known answer scores {name} {value:.1f} and should score {wanted:.1f}; "
                "correct the scorer or the known answer"
            )


def _targets(questions: Sequence[Question]) -> list[Target]:
    ids = [question.id for question in questions]
    if len(set(ids)) < len(ids):
        twice = next(name for name in ids if ids.count(name) > 1)
        raise SuiteError(f"{twice}: the id appears twice in the data; give each question one of its own")
    for question in questions:
        if places := find_repeat(question.options):
            letters = " and ".join(LETTERS[place] for place in places)
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


def _item(question: Question, *, bare: bool) -> RunItem:
    options = tuple(question.options)
    if not 0 <= question.right < len(options) <= len(LETTERS):
        raise SuiteError(f"{question.id}: {question.right} is no place among {len(options)} options; correct it")
    offered = [f"({letter}) {option}" for letter, option in zip(LETTERS, options, strict=False)]
    lines = filter(None, (question.scene, question.ask, *offered, "Answer with the letter."))
    query = Query(
        stamp_ns=0,
        query_id=question.id,
        episode_id=question.id,
        task=TASK,
        question="\n".join(lines) if bare else question.ask,
        style="letter" if bare else "",
        options=options,
        others_given=not question.pictures,
        viewpoint_given=bool(question.scene),
        viewpoint=Viewpoint(description=question.scene),
    )
    shots = one_a_second(list(question.pictures))
    return RunItem(id=question.id, queries=(query,), shots=shots, orders={question.id: tuple(range(len(options)))})
