"""Each example in examples/ does what its header says, run as a user runs it."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sim_replays.drivers.node_process import NodeProcess
from tests.acceptance.conversation_bag import robot, user, write_talk
from tests.observer import Observer
from tests.patience import PATIENCE_S

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run(name: str, *arguments: str) -> str:
    """Run an example to its end; return what it printed."""
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_example_is_short_and_names_its_command() -> None:
    for path in EXAMPLES.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert f'\neval "$(./tactful env)" && python examples/{path.name}' in text.split('"""')[1]
        assert len(text.splitlines()) < 120


def test_transcript_gives_error_and_competences() -> None:
    shown = run("monitor_transcript.py", str(EXAMPLES / "transcript.csv"))
    events = re.findall(r"^([\d.]+) s  (\w+)  (\w+)", shown, re.MULTILINE)
    assert ("8.0", "error", "no_response") in events
    assert ("27.0", "competence", "wishes_well") in events
    assert "Instead: Answer, or say that you did not understand" in shown


def test_transcript_in_json_is_sorted_and_read(tmp_path: Path) -> None:
    lines = [
        {"speaker": "robot", "start": 10, "end": 12, "text": "The museum opens at nine."},
        {"speaker": "Anna", "start": 1, "end": 2.5, "text": "Where can I buy a ticket?"},
    ]
    path = tmp_path / "talk.json"
    path.write_text(json.dumps(lines), encoding="utf-8")
    assert "2.5 s  error  no_response" in run("monitor_transcript.py", str(path))


def test_custom_cue_flags_the_fast_turn_alone() -> None:
    assert re.findall(r"([\d.]+) s  error  speaks_too_fast", run("custom_cue.py")) == ["2.5"]


@pytest.mark.ros
def test_behaviour_tree_client_gets_a_decision(domain_id: int) -> None:
    with NodeProcess(["selector"], None, domain_id):
        shown = run("behaviour_tree_client.py")
    assert "step: observe\n" in shown
    assert "SUCCESS: Lay plates on the table" in shown
    assert "the cook is doing that already" in shown


@pytest.mark.ros
def test_flag_listener_prints_flags_and_corrects(domain_id: int, observer: Observer, tmp_path: Path) -> None:
    from std_msgs.msg import String

    talk = [user(1, 3, "Where can I buy a ticket?"), robot(12, 14, "You can buy it at the counter.")]
    bag = write_talk(tmp_path / "bag", talk, 30)
    hints = observer.collect(String, "/dialogue/hint", 10)
    command = [sys.executable, str(EXAMPLES / "flag_listener.py")]
    with (
        NodeProcess(["monitor"], {"monitor": {"windows": {"sources": ["utterances"]}}}, domain_id),
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as listener,
    ):
        try:
            assert listener.stdout
            assert listener.stdout.readline().startswith("listening")
            observer.until(lambda: observer.node.count_subscribers("/tactful/flags"), "the listener")
            observer.meet("monitor")
            play = [sys.executable, "-m", "tactful_cli", "bag", "play", str(bag), "--rate", "10"]
            subprocess.run(play, capture_output=True, timeout=PATIENCE_S, check=True)
            observer.until(lambda: hints, "a correction")
        finally:
            listener.send_signal(signal.SIGINT)
            printed, _ = listener.communicate(timeout=PATIENCE_S)
    assert listener.returncode == 0
    assert re.search(r"^(opened|updated|closed) error no_response \(0\.\d\d\): The person said", printed, re.MULTILINE)
    assert hints[0].data.startswith("Answer, or say that you did not understand")
