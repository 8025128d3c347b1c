"""Build a Decision step by step from what is known about each candidate."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from action_selector.candidates import Candidate
from action_selector.observation import Observation
from action_selector.request import Request, repeated
from action_selector.vetoes import Vetoed
from norm_core.engines.reply import ModelInfo, Scores
from norm_core.records.decision import CandidateJudgement, Decision, Norm, Veto
from norm_core.records.outcome import Outcome
from norm_core.records.provenance import LatencySegment, Provenance
from norm_core.records.record import record
from norm_core.records.window import window_digest

_LONGEST = 300
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
            line = f"Without knowing {unknown[observation.told_by]} ({reason}): {line}"
        elif observation.told_by in {"nobody", "people"}:
            line = f"Without knowing {unknown[observation.told_by]}: {line}"
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
    return one_line(f"{choice}{because}.{rejected}", _LONGEST)


def explain_uncertainty(actions: Sequence[str], advice: str) -> str:
    """List the candidates that could be right, and what happens now."""
    shown = " or ".join(f"“{one_line(action, 60) or 'none of them'}”" for action in actions[:3])
    more = f" or {len(actions) - 3} more" if len(actions) > 3 else ""
    return one_line(f"{advice}: {shown}{more} could be right.", _LONGEST)


def explain_ranking(reason: str, actions: Sequence[str]) -> str:
    """State that no model answered, and give the ranking of the candidates by similarity."""
    shown = ", ".join(f"“{one_line(action, 40) or 'none of them'}”" for action in actions[:3])
    return one_line(
        f"No model answered ({one_line(reason, 90)}), so nothing is chosen. By likeness alone: {shown}.", _LONGEST
    )


def explain_no_candidate(vetoed: Mapping[int, Vetoed], texts: Mapping[int, str]) -> str:
    """Explain why every candidate was vetoed."""
    reasons = "; ".join(f"“{one_line(texts[index], 40)}”: {fall.reason}" for index, fall in list(vetoed.items())[:3])
    return one_line(f"No candidate stands: {reasons}.", _LONGEST)


def one_line(text: str, longest: int) -> str:
    """Remove line breaks, and cut at `longest` characters."""
    text = " ".join(text.split())
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
