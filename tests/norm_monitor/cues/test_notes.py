"""Notes read like a coder's: short, one quote, no certainty about what the words only suggest."""

import re

import pytest

from norm_core.runtime.time import ReplayClock
from norm_core.runtime.watermarks import UTTERANCES
from norm_monitor.context.meaning import Meanings
from norm_monitor.cues.threshold_table import ThresholdTable
from norm_monitor.monitor import Monitor, MonitorConfig
from sim_replays.drivers.script_driver import records_of_script
from sim_replays.scenarios.library import encounters
from tests.norm_monitor.cues.test_registry import HAS
from tests.norm_monitor.encounter_talk import Watched, robot, user

MOST_WORDS = 30
SAMPLE = 20


def _check(note: str) -> None:
    assert len(note.split()) <= MOST_WORDS, note
    assert len(re.findall("“", note)) <= 1, note


def test_notes_of_development_encounters_are_short_with_one_quote(meaning: Meanings) -> None:
    table, notes = ThresholdTable.shipped(), []
    for encounter in encounters("development")[:SAMPLE]:
        clock = ReplayClock()
        monitor = Monitor(MonitorConfig.for_replay((UTTERANCES,)), table, meaning, clock)
        for given_ns, entry in records_of_script(encounter)[0]:
            clock.advance_to(max(given_ns, clock.now_ns()))
            notes += [flag.rationale for flag in monitor.take(entry)]
        notes += [flag.rationale for flag in monitor.end_input()]
    assert len(notes) > SAMPLE
    for note in notes:
        _check(note)


@pytest.mark.parametrize("cue_id", HAS)
def test_note_of_each_cue_is_short_with_one_quote(meaning: Meanings, cue_id: str) -> None:
    for flag in Watched(meaning).watch(*HAS[cue_id]):
        _check(flag.rationale)


def test_quotation_marks_within_a_quote_become_single(meaning: Meanings) -> None:
    said = "Get lost. The sign says “no dogs”."
    (flag, *_) = Watched(meaning).watch(user(0, 2, "May I bring my dog?"), robot(3, 5, said), until_s=9)
    assert "‘no dogs’" in flag.rationale
    _check(flag.rationale)
