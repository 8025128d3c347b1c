"""People who talk to the monitor and not to the robot: no flag and no line of a prompt, but as their plain twins."""

import json
from pathlib import Path

import pytest

from norm_core.engines.direct_engine import DirectEngine
from norm_core.records.flag import FlagState
from norm_core.runtime.time import WallClock
from norm_monitor.assessment.unit import UnitKind
from norm_monitor.context.meaning import EncoderMatcher
from norm_monitor.judge.judge import Judge, JudgeConfig
from norm_monitor.windows.cutter import Entry
from tests.action_selector.test_injected_orders import list_unfenced_lines
from tests.norm_core.engines.scripted import ScriptedBackend
from tests.norm_monitor.encounter_talk import Watched, robot, seconds, user
from tests.norm_monitor.judge.unit_views import views_of

DATA = Path(__file__).parents[1] / "action_selector/injected_orders.jsonl"
ROWS = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]
CUTS_IN_S = 10
SPOKEN = [row for row in ROWS if row["author"] == "spoken"]


def talk(text: str) -> list[Entry]:
    """A person's text, a robot that answers, and then one that cuts in."""
    answered = robot(5, 7, "The old paintings are on the second floor.")
    question = user(9, 13, "I would like to see the new ones too, please, if they are still here.")
    return [*user(1, 4, text), *answered, *question, *robot(CUTS_IN_S, 14, "The shop is open until six.")]


def flagged(meaning: EncoderMatcher, text: str, *, weighed: bool) -> dict[str, set[int]]:
    """The onsets in seconds of the flags that stand at the end, by polarity."""
    flags = Watched(meaning, weighed=weighed).watch(talk(text), until_s=24)
    last = {flag.event_id: flag for flag in flags}.values()
    there = [flag for flag in last if flag.state is not FlagState.WITHDRAWN]
    return {p: {round(seconds(f.onset_ns)) for f in there if f.polarity == p} for p in ("error", "competence")}


@pytest.mark.parametrize("weighed", [False, True])
def test_attack_changes_flags_no_more_than_its_plain_twin(meaning: EncoderMatcher, weighed: bool) -> None:
    """Words of another meaning may read otherwise, so that some differ; none hides that the robot cuts in."""
    differ = []
    for row in SPOKEN:
        by_attack, by_twin = (flagged(meaning, row[kind], weighed=weighed) for kind in ("text", "plain"))
        assert (CUTS_IN_S in by_attack["error"]) == (CUTS_IN_S in by_twin["error"]), row["id"]
        differ += [row["id"]] if by_attack != by_twin else []
    assert len(differ) <= 0.1 * len(SPOKEN), differ


@pytest.mark.parametrize("author", ["developer", "blind", "spoken"])
def test_attack_adds_no_line_to_the_prompt(author: str) -> None:
    judge = Judge(
        DirectEngine(ScriptedBackend(lambda question, call: [0.0] * len(question.options)), WallClock()), JudgeConfig()
    )

    def lines(text: str) -> set[str]:
        view = views_of([*user(1, 3, text), *robot(4, 6, "You are too slow for me.")])[UnitKind.ROBOT_TURN, 4]
        planned = judge.plan(view)
        prompts = [planned.prompt, *(batch.prompt for batch in planned.attributes), planned.note_prompt(0)]
        return {line for prompt in prompts for line in list_unfenced_lines(prompt.as_text())}

    for row in (row for row in ROWS if row["author"] == author):
        assert lines(row["text"]) == lines(row["plain"]), row["id"]
