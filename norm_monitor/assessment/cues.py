"""The cues that count as evidence: sightings and custom cues."""

import inspect
import sys
from collections.abc import Callable, Iterator, Sequence

from norm_core.records.json_codec import sha256_of
from norm_core.runtime.config import ConfigError
from norm_monitor.assessment.finding import CueAnswer, RequestWindowAt
from norm_monitor.assessment.sightings import find_leaving, find_looking_away, find_nearness
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.assessment.unit_facts import NO_ANSWER_NS, owes_answer
from norm_monitor.context.meaning import UnreadLanguageMatcher, WordMatcher
from norm_monitor.context.scene import Scene

CueFunction = Callable[[Scene, ThresholdTable, WordMatcher], Iterator[CueAnswer]]

SIGHTINGS: tuple[CueFunction, ...] = (find_looking_away, find_leaving, find_nearness)


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
