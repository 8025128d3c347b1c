"""The results in the suites' papers, as data with sources."""

from typing import Any

from pydantic import Field, model_validator

from norm_core.runtime.config import Config, load_config
from sim_replays.suites.suite import Suite
from sim_replays.suites.target import SuiteError

Row = tuple[float, ...]


class PublishedTable(Config):
    """One table, with a value per column in percent or out of 5. Spreads stand beside values where reported."""

    name: str
    source: str
    columns: tuple[str, ...]
    rows: dict[str, Row]
    spreads: dict[str, Row] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _whole(self) -> "PublishedTable":
        for name, values in (*self.rows.items(), *self.spreads.items()):
            if len(values) != len(self.columns):
                raise ValueError(f"{name} has {len(values)} values for {len(self.columns)} columns")
        return self

    def cells(self, row: str, columns: tuple[str, ...]) -> list[str]:
        """Format the row's values in column order. Empty where the paper reports none."""
        values = dict(zip(self.columns, self.rows[row], strict=True))
        spreads = dict(zip(self.columns, self.spreads[row], strict=True)) if row in self.spreads else {}
        told = {name: f"{value:g}" for name, value in values.items()}
        told |= {name: f"{told[name]} ± {spread:g}" for name, spread in spreads.items()}
        return [told.get(column, "") for column in columns]


class Published(Config):
    """The tables of one paper, the main one first. `columns` apply to tables that name none."""

    columns: tuple[str, ...]
    tables: tuple[PublishedTable, ...] = Field(min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _columns_of_each(cls, plain: Any) -> Any:
        if not isinstance(plain, dict):
            return plain
        tables = [{"columns": plain.get("columns"), **table} for table in plain.get("tables", ())]
        return {**plain, "tables": tables}

    def table(self, name: str = "") -> PublishedTable:
        """Return the named table, or the main one for an empty name."""
        found = next((table for table in self.tables if table.name == name), None) if name else self.tables[0]
        if found is None:
            known = ", ".join(table.name for table in self.tables)
            raise SuiteError(f"the paper has no table {name!r} here; it has {known}")
        return found


def published_results(suite: Suite) -> Published | None:
    """Load the tables of a suite's paper; None where it names none."""
    return load_config(Published, suite.published) if suite.published else None
