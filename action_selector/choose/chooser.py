"""Choose one of the remaining candidates, or none: probabilities, calibrated set and reason."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from action_selector import prompts
from action_selector.candidates import Candidate
from action_selector.choose import candidate_scoring, norms
from action_selector.choose.abstain import WhenUnsure, calibrated_set
from action_selector.choose.calibration import SelectorCalibration
from action_selector.choose.candidate_scoring import CandidateScores, ScoringEvidence
from action_selector.choose.decision_builder import DecisionBuilder, explain_uncertainty
from action_selector.choose.linear_scorer import LinearScorer
from action_selector.config import SelectorConfig
from action_selector.observation import Observation
from action_selector.request import Request
from action_selector.retrieve.likeness import SentenceEncoding
from action_selector.veto import vetoes
from action_selector.veto.vetoes import Vetoed
from norm_core.engines.backend import AnsweringModel
from norm_core.engines.prompt import Prompt
from norm_core.engines.request_context import Deadline
from norm_core.records.decision import Norm
from norm_core.records.outcome import Outcome
from norm_core.records.record import record


@record
class ChoiceCase:
    """Everything known about one request when it reaches the choice. `prefix` is None where no model is asked."""

    request: Request
    observation: Observation
    candidates: tuple[Candidate, ...]
    evidence: ScoringEvidence
    prefix: Prompt | None
    deadline: Deadline


class Chooser:
    """Choose with a model if there is one. Otherwise, or if it fails, choose by similarity or fitted weights."""

    def __init__(
        self,
        sentences: SentenceEncoding,
        config: SelectorConfig,
        engine: AnsweringModel | None,
        fitted: LinearScorer | None = None,
        calibration: SelectorCalibration | None = None,
    ) -> None:
        self._sentences, self._config, self._engine, self._fitted = sentences, config, engine, fitted
        self._calibration = calibration

    def choose(self, case: ChoiceCase, vetoed: Mapping[int, Vetoed]) -> DecisionBuilder:
        """Choose among the candidates without a veto, and list those that could also be right."""
        vetoed = {**vetoed, **self._off_vantage(case, vetoed)}
        inferred = norms.infer_norms(self._sentences, [candidate.action for candidate in case.candidates])
        served = {
            candidate.index: candidate.norms or guess
            for candidate, guess in zip(case.candidates, inferred, strict=True)
        }
        builder = DecisionBuilder(candidates=case.candidates, vetoed=vetoed, norms=served)
        standing = [candidate for candidate in case.candidates if candidate.index not in vetoed]
        if not standing:
            return builder
        judged = self._score(case, standing)
        builder = replace(builder, scores=judged.scores, note=judged.reason)
        if judged.outcome is not Outcome.ANSWERED:
            return replace(builder, outcome=judged.outcome, explanation=judged.reason)
        probabilities = {candidate.index: p for candidate, p in zip(standing, judged.probabilities, strict=True)}
        builder = replace(builder, probabilities=probabilities, sensible=self._sensible(case, standing, probabilities))
        # What stands in for a failed model is not what the calibration was fitted on.
        calibration = self._calibration if self._engine is None or judged.scores is not None else None
        coverage = self._config.coverage
        if calibration:
            scaled = calibration.scaling.apply(judged.probabilities)
            builder = replace(builder, probabilities=dict(zip(probabilities, scaled, strict=True)))
            coverage = calibration.mass_for(coverage, sum(p > 0 for p in scaled))
        return self._pick(builder, {candidate.index: candidate.norms for candidate in standing}, coverage)

    def add_justification(self, case: ChoiceCase, builder: DecisionBuilder) -> DecisionBuilder:
        """Add the best justification of the choice. "None of the above" pairs with "none of the above"."""
        reasons = case.request.justifications
        if not reasons or builder.chosen is None:
            return builder
        action = builder.texts[builder.chosen]
        empty = next((place for place, reason in enumerate(reasons) if not reason.strip()), None)
        if not action.strip() and empty is not None:
            return replace(builder, justification=empty)
        evidence = ScoringEvidence(scene=case.evidence.scene, advised=(action,) if action.strip() else ())
        probabilities = candidate_scoring.by_likeness(self._sentences, reasons, evidence)
        if self._engine is not None and case.prefix is not None:
            question = prompts.justification_question(action, reasons)
            by_model = candidate_scoring.by_engine(
                self._engine, case.prefix, question, case.deadline, self._config.orders
            )
            probabilities = by_model.probabilities or probabilities
        best = candidate_scoring.likeliest(dict(enumerate(probabilities)), dict(enumerate(reasons)))
        return replace(builder, justification=best, reason=reasons[best])

    def describe_grounds(self, case: ChoiceCase, builder: DecisionBuilder) -> str:
        """Describe in words what the choice rests on."""
        standing = [
            candidate
            for candidate in case.candidates
            if candidate.index not in builder.vetoed and not candidate.is_none
        ]
        if builder.chosen is None or not builder.texts[builder.chosen].strip():
            return ""
        if len(standing) == 1:
            return "nothing else stands" if builder.vetoed else ""
        if builder.scores is not None and not builder.note:
            return f"the model gives it {builder.probabilities[builder.chosen]:.0%}"
        if self._fitted is not None:
            return "weights fitted on labels prefer it"
        place = [candidate.index for candidate in standing].index(builder.chosen)
        return candidate_scoring.leading_term(
            self._sentences, [candidate.action for candidate in standing], case.evidence, place
        )

    def add_norms(self, case: ChoiceCase, builder: DecisionBuilder) -> DecisionBuilder:
        """Add the norms that a model assigns to the remaining candidates, where the catalogue states none.

        Runs last: norms are labels only, so a timeout here does not change the choice.
        """
        if self._engine is None or case.prefix is None or not self._config.ask_norms:
            return builder
        asked = {
            candidate.index: candidate.action
            for candidate in case.candidates
            if not (candidate.is_none or candidate.norms or candidate.index in builder.vetoed)
        }
        answers = candidate_scoring.norms_by_engine(self._engine, case.prefix, asked, case.deadline)
        return replace(builder, norms={**builder.norms, **answers})

    def _off_vantage(self, case: ChoiceCase, vetoed: Mapping[int, Vetoed]) -> dict[int, Vetoed]:
        if self._engine is None or case.prefix is None or not self._config.ask_viewpoint:
            return {}
        asked = {
            candidate.index: candidate.action
            for candidate in case.candidates
            if not candidate.is_none and candidate.index not in vetoed
        }
        possible, _ = candidate_scoring.yes_by_engine(self._engine, case.prefix, asked, "possible", case.deadline)
        return vetoes.of_viewpoint(possible, case.observation.viewpoint.role, self._config.possible_least)

    def _score(self, case: ChoiceCase, standing: Sequence[Candidate]) -> CandidateScores:
        """Score with the model. On failure, score by similarity and give the reason."""
        actions = [candidate.action for candidate in standing]
        by_likeness = CandidateScores(probabilities=self._by_likeness(case, standing))
        if self._engine is None or case.prefix is None:
            return by_likeness
        by_model = candidate_scoring.by_engine(
            self._engine, case.prefix, prompts.choice_question(actions), case.deadline, self._config.orders
        )
        if by_model.outcome is Outcome.ANSWERED or case.evidence.is_empty or not self._config.fall_back:
            return by_model
        return replace(by_likeness, reason=f"By likeness alone, as the model {by_model.outcome.predicate}. ")

    def _by_likeness(self, case: ChoiceCase, standing: Sequence[Candidate]) -> tuple[float, ...]:
        """Score with the fitted weights if present. They also see vetoed candidates, as in fitting."""
        actions = [candidate.action for candidate in standing]
        if self._fitted is None:
            return candidate_scoring.by_likeness(self._sentences, actions, case.evidence)
        offered = [candidate.action for candidate in case.candidates]
        worth = self._fitted.score(self._sentences, offered, case.evidence, case.request.source)
        places = {candidate.index: place for place, candidate in enumerate(case.candidates)}
        return candidate_scoring.normalize_scores(actions, worth[[places[candidate.index] for candidate in standing]])

    def _pick(
        self, builder: DecisionBuilder, stated: Mapping[int, tuple[Norm, ...]], coverage: float
    ) -> DecisionBuilder:
        """Choose the likeliest candidate, or the one that the order of norms prefers within the set, or none."""
        could_be = calibrated_set(builder.probabilities, coverage)
        sure = len(could_be) == 1
        resolution = norms.resolve_norms({index: stated[index] for index in could_be}, self._config.norm_order)
        if not sure and resolution.preferred is not None:
            return replace(
                builder, outcome=Outcome.ANSWERED, chosen=resolution.preferred, trade_off=resolution.trade_off
            )
        if sure or self._config.when_unsure is WhenUnsure.BEST_EFFORT:
            best = candidate_scoring.likeliest(builder.probabilities, builder.texts)
            return replace(builder, outcome=Outcome.ANSWERED, chosen=best)
        advice = "Ask a person" if self._config.when_unsure is WhenUnsure.ASK_HUMAN else "Do nothing for now"
        explanation = explain_uncertainty([builder.texts[index] for index in could_be], advice)
        return replace(builder, outcome=Outcome.ABSTAINED, explanation=builder.note + explanation)

    def _sensible(
        self, case: ChoiceCase, standing: Sequence[Candidate], probabilities: Mapping[int, float]
    ) -> tuple[int, ...]:
        """List the sensible candidates: by the model, otherwise those above chance, otherwise none of the above."""
        real = {candidate.index: candidate.action for candidate in standing if not candidate.is_none}
        sensible = [index for index in real if probabilities[index] >= 1 / len(real) - 1e-9]
        if self._engine is not None and case.prefix is not None and real:
            yes, failed = candidate_scoring.yes_by_engine(self._engine, case.prefix, real, "sensible", case.deadline)
            sensible = sensible if failed else [index for index, probability in yes.items() if probability > 0.5]
        return tuple(sorted(sensible or (candidate.index for candidate in standing if candidate.is_none)))
