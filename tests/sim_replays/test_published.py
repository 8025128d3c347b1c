"""The papers' tables, typed in: whole, and consistent with themselves where the papers are."""

import pytest

from norm_core.runtime.config import ConfigError, check_config
from sim_replays.suites.report import Published, published_results
from sim_replays.suites.suite import OURS, suite_called
from sim_replays.suites.target import SuiteError


def paper_of(suite: str) -> Published:
    paper = published_results(suite_called(suite))
    assert paper
    return paper


@pytest.mark.parametrize("suite", OURS)
def test_the_main_table_has_the_suite_s_columns(suite: str) -> None:
    paper = paper_of(suite)
    assert paper.table().columns == paper.columns
    # HSRI is also reported in unit form, which no paper has.
    assert tuple(name for name in suite_called(suite).columns if not name.startswith("units_")) == paper.columns
    names = [table.name for table in paper.tables]
    assert len(set(names)) == len(names)
    for table in paper.tables:
        assert " table" in table.source
        assert table.rows


def test_egogapbench_accuracy_and_errors_of_n4_partition_it() -> None:
    for name in ("main", "tuned"):
        for values in paper_of("egogapbench").table(name).rows.values():
            assert sum(values[place] for place in (2, 5, 6)) == pytest.approx(100, abs=0.35)


def test_both_is_never_more_than_either() -> None:
    paper = paper_of("egonormia")
    assert (len(paper.table("full").rows), len(paper.table("verified").rows)) == (33, 33)
    for name in ("full", "verified", "robot", "retrieval", "frames"):
        for both, action, justification, _ in paper.table(name).rows.values():
            assert both <= min(action, justification) + 0.05


def test_videonorms_macro_f1_is_the_mean_of_its_classes() -> None:
    for name, row in paper_of("videonorms").table().rows.items():
        # The paper's own figure for US Intern3-VL is 0.45 above that mean.
        assert row[2] == pytest.approx((row[0] + row[1]) / 2, abs=0.5 if name == "US: Intern3-VL" else 0.11)
        assert row[5] == pytest.approx((row[3] + row[4]) / 2, abs=0.11)
    assert all(len(paper_of("videonorms").table(name).rows) == 28 for name in ("us-shows", "cn-shows"))


def test_hsri_has_every_model_and_the_human() -> None:
    table = paper_of("hsri").table()
    assert len(table.rows) == 18
    assert table.cells("(L+V) o1", ("rationale", "nothing"))[0] == "44 ± 10"
    assert table.cells("Human", ("pre",)) == ["77"]
    for row in table.rows.values():
        assert row[4] <= row[6]  # a set that is exact is also partly right


def test_a_table_that_is_none_or_broken_is_told() -> None:
    with pytest.raises(SuiteError, match="it has full, verified, robot"):
        paper_of("egonormia").table("half")
    plain = {"columns": ["a"], "tables": [{"name": "t", "source": "s", "rows": {"x": [1, 2]}}]}
    with pytest.raises(ConfigError, match="x has 2 values for 1 columns"):
        check_config(Published, plain, "here")
