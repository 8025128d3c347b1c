"""Match the events of coders by their onsets, and set codings side by side."""

from collections.abc import Mapping, Sequence
from dataclasses import fields

from norm_core.evaluation.event_matching import Matches, match_events
from norm_core.records.json_codec import sha256_of, to_plain
from norm_core.records.record import record
from norm_core.runtime.time import NS_PER_S
from study_desk.coding.labels import in_order
from study_desk.log.recording import Recording
from study_desk.log.schema import MONITOR, Label, Opinion


def match(a: Sequence[Label], b: Sequence[Label], tolerance_ns: int) -> Matches:
    """Pair as many labels as possible with equal polarity and attribute, and onsets within the tolerance."""
    return match_events(
        [label.start_ns for label in a],
        [label.start_ns for label in b],
        tolerance_ns,
        lambda i, j: (a[i].polarity, a[i].attribute) == (b[j].polarity, b[j].attribute),
        in_order=True,
    )


def match_any(a: Sequence[Label], b: Sequence[Label], tolerance_ns: int) -> Matches:
    """Match like `match`, then pair the rest with any label, to show disagreements on meaning."""
    alike = match(a, b, tolerance_ns)
    onsets_ns = ([a[i].start_ns for i in alike.left_a], [b[j].start_ns for j in alike.left_b])
    others = match_events(*onsets_ns, tolerance_ns, in_order=True)
    pairs = [*alike.pairs, *((alike.left_a[i], alike.left_b[j]) for i, j in others.pairs)]
    return Matches.of(pairs, len(a), len(b))


TOLERANCE_NS = NS_PER_S


@record
class ComparedEvent:
    """What each coder says of one event. `label_id` is that of its consensus label, the same for the same opinions."""

    label_id: str
    opinions: tuple[Opinion, ...]
    missing: tuple[str, ...]  # coders who have no such event

    @property
    def is_agreed(self) -> bool:
        """Whether every coder has it, under the same label."""
        kinds = {(each.polarity, each.attribute, each.code, each.severity) for each in self.opinions}
        return not self.missing and len(kinds) == 1


def coder_labels(recording: Recording) -> dict[str, tuple[Label, ...]]:
    """Collect the labels of those who coded the session alone, by coder. Drafts and verdicts are left out."""
    coders = sorted(recording.coders - {MONITOR})
    return {coder: in_order(label for label in recording.labels if label.coder == coder) for coder in coders}


def compare_coders(labels: Mapping[str, Sequence[Label]]) -> tuple[ComparedEvent, ...]:
    """Match each coder's labels with those of the coders before, by onset; first those with the same meaning."""
    groups: list[dict[str, Label]] = []
    for coder, theirs in labels.items():
        first = [next(iter(group.values())) for group in groups]
        matching = match_any(first, theirs, TOLERANCE_NS)
        for known, new in matching.pairs:
            groups[known][coder] = theirs[new]
        groups += [{coder: theirs[new]} for new in matching.left_b]
        groups.sort(key=lambda group: next(iter(group.values())).start_ns)
    return tuple(_compared(group, labels) for group in groups)


def _compared(group: Mapping[str, Label], coders: Mapping[str, object]) -> ComparedEvent:
    opinions = tuple(opinion_of(label) for _, label in sorted(group.items()))
    return ComparedEvent(
        label_id=sha256_of([to_plain(opinion) for opinion in opinions])[:16],
        opinions=opinions,
        missing=tuple(coder for coder in coders if coder not in group),
    )


def opinion_of(label: Label) -> Opinion:
    """Take from a label what its coder says of the event."""
    return Opinion(**{field.name: getattr(label, field.name) for field in fields(Opinion)})


def label_of(opinion: Opinion) -> Label:
    """Make the label that says the same of the event."""
    return Label(**{field.name: getattr(opinion, field.name) for field in fields(Opinion)})
