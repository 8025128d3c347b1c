"""The seven categories of norms, which of them an action serves, and which gives way where they conflict."""

from collections.abc import Mapping, Sequence

from action_selector.retrieve.likeness import SentenceEncoding, similarity
from action_selector.text_safety.injection_filter import strip_instructions
from norm_core.records.decision import Norm
from norm_core.records.record import record

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

# Deeds that serve each, against which an action is held; written without a look at any benchmark's options.
EXAMPLES: dict[Norm, tuple[str, ...]] = {
    Norm.SAFETY: (
        "Switch off the stove.",
        "Wipe up the spill before somebody slips.",
        "Keep the knife away from the child.",
        "Steady the ladder.",
        "Check that the valve is shut.",
    ),
    Norm.PRIVACY: (
        "Knock before entering the bedroom.",
        "Look away from the private screen.",
        "Draw the curtain while the patient undresses.",
        "Speak softly about the test results.",
        "Hand over the letter unopened.",
    ),
    Norm.PROXEMICS: (
        "Step back to give the person space.",
        "Stay an arm's length away.",
        "Wait until the corridor is free.",
        "Move aside and let them pass.",
    ),
    Norm.POLITENESS: (
        "Say thank you.",
        "Greet the guest with a nod.",
        "Excuse the interruption.",
        "Ask whether they would like a drink.",
        "Let the older woman go first.",
    ),
    Norm.COOPERATION: (
        "Help to carry the table.",
        "Hand the tool to the worker.",
        "Hold the door for someone whose hands are full.",
        "Do a share of the cleaning up.",
    ),
    Norm.COORDINATION: (
        "Get the next plate ready before it is needed.",
        "Wait for one's turn.",
        "Clear the cups away before the others come.",
        "Walk at the other's pace.",
    ),
    Norm.COMMUNICATION: (
        "Say what is about to be done.",
        "Point to where the box goes.",
        "Call for help.",
        "Ask them what they mean.",
    ),
}


def norm_texts() -> list[str]:
    """The deeds that every action is held against."""
    return [text for examples in EXAMPLES.values() for text in examples]


@record
class Resolution:
    """Which of the tied candidates the order of norms prefers, None where it prefers none, and what gave way."""

    preferred: int | None = None
    trade_off: str = ""


def infer_norms(sentences: SentenceEncoding, actions: Sequence[str], margin: float = 0.05) -> list[tuple[Norm, ...]]:
    """The category whose examples each action is most like, and those within margin: a label, no ground to choose."""
    texts = [(norm, text) for norm, examples in EXAMPLES.items() for text in examples]
    alike = similarity(sentences, actions, [text for _, text in texts])
    found = []
    for action, row in zip(actions, alike, strict=True):
        nearest = {
            norm: max(v for (of, _), v in zip(texts, row, strict=True) if of is norm)
            if strip_instructions(action)
            else 0.0
            for norm in EXAMPLES
        }
        most = max(nearest.values())
        found.append(
            tuple(norm for norm, value in nearest.items() if strip_instructions(action) and value >= most - margin)
        )
    return found


def resolve_norms(tied: Mapping[int, tuple[Norm, ...]], order: Sequence[Norm]) -> Resolution:
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
