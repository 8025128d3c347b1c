"""Counts and outcomes in sentences."""

import pytest

from norm_core.records.outcome import Outcome
from norm_core.runtime.wording import count_of, in_words


@pytest.mark.parametrize(
    ("number", "noun", "plural", "text"),
    [
        (0, "social error", "", "0 social errors"),
        (1, "social error", "", "1 social error"),
        (1, "entry", "entries", "1 entry"),
        (2, "entry", "entries", "2 entries"),
    ],
)
def test_a_count_has_its_noun_in_the_right_number(number: int, noun: str, plural: str, text: str) -> None:
    assert count_of(number, noun, plural) == text


@pytest.mark.parametrize("outcome", Outcome)
def test_an_outcome_reads_as_the_end_of_a_sentence(outcome: Outcome) -> None:
    assert "_" not in f"the model {outcome.predicate}"


def test_a_timeout_is_two_words() -> None:
    assert in_words("timed_out") == "timed out" == Outcome.TIMED_OUT.predicate
