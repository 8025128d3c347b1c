"""The generated pages by file name, each with the function that generates its text."""

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping

from norm_core.records.flag import Polarity
from norm_core.runtime.errors import TactfulError
from norm_monitor.cues.threshold_table import Cue, Threshold, ThresholdTable
from tactful_cli.reference import status

HEAD = """# Cues

What the monitor looks for without a judge. `python -m tactful_cli.reference` generates this page; do not edit it.
[Tune cues](../how-to/cues.md) shows how to mute a cue or change a number, and
[custom_cue.py](../../examples/custom_cue.py) how to add one.

A cue's finding explains a flag: its note, its severity and its evidence. Fitted weights of many facts say how likely a
moment is an error or a competence. `unsuitable_words`, `suitable_words` and `talks_over_user` have no function of their
own: they name what these facts amount to where no cue found anything.
"""

THRESHOLDS = """## Thresholds

*Evidence* says where a number comes from: **V** was read in its source, **A** in an abstract or a secondary page, **K**
is general knowledge, and **default** is an engineering choice. A number without a unit is a similarity, a probability
or a score of a classifier.
"""


# What each threshold means, by its name, or by cue and name where a name is used in several ways.
MEANINGS = {
    "delay_s": "least silence before a late answer",
    "after_statement_s": "least silence before a late answer to a statement",
    "no_response.after_statement_s": "least silence that counts as no answer to a request or a statement",
    "no_response.silence_s": "least silence that counts as no answer",
    "voice_active_s": "least time for which the person already speaks",
    "talks_on_s": "least time for which the robot talks on",
    "robot_cuts_in.talks_on_s": "least time for which the person speaks on",
    "robot_cuts_in.resumes_s": "most time until a person who paused goes on",
    "robot_cuts_in.pause_s": "most pause after words that leave a sentence open",
    "waits_for_end.pause_s": "least pause after an unfinished sentence",
    "long_s": "least pause that counts as long",
    "most_s": "longest pause that counts",
    "words": "least words in the turn",
    "user_repair.words": "most words in the request",
    "protest.words": "most words in the protest",
    "monologue.words": "least words without a reply",
    "length_s": "least length without a reply",
    "user_repair.within_s": "most time after the robot's turn",
    "protest.within_s": "most time after the robot's turn",
    "admits.within_s": "most time since the robot's turn that it is about",
    "no_greeting.within_s": "most time in which a greeting is due",
    "sound": "the least likeness of two names by sound that a recognizer may confuse",
    "no_apology.certain": "least score of the protest",
    "similarity": "least similarity to the earlier turn",
    "follow_up_question.similarity": "least similarity to what the person told",
    "robot_repeats.turns": "robot turns back in which a repetition counts",
    "away_s": "least time for which the person looks away",
    "lost_s": "least time for which nobody is seen",
    "answer_s": "longest answer to the last words of a person who leaves",
    "alone_s": "least time for which nobody is seen or heard, so that a turn is said to nobody",
    "distance_m": "distance that counts as too near",
    "lasting_s": "least time at that distance",
    "walks_m_s": "speed of an approach from which the person came, not the robot",
    "approach_s": "time over which that speed is measured",
}


def cues_page() -> str:
    """Generate the page from the shipped table."""
    table = ThresholdTable.shipped()
    return "\n".join((HEAD, f"The shipped table has version {table.version}.", *_tables(table))) + "\n"


def _tables(table: ThresholdTable) -> Iterator[str]:
    yield from ("", "## Errors", "", *_head("cue", "finds", "attributes", "severity"))
    for name, cue in table.cues.items():
        if cue.polarity is Polarity.ERROR:
            yield _row(f"`{name}`", cue.finds, _attributes(cue), cue.severity)
    yield from ("", "## Competences", "", *_head("cue", "finds", "attributes"))
    for name, cue in table.cues.items():
        if cue.polarity is Polarity.COMPETENCE:
            yield _row(f"`{name}`", cue.finds, _attributes(cue))
    yield from ("", THRESHOLDS, *_head("cue", "threshold", "value", "meaning", "evidence"))
    for name, cue in table.cues.items():
        for key, threshold in cue.thresholds.items():
            evidence = f"{threshold.evidence}: {threshold.source}"
            yield _row(f"`{name}`", f"`{key}`", _value(threshold), _meaning(name, key), evidence)


def _meaning(cue_id: str, key: str) -> str:
    family = "protest" if cue_id == "misunderstood" or cue_id.startswith("protest_") else cue_id
    family = "admits" if cue_id == "apologised_for" or cue_id.startswith("admits_") else family
    return MEANINGS.get(f"{family}.{key}") or MEANINGS[key]


def _attributes(cue: Cue) -> str:
    return ", ".join(attribute.replace("_", " ") for attribute in cue.attributes)


def _value(threshold: Threshold) -> str:
    """Show the number with its unit, its Chinese value and the values from which severity rises."""
    unit = f" {threshold.unit}" if threshold.unit else ""
    if threshold.value == 1 and threshold.unit in {"words", "turns"}:
        unit = unit.removesuffix("s")
    more = [] if threshold.zh is None else [f"Chinese: {threshold.zh:g}{unit}"]
    more += [f"{severity} from {least:g}{unit}" for severity, least in threshold.bands.items()]
    return "; ".join((f"{threshold.value:g}{unit}", *more))


def _head(*titles: str) -> tuple[str, str]:
    return _row(*titles), f"|{'---|' * len(titles)}"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def ros_api_page() -> str:
    """Return the page of topics, services and actions."""
    return _generate("ros_api")


def parameters_page() -> str:
    """Return the page of ROS parameters."""
    return _generate("parameters")


def _generate(page: str) -> str:
    command = [sys.executable, "-m", "norm_nodes.reference_pages", page]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise TactfulError(f"page {page}: the nodes cannot be described: {done.stderr.strip()}; run ./tactful setup")
    return done.stdout


PAGES: Mapping[str, Callable[[], str]] = {
    "cues.md": cues_page,
    "parameters.md": parameters_page,
    "ros_api.md": ros_api_page,
    "status.md": status.page,
}

# These start nodes, and so need ROS.
ROS_PAGES = frozenset({"parameters.md", "ros_api.md"})
