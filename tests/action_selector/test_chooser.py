"""The choice alone: standing candidates and their evidence in, a chosen one or none out."""

from dataclasses import replace
from typing import Any

import pytest

from action_selector.candidates import Candidate
from action_selector.choose.candidate_scoring import ScoringEvidence
from action_selector.choose.chooser import ChoiceCase, Chooser, DecisionBuilder
from action_selector.observation import Observation
from action_selector.selector_config import SelectorConfig, WhenUnsure
from action_selector.vetoes import Vetoed
from norm_core.engines.reply import Scores
from norm_core.engines.request_context import Deadline
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.records.decision import Norm, Veto
from norm_core.records.outcome import Outcome
from norm_core.runtime.time import ReplayClock
from tests.action_selector.questions import BEST_EFFORT, NOW_NS, request

PUDDLE, HUM = "Mop up the puddle.", "Hum a tune."
OFF = Vetoed(veto=Veto.OFF_VANTAGE, reason="it cannot be done from here, now")


def case(*actions: str, task: str = "", norms: dict[int, tuple[Norm, ...]] | None = None, **fields: Any) -> ChoiceCase:
    """A choice among actions in the scene of a puddle."""
    candidates = [
        Candidate(index=index, action=action, same_as=index, norms=(norms or {}).get(index, ()))
        for index, action in enumerate(actions)
    ]
    plain: dict[str, Any] = {
        "request": replace(request(*actions), task=task),
        "observation": Observation(),
        "candidates": tuple(candidates),
        "evidence": ScoringEvidence(scene="There is a puddle on the floor."),
        "read": None,
        "prefix": None,
        "deadline": Deadline(ReplayClock(NOW_NS)),
    }
    return ChoiceCase(**plain | fields)


def choose(sentences: SentenceEncoder, choice_case: ChoiceCase, config: SelectorConfig = BEST_EFFORT, **by: Any) -> Any:
    vetoed = by.pop("vetoed", {})
    return Chooser(sentences, config, by.pop("engine", None)).choose(choice_case, vetoed, **by)


def test_vetoed_candidates_get_no_probability(sentences: SentenceEncoder) -> None:
    builder: DecisionBuilder = choose(sentences, case(PUDDLE, HUM, ""), vetoed={0: OFF})
    assert (builder.chosen, builder.probabilities) == (1, {1: 1.0, 2: 0.0})
    assert builder.sensible == (1,)
    none = choose(sentences, case(PUDDLE, HUM, ""), vetoed={0: OFF, 1: OFF})
    assert (none.chosen, none.sensible) == (2, (2,))
    nothing = choose(sentences, case(PUDDLE), vetoed={0: OFF})
    assert (nothing.outcome, nothing.chosen, nothing.probabilities) == (Outcome.ABSTAINED, None, {})


def test_policy_decides_where_several_candidates_could_be_right(sentences: SentenceEncoder) -> None:
    wide = SelectorConfig(coverage=1.0)
    builder = choose(sentences, case(PUDDLE, HUM), wide)
    assert (builder.outcome, builder.chosen) == (Outcome.ABSTAINED, None)
    assert builder.explanation.startswith("Ask a person")
    assert sum(builder.probabilities.values()) == pytest.approx(1)
    best = choose(sentences, case(PUDDLE, HUM), wide.model_copy(update={"when_unsure": WhenUnsure.BEST_EFFORT}))
    assert best.chosen == 0
    stated = case(PUDDLE, HUM, norms={0: (Norm.POLITENESS,), 1: (Norm.SAFETY,)})
    preferred = choose(sentences, stated, wide)
    assert (preferred.chosen, preferred.trade_off) == (1, "safety before politeness")


def test_failed_model_leaves_no_choice(sentences: SentenceEncoder) -> None:
    failed = Scores(outcome=Outcome.TIMED_OUT, reason="too late")
    builder = choose(sentences, case(HUM, PUDDLE), failed=failed)
    assert (builder.outcome, builder.chosen, builder.probabilities) == (Outcome.TIMED_OUT, None, {})
    ranked = f"By likeness alone: “{PUDDLE}”, “{HUM}”."
    assert builder.explanation == f"No model answered (too late), so nothing is chosen. {ranked}"
