"""Check each robot turn of a folder of encounters before it is said, as /tactful/check_utterance does at `balanced`.

Run: python -m calibration.before_it_is_said FOLDER. The reader is the one in use (TACTFUL_READER).
"""

from pathlib import Path
from typing import Annotated

import typer

from calibration.command import run_command
from norm_core.records.flag import Polarity
from norm_core.records.json_codec import to_json
from norm_core.records.speech import RobotSpeech, SpeechEdge
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import NS_PER_S
from norm_monitor.context.meaning import EncoderMatcher
from norm_monitor.encounters.encounter import Basis
from norm_monitor.encounters.library import Truth, load_folder
from norm_monitor.utterance_check import TalkSoFar, UtteranceCheck
from sim_replays.monitor_bench.script_driver import make_script_records

# Timing and sight show only once a turn is said.
READABLE = {Basis.WORDING, Basis.UNDERSTANDING}


def measure(folder: Annotated[Path, typer.Argument(help="Folder of encounters.")]) -> None:
    """Print how many bad turns the check advises against, and how many of encounters without an error."""
    check = UtteranceCheck(EncoderMatcher.shipped())
    turns = bad = advised = caught = false_alarms = 0
    harmless_s = 0.0
    for encounter in load_folder(folder):
        entries, truth = make_script_records(encounter)
        has_errors = any(event.polarity is Polarity.ERROR for event in truth.events)
        harmless_s += 0.0 if has_errors else (truth.end_ns - truth.start_ns) / NS_PER_S
        talk = TalkSoFar()
        check.forget()
        for at_ns, entry in entries:
            if isinstance(entry, RobotSpeech) and entry.state is SpeechEdge.START:
                is_against = check.check(entry.text, talk, at_ns).advised_against
                is_bad = _is_bad(truth, at_ns)
                turns, advised, bad = turns + 1, advised + is_against, bad + is_bad
                caught += is_bad and is_against
                false_alarms += is_against and not has_errors
            talk.take(entry)
    if not bad:
        raise TactfulError(f"{folder}: no robot turn of it has an error of wording or understanding")
    figures = {
        "read_by": check.read_by,
        "turns": turns,
        "bad": bad,
        "caught": caught,
        "caught_by_chance": round(bad * advised / turns, 1),  # as many random turns advised against
        "advised_against": advised,
        "false_alarms": false_alarms,
        "harmless_minutes": round(harmless_s / 60, 1),
    }
    print(to_json(figures))


def _is_bad(truth: Truth, start_ns: int) -> bool:
    turn = next(turn for turn in truth.turns if turn.start_ns == start_ns)
    return any(
        event.polarity is Polarity.ERROR and event.basis in READABLE and turn.start_ns <= event.onset_ns < turn.end_ns
        for event in truth.events
    )


if __name__ == "__main__":
    run_command(measure)
