"""What sentences mean, by the shipped concepts: sentences that no example has, and their nearest opposites."""

from collections import Counter

import pytest
from pydantic import ValidationError

from norm_monitor.context.meaning import Concepts, EncoderMatcher
from norm_monitor.context.wording import sentences


@pytest.mark.parametrize(
    ("concept", "sentence"),
    [
        ("amends", "I should have let you speak first."),
        ("amends", "That was thoughtless of me, and I take it back."),
        ("amends", "我刚才说错了，对不起。"),
        ("greeting", "Good morning, madam."),
        ("farewell", "Goodbye, and see you on Monday."),
    ],
)
def test_what_no_example_says_is_still_understood(meaning: EncoderMatcher, concept: str, sentence: str) -> None:
    assert meaning.match(sentence, concept)


@pytest.mark.parametrize(
    ("concept", "sentence"),
    [
        ("amends", "The kitchen is on the second floor."),
        ("amends", "Sorry, the cafe is closed."),
        ("protest", "That one is fine."),
        ("protest", "Very quiet, with a little mist."),
        ("stop", "Where is the bus stop?"),
    ],
)
def test_what_only_sounds_like_it_is_not_taken_for_it(meaning: EncoderMatcher, concept: str, sentence: str) -> None:
    assert not meaning.match(sentence, concept)


def test_an_example_is_known_by_heart(meaning: EncoderMatcher) -> None:
    concepts = Concepts.shipped().concepts
    told = Counter(example for concept in concepts.values() for example in concept.like)
    for name in concepts.keys() - {"ordinary"}:
        single = [e for e in concepts[name].like if told[e] == 1 and len(sentences(e)) == 1]
        missed = [example for example in single if not meaning.match(example, name)]
        assert not missed, (name, missed)


@pytest.mark.parametrize(
    "concepts", [{"a": {"like": ["Hello"], "kin": ["b"]}}, {"a": {"of": ["b"]}}, {"a": {"unlike": ["Hello"]}}]
)
def test_concepts_that_name_what_is_not_there_are_refused(concepts: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Concepts.model_validate({"version": "1", "concepts": concepts})
