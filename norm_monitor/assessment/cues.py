"""The list of all cues, and their common call."""

import inspect
import sys
from collections.abc import Callable, Iterator, Sequence

from norm_core.records.json_codec import sha256_of
from norm_core.runtime.config import ConfigError
from norm_monitor.assessment.finding import Findings
from norm_monitor.assessment.reasons.courtesy import complaint, follow_up, greeting, manners, parting, thanks, tone
from norm_monitor.assessment.reasons.names import names
from norm_monitor.assessment.reasons.reactions import amends, protest, user_repair
from norm_monitor.assessment.reasons.silence import answer_in_time
from norm_monitor.assessment.reasons.turn_taking import monologue, robot_cuts_in, robot_repeats, stopping, waits_for_end
from norm_monitor.assessment.sightings import leaving, looking_away, nearness
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.context.meaning import TextMatcher, UnreadLanguageMatcher
from norm_monitor.context.scene import Scene

CueFunction = Callable[[Scene, ThresholdTable, TextMatcher], Iterator[Findings]]

FAMILIES: tuple[CueFunction, ...] = (
    answer_in_time, robot_cuts_in, waits_for_end, user_repair, protest, amends, robot_repeats, monologue,
    looking_away, leaving, nearness, greeting, parting, thanks, complaint, manners, follow_up, tone, names,
    stopping,
)  # fmt: skip
# The cues of timing and sight, which run in any language.
WORDLESS: tuple[CueFunction, ...] = (
    answer_in_time, robot_cuts_in, waits_for_end, monologue, looking_away, leaving, nearness,
)  # fmt: skip


def find_cues(
    scene: Scene, table: ThresholdTable, matcher: TextMatcher, custom: Sequence[CueFunction] = ()
) -> Iterator[Findings]:
    """Everything that any cue finds in the scene, the shipped cues first.

    In a language whose wording is not read, only timing and sight are looked at, and no words have a meaning.
    """
    families = (*(WORDLESS if scene.other_language else FAMILIES), *custom)
    for family in families:
        yield from family(scene, table, UnreadLanguageMatcher(matcher) if scene.other_language else matcher)


def source_sha256(cue: CueFunction) -> str:
    """Compute the digest of a custom cue: its name and the text of the file that defines it.

    What that file imports is not covered. ConfigError where the function has no source file.
    """
    try:
        source = inspect.getsource(sys.modules[cue.__module__])
    except (AttributeError, KeyError, OSError, TypeError) as error:
        raise ConfigError(f"cue {cue!r}: its source cannot be read; define it as a function in a file") from error
    return sha256_of([cue.__qualname__, source])
