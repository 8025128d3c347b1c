"""Fits on people's verdicts: what a turn shows, and corpora that are left out whole."""

from dataclasses import replace

import numpy as np
import pytest

from calibration.verdict_fit import INVENTED, VerdictCorpus, area, features, fit, left_out
from norm_monitor.context.exchange import Exchange
from norm_monitor.context.meaning import EncoderMatcher

LITTLE, MUCH = 0.1, 0.9
NAMES = ["relevance.cosine", "form.length"]
ASKED = "Which bus goes to the station?"


def corpus(name: str, sign: float, offset: float, scale: float, seed: int) -> VerdictCorpus:
    """Return a corpus in which relevance tells, with verdicts and features of its own level and scale."""
    random = np.random.default_rng(seed)
    rows = random.normal(size=(300, 2))
    verdicts = offset + scale * (sign * rows[:, 0] + random.normal(size=300) / 4)
    return VerdictCorpus(
        name=name,
        features=rows + 10 * offset,
        verdicts=verdicts,
        is_fault=verdicts > offset,
        groups=np.array([str(place // 2) for place in range(300)]),
    )


@pytest.fixture(scope="module")
def meaning() -> EncoderMatcher:
    return EncoderMatcher.shipped()


def test_corpora_of_other_levels_and_scales_teach_the_same_reading() -> None:
    mild, harsh = corpus("mild", -1, 0.1, 0.02, 1), corpus("harsh", -1, 0.8, 0.1, 2)
    weights = fit([mild, harsh], [0, 1])
    assert weights[0] < 0
    assert abs(weights[1]) < abs(weights[0]) / 10
    assert fit([mild], [1]).shape == (1,)


def test_a_corpus_that_is_left_out_teaches_nothing_about_itself() -> None:
    people = [corpus("a", -1, 0.1, 0.1, 1), corpus("b", -1, 0.5, 0.1, 2), corpus("opposite", 1, 0.5, 0.1, 3)]
    teacher = replace(people[2], verdicts=people[2].verdicts)  # of the same turns, so left out with them
    invented = corpus(INVENTED, 1, 0.5, 0.1, 4)
    scores = left_out(people, [teacher], invented, NAMES)
    areas = {how: area(people[2], values)[0] for how, values in scores["opposite"].items()}
    assert areas["people"] < LITTLE < MUCH < areas["own talks"]
    assert areas["invented"] > MUCH
    assert areas["relevance alone"] < LITTLE
    assert len(scores[INVENTED]["people"]) == 150  # the odd talks
    value, (low, high) = area(people[0], scores["a"]["own talks"])
    assert low < value < high


def test_what_a_turn_shows_has_names(meaning: EncoderMatcher) -> None:
    fine = Exchange(before=ASKED, said="Bus nine goes to the station.", after="Thank you!", earlier="Hello.")
    again = Exchange(before=ASKED, said="I like cheese.", after="Which bus goes to the station, please?")
    good, bad = features(fine, meaning), features(again, meaning)
    assert list(good) == list(bad)
    assert good["relevance.cosine"] > bad["relevance.cosine"]
    assert bad["relevance.ignores_question"] > good["relevance.ignores_question"]
    assert bad["following.rephrases"] > 0.8 > good["following.rephrases"]
    assert good["following.thanks"] > bad["following.thanks"]
    silent = features(Exchange(before="", said="Hello.", opening=True), meaning)
    assert (silent["following.there"], silent["relevance.is_reply"], silent["form.opening"]) == (0, 0, 1)
