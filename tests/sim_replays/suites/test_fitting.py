"""What is fitted on labels never answers for an image that it saw, and is never shown among what is not fitted."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from action_selector.choose.candidate_scoring import ScoringEvidence
from action_selector.choose.linear_scorer import LinearScorer, LinearScorerError
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from sim_replays.runs.execute import fit, run, selector_files
from sim_replays.runs.items.suite_items import RunConfig
from sim_replays.runs.results.run_folder import Run, finish, open_run
from sim_replays.runs.transport import Direct
from sim_replays.suites import egogapbench as suite
from sim_replays.suites import fitting
from sim_replays.suites.egogapbench import EgoGapSetting
from sim_replays.suites.target import SuiteError
from tactful_cli.bench.comparison import show_runs

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
    return fitting.fit(items, labels, encoder, setting, style="default", data_sha256="d", encoder_sha256="e")


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


def test_a_fitted_run_is_marked_and_shown_last(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    artefact = tmp_path / "fitted.json"
    fit(asked(data), artefact)
    one = ran(tmp_path / "fitted", asked(data), fitted=str(artefact))
    plain = ran(tmp_path / "plain", asked(data))
    assert one.is_fitted
    assert not plain.is_fitted
    assert "FITTED" in one.name
    assert "FITTED" not in plain.name
    assert finish(open_run(tmp_path / "fitted")).figures["overall"].value == 100.0
    notes = json.loads((tmp_path / "fitted/score.json").read_text())["notes"]
    assert any("FITTED on 30 labelled items of 30 images" in note for note in notes)
    capsys.readouterr()
    show_runs([tmp_path / "fitted", tmp_path / "plain"], "csv", as_json=False, table="")
    rows = capsys.readouterr().out.splitlines()
    assert ["FITTED" in row for row in rows] == [False] * (len(rows) - 1) + [True]


def test_weights_for_other_questions_are_refused(data: Path, tmp_path: Path) -> None:
    artefact = tmp_path / "fitted.json"
    fit(asked(data), artefact)
    renamed = asked(written(tmp_path / "renamed_default.bundles.jsonl", SCENES, "other"))
    with pytest.raises(SuiteError, match="fitted on, in an item that they do not know"):
        ran(tmp_path / "a", renamed, fitted=str(artefact))
    with pytest.raises(SuiteError, match="style default"):
        ran(tmp_path / "b", asked(data, style="exclusion"), fitted=str(artefact))
    with pytest.raises(SuiteError, match="nothing to fit on"):
        fit(asked(data, setting="images"), artefact)
    with pytest.raises(SuiteError, match="too few"):
        fit(asked(written(tmp_path / "few_default.bundles.jsonl", SCENES[:3])), artefact)
    with pytest.raises(SuiteError, match="nothing can be fitted on egonormia"):
        fit(asked(data, suite="egonormia"), artefact)


def test_an_artefact_that_is_none_says_so(data: Path, encoder: SentenceEncoder, tmp_path: Path) -> None:
    path = tmp_path / "fitted.json"
    with pytest.raises(LinearScorerError, match="bench fit"):
        LinearScorer.read(path, "e")
    path.write_text(fitted_on(data, encoder).model_dump_json())
    assert LinearScorer.read(path, "e").suite == "egogapbench"
    with pytest.raises(LinearScorerError, match="another encoder"):
        LinearScorer.read(path, "f")
    plain = json.loads(path.read_text())
    damages: list[dict[str, Any]] = [{"folds": []}, {"whole": {"counts": [1.0], "means": [0.0]}}, {"suite": 3}]
    for damage in damages:
        path.write_text(json.dumps({**plain, **damage}))
        with pytest.raises(LinearScorerError, match="is no artefact"):
            LinearScorer.read(path, "e")


def asked(data: Path, **fields: Any) -> RunConfig:
    return RunConfig(**{"suite": "egogapbench", "data": str(data), "setting": "blind", **fields})


def ran(out: Path, what: RunConfig, fitted: str = "") -> Run:
    files = selector_files("encoder", fitted=fitted)
    return run(out, what, files, Direct(files), how="direct", progress=lambda done, total: None)[0]
