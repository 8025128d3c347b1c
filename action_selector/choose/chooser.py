"""Choose one of the remaining candidates, or none, and build the decision with its reason."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from action_selector import prompts
from action_selector.candidates import Candidate
from action_selector.choose import candidate_scoring, norms
from action_selector.choose.abstain import WhenUnsure, calibrated_set
from action_selector.choose.calibration import SelectorCalibration
from action_selector.choose.candidate_scoring import CandidateScores, ReadScene, ScoringEvidence
from action_selector.observation import Observation
from action_selector.request import SENSIBLE_TASK, Request, SelectorConfig, repeated
from action_selector.retrieval import SentenceEncoding
from action_selector.vetoes import Vetoed
from norm_core.engines.engine import Engine
from norm_core.engines.prompt import Prompt
from norm_core.engines.reply import ModelInfo, Scores
from norm_core.engines.request_context import Deadline
from norm_core.records.decision import CandidateJudgement, Decision, Norm, Veto
from norm_core.records.outcome import Outcome
from norm_core.records.provenance import LatencySegment, Provenance
from norm_core.records.record import record
from norm_core.records.window import window_digest

_MAX_LINE = 300
# The vetoes that a person would ask about, the most important first.
_TELLING = (Veto.HARD_RULE, Veto.HOUSE_RULE, Veto.SINGLETON, Veto.OFF_VANTAGE, Veto.PRECONDITION)


@record
class DecisionBuilder:
    """A decision in progress. `chosen` is the index of a candidate; `explanation` is empty until it is known."""

    outcome: Outcome = Outcome.ABSTAINED
    candidates: tuple[Candidate, ...] = ()
    vetoed: Mapping[int, Vetoed] = field(default_factory=dict)
    norms: Mapping[int, tuple[Norm, ...]] = field(default_factory=dict)
    probabilities: Mapping[int, float] = field(default_factory=dict)
    sensible: tuple[int, ...] = ()
    chosen: int | None = None
    justification: int | None = None
    reason: str = ""
    trade_off: str = ""
    explanation: str = ""
    note: str = ""
    scores: Scores | None = None

    @property
    def texts(self) -> dict[int, str]:
        """Each candidate's words by its index."""
        return {candidate.index: candidate.action for candidate in self.candidates}

    def without_choice(self) -> "DecisionBuilder":
        """Remove the choice, where nothing may be recommended any more."""
        return replace(self, chosen=None, justification=None, reason="", trade_off="", sensible=())

    def with_repeats(self, offered: tuple[Candidate, ...]) -> "DecisionBuilder":
        """Add the repeated candidates. A repeat shares the verdict and the probability of its first occurrence."""
        first = {candidate.index: candidate.same_as for candidate in offered}
        times = Counter(first.values())
        return replace(
            self,
            candidates=offered,
            vetoed={index: self.vetoed[same] for index, same in first.items() if same in self.vetoed},
            norms={index: self.norms.get(same, ()) for index, same in first.items()},
            probabilities={index: self.probabilities.get(same, 0.0) / times[same] for index, same in first.items()},
            sensible=tuple(index for index, same in first.items() if same in self.sensible),
        )

    def with_explanation(self, observation: Observation, why: str) -> "DecisionBuilder":
        """Add a one-line explanation. `why` supports the choice where no justification was chosen."""
        if self.explanation:
            line = self.explanation
        elif self.chosen is None:
            line = explain_no_candidate(self.vetoed, self.texts)
        else:
            because = "; ".join(filter(None, (self.reason or why, self.trade_off)))
            line = self.note + explain_choice(self.texts[self.chosen], because, self.vetoed, self.texts)
        unknown = {"nobody": "who is there", "people": "what the others do", "engine": "who is there"}
        if observation.outcome is not Outcome.ANSWERED:
            reason = one_line(observation.reason, 80)
            line = f"Without knowing {unknown[observation.source]} ({reason}): {line}"
        elif observation.source in {"nobody", "people"}:
            line = f"Without knowing {unknown[observation.source]}: {line}"
        return replace(self, explanation=line)

    def decision(
        self,
        request: Request,
        *,
        decided_ns: int,
        deadline_ns: int | None,
        model_info: ModelInfo | None,
        latency: tuple[LatencySegment, ...],
        config_sha256: str,
        software_version: str,
    ) -> Decision:
        """Build the record to publish."""
        scores = self.scores if model_info else None
        provenance = Provenance(
            window_digest=window_digest(request.window) if request.window else "",
            prompt_digest=scores.prompt_digest if scores else "",
            prompt_version=scores.prompt_version if scores else "",
            model=model_info.model if model_info else "",
            weights_sha256=model_info.weights_sha256 if model_info else "",
            quantization=model_info.quantization if model_info else "",
            config_sha256=config_sha256,
            software_version=software_version,
            window_late=request.window.late if request.window else False,
            latency=latency,
        )
        return Decision(
            stamp_ns=decided_ns,
            decision_id=f"{request.query_id}@{decided_ns}",
            query_id=request.query_id,
            situation=repeated(request.situation),
            question=repeated(request.question),
            outcome=self.outcome,
            chosen_index=self.chosen,
            chosen="" if self.chosen is None else self.texts[self.chosen],
            justification_index=self.justification,
            justification=self.reason,
            sensible=self.sensible,
            candidates=tuple(self._judgement(candidate) for candidate in self.candidates),
            explanation=self.explanation,
            trade_off=self.trade_off,
            deadline_ns=deadline_ns,
            decided_ns=decided_ns,
            provenance=provenance,
        )

    def _judgement(self, candidate: Candidate) -> CandidateJudgement:
        vetoed = self.vetoed.get(candidate.index)
        return CandidateJudgement(
            index=candidate.index,
            action=candidate.action,
            probability=self.probabilities.get(candidate.index, 0.0),
            veto=vetoed.veto if vetoed else Veto.NONE,
            veto_reason=vetoed.reason if vetoed else "",
            sensible=candidate.index in self.sensible,
            norms=tuple(sorted(self.norms.get(candidate.index, ()), key=list(Norm).index)),
        )


