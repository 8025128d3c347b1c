"""Error flags that lead to requests for a repair."""

from dataclasses import replace
from pathlib import Path

import pytest

from action_selector.decider import Decider
from action_selector.request import DEFAULT_REPAIRS, RepairConfig, RepairRequests, RequestConfig
from action_selector.selector import Selector, SelectorFiles, open_selector
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.records.flag import FlagState, Polarity, SocialFlag
from norm_core.records.outcome import Outcome
from norm_core.runtime.time import ReplayClock
from tests.action_selector.questions import BEST_EFFORT, NOW_NS, error_flag

COMPETENCE = replace(error_flag("kind"), polarity=Polarity.COMPETENCE, correction="")
CLOSED = replace(error_flag("over"), state=FlagState.CLOSED)
WITHDRAWN = replace(error_flag("doubtful"), state=FlagState.WITHDRAWN)
ENABLED = RequestConfig(repair=RepairConfig(on_error_flags=True))
SKILLS = """
may_do_nothing: false
skills:
  - {action: Lay the table.}
  - {action: Say that you are sorry., repair: true}
  - {action: Fetch the manager., repair: true, needs: {facts: [a manager is in]}}
"""


def test_an_open_error_leads_to_one_decision_that_names_it(sentences: SentenceEncoder) -> None:
    selector = Selector(Decider(sentences, BEST_EFFORT), ReplayClock(NOW_NS), ENABLED, repairs=RepairRequests())
    (due,) = selector.take(error_flag("late"))
    decision = selector.decide(due).decision
    assert (decision.outcome, decision.query_id) == (Outcome.ANSWERED, "late")
    assert decision.chosen in DEFAULT_REPAIRS
    assert [judged.action for judged in decision.candidates] == [*DEFAULT_REPAIRS, ""]


@pytest.mark.parametrize("flag", [COMPETENCE, CLOSED, WITHDRAWN])
def test_a_competence_or_a_final_error_asks_nothing(flag: SocialFlag) -> None:
    assert RepairRequests().request_for(flag) is None


def test_an_event_is_asked_about_once_however_often_it_changes() -> None:
    repairs, opened = RepairRequests(), error_flag("late")
    updated = replace(opened, state=FlagState.UPDATED)
    asked = [repairs.request_for(flag) for flag in (updated, opened, updated)]
    assert [request.query_id for request in asked if request] == ["late"]


def test_an_event_that_turns_into_an_error_is_asked_about() -> None:
    repairs = RepairRequests()
    kind = replace(COMPETENCE, event_id="late")
    assert repairs.request_for(kind) is None
    assert repairs.request_for(replace(error_flag("late"), state=FlagState.UPDATED)) is not None


def test_the_marked_skills_of_the_catalogue_are_the_candidates(tmp_path: Path, sentences: SentenceEncoder) -> None:
    path = tmp_path / "skills.yaml"
    path.write_text(SKILLS, encoding="utf-8")
    files = SelectorFiles(skills=str(path), when_unsure=BEST_EFFORT.when_unsure)
    selector = open_selector(files, ReplayClock(NOW_NS), requests=ENABLED)
    (due,) = selector.take(error_flag("late"))
    decision = selector.decide(due).decision
    assert [judged.action for judged in decision.candidates] == ["Say that you are sorry.", "Fetch the manager."]
    assert decision.chosen == "Say that you are sorry."  # nobody states that a manager is in


def test_by_default_a_flag_asks_nothing() -> None:
    selector = open_selector(SelectorFiles(), ReplayClock(NOW_NS), requests=RequestConfig())
    assert selector.take(error_flag("late")) == []
