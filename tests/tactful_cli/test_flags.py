"""Flags of a shipped bag: from its sound, and from the utterances in it."""

import json
import re
import subprocess
from pathlib import Path

from tests.command_line import tactful

SHIPPED = Path(__file__).parents[2] / "sim_replays" / "scenarios" / "shipped"


def flags(*arguments: str) -> subprocess.CompletedProcess[str]:
    return tactful("flags", *arguments)


def test_a_late_answer_is_heard_and_noted() -> None:
    result = flags(str(SHIPPED / "kiosk_directions"), "--topic", "/audio", "--json")
    assert result.returncode == 0, result.stderr
    late = [flag for flag in json.loads(result.stdout) if flag["cue_id"] == "response_delay"]
    assert late
    assert "old bridge" in late[0]["rationale"]
    assert late[0]["correction"]


def test_given_utterances_need_no_sound() -> None:
    chinese = next(path for path in sorted(SHIPPED.iterdir()) if path.is_dir() and path.name.startswith("zh_"))
    result = flags(str(chinese))
    assert result.returncode == 0, result.stderr
    assert re.search(r"\d social errors? and \d+ competences? in ", result.stdout)
