"""The page of cues, from the table of thresholds."""

from collections.abc import Iterator

from norm_core.records.flag import Polarity
from norm_monitor.cues.threshold_table import Cue, Threshold, ThresholdTable

HEAD = """# Cues

What the monitor looks for without a judge. `./tactful api` generates this page from the table of thresholds; do not
edit it. [Tune cues](../how-to/cues.md) shows how to mute a cue or change a number, and
[custom_cue.py](../../examples/custom_cue.py) how to add one.

A cue yields findings. Findings about one incident become one flag.
"""

PROBABILITIES = """## Probabilities

- **Probability**: how likely a finding of this cue is right. Some cues compute a lower one where the evidence is weak.
  The monitor raises a flag from `fusion.confidence_floor` on. A finding below it goes to the judge only.
- **Discount below**: the exchange classifier rates the robot's turn too. If it agrees with the finding less than this,
  the finding counts 0.4 at most.
- **Cooldown**: for this long after the onset of a flag, a further finding of the same cue raises none.
"""

THRESHOLDS = """## Thresholds

*Evidence* says where a number comes from: **V** was read in its source, **A** in an abstract or a secondary page, **K**
is general knowledge, and **default** is an engineering choice. A number without a unit is a similarity, a probability
or a score of a classifier.
"""


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
    yield from ("", PROBABILITIES, *_head("cue", "probability", "discount below", "cooldown"))
    for name, cue in table.cues.items():
        cooldown = f"{cue.cooldown_s:g} s" if cue.cooldown_s else ""
        yield _row(
            f"`{name}`", f"{cue.probability:g}", f"{cue.discount_below:g}" if cue.discount_below else "", cooldown
        )
    yield from ("", THRESHOLDS, *_head("cue", "threshold", "value", "evidence", "source"))
    for name, cue in table.cues.items():
        for key, threshold in cue.thresholds.items():
            yield _row(f"`{name}`", f"`{key}`", _value(threshold), threshold.evidence, threshold.source)


def _attributes(cue: Cue) -> str:
    return ", ".join(attribute.replace("_", " ") for attribute in cue.attributes)


def _value(threshold: Threshold) -> str:
    """Show the number with its unit, its Chinese value and the values from which severity rises."""
    unit = f" {threshold.unit}" if threshold.unit else ""
    more = [] if threshold.zh is None else [f"Chinese: {threshold.zh:g}{unit}"]
    more += [f"{severity} from {least:g}{unit}" for severity, least in threshold.bands.items()]
    return "; ".join((f"{threshold.value:g}{unit}", *more))


def _head(*titles: str) -> tuple[str, str]:
    return _row(*titles), f"|{'---|' * len(titles)}"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
