"""Make the coding page: a player over a session and one coder's events, or all codings once theirs is done."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from norm_core.records.flag import Attribute, Severity
from norm_core.records.record import record
from study_desk.coding.comparison import ComparedEvent
from study_desk.coding.labels import monitor_labels
from study_desk.log.recording import Recording
from study_desk.log.schema import CONSENSUS, MONITOR, Label, LabelRemoval, Opinion
from study_desk.report.coding_desk import CodingDesk, is_hsri
from study_desk.report.page_items import Item, VoiceNumbers, ms_since, speech_item
from study_desk.report.page_template import fill_page
from study_desk.study.study_file import Code

SCRIPTS = ("dom", "model", "timeline", "list", "details", "display", "player", "coding", "compare", "coding_keys")
# Keys of the player and of in and out; a code keeps its own only beside these.
TAKEN_KEYS = frozenset("io,.?")
_SEVERITY_KEYS = "asdfghjkl;zxcvbnmp"


@record
class CodingMedia:
    """What a player can show: stills, sound, or a video whose first frame is `offset_ms` after the session's start."""

    stills: bool = False
    sound: bool = False
    video: bool = False
    offset_ms: float = 0.0
    why: str = ""  # there is no picture


def coding_page(desk: CodingDesk, coder: str, token: str, media: CodingMedia, waiting: Sequence[str] = ()) -> str:
    """Render the page of a coder. Until their coding is done, it holds nothing of the monitor or of others."""
    recording = desk.recording
    start_ns, voices = recording.start_ns, VoiceNumbers()
    keys = _free_keys(desk.codes.values())
    data: dict[str, Any] = {
        "token": token,
        "coder": coder,
        "done": desk.is_done(coder),
        "info": {"study": recording.info.study, "session": recording.info.session},
        "end": ms_since(start_ns, recording.end_ns),
        "notes": [],
        "at_most": {},
        "attributes": [attribute.value for attribute in Attribute],
        "speech": [speech_item(said, start_ns, voices) for said in recording.speech],
        "presence": [],
        "decisions": [],
        "codes": [_code_item(code) for code in desk.codes.values() if code.attribute],
        "without_attribute": [code.name for code in desk.codes.values() if not code.attribute],
        "severity_keys": dict(zip((severity.value for severity in Severity), keys, strict=False)),
        "media": {
            "stills": media.stills,
            "sound": media.sound,
            "video": media.video,
            "offset": media.offset_ms,
            "why": media.why,
        },
    }
    if desk.is_done(coder):
        data |= _unblinded(desk, coder, waiting)
    else:
        own = [label_item(label, recording, coder) for label in desk.labels_of(coder)]
        data |= {"flags": own, "rows": None}
    title = f"Coding of session {recording.info.session}"
    return fill_page("coding", ("page", "coding"), SCRIPTS, title, data)


def label_item(label: Label, recording: Recording, lane: str, number: int = 0) -> Item:
    """Return a label for the timeline and the list. `lane` tells whose it is, `number` which, if it has no id."""
    return {
        "id": f"{lane}/{label.label_id or number}",
        "label_id": label.label_id,
        "coder": lane,
        "polarity": label.polarity.value,
        "attributes": [label.attribute.value],
        "severity": label.severity.value if label.severity else None,
        "start": ms_since(recording.start_ns, label.start_ns),
        "end": ms_since(recording.start_ns, label.end_ns),
        "code": _code_of(label),
        "cue": label.code,
        "why": label.comment,
        "evidence": [],
    }


def _unblinded(desk: CodingDesk, coder: str, waiting: Sequence[str]) -> Item:
    recording, codings = desk.recording, desk.others(coder)
    compared = desk.compared(coder)
    consensus = [each for event in compared if isinstance(each := desk.settled(event.label_id), Label)]
    rows: Mapping[str, Iterable[Label]] = {
        MONITOR: {label.event_id: label for label in monitor_labels(recording)}.values(),
        **codings,
        CONSENSUS: consensus,
    }
    return {
        "flags": [
            label_item(label, recording, row, number)
            for row, labels in rows.items()
            for number, label in enumerate(labels)
        ],
        "rows": list(rows),
        "coders": list(codings),
        "waiting": [each for each in waiting if each not in codings],
        "compared": [compared_item(event, desk.settled(event.label_id), recording) for event in compared],
        "info": {
            "study": recording.info.study,
            "session": recording.info.session,
            "condition": recording.info.condition,
        },
        "notes": list(recording.notes),
    }


def compared_item(event: ComparedEvent, decision: Label | LabelRemoval | None, recording: Recording) -> Item:
    """Return what each coder says of an event, and what they agreed on."""
    settled: Item | None = None
    if decision is not None:
        label = label_item(decision, recording, CONSENSUS) if isinstance(decision, Label) else None
        settled = {"label": label, "editor": decision.editor}
    return {
        "id": event.label_id,
        "agreed": event.is_agreed,
        "missing": list(event.missing),
        "opinions": {opinion.coder: _opinion_item(opinion, recording) for opinion in event.opinions},
        "settled": settled,
    }


def _opinion_item(opinion: Opinion, recording: Recording) -> Item:
    return {
        "code": _code_of(opinion),
        "polarity": opinion.polarity.value,
        "attribute": opinion.attribute.value,
        "severity": opinion.severity.value if opinion.severity else None,
        "start": ms_since(recording.start_ns, opinion.start_ns),
        "end": ms_since(recording.start_ns, opinion.end_ns),
    }


def _code_of(label: Label | Opinion) -> str:
    return label.code or f"{label.polarity.value}_{label.attribute.value}"


def _code_item(code: Code) -> Item:
    return {
        "id": code.id,
        "name": code.name,
        "definition": code.definition,
        "polarity": code.polarity.value,
        "attribute": code.attribute.value if code.attribute else "",
        "key": "" if code.key.lower() in TAKEN_KEYS else code.key,
        "own": not is_hsri(code),
    }


def _free_keys(codes: Iterable[Code]) -> list[str]:
    """List keys for severities that no code has."""
    used = {code.key.lower() for code in codes}
    return [key for key in _SEVERITY_KEYS if key not in used]
