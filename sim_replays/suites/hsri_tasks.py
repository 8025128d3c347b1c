"""Draw HSRI's tasks from the coded sessions of a study: its segments in the layout that the suite reads."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from norm_core.files.atomic_file import write_atomic
from norm_core.records.flag import Polarity
from norm_core.records.record import record
from norm_core.records.speech import Speaker, Utterance
from norm_core.runtime.config import ConfigError, check_config
from norm_core.runtime.time import NS_PER_S
from norm_monitor.session_log.recording import Recording
from norm_monitor.session_log.schema import CONSENSUS, MONITOR, Label
from norm_monitor.session_log.study_folder import Study
from sim_replays.items.target import SuiteError
from sim_replays.suites.hsri_segments import FILE, HsriSegment, SegmentKind, draw_questions, read

# In the comment of an error's label: why it is an error, and what would have been right.
_EXPLANATION = re.compile(r"^(.+?)\s*=>\s*(.+)$", re.DOTALL)


@record
class DrawnTasks:
    """The number of questions by task, and why each session or segment was left out, by its name."""

    questions: Mapping[str, int]
    left_out: Mapping[str, str]


def draw_tasks(study: Study, folder: Path) -> DrawnTasks:
    """Write the coded segments of each session, and stretches without a label, into a new folder.

    Labels are those of the consensus, else of the first coder.

    Raises SuiteError if a file of segments exists already, or a task has too few segments.
    """
    path = folder / FILE
    if path.exists():
        raise SuiteError(f"{path}: exists already; name another folder")
    segments: list[HsriSegment] = []
    left_out: dict[str, str] = {}
    for session, _ in study.logs():
        recording = study.recording_of(session)
        coders = sorted({label.coder for label in recording.labels} - {MONITOR}, key=lambda name: name != CONSENSUS)
        if reason := _find_obstacle(recording) or ("" if coders else "is not coded"):
            left_out[session] = reason
            continue
        for name, fields in _describe_segments(recording, coders[0]):
            try:
                segments.append(check_config(HsriSegment, {**fields, "id": name, "session": session}, name))
            except ConfigError:
                has_words = bool(fields["transcript"])
                left_out[name] = "is an error without WHY => BETTER as its comment" if has_words else "has no words"
    if all(segment.kind is SegmentKind.NONE for segment in segments):
        reasons = "; ".join(f"{name} {reason}" for name, reason in left_out.items()) or "no session has a log"
        raise SuiteError(f"{study.folder}: no coded segment can be asked about ({reasons}); code sessions first")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    lines = [f"{segment.model_dump_json(exclude_defaults=True)}\n" for segment in segments]
    write_atomic(path, "".join(lines), mode=0o600)
    questions = Counter(question.task for question in draw_questions(read(folder)))
    return DrawnTasks(questions=dict(questions), left_out=left_out)


def _find_obstacle(recording: Recording) -> str:
    """Return why the words of a session must not or cannot be used, or nothing."""
    if recording.missing:
        return recording.missing
    participants = recording.info.participants
    refusing = [participant.pseudonym for participant in participants if not participant.transcript]
    if refusing:
        return f"has no consent: {', '.join(refusing)} did not consent to a transcript"
    return "" if participants else "has no consent: its log names no participant"


def _describe_segments(recording: Recording, coder: str) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield an id and the fields of each segment that a coder labelled, and of uncoded talk between them."""
    labels_by_span: dict[tuple[int, int, Polarity], list[Label]] = {}
    for label in recording.labels:
        if label.coder == coder:
            labels_by_span.setdefault((label.start_ns, label.end_ns, label.polarity), []).append(label)
    speech = recording.speech
    session = recording.info.session
    for index, ((start_ns, end_ns, polarity), labels) in enumerate(sorted(labels_by_span.items())):
        fields: dict[str, object] = {
            "kind": polarity.value,
            "attributes": sorted({label.attribute for label in labels}),
            "transcript": _list_lines(speech, start_ns, end_ns),
        }
        explanation = next(filter(None, (_EXPLANATION.match(label.comment) for label in labels)), None)
        if explanation and polarity is Polarity.ERROR:
            fields["rationale"], fields["correction"] = explanation.groups()
        yield f"{session}-{index}", fields
    pairs = [
        (before, after)
        for before, after in pairwise(speech)
        if before.speaker is not after.speaker and not _is_coded(before, labels_by_span)
        if not _is_coded(after, labels_by_span)
    ]
    step = 1 + len(pairs) // (len(labels_by_span) + 1)  # about as many as are coded
    for index, (before, after) in enumerate(pairs[::step]):
        lines = _list_lines((before, after), before.start_ns, after.end_ns)
        yield f"{session}-none-{index}", {"kind": SegmentKind.NONE.value, "transcript": lines}


def _is_coded(utterance: Utterance, spans: Mapping[tuple[int, int, Polarity], object]) -> bool:
    return any(start_ns <= utterance.end_ns and utterance.start_ns <= end_ns for start_ns, end_ns, _ in spans)


def _list_lines(speech: Sequence[Utterance], start_ns: int, end_ns: int) -> list[dict[str, object]]:
    """Return the words of a time, and the turn of the other party that leads to it."""
    indices = [
        index for index, utterance in enumerate(speech) if utterance.start_ns <= end_ns and utterance.end_ns >= start_ns
    ]
    if indices and len({speech[index].speaker for index in indices}) == 1 and indices[0] > 0:
        indices.insert(0, indices[0] - 1)
    begin_ns = speech[indices[0]].start_ns if indices else 0
    return [
        {
            "speaker": "agent" if utterance.speaker is Speaker.ROBOT else "user",
            "text": utterance.text,
            "start_s": (utterance.start_ns - begin_ns) / NS_PER_S,
            "end_s": max(0, utterance.end_ns - begin_ns) / NS_PER_S,
        }
        for utterance in (speech[index] for index in indices)
        if utterance.text.strip()
    ]
