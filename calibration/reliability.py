"""Show how often stated probabilities are right."""

from collections.abc import Iterable

from rich.table import Table

from scoring.probabilities import Bin


def reliability_table(title: str, bins: Iterable[Bin]) -> Table:
    """Make a table of how often what is stated is right, a row for each tenth of probability."""
    table = Table("stated", "n", "mean", "right", "", title=f"reliability: {title}")
    for part in bins:
        figures = (f"{part.low:.1f} to {part.high:.1f}", str(part.count), f"{part.confidence:.2f}", f"{part.right:.2f}")
        table.add_row(*figures, "█" * round(20 * part.right))
    return table
