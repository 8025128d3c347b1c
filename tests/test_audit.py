"""`.ci/audit` never takes silence for safety."""

import os
import subprocess
from pathlib import Path

import pytest

AUDIT = Path(__file__).parents[1] / ".ci/audit"
VULNERABLE = '{"dependencies":[{"name":"a","vulns":[{"id":"CVE-1"}]},{"name":"b","skip_reason":"not found"}]}'
SOUND = VULNERABLE.replace('{"id":"CVE-1"}', "")


@pytest.mark.parametrize(
    ("answer", "code", "texts"),
    [
        ("", 0, ["robot: nobody could be asked about vulnerabilities: no network", "no bill of robot could be made"]),
        (VULNERABLE, 1, ["robot: a: CVE-1; raise", "wheels: a: CVE-1; raise", "the bill of wheels is"]),
        (SOUND, 0, ["wheels: 1 packages asked about, 0 vulnerabilities known; not known to the service: 1"]),
    ],
)  # fmt: skip
def test_the_audit_says_whom_it_could_not_ask(tmp_path: Path, answer: str, code: int, texts: list[str]) -> None:
    tool = tmp_path / "tool"
    write = f"printf '%s' '{answer}' > \"$2\"" if answer else "echo no network >&2"
    tool.write_text(f'#!/bin/bash\nwhile [ "$1" != -o ]; do shift; done\n{write}\nexit 1\n')
    tool.chmod(0o755)
    environment = {**os.environ, "PIP_AUDIT": str(tool), "CYCLONEDX": str(tool)}
    done = subprocess.run([AUDIT, tmp_path / "out"], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == code, done.stderr
    assert [text for text in texts if text not in done.stdout] == []
