"""Explain a flag in words, from the flag alone."""

from dataclasses import replace

from norm_core.records.flag import YES_OR_NO, Evidence, Polarity, SocialFlag, Tier
from norm_core.runtime.time import ns_to_s

_SEEN_BY = {
    Tier.CUE: "cues alone",
    Tier.JUDGE: "a model's judgement",
    Tier.FUSED: "cues and a model's judgement",
}


def explain(flag: SocialFlag) -> str:
    """Return a few lines: event, reason, measurement, correction and sources."""
    about = ", ".join(attribute.value.replace("_", " ") for attribute in flag.attributes)
    kind = f"{flag.severity.value} social error" if flag.polarity is Polarity.ERROR else "social competence"
    lines = [f"{kind[0].upper()}{kind[1:]} ({about}), probability {flag.probability:.2f}.", flag.rationale]
    quotes: set[str] = set()
    for evidence in flag.evidence:
        lines.append(f"Measured: {measurement(replace(evidence, quote='') if evidence.quote in quotes else evidence)}.")
        quotes.add(evidence.quote)
    if total := addition(flag):
        lines.append(f"Sum: {total}.")
    if flag.correction:
        lines.append(f"Instead: {flag.correction}")
    made_by = flag.provenance
    lines.append(
        f"Last changed {ns_to_s(flag.decision_ns - flag.onset_ns):.1f} s after its onset, from {_SEEN_BY[flag.tier]}"
        + (f" ({flag.cue_id})" if flag.cue_id else "")
        + (f", model {made_by.model}" if made_by.model else "")
        + (", in a window that closed late" if made_by.window_late else "")
        + "."
    )
    return "\n".join(lines)


def addition(flag: SocialFlag) -> str:
    """Return how the weights lead to the probability, and its threshold; empty where an older version flagged."""
    base = flag.base_log_odds
    if base is None or flag.least_probability is None:
        return ""
    weights = sum(one.weight or 0.0 for one in flag.evidence)
    if not any(one.weight is not None for one in flag.evidence):
        return ""  # nothing was weighed
    return (
        f"{base:+.2f} at the start and {weights:+.2f} by weights are log odds of {base + weights:+.2f}, that is "
        f"probability {flag.probability:.2f} against a threshold of {flag.least_probability:.2f}"
    )


def measurement(evidence: Evidence) -> str:
    """Return what was measured, against what, and in which words."""
    is_yes_or_no = evidence.unit == YES_OR_NO
    unit = f" {evidence.unit}" if evidence.unit and not is_yes_or_no else ""
    value = f": {'yes' if evidence.value else 'no'}" if is_yes_or_no else f" {evidence.value:g}{unit}"
    against = f" against a threshold of {evidence.threshold:g}{unit}" if evidence.threshold is not None else ""
    against += f", weight {evidence.weight:+.2f}" if evidence.weight is not None else ""
    evidence_of = f", in “{evidence.quote}”" if evidence.quote else ""
    return f"{evidence.measure}{value}{against}{evidence_of}"
