from norm_monitor.context.meaning import Meanings
from norm_monitor.fusion.explanation import explain
from tests.norm_monitor.encounter_talk import Watched, last_of, robot, user


def test_an_explanation_says_what_was_measured_against_what(meaning: Meanings) -> None:
    flags = Watched(meaning).watch(
        user(0, 2, "Where can I buy a ticket?"), robot(6.5, 9, "At the counter, over there.")
    )
    text = explain(last_of(flags)["response_delay"])
    assert text.startswith("Major social error (conversational mechanics)")
    assert "4.5 s against a threshold of 2 s, in “Where can I buy a ticket?”" in text
    assert "Instead: Answer within two seconds" in text
    assert "from cues alone (response_delay)" in text
