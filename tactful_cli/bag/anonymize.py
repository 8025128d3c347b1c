"""`tactful bag anonymize`: make a copy of a bag that can be shared."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from norm_core.runtime.config import load_config
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.wording import count_of
from norm_monitor.privacy.anonymize import AnonymizeOptions, Treatment
from norm_monitor.privacy.anonymize import anonymize as anonymize_bag
from norm_monitor.privacy.blur import NoFacePolicy
from norm_monitor.session_log.key_file import KeyFile
from norm_monitor.session_log.redact import NamesToRemove, RedactionPolicy
from norm_monitor.session_log.session_config import parse_participants
from tactful_cli.bag.options import BagPath, NewBagPath, NoFace
from tactful_cli.console import print_result
from tactful_cli.progress import show_progress
from tactful_cli.session_options import SessionPeople, face_finder
from tactful_cli.verb_options import AsJson


def anonymize(  # noqa: PLR0917
    bag: BagPath,
    out: NewBagPath,
    keep: Annotated[
        list[str] | None,
        typer.Option(help="Additional topic to copy unchanged. Repeatable."),
    ] = None,
    no_face: NoFace = NoFacePolicy.BLUR,
    participant: SessionPeople = None,
    no_words: Annotated[
        list[str] | None, typer.Option(help="Pseudonym of a participant whose words are removed. Repeatable.")
    ] = None,
    keys: Annotated[
        Path | None, typer.Option(help="Key file with the names to remove; store it apart from the output.")
    ] = None,
    policy: Annotated[Path | None, typer.Option(help="YAML redaction policy for words; default: remove names.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write a shareable copy of a bag: blur faces, remove names, and drop sound and unlisted topics.

    Detectors miss faces and names: watch a video of the copy before you share it.
    """
    options = AnonymizeOptions(
        no_face=no_face,
        keep=tuple(keep or ()),
        participants=parse_participants(participant or (), no_words=no_words or ()),
        names=KeyFile(keys).names() if keys else NamesToRemove(),
        policy=load_config(RedactionPolicy, policy) if policy else RedactionPolicy(),
    )
    with show_progress("anonymizing") as update:
        report = anonymize_bag(bag, out, options, face_finder(), update)
    lines = [f"{out}: {count_of(sum(topic.written for topic in report.topics), 'message')}"]
    lines += [f"  {topic.topic}: {topic.summary()}" for topic in report.topics]
    if any(topic.treatment is Treatment.BLURRED for topic in report.topics):
        lines.append(f"next: watch it before you share it: {PROGRAM} bag video {out} {out}.mp4 --faces show")
    print_result(asdict(report), *lines, as_json=as_json, notes=report.warnings)