def explain_choice(action: str, reason: str, vetoed: Mapping[int, Vetoed], texts: Mapping[int, str]) -> str:
    """Explain the recommended action, its reason and the most important veto."""
    choice = one_line(action, 140).rstrip(".") if action.strip() else "None of what was offered"
    because = f": {one_line(reason, 110).rstrip('.')}" if reason.strip() else ""
    index = min(vetoed, key=lambda index: _TELLING.index(vetoed[index].veto), default=None)
    rejected = "" if index is None else f" (not “{one_line(texts[index], 80)}”: {vetoed[index].reason})"
    return one_line(f"{choice}{because}.{rejected}", _MAX_LINE)


def explain_uncertainty(actions: Sequence[str], advice: str) -> str:
    """List the candidates that could be right, and what happens now."""
    shown = " or ".join(f"“{one_line(action, 60) or 'none of them'}”" for action in actions[:3])
    more = f" or {len(actions) - 3} more" if len(actions) > 3 else ""
    return one_line(f"{advice}: {shown}{more} could be right.", _MAX_LINE)


def explain_ranking(reason: str, actions: Sequence[str]) -> str:
    """State that no model answered, and give the ranking of the candidates by similarity."""
    shown = ", ".join(f"“{one_line(action, 40) or 'none of them'}”" for action in actions[:3])
    return one_line(
        f"No model answered ({one_line(reason, 90)}), so nothing is chosen. By likeness alone: {shown}.",
        _MAX_LINE,
    )


def explain_no_candidate(vetoed: Mapping[int, Vetoed], texts: Mapping[int, str]) -> str:
    """Explain why every candidate was vetoed."""
    reasons = "; ".join(f"“{one_line(texts[index], 40)}”: {fall.reason}" for index, fall in list(vetoed.items())[:3])
    return one_line(f"No candidate stands: {reasons}.", _MAX_LINE)


def one_line(text: str, longest: int) -> str:
    """Remove line breaks, and cut at `longest` characters."""
    text = " ".join(text.split())
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


@record
class ChoiceCase:
    """Everything known about one request when it reaches the choice. `prefix` is None where no model is asked."""

    request: Request
    observation: Observation
    candidates: tuple[Candidate, ...]
    evidence: ScoringEvidence
    read: ReadScene | None  # None where likeness alone ranks
    prefix: Prompt | None
    deadline: Deadline


