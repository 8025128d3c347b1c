"""What the papers report, typed in as data with its source."""

from pathlib import Path

from pydantic import model_validator

from norm_core.config import Config, load

_HERE = Path(__file__).parent


class Published(Config):
    """One paper's table; a row has a value a column, in percent where its figures are."""

    source: str
    columns: tuple[str, ...]
    rows: dict[str, tuple[float, ...]]

    @model_validator(mode="after")
    def _whole(self) -> "Published":
        for name, values in self.rows.items():
            if len(values) != len(self.columns):
                raise ValueError(f"the row {name} has {len(values)} values for {len(self.columns)} columns")
        return self


def published(suite: str) -> Published:
    """The rows of a suite's paper."""
    return load(Published, _HERE / f"{suite}.yaml")
