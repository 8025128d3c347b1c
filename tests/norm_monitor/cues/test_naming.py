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


@pytest.mark.parametrize(
    ("names", "is_corrected", "severity"),
    [
        *((names, False, None) for names in ALIKE),
        *((names, False, Severity.MINOR) for names in UNLIKE),
        *((names, True, Severity.MAJOR) for names in [ALIKE[0], ALIKE[3], *UNLIKE[:2]]),
    ],
)
def test_a_name_unlike_the_given_is_an_error_and_a_major_one_if_it_is_corrected(
    meaning: EncoderMatcher, names: tuple[str, str], is_corrected: bool, severity: Severity | None
) -> None:
    flag = _wrong_name(meaning, *names, answer=f"No, my name is {names[0]}." if is_corrected else "")
    assert (flag.severity if flag else None) is severity