class Chooser:
    """Choose with a model if there is one, otherwise by similarity. Nothing replaces a failure."""

    def __init__(
        self,
        sentences: SentenceEncoding,
        config: SelectorConfig,
        engine: Engine | None,
        calibration: SelectorCalibration | None = None,
    ) -> None:
        self._sentences, self._config, self._engine = sentences, config, engine
        self._calibration = calibration

    def choose(self, case: ChoiceCase, vetoed: Mapping[int, Vetoed], failed: Scores | None = None) -> DecisionBuilder:
        """Choose among the candidates without a veto, and list those that could also be right.

        `failed` is a model's reply without an answer to an earlier question of the request.
        """
        inferred = norms.infer_norms(self._sentences, [candidate.action for candidate in case.candidates])
        served = {
            candidate.index: candidate.norms or guess
            for candidate, guess in zip(case.candidates, inferred, strict=True)
        }
        builder = DecisionBuilder(candidates=case.candidates, vetoed=vetoed, norms=served)
        standing = [candidate for candidate in case.candidates if candidate.index not in vetoed]
        if failed:
            return self._without_model(case, builder, failed)
        if not standing:
            return builder
        judged = self._score(case, standing)
        builder = replace(builder, scores=judged.scores)
        if judged.outcome is not Outcome.ANSWERED and judged.scores:
            return self._without_model(case, builder, judged.scores)
        probabilities = {candidate.index: p for candidate, p in zip(standing, judged.probabilities, strict=True)}
        sensible, failed = self._sensible(case, standing, probabilities)
        builder = replace(builder, probabilities=probabilities, sensible=sensible)
        if failed and case.request.task:
            return replace(builder, outcome=failed.outcome, explanation=failed.reason)
        if failed:
            builder = replace(
                builder, note=f"What else is sensible is unknown, as the model {failed.outcome.predicate}. "
            )
        coverage = self._config.coverage
        if calibration := self._calibration:
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
        if self._engine is not None and case.prefix is not None:
            question = prompts.justification_question(action, reasons)
            by_model = candidate_scoring.by_engine(
                self._engine, case.prefix, question, case.deadline, self._config.orders
            )
            if by_model.outcome is not Outcome.ANSWERED and case.request.task:
                return replace(builder, outcome=by_model.outcome, chosen=None, explanation=by_model.reason)
            if by_model.outcome is not Outcome.ANSWERED:
                note = f"No justification, as the model {by_model.outcome.predicate}. "
                return replace(builder, note=builder.note + note)
            probabilities = by_model.probabilities
        else:
            evidence = ScoringEvidence(scene=case.evidence.scene, advised=(action,) if action.strip() else ())
            probabilities = candidate_scoring.by_likeness(self._sentences, reasons, evidence)
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
        if builder.scores is not None:
            return f"the model gives it {builder.probabilities[builder.chosen]:.0%}"
        place = [candidate.index for candidate in standing].index(builder.chosen)
        return candidate_scoring.leading_term(
            self._sentences, [candidate.action for candidate in standing], case.evidence, place, case.read
        )

    def add_norms(self, case: ChoiceCase, builder: DecisionBuilder) -> DecisionBuilder:
        """Add the norms that a model assigns to the remaining candidates, where the catalogue states none.

        Runs last: norms are labels only, so a timeout here does not change the choice.
        """
        is_decided = builder.outcome in {Outcome.ANSWERED, Outcome.ABSTAINED}
        is_asked = self._config.ask_norms and not case.request.task and is_decided
        if self._engine is None or case.prefix is None or not is_asked:
            return builder
        asked = {
            candidate.index: candidate.action
            for candidate in case.candidates
            if not (candidate.is_none or candidate.norms or candidate.index in builder.vetoed)
        }
        answers = candidate_scoring.norms_by_engine(self._engine, case.prefix, asked, case.deadline)
        return replace(builder, norms={**builder.norms, **answers})

    def _score(self, case: ChoiceCase, standing: Sequence[Candidate]) -> CandidateScores:
        if self._engine is None or case.prefix is None:
            return CandidateScores(probabilities=self._by_likeness(case, standing))
        question = prompts.choice_question([candidate.action for candidate in standing])
        return candidate_scoring.by_engine(self._engine, case.prefix, question, case.deadline, self._config.orders)

    def _without_model(self, case: ChoiceCase, builder: DecisionBuilder, failed: Scores) -> DecisionBuilder:
        """Choose nothing, as no model answered. The explanation may give the ranking by similarity."""
        standing = [candidate for candidate in case.candidates if candidate.index not in builder.vetoed]
        explanation = failed.reason
        if self._config.fall_back and not case.evidence.is_empty and standing:
            likely = self._by_likeness(case, standing)
            ranked = sorted(range(len(standing)), key=lambda place: -likely[place])
            explanation = explain_ranking(failed.reason, [standing[place].action for place in ranked])
        return replace(builder, outcome=failed.outcome, scores=failed, explanation=explanation)

    def _by_likeness(self, case: ChoiceCase, standing: Sequence[Candidate]) -> tuple[float, ...]:
        actions = [candidate.action for candidate in standing]
        return candidate_scoring.by_likeness(self._sentences, actions, case.evidence, case.read)

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
    ) -> tuple[tuple[int, ...], Scores | None]:
        """List the sensible candidates, and the first reply without an answer: nothing replaces a failed model's list.

        Without a model, those above chance are sensible; where no candidate is, none of the above is.
        """
        real = {candidate.index: candidate.action for candidate in standing if not candidate.is_none}
        sensible = [index for index in real if probabilities[index] >= 1 / len(real) - 1e-9]
        if self._engine is not None and case.prefix is not None and real:
            if case.request.task not in {"", SENSIBLE_TASK}:
                return (), None
            yes, failed = candidate_scoring.yes_by_engine(self._engine, case.prefix, real, "sensible", case.deadline)
            if failed:
                return (), failed
            sensible = [index for index, probability in yes.items() if probability > 0.5]
        return tuple(sorted(sensible or (candidate.index for candidate in standing if candidate.is_none))), None
