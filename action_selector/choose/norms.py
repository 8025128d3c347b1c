"""The seven norm categories: which of them an action serves, and which has priority in a conflict."""

from collections.abc import Mapping, Sequence

from action_selector.retrieval import SentenceEncoding, compute_similarity
from action_selector.text_safety.injection_filter import strip_instructions
from norm_core.files.data_files import shipped_file
from norm_core.records.decision import Norm
from norm_core.records.record import record
from norm_core.runtime.config import load_yaml

# A category is inferred whose similarity lies at most so far below the highest.
_MAX_GAP = 0.05
# Example actions for each category, with which actions are compared.
EXAMPLES: dict[Norm, tuple[str, ...]] = {
    Norm(name): tuple(texts)
    for name, texts in load_yaml(shipped_file("action_selector.choose", "norm_examples.yaml")).items()
}


@record
class Resolution:
    """The candidate that the order of norms prefers, or None, and the norms that gave way."""

    preferred: int | None = None
    trade_off: str = ""


def infer_norms(sentences: SentenceEncoding, actions: Sequence[str]) -> list[tuple[Norm, ...]]:
    """Infer the categories whose examples are most similar to each action.

    The categories label an action; no choice rests on them.
    """
    texts = [(norm, text) for norm, examples in EXAMPLES.items() for text in examples]
    similarities = compute_similarity(sentences, actions, [text for _, text in texts])
    inferred: list[tuple[Norm, ...]] = []
    for action, row in zip(actions, similarities, strict=True):
        if not strip_instructions(action):
            inferred.append(())
            continue
        best = dict.fromkeys(EXAMPLES, -1.0)
        for (norm, _), value in zip(texts, row, strict=True):
            best[norm] = max(best[norm], value)
        threshold = max(best.values()) - _MAX_GAP
        inferred.append(tuple(norm for norm, value in best.items() if value >= threshold))
    return inferred


def resolve_norms(tied: Mapping[int, tuple[Norm, ...]], order: Sequence[Norm]) -> Resolution:
    """Choose, among tied candidates, the one that alone serves the highest norm.

    `tied` maps each candidate to its stated norms. Equal ranks are compared further down the order.
    """
    ranks = {index: sorted(order.index(norm) for norm in norms) for index, norms in tied.items() if norms}
    if len(tied) < 2 or len(ranks) < len(tied):
        return Resolution()
    best, second = sorted(ranks, key=lambda index: ranks[index])[:2]
    if ranks[best] == ranks[second]:
        return Resolution()
    stronger = order[ranks[best][0]]
    weaker = order[ranks[second][0]]
    if stronger is weaker:
        return Resolution(preferred=best)
    return Resolution(preferred=best, trade_off=f"{stronger} before {weaker}")
