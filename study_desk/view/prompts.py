"""Find what a judge was asked about a flag, in the files that the monitor keeps of its prompts."""

import json
from pathlib import Path
from typing import Any

MAX_FILES = 1_000  # the newest, among which a flag's prompt is looked for


def prompt_text(folder: Path, digest: str) -> str:
    """Return the prompt of a digest as text; empty where no file holds it."""
    files = sorted(folder.glob("*.json"), key=lambda file: file.name, reverse=True)[:MAX_FILES]
    for file in files:
        try:
            text = file.read_text(encoding="utf-8")
            if digest in text:
                return _asked(json.loads(text), digest)
        except (OSError, ValueError, KeyError, TypeError):
            continue  # it went meanwhile, or is no prompt
    return ""


def _asked(content: dict[str, Any], digest: str) -> str:
    for batch in content["prompts"]:
        for question in batch["questions"]:
            if question["prompt_digest"] == digest:
                lines = [_part(part) for part in batch["parts"]]
                return "\n".join([*lines, question["text"], *(f"- {option}" for option in question["options"])])
    return ""


def _part(part: dict[str, Any]) -> str:
    if part["kind"] == "picture":
        return f"[picture {part['file']}]"
    return f"{part['label']}: {part['text']}" if part["kind"] == "quoted" else str(part["text"])
