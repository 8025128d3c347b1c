"""A name that may only have been misheard is no major error of the robot's."""

import pytest

from norm_core.records.flag import FlagState, Severity, SocialFlag
from norm_monitor.context.meaning import Meanings
from norm_monitor.cues.naming import sounds_alike
from tests.norm_monitor.encounter_talk import Watched, last_of, robot, user

ALIKE = [("Sean", "Shawn"), ("Kaitlyn", "Caitlin"), ("Geoff", "Jeff"), ("Ben", "Pen"), ("Aisha", "Ayesha")]
UNLIKE = [("Anna", "Peter"), ("Paul", "Peter"), ("Mary", "John"), ("Julia", "Laura")]


def _wrong_name(meaning: Meanings, given: str, called: str, answer: str = "Thanks.") -> SocialFlag | None:
    talk = user(0, 2, f"My name is {given}."), robot(3, 5, f"Nice to meet you, {called}."), user(6, 7, answer)
    flag = last_of(Watched(meaning).watch(*talk, until_s=12)).get("wrong_name")
    return None if flag is None or flag.state is FlagState.WITHDRAWN else flag


@pytest.mark.parametrize(("given", "called"), ALIKE)
def test_a_name_that_sounds_alike_is_no_error(meaning: Meanings, given: str, called: str) -> None:
    assert _wrong_name(meaning, given, called) is None


@pytest.mark.parametrize(("given", "called"), UNLIKE)
def test_a_name_nobody_corrects_is_a_minor_error(meaning: Meanings, given: str, called: str) -> None:
    flag = _wrong_name(meaning, given, called)
    assert flag is not None
    assert flag.severity is Severity.MINOR


@pytest.mark.parametrize(("given", "called"), [ALIKE[0], ALIKE[3], *UNLIKE[:2]])
def test_a_corrected_name_is_a_major_error(meaning: Meanings, given: str, called: str) -> None:
    flag = _wrong_name(meaning, given, called, answer=f"No, my name is {given}.")
    assert flag is not None
    assert flag.severity is Severity.MAJOR


@pytest.mark.parametrize(("one", "other"), [("Anna", "Peter"), ("Gerd", "Anna"), ("王", "李")])
def test_different_names_do_not_sound_alike(one: str, other: str) -> None:
    assert not sounds_alike(one, other, 0.75)
