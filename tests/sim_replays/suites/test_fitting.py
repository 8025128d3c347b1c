"""What is fitted on labels never answers for an image that it saw."""

import json
from pathlib import Path

import numpy as np
import pytest

from action_selector.choose.candidate_scoring import ScoringEvidence
from action_selector.choose.linear_scorer import LinearScorer
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from sim_replays.suites import egogapbench as suite
from sim_replays.suites.egogapbench import EgoGapSetting, fitting
from sim_replays.suites.target import SuiteError

SCENES = [
    (str(number), ["Carry the ball away.", "Wave to the crowd."][:: 1 if number % 2 else -1], number % 2)
    for number in range(30)
]


@pytest.fixture(scope="module")
def encoder() -> SentenceEncoder:
    return SentenceEncoder()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Thirty images with a question each, whose right option is known by its wording."""
    return written(tmp_path / "made_default.bundles.jsonl", SCENES)


def written(path: Path, scenes: list[tuple[str, list[str], int]], name: str = "q") -> Path:
    bundles = []
    for image, options, right in scenes:
        entry = {
            "uid": f"{image}:{name}",
            "options": dict(zip("ABC", options, strict=False)),
            "option_labels": {"AB"[right]: "correct"},
            "correct_letter": "AB"[right],
            "cand_kind": "direct",
        }
        agents = {"A": {"role": "player", "engagement": "carrying the ball away"}}
        bundles.append({"image_id": image, "captions": ["A match."], "agents": agents, "mcq_items": [entry]})
    path.write_text("".join(f"{json.dumps(bundle)}\n" for bundle in bundles))
    return path


def fitted_on(data: Path, encoder: SentenceEncoder, setting: EgoGapSetting = EgoGapSetting.BLIND) -> LinearScorer:
    items, labels = suite.read(data)
    return fitting.fit(items, labels, encoder, setting)


def test_an_image_is_never_answered_by_what_was_fitted_on_it(
    data: Path, encoder: SentenceEncoder, tmp_path: Path
) -> None:
    """Turning one image's labels about changes every model but the one that answers for it."""
    turned = [(image, options, 1 - right if image == "7" else right) for image, options, right in SCENES]
    before = fitted_on(data, encoder)
    after = fitted_on(written(tmp_path / "turned_default.bundles.jsonl", turned), encoder)
    mine = before.fold_of["7:q"]
    same = [one == other for one, other in zip(before.folds, after.folds, strict=True)]
    assert same == [fold == mine for fold in range(fitting.FOLDS)]
    assert before.whole != after.whole


def test_what_is_in_no_fold_is_answered_by_the_whole(data: Path, encoder: SentenceEncoder) -> None:
    made = fitted_on(data, encoder, EgoGapSetting.OTHERS)
    evidence = ScoringEvidence(others_do=("player, carrying the ball away",))
    options = SCENES[1][1]
    unknown = made.score(encoder, options, evidence, "of elsewhere")
    known = made.score(encoder, options, evidence, "7:q")
    assert not np.array_equal(unknown, known)
    assert np.array_equal(unknown, made.model_copy(update={"fold_of": {}}).score(encoder, options, evidence, "7:q"))


@pytest.mark.parametrize(
    ("setting", "count", "problem"), [("images", 30, "nothing to fit on"), ("blind", 3, "too few")]
)
def test_what_is_not_fitted_on_says_so(
    tmp_path: Path, encoder: SentenceEncoder, setting: EgoGapSetting, count: int, problem: str
) -> None:
    path = written(tmp_path / "few_default.bundles.jsonl", SCENES[:count])
    with pytest.raises(SuiteError, match=problem):
        fitted_on(path, encoder, EgoGapSetting(setting))
