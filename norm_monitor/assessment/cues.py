"""The cues that count as evidence: sightings and custom cues."""

import inspect
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points

from norm_core.records.json_codec import sha256_of
from norm_core.runtime.config import ConfigError
from norm_monitor.assessment.finding import CueAnswer, RequestWindowAt
from norm_monitor.assessment.sightings import find_leaving, find_looking_away, find_nearness
from norm_monitor.assessment.threshold_table import Cue, ThresholdTable
from norm_monitor.assessment.unit_facts import NO_ANSWER_NS, owes_answer
from norm_monitor.context.meaning import UnreadLanguageMatcher, WordMatcher
from norm_monitor.context.scene import Scene

CueFunction = Callable[[Scene, ThresholdTable, WordMatcher], Iterator[CueAnswer]]

ENTRY_POINT_GROUP = "tactful.cues"

SIGHTINGS: tuple[CueFunction, ...] = (find_looking_away, find_leaving, find_nearness)


@dataclass(frozen=True)
class CustomCue:
    """A cue of an installed package: its function, and its entry in the table under the name of its entry point."""

    find: CueFunction
    entry: Cue


def load_custom_cues(names: Collection[str]) -> dict[str, CustomCue]:
    """Load cues by the names of their entry points. Raises ConfigError for one that is not installed or is broken."""
    if not names:  # to list the entry points of all packages takes as long as to make a monitor
        return {}
    points = {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}
    cues = {}
    for name in names:
        if name not in points:
            installed = ", ".join(sorted(points)) or "none"
            raise ConfigError(f"cues: {name!r} is not installed ({installed}); install its package beside Tactful")
        try:
            cues[name] = points[name].load()
        except Exception as error:
            raise ConfigError(f"cues: {name!r} cannot be loaded: {error!r}; correct its package") from error
        if not isinstance(cues[name], CustomCue):
            raise ConfigError(f"cues: {name!r} is a {type(cues[name]).__name__}; let its entry point name a CustomCue")
    return cues


def find_cues(
    scene: Scene, table: ThresholdTable, matcher: WordMatcher, custom: Sequence[CueFunction] = ()
) -> Iterator[CueAnswer]:
    """Yield the answers of all cues. In a language that is not read, words match no concept."""
    words = UnreadLanguageMatcher() if scene.other_language else matcher
    for cue in (*SIGHTINGS, *custom):
        yield from cue(scene, table, words)
    last = scene.turns[-1] if scene.turns else None
    if last and last.timed and owes_answer(last, None):  # measure its silence once it is long
        yield RequestWindowAt(at_ns=last.end_ns + NO_ANSWER_NS)


def source_sha256(cue: CueFunction) -> str:
    """Compute the digest of a custom cue: its name and the text of the file that defines it.

    The imports of that file are not covered. Raises ConfigError if the function has no source file.
    """
    try:
        source = inspect.getsource(sys.modules[cue.__module__])
    except (AttributeError, KeyError, OSError, TypeError) as error:
        raise ConfigError(f"cue {cue!r}: its source cannot be read; define it as a function in a file") from error
    return sha256_of([cue.__qualname__, source])
