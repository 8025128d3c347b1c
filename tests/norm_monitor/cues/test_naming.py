"""A name that may only have been misheard is no major error of the robot's."""

import pytest

from norm_core.records.flag import FlagState, Severity, SocialFlag
from norm_monitor.context.meaning import EncoderMatcher
from tests.norm_monitor.encounter_talk import Watched, robot, user

# The evidence that the cue states.
MEASURE = "names used that were given"
ALIKE = [("Sean", "Shawn"), ("Kaitlyn", "Caitlin"), ("Geoff", "Jeff"), ("Ben", "Pen"), ("Aisha", "Ayesha")]
UNLIKE = [("Anna", "Peter"), ("Paul", "Peter"), ("Mary", "John"), ("Julia", "Laura")]


def _wrong_name(meaning: EncoderMatcher, given: str, called: str, answer: str = "") -> SocialFlag | None:
    talk = user(0, 2, f"My name is {given}."), robot(3, 5, f"The table is over there, {called}.")
    answered = user(6, 7, answer) if answer else []
    newest = {flag.event_id: flag for flag in Watched(meaning).watch(*talk, answered, until_s=11)}
    found = (flag for flag in newest.values() if any(fact.measure == MEASURE for fact in flag.evidence))
    return next((flag for flag in found if flag.state is not FlagState.WITHDRAWN), None)


@pytest.mark.parametrize(("given", "called"), ALIKE)
def test_a_name_that_sounds_alike_is_no_error(meaning: EncoderMatcher, given: str, called: str) -> None:
    assert _wrong_name(meaning, given, called) is None


@pytest.mark.parametrize(("given", "called"), UNLIKE)
def test_a_name_nobody_corrects_is_a_minor_error(meaning: EncoderMatcher, given: str, called: str) -> None:
    flag = _wrong_name(meaning, given, called)
    assert flag is not None
    assert flag.severity is Severity.MINOR


@pytest.mark.parametrize(("given", "called"), [ALIKE[0], ALIKE[3], *UNLIKE[:2]])
def test_a_corrected_name_is_a_major_error(meaning: EncoderMatcher, given: str, called: str) -> None:
    flag = _wrong_name(meaning, given, called, answer=f"No, my name is {given}.")
    assert flag is not None
    assert flag.severity is Severity.MAJOR
