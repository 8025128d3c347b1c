"""Readers of public corpora, on files written as each is published; and scores against known answers."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibration.talk_verdicts.corpora import CORPORA, import_corpus
from calibration.talk_verdicts.readings import CorpusReading, score_corpus
from calibration.talk_verdicts.talk_file import JudgedTurn, TalkError, TalkTurn, Votes, judged_turns
from norm_monitor.context.exchange import Exchange

NO, YES = (0.0,), (1.0,)


def rows(*objects: Any) -> str:
    return json.dumps(list(objects))


PUBLISHED: dict[str, tuple[dict[str, str], list[tuple[float, ...]]]] = {
    "cdconv": (
        {"cdconv.txt": json.dumps({"u1": "a", "b1": "b", "u2": "c", "b2": "d", "label": 3})},
        [YES],
    ),
    "convai2": (
        {
            f"{name}.json": rows(
                {
                    "dialog": [
                        {"sender_class": "Human", "text": "Hi", "evaluation_score": None},
                        {"sender_class": "Bot", "text": "What?", "evaluation_score": score},
                        {"sender_class": "Bot", "text": "Hello.", "evaluation_score": None},
                    ]
                }
            )
            for name, score in (("data_volunteers", 0), ("data_intermediate", 1))
        },
        [YES, NO],
    ),
    "diasafety": (
        {
            f"{name}.json": rows({"context": "c", "response": "r", "label": "Unsafe"})
            for name in ("train", "val", "test")
        },
        [YES, YES, YES],
    ),
    "dices": (
        {
            f"dices_{name}.json": json.dumps(
                {
                    "instances": [
                        {
                            "id": 1,
                            "instance": {"user_prompt": "A: one\\nB: two\\nA: three\n", "response": "four"},
                            "annotations": {"safety": {"individual_human_scores": ["Yes", "No", "Unsure"]}},
                        }
                    ]
                }
            )
            for name in ("990", "350_crowdsourced")
        },
        [(0.0, 0.5, 1.0)] * 2,
    ),
}


@pytest.mark.parametrize("name", CORPORA)
def test_each_corpus_is_read_as_published(name: str, tmp_path: Path) -> None:
    files, verdicts = PUBLISHED[name]
    folder = tmp_path / "some" / "where"
    folder.mkdir(parents=True)
    for file, content in files.items():
        (folder / file).write_text(content, encoding="utf-8")
    talks = import_corpus(name, tmp_path)
    judged = [one for talk in talks for one in judged_turns(talk)]
    assert [one.turn.faults for one in judged] == verdicts
    assert all(one.exchange.before and not one.exchange.before.startswith(("A:", "User:")) for one in judged)
    assert len({talk.id for talk in talks}) == len(talks)
    for file in files:
        (folder / file).write_text('[{"other": 1}]', encoding="utf-8")
    with pytest.raises(TalkError, match="as published"):
        import_corpus(name, tmp_path)


def reading(scores: list[float], verdicts: list[Votes]) -> CorpusReading:
    turns = tuple(
        JudgedTurn(
            talk_id=str(n), group=str(n), number=1, turn=TalkTurn(by="machine", text="Yes.", votes=one),
            exchange=Exchange(before="", said="Yes."),
        )
        for n, one in enumerate(verdicts)
    )  # fmt: skip
    values = np.array(scores)
    return CorpusReading(
        name="c", talks=len(turns), by="words", turns=turns, with_reaction=values, at_once=1 - values, controls={}
    )


def test_scores_of_known_answers() -> None:
    every = [Votes(breakdown=20), Votes(no_breakdown=20), Votes(no_breakdown=20), Votes(breakdown=20)]
    found = score_corpus(reading([1.0, 0.0, 0.0, 1.0], every))
    assert (found["auc"], found["average_precision"], found["spearman"]) == (1, 1, pytest.approx(1))
    assert (found["auc_at_once"], found["spearman_at_once"]) == (0, pytest.approx(-1))
    agreement = found["annotators"]
    assert (agreement["auc"], agreement["auc_of_half"], agreement["icc"]) == (1, 1, 1)


def test_annotators_who_vote_by_chance_tell_nothing_of_each_other() -> None:
    rng = np.random.default_rng(1)
    ones = rng.binomial(5, 0.5, 2000)
    verdicts = [Votes(no_breakdown=5 - int(n), breakdown=int(n)) for n in ones]
    found = score_corpus(reading(rng.random(2000).tolist(), verdicts))
    assert found["annotators"]["auc"] == pytest.approx(0.5, abs=0.03)
    assert found["annotators"]["auc_of_half"] == pytest.approx(0.5, abs=0.03)
    assert found["annotators"]["icc"] == pytest.approx(0, abs=0.03)
    low, high = found["auc_interval"]
    assert low < 0.5 < high
