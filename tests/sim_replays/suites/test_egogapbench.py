import random
from pathlib import Path

import pytest

from action_selector.decider import Decider
from action_selector.queries import convert_query, extract_answer
from action_selector.selector_config import SelectorConfig, WhenUnsure
from norm_core.engines.request_context import Deadline
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.records.episode import Answer
from norm_core.runtime.time import ReplayClock
from sim_replays.items.target import SuiteError, Target
from sim_replays.suites import egogapbench as suite
from sim_replays.suites.egogapbench import EgoGapItem, EgoGapKind, EgoGapSetting

CONFIG = SelectorConfig(when_unsure=WhenUnsure.BEST_EFFORT)


@pytest.fixture(scope="module")
def encoder() -> SentenceEncoder:
    return SentenceEncoder(cache_size=20_000)


@pytest.fixture
def pairs(shared_data: Path) -> tuple[list[EgoGapItem], list[Target]]:
    return suite.read(shared_data / "egogapbench")


def answers(
    items: list[EgoGapItem], encoder: SentenceEncoder, setting: EgoGapSetting = EgoGapSetting.OTHERS
) -> dict[str, Answer]:
    decider = Decider(encoder, CONFIG)
    found = {}
    for item in items:
        query = suite.make_query(item, setting)
        decision = decider.decide(convert_query(query), Deadline(ReplayClock())).decision
        found[item.uid] = extract_answer(decision, query)
    return found


def test_items_carry_no_label(pairs: tuple[list[EgoGapItem], list[Target]]) -> None:
    items, targets = pairs
    assert len(items) == len(targets) == 590
    for item in items[:20]:
        assert not any(kind in repr(suite.make_query(item, EgoGapSetting.OTHERS)) for kind in EgoGapKind)


def test_each_item_is_answered_alone(pairs: tuple[list[EgoGapItem], list[Target]], encoder: SentenceEncoder) -> None:
    items = pairs[0][:60]
    shuffled = random.Random(3).sample(items, len(items))
    together, apart = answers(items, encoder), answers(shuffled, encoder)
    assert {uid: one.probabilities for uid, one in together.items()} == {
        uid: one.probabilities for uid, one in apart.items()
    }
    fresh = SentenceEncoder(cache_size=16)
    for item in items[::20]:
        alone = answers([item], fresh)[item.uid]
        assert (alone.chosen, alone.probabilities) == (together[item.uid].chosen, together[item.uid].probabilities)


def test_others_given_do_what_was_promised(
    pairs: tuple[list[EgoGapItem], list[Target]], encoder: SentenceEncoder
) -> None:
    """On the first hundred items, as a guard; `bench run egogapbench` gives the figures."""
    items, targets = pairs[0][:100], pairs[1][:100]

    def right(setting: EgoGapSetting) -> int:
        chosen = answers(items, encoder, setting)
        return sum(chosen[target.id].chosen == target.right for target in targets)

    assert right(EgoGapSetting.OTHERS) >= 70
    assert right(EgoGapSetting.BLIND) <= 50


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
