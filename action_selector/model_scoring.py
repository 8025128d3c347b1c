"""Ask a model about the candidates: which is right, possible and sensible."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from action_selector import prompts
from norm_core.engines.engine import Engine
from norm_core.engines.prompt import Prompt, Question
from norm_core.engines.reply import Scores
from norm_core.engines.request_context import Deadline
from norm_core.records.outcome import Outcome
from norm_core.records.record import record


@record
class CandidateScores:
    """Probabilities in the order of the options; empty unless the outcome is ANSWERED."""

    probabilities: tuple[float, ...] = ()
    outcome: Outcome = Outcome.ANSWERED
    reason: str = ""
    scores: Scores | None = None


def score_by_model(
    engine: Engine, prefix: Prompt, question: Question, deadline: Deadline, orders: int
) -> CandidateScores:
    """Score options with a model. Averages over several option orders to cancel position bias.

    The orders are evenly spaced rotations. With as many orders as options, each option takes each position once.
    """
    options = question.options
    distinct = tuple(dict.fromkeys(options))
    count = len(distinct)
    order_count = min(orders, count)
    shifts = [round(order * count / order_count) for order in range(order_count)]
    questions = [replace(question, options=distinct[shift:] + distinct[:shift]) for shift in shifts]
    replies = engine.ask_many(prefix, questions, deadline)
    failed = next((reply for reply in replies if reply.outcome is not Outcome.ANSWERED), None)
    answered = [(shift, reply) for shift, reply in zip(shifts, replies, strict=True) if reply.probabilities]
    # A live request may run out of time after some orders. Those that were answered then suffice.
    is_out_of_time = deadline.deadline_ns is not None and failed is not None and failed.outcome is Outcome.TIMED_OUT
    if failed and not (is_out_of_time and answered):
        return CandidateScores(outcome=failed.outcome, reason=failed.reason, scores=failed)
    mean = np.zeros(count)
    for shift, reply in answered:
        mean += np.roll(np.array(reply.probabilities), shift) / len(answered)
    # Equal options share their probability.
    shares = {option: float(value) / options.count(option) for option, value in zip(distinct, mean, strict=True)}
    return CandidateScores(probabilities=tuple(shares[option] for option in options), scores=replies[0])


def ask_yes_or_no(
    engine: Engine, prefix: Prompt, actions: Mapping[int, str], ask: str, deadline: Deadline
) -> tuple[dict[int, float], Scores | None]:
    """Ask the model for the probability of yes for each action, averaged over both orders.

    Skips actions without an answer; returns also the first reply without an answer.
    """
    questions = [question for action in actions.values() for question in prompts.build_yes_no_questions(action, ask)]
    replies = engine.ask_many(prefix, questions, deadline) if questions else []
    yes: dict[int, float] = {}
    for index, first, second in zip(actions, replies[::2], replies[1::2], strict=True):
        if first.probabilities and second.probabilities:
            yes[index] = (first.probabilities[0] + second.probabilities[1]) / 2
    return yes, next((reply for reply in replies if reply.outcome is not Outcome.ANSWERED), None)
