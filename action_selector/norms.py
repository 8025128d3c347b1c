"""The seven categories of norms, which of them an action serves, and which gives way where they conflict."""

from collections.abc import Mapping, Sequence

from action_selector.likeness import Sentences, likeness
from norm_core.decision import Norm
from norm_core.record import record

# Harm cannot be taken back, nor what was seen or told; manners can be mended.
DEFAULT_ORDER = (
    Norm.SAFETY,
    Norm.PRIVACY,
    Norm.PROXEMICS,
    Norm.COMMUNICATION,
    Norm.COORDINATION,
    Norm.COOPERATION,
    Norm.POLITENESS,
)

MEANINGS: dict[Norm, str] = {
    Norm.SAFETY: "It keeps people and things from being hurt, frightened or broken.",
    Norm.PRIVACY: "It respects private rooms, belongings and information.",
    Norm.PROXEMICS: "It keeps a fitting distance and leaves people their space.",
    Norm.POLITENESS: "It is courteous and shows respect, as a greeting or thanks does.",
    Norm.COOPERATION: "It helps another with what they do together, as carrying a heavy box.",
    Norm.COORDINATION: "It acts ahead and in step with others, so that nobody is held up.",
    Norm.COMMUNICATION: "It tells or shows others clearly what is meant or about to be done.",
}


@record
class Resolution:
    """Which of the tied candidates the order of norms prefers, -1 where it prefers none, and what gave way."""

    preferred: int = -1
    trade_off: str = ""


def inferred(sentences: Sentences, actions: Sequence[str], margin: float = 0.05) -> list[tuple[Norm, ...]]:
    """The category each action is most like, and those within margin: a label for readers, no ground to choose."""
    norms = list(MEANINGS)
    alike = likeness(sentences, actions, [MEANINGS[norm] for norm in norms])
    return [
        tuple(norm for norm, value in zip(norms, row, strict=True) if action.strip() and value >= row.max() - margin)
        for action, row in zip(actions, alike, strict=True)
    ]


def resolve(tied: Mapping[int, tuple[Norm, ...]], order: Sequence[Norm]) -> Resolution:
    """Among candidates that the evidence does not tell apart, the one that serves the highest norm alone.

    tied holds what each is stated to serve. Equal ranks are compared category by category down the order.
    """
    ranks = {index: sorted(order.index(norm) for norm in norms) for index, norms in tied.items() if norms}
    if len(tied) < 2 or len(ranks) < len(tied):
        return Resolution()
    best, second = sorted(ranks, key=lambda index: ranks[index])[:2]
    if ranks[best] == ranks[second]:
        return Resolution()
    kept, gave_way = order[ranks[best][0]], order[ranks[second][0]]
    if kept is gave_way:
        return Resolution(preferred=best)
    return Resolution(preferred=best, trade_off=f"{kept} before {gave_way}")
