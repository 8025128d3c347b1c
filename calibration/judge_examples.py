"""The labelled talks as the judge's first question: the prompt of a live unit, and the option that the label is.

Talks have words and an order, and no times. Each turn gets the time that its words take at a usual rate.
"""

from collections.abc import Iterator, Sequence

from calibration.judge_fit import CLASSES
from calibration.labelled_talks import LabelledTurn
from norm_core.records.record import record
from norm_core.records.speech import Speaker
from norm_core.runtime.time import s_to_ns
from norm_monitor.context.turns import Turn
from norm_monitor.context.wording import word_count
from norm_monitor.judge.deployment_context import DeploymentContext
from norm_monitor.judge.excerpt import Excerpt
from norm_monitor.judge.judge import PromptPlan, plan
from norm_monitor.units.unit import Unit

_WORD_NS, _GAP_NS = s_to_ns(0.35), s_to_ns(0.6)
# A live window shows about so many turns before the one that is judged.
_TURNS_BEFORE = 6


@record
class JudgeExample:
    """The judge's questions about a robot's turn, and the place of the label among the options of the first."""

    talk: int
    questions: PromptPlan
    answer: int


def judge_examples(talks: Sequence[Sequence[LabelledTurn]]) -> Iterator[JudgeExample]:
    """Yield each of the robot's turns amid the turns before it and the answer to it."""
    for number, talk in enumerate(talks):
        turns = _timed(talk)
        for at, labelled in enumerate(talk):
            if labelled.is_robot:
                shown = turns[max(0, at - _TURNS_BEFORE) : at + 2]
                yield JudgeExample(
                    talk=number,
                    questions=plan(_excerpt(shown, turns[at]), 0, DeploymentContext.UNSPECIFIED),
                    answer=CLASSES.index(labelled.polarity),
                )


def _excerpt(shown: tuple[Turn, ...], judged: Turn) -> Excerpt:
    return Excerpt(
        turns=shown,
        sightings=(),
        frames=(),
        known_until_ns=shown[-1].end_ns,
        start_ns=judged.start_ns,
        end_ns=judged.end_ns,
        unit=Unit.of_turn(judged),
    )


def _timed(talk: Sequence[LabelledTurn]) -> tuple[Turn, ...]:
    turns: list[Turn] = []
    for number, labelled in enumerate(talk):
        start_ns = turns[-1].end_ns + _GAP_NS if turns else 0
        end_ns = start_ns + _WORD_NS * max(1, word_count(labelled.text))
        turns.append(
            Turn(
                speaker=Speaker.ROBOT if labelled.is_robot else Speaker.USER,
                start_ns=start_ns,
                end_ns=end_ns,
                text=labelled.text,
                turn_id=f"turn_{number}",
                spans=((start_ns, end_ns),),
            )
        )
    return tuple(turns)
