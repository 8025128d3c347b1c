"""Rude turns of the robot are errors with advice that fits; curt turns are not."""

import pytest

from norm_core.records.flag import Attribute, FlagState, Polarity, Severity, SocialFlag
from norm_monitor.context.meaning import Meanings
from tests.norm_monitor.encounter_talk import Watched, robot, user

RUDE = (
    "Are you stupid? It is on page one.",
    "Then you should have listened.",
    "I am not going to repeat myself for you.",
    "Stop whining and hold still.",
    "How many times do I have to tell you?",
    "You clearly did not pay attention.",
    "Pull yourself together, it is just a blood test.",
)
CURT = (
    "Are you sure? It is on page one.",
    "Then you should have a letter from us.",
    "I am going to repeat it for you.",
    "Stop here and hold still, please.",
    "How many times do you take it?",
    "I am sorry, I said you were stupid.",
    "Next, please.",
)


def _newest(meaning: Meanings, said: str, answer: str = "") -> list[SocialFlag]:
    answered = [user(6.0, 7.0, answer)] if answer else []
    flags = Watched(meaning).watch(user(0, 2, "Where do I find the form?"), robot(3, 5, said), *answered, until_s=11)
    newest = {flag.event_id: flag for flag in flags}
    return [flag for flag in newest.values() if flag.state is not FlagState.WITHDRAWN]


@pytest.mark.parametrize("said", RUDE)
def test_rude_turn_is_a_major_error_with_fitting_advice(meaning: Meanings, said: str) -> None:
    error = next(flag for flag in _newest(meaning, said) if flag.polarity is Polarity.ERROR)
    assert (error.cue_id, error.severity) == ("rude", Severity.MAJOR)
    assert Attribute.SOCIAL_NORMS_AND_ROUTINES in error.attributes
    assert "respect" in error.correction


@pytest.mark.parametrize("said", CURT)
def test_curt_turn_is_not_rude(meaning: Meanings, said: str) -> None:
    assert not any(flag.cue_id == "rude" for flag in _newest(meaning, said))


def test_no_repair_is_advised_after_a_rude_turn(meaning: Meanings) -> None:
    flags = _newest(meaning, "Are you stupid? It is on page one.", "Sorry, what did you say?")
    assert [flag.correction for flag in flags if flag.polarity is Polarity.ERROR] == [
        "Say it with respect, or leave it out."
    ]
