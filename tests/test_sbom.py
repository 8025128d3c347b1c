"""The bill of materials lists what the locks pin, and the audit never takes silence for safety."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PIN = r"^([a-z0-9][^=\[\s]*)(?:\[.*\])?==([^ ;\\]+)"
ROOT = Path(__file__).resolve().parents[1]


def test_the_bill_lists_every_package_of_the_locks_with_its_hashes() -> None:
    command = [sys.executable, str(ROOT / "requirements/sbom.py"), "robot", "wheels"]
    bill = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert (bill["bomFormat"], bill["specVersion"], bill["version"]) == ("CycloneDX", "1.6", 1)
    assert re.fullmatch(r"urn:uuid:[0-9a-f-]{36}", bill["serialNumber"])
    locked = {
        pin for name in ("robot", "wheels")
        for pin in re.findall(PIN, (ROOT / f"requirements/{name}.lock").read_text(), re.M)
    }  # fmt: skip
    assert {(part["name"], part["version"]) for part in bill["components"]} == locked
    assert all(part["hashes"] and part["purl"].startswith("pkg:pypi/") for part in bill["components"])
    assert len({part["bom-ref"] for part in bill["components"]}) == len(bill["components"])


FOUND = '{"dependencies":[{"name":"a","vulns":[{"id":"CVE-1"}]},{"name":"b","skip_reason":"not found"}]}'


@pytest.mark.parametrize(
    ("answer", "code", "text"),
    [
        ("", 0, "nobody could be asked about vulnerabilities: no network"),
        (FOUND, 1, "a: CVE-1; raise its bound"),
        (
            FOUND.replace('{"id":"CVE-1"}', ""),
            0,
            "1 packages asked about, 0 vulnerabilities known; not known to the service: 1",
        ),
    ],
)
def test_the_audit_says_whom_it_could_not_ask(tmp_path: Path, answer: str, code: int, text: str) -> None:
    fake = tmp_path / "pip-audit"
    write = f"printf '%s' '{answer}' > \"$2\"" if answer else "echo no network >&2"
    fake.write_text(f'#!/bin/bash\nwhile [ "$1" != -o ]; do shift; done\n{write}\nexit 1\n')
    fake.chmod(0o755)
    environment = {**os.environ, "PIP_AUDIT": str(fake)}
    command = [ROOT / ".ci/audit", tmp_path / "out"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == code, done.stderr
    assert text in done.stdout
    assert (tmp_path / "out/sbom.cdx.json").stat().st_size > 1000
