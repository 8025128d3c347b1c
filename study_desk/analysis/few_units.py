"""Warn where a study has too few participants for the intervals of its rates, or for cluster-robust errors.

The two limits are measured: docs/decisions.md#intervals-of-rates. analysis.R and analysis.py repeat them.
"""

from collections.abc import Iterator

from norm_core.runtime.wording import count_of
from study_desk.analysis.event_rates import by_cluster, grouped
from study_desk.analysis.study_tables import StudyTables

FEW_UNITS = 5  # below, Student's t makes an interval over 1.6 times as long as with many participants
FEW_CLUSTERS = 30  # below, a normal interval with robust errors holds the true ratio in under 93 % of studies


def few_units(tables: StudyTables) -> Iterator[str]:
    """Yield a warning for the conditions with few units, and one for few clusters in the whole study."""
    rows = [row for row in tables.analysed if row["minutes"] > 0]
    units = {name: len(by_cluster(of, "minutes")) for name, of in grouped(rows, lambda r: r["condition"]).items()}
    if few := {name: number for name, number in units.items() if number < FEW_UNITS}:
        named = ", ".join(f"{count_of(number, 'unit')} in {name or 'no condition'}" for name, number in few.items())
        yield (
            f"{named}: with fewer than {FEW_UNITS} units (participants, or groups who share sessions), an interval "
            "says little. With 2 units it is 6 times as long as with many. With 1 unit it leaves out how participants "
            "differ. Show counts, not conclusions."
        )
    clusters = len(by_cluster(rows, "minutes"))
    if 0 < clusters < FEW_CLUSTERS:
        yield (
            f"{count_of(clusters, 'cluster')}: with fewer than {FEW_CLUSTERS} clusters, std_error_robust of analysis.R "
            "and analysis.py is too small. Take Student's t with clusters - 1 degrees of freedom, and even so expect "
            "intervals that are too short."
        )
