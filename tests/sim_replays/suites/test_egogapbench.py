from pathlib import Path

import pytest

from sim_replays.items.target import SuiteError, Target
from sim_replays.suites import egogapbench as suite
from sim_replays.suites.egogapbench import EgoGapItem, EgoGapKind, EgoGapSetting


@pytest.fixture
def pairs(shared_data: Path) -> tuple[list[EgoGapItem], list[Target]]:
    return suite.read(shared_data / "egogapbench")


def test_items_carry_no_label(pairs: tuple[list[EgoGapItem], list[Target]]) -> None:
    items, targets = pairs
    assert len(items) == len(targets) == 590
    for item in items[:20]:
        assert not any(kind in repr(suite.make_query(item, EgoGapSetting.OTHERS)) for kind in EgoGapKind)


def test_swapped_others_come_from_another_image(pairs: tuple[list[EgoGapItem], list[Target]]) -> None:
    items, _ = pairs
    theirs = {item.image: item.others for item in items}
    for seed in (0, 1):
        swapped = suite.swap_others(items, seed)
        assert sorted(map(repr, swapped.values())) == sorted(map(repr, theirs.values()))
        assert sum(swapped[image] == theirs[image] for image in theirs) == 0
    assert suite.swap_others(items, 0) != suite.swap_others(items, 1)


def test_a_file_that_is_none_says_so(tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match="egoplan"):
        suite.read(tmp_path, "egoplan")
    (tmp_path / "dev_default.bundles.jsonl").write_text('{"image_id": 1}\n')
    with pytest.raises(SuiteError, match="KeyError"):
        suite.read(tmp_path)
