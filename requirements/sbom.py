"""Print the packages of lock files as a CycloneDX bill of materials: python requirements/sbom.py [LOCK ...]."""

import json
import re
import sys
import tomllib
import uuid
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
# A package's line, and the hashes on the lines after it.
PACKAGE = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^\s;\\]+)(?:\s*;\s*([^\\\n]+?))?\s*\\?$")
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def components_of(lock: Path) -> dict[str, dict[str, Any]]:
    """Return the packages that a lock file pins, by their package URL."""
    components: dict[str, dict[str, Any]] = {}
    hashes: list[dict[str, str]] = []
    for line in lock.read_text(encoding="utf-8").splitlines():
        if match := PACKAGE.match(line):
            name, version, condition = match.groups()
            purl, hashes = f"pkg:pypi/{re.sub(r'[-_.]+', '-', name).lower()}@{version.replace('+', '%2B')}", []
            components[purl] = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
            components[purl] |= {"scope": "optional" if condition else "required", "hashes": hashes}
        hashes += [{"alg": "SHA-256", "content": digest} for digest in HASH.findall(line)]
    return components


def bill_of(locks: list[str]) -> dict[str, Any]:
    """Return the bill of some locks, which is the same each time."""
    project = tomllib.loads((FOLDER.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    components: dict[str, Any] = {}
    for lock in locks:
        components |= components_of(FOLDER / f"{lock}.lock")
    listed = [components[purl] for purl in sorted(components)]
    application = {"type": "application", "name": project["name"], "version": project["version"]}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, json.dumps([application, listed]))}",
        "version": 1,
        "metadata": {"component": application, "properties": [{"name": "locks", "value": " ".join(locks)}]},
        "components": listed,
    }


if __name__ == "__main__":
    unknown = [name for name in sys.argv[1:] if not (FOLDER / f"{name}.lock").is_file()]
    if unknown:
        known = ", ".join(sorted(path.stem for path in FOLDER.glob("*.lock")))
        sys.exit(f"sbom: {unknown[0]}: there is no such lock; name some of {known}")
    print(json.dumps(bill_of(sys.argv[1:] or ["robot"]), indent=1))
