"""Whether several publishers send, by the numbers of their messages and a passed-in clock."""

import pytest
from norm_nodes.tools.topic_survey import Senders


@pytest.mark.parametrize(
    ("numbers", "several"),
    [
        ([1, 2, 3, 4, 5, 6], False),
        ([7, 8, 9, 1, 2, 3], False),  # the first was killed, and came back
        ([1, 4, 9], False),  # messages that were lost
        ([7, 1, 8, 2, 9, 3], True),
        ([1, 1, 2, 2], True),
        ([None, None, None], True),
    ],
)
def test_numbers_of_one_publisher_only_rise(numbers: list[int | None], several: bool) -> None:
    now_s = 0.0
    senders = Senders(lambda: now_s)
    for number in numbers:
        now_s += 0.1
        senders.add({"publication_sequence_number": number})
    assert senders.are_several() is several
    now_s += 10
    assert not senders.are_several()
