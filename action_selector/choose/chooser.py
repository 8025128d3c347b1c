"""Choose a remaining candidate, or none, and build the decision with its reason."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from action_selector import model_scoring, prompts
from action_selector.candidates import Candidate
from action_selector.choose import candidate_scoring, norms
from action_selector.choose.abstain import EQUAL, select_possible
from action_selector.choose.candidate_scoring import ReadScene, ScoringEvidence
from action_selector.model_scoring import CandidateScores
from action_selector.observation import Observation
from action_selector.queries import SENSIBLE_TASK
from action_selector.request import Request
from action_selector.request_limits import shorten
from action_selector.retrieval import SentenceEncoding
from action_selector.selector_config import SelectorConfig, WhenUnsure
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

# Lengths of texts in an explanation, in characters.
_MAX_LINE = 300
_MAX_CHOICE = 140
_MAX_REASON = 110
_MAX_VETOED = 80
_MAX_FAILURE = 90
_MAX_UNCERTAIN = 60
_MAX_RANKED = 40
# Maximum number of candidates that a list quotes.
_MAX_QUOTED = 3
# The vetoes that a person would ask about, the most important first.
_VETOES_BY_IMPORTANCE = (Veto.HARD_RULE, Veto.HOUSE_RULE, Veto.SINGLETON, Veto.OFF_VANTAGE, Veto.PRECONDITION)
# What is unknown, by the source of an observation.
_UNKNOWN = {
    "nobody": "Without knowing who is there",
    "people": "Without knowing what the others do",
    "engine": "Without knowing who is there",
    "words": "Nothing was seen, as no camera is set up",
}


@record
class DecisionBuilder:
    """A decision in progress. `chosen` is the index of a candidate; `explanation` is empty until there is one."""

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
    reader_fault: str = ""

    @property
    def texts(self) -> dict[int, str]:
        """The words of each candidate, by its index."""
        return {candidate.index: candidate.action for candidate in self.candidates}

    def without_choice(self) -> "DecisionBuilder":
        """Remove the choice, where nothing may be recommended any more."""
        return replace(self, chosen=None, justification=None, reason="", trade_off="", sensible=())

    def with_repeats(self, offered: tuple[Candidate, ...]) -> "DecisionBuilder":
        """Add the repeated candidates. A repeat shares the verdict and the probability of its first occurrence."""
        firsts = {candidate.index: candidate.same_as for candidate in offered}
        counts = Counter(firsts.values())
        return replace(
            self,
            candidates=offered,
            vetoed={index: self.vetoed[first] for index, first in firsts.items() if first in self.vetoed},
            norms={index: self.norms.get(first, ()) for index, first in firsts.items()},
            probabilities={
                index: self.probabilities.get(first, 0.0) / counts[first] for index, first in firsts.items()
            },
            sensible=tuple(index for index, first in firsts.items() if first in self.sensible),
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
        if observation.outcome is not Outcome.ANSWERED:
            reason = fit_line(observation.reason, 80)
            line = f"{_UNKNOWN[observation.source]} ({reason}): {line}"
        elif observation.source in {"nobody", "people", "words"}:
            line = f"{_UNKNOWN[observation.source]}: {line}"
        return replace(self, explanation=line)

    def build(
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
            situation=shorten(request.situation),
            question=shorten(request.question),
            outcome=self.outcome,
            chosen_index=self.chosen,
            chosen="" if self.chosen is None else self.texts[self.chosen],
            justification_index=self.justification,
            justification=self.reason,
            sensible=self.sensible,
            candidates=tuple(self._build_judgement(candidate) for candidate in self.candidates),
            explanation=self.explanation,
            trade_off=self.trade_off,
            deadline_ns=deadline_ns,
            decided_ns=decided_ns,
            provenance=provenance,
        )

    def _build_judgement(self, candidate: Candidate) -> CandidateJudgement:
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
    choice = fit_line(action, _MAX_CHOICE).rstrip(".") if action.strip() else "None of what was offered"
    because = f": {fit_line(reason, _MAX_REASON).rstrip('.')}" if reason.strip() else ""
    vetoed_index = min(vetoed, key=lambda index: _VETOES_BY_IMPORTANCE.index(vetoed[index].veto), default=None)
    rejected = ""
    if vetoed_index is not None:
        rejected = f" (not “{fit_line(texts[vetoed_index], _MAX_VETOED)}”: {vetoed[vetoed_index].reason})"
    return fit_line(f"{choice}{because}.{rejected}", _MAX_LINE)


def explain_uncertainty(actions: Sequence[str]) -> str:
    """List the candidates that could be right, for a person to choose."""
    quoted = " or ".join(f"“{fit_line(action, _MAX_UNCERTAIN) or 'none of them'}”" for action in actions[:_MAX_QUOTED])
    more = f" or {len(actions) - _MAX_QUOTED} more" if len(actions) > _MAX_QUOTED else ""
    return fit_line(f"Ask a person: {quoted}{more} could be right.", _MAX_LINE)


def explain_ranking(reason: str, actions: Sequence[str]) -> str:
    """State that no model answered, and give the ranking of the candidates by similarity."""
    quoted = ", ".join(f"“{fit_line(action, _MAX_RANKED) or 'none of them'}”" for action in actions[:_MAX_QUOTED])
    return fit_line(
        f"No model answered ({fit_line(reason, _MAX_FAILURE)}), so nothing is chosen. By likeness alone: {quoted}.",
        _MAX_LINE,
    )


def explain_no_candidate(vetoed: Mapping[int, Vetoed], texts: Mapping[int, str]) -> str:
    """Explain why every candidate was vetoed."""
    quoted = list(vetoed.items())[:_MAX_QUOTED]
    reasons = "; ".join(f"“{fit_line(texts[index], _MAX_RANKED)}”: {veto.reason}" for index, veto in quoted)
    return fit_line(f"No candidate stands: {reasons}.", _MAX_LINE)


def fit_line(text: str, max_length: int) -> str:
    """Remove line breaks, and cut the text at `max_length` characters."""
    text = " ".join(text.split())
    return text if len(text) <= max_length else f"{text[: max_length - 1]}…"


@record
class ChoiceCase:
    """All that is known about one request when it reaches the choice.

    `prefix` is None where no model is asked. `read` is None where similarity alone ranks the candidates.
    """

    request: Request
    observation: Observation
    candidates: tuple[Candidate, ...]
    evidence: ScoringEvidence
    read: ReadScene | None
    prefix: Prompt | None
    deadline: Deadline


class Chooser:
    """Choose with a model if there is one, otherwise by similarity. Nothing replaces a failure."""

    def __init__(
        self,
        sentences: SentenceEncoding,
        config: SelectorConfig,
        engine: Engine | None,
    ) -> None:
        self._sentences = sentences
        self._config = config
        self._engine = engine

    def choose(self, case: ChoiceCase, vetoed: Mapping[int, Vetoed], failed: Scores | None = None) -> DecisionBuilder:
        """Choose among the candidates without a veto, and list those that could also be right.

        `failed` is a model's reply without an answer to an earlier question of the request.
        """
        inferred = norms.infer_norms(self._sentences, [candidate.action for candidate in case.candidates])
        pairs = zip(case.candidates, inferred, strict=True)
        norms_by_index = {candidate.index: candidate.norms or guess for candidate, guess in pairs}
        builder = DecisionBuilder(candidates=case.candidates, vetoed=vetoed, norms=norms_by_index)
        remaining = [candidate for candidate in case.candidates if candidate.index not in vetoed]
        if failed:
            return self._decline(case, builder, failed)
        if not remaining:
            return builder
        scored = self._score(case, remaining)
        builder = replace(builder, scores=scored.scores)
        if scored.outcome is not Outcome.ANSWERED and scored.scores:
            return self._decline(case, builder, scored.scores)
        probabilities = {candidate.index: p for candidate, p in zip(remaining, scored.probabilities, strict=True)}
        sensible, failed = self._find_sensible(case, remaining, probabilities)
        builder = replace(builder, probabilities=probabilities, sensible=sensible)
        if failed and case.request.task:
            return replace(builder, outcome=failed.outcome, explanation=failed.reason)
        if failed:
            builder = replace(
                builder, note=f"What else is sensible is unknown, as the model {failed.outcome.predicate}. "
            )
        return self._pick(builder, {candidate.index: candidate.norms for candidate in remaining})

    def add_justification(self, case: ChoiceCase, builder: DecisionBuilder) -> DecisionBuilder:
        """Add the best justification of the choice. "None of the above" gets the empty justification."""
        reasons = case.request.justifications
        if not reasons or builder.chosen is None:
            return builder
        action = builder.texts[builder.chosen]
        empty_index = next((index for index, reason in enumerate(reasons) if not reason.strip()), None)
        if not action.strip() and empty_index is not None:
            return replace(builder, justification=empty_index)
        if self._engine is not None and case.prefix is not None:
            question = prompts.build_justification_question(action, reasons)
            scored = model_scoring.score_by_model(
                self._engine, case.prefix, question, case.deadline, self._config.orders
            )
            if scored.outcome is not Outcome.ANSWERED and case.request.task:
                return replace(builder, outcome=scored.outcome, chosen=None, explanation=scored.reason)
            if scored.outcome is not Outcome.ANSWERED:
                note = f"No justification, as the model {scored.outcome.predicate}. "
                return replace(builder, note=builder.note + note)
            probabilities = scored.probabilities
        else:
            evidence = ScoringEvidence(scene=case.evidence.scene, advised=(action,) if action.strip() else ())
            probabilities = candidate_scoring.score_by_likeness(self._sentences, reasons, evidence)
        best = candidate_scoring.find_likeliest(dict(enumerate(probabilities)), dict(enumerate(reasons)))
        return replace(builder, justification=best, reason=reasons[best])

    def describe_grounds(self, case: ChoiceCase, builder: DecisionBuilder) -> str:
        """Describe in words what the choice rests on."""
        remaining = [
            candidate
            for candidate in case.candidates
            if candidate.index not in builder.vetoed and not candidate.is_none
        ]
        if builder.chosen is None or not builder.texts[builder.chosen].strip():
            return ""
        if len(remaining) == 1:
            return "nothing else stands" if builder.vetoed else ""
        if builder.scores is not None:
            return f"the model gives it {builder.probabilities[builder.chosen]:.0%}"
        position = [candidate.index for candidate in remaining].index(builder.chosen)
        return candidate_scoring.find_leading_term(
            self._sentences, [candidate.action for candidate in remaining], case.evidence, position, case.read
        )

    def _score(self, case: ChoiceCase, remaining: Sequence[Candidate]) -> CandidateScores:
        if self._engine is None or case.prefix is None:
            return CandidateScores(probabilities=self._score_by_likeness(case, remaining))
        question = prompts.build_choice_question([candidate.action for candidate in remaining])
        return model_scoring.score_by_model(self._engine, case.prefix, question, case.deadline, self._config.orders)

    def _decline(self, case: ChoiceCase, builder: DecisionBuilder, failed: Scores) -> DecisionBuilder:
        """Choose nothing, because no model answered. The explanation ranks the rest by similarity."""
        remaining = [candidate for candidate in case.candidates if candidate.index not in builder.vetoed]
        explanation = failed.reason
        if not case.evidence.is_empty and remaining:
            probabilities = self._score_by_likeness(case, remaining)
            ranked = sorted(range(len(remaining)), key=lambda position: -probabilities[position])
            explanation = explain_ranking(failed.reason, [remaining[position].action for position in ranked])
        return replace(builder, outcome=failed.outcome, scores=failed, explanation=explanation)

    def _score_by_likeness(self, case: ChoiceCase, remaining: Sequence[Candidate]) -> tuple[float, ...]:
        actions = [candidate.action for candidate in remaining]
        return candidate_scoring.score_by_likeness(self._sentences, actions, case.evidence, case.read)

    def _pick(self, builder: DecisionBuilder, stated_norms: Mapping[int, tuple[Norm, ...]]) -> DecisionBuilder:
        """Choose the likeliest candidate, or the one that the order of norms prefers within the set, or none."""
        could_be = select_possible(builder.probabilities, self._config.coverage)
        is_sure = len(could_be) == 1
        resolution = norms.resolve_norms({index: stated_norms[index] for index in could_be}, self._config.norm_order)
        if not is_sure and resolution.preferred is not None:
            return replace(
                builder, outcome=Outcome.ANSWERED, chosen=resolution.preferred, trade_off=resolution.trade_off
            )
        if is_sure or self._config.when_unsure is WhenUnsure.BEST_EFFORT:
            best = candidate_scoring.find_likeliest(builder.probabilities, builder.texts)
            return replace(builder, outcome=Outcome.ANSWERED, chosen=best)
        explanation = explain_uncertainty([builder.texts[index] for index in could_be])
        return replace(builder, outcome=Outcome.ABSTAINED, explanation=builder.note + explanation)

    def _find_sensible(
        self, case: ChoiceCase, remaining: Sequence[Candidate], probabilities: Mapping[int, float]
    ) -> tuple[tuple[int, ...], Scores | None]:
        """List the sensible candidates, and return the first reply without an answer.

        Nothing replaces the list of a model that failed. Without a model, candidates above chance are sensible. Where
        no candidate is sensible, "none of the above" is.
        """
        actions = {candidate.index: candidate.action for candidate in remaining if not candidate.is_none}
        sensible = [index for index in actions if probabilities[index] >= 1 / len(actions) - EQUAL]
        if self._engine is not None and case.prefix is not None and actions:
            if case.request.task not in {"", SENSIBLE_TASK}:
                return (), None
            yes, failed = model_scoring.ask_yes_or_no(self._engine, case.prefix, actions, "sensible", case.deadline)
            if failed:
                return (), failed
            sensible = [index for index, probability in yes.items() if probability > 0.5]
        return tuple(sorted(sensible or (candidate.index for candidate in remaining if candidate.is_none))), None
