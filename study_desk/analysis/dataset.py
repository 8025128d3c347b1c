"""Make the files of a published dataset, in the layout of BIDS, and keep the key of its random labels."""

import json
import secrets
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from norm_core import __version__
from norm_core.files.atomic_file import write_atomic
from norm_core.files.data_files import shipped_text
from norm_core.records.flag import Attribute, Polarity, Severity
from norm_core.records.speech import Speaker
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.program import read_checkout_commit
from norm_core.runtime.time import NS_PER_S
from norm_core.runtime.wording import to_words
from norm_monitor.session_log.key_file import ALPHABET
from norm_monitor.session_log.recording import Recording
from norm_monitor.session_log.schema import CONSENSUS, MONITOR, Label
from norm_monitor.session_log.study_file import StudyFile
from study_desk.coding.labels import collect_by_coder

_BIDS_VERSION = "1.10.0"
_TASK = "interaction"
# Files that the study's people complete by hand, and that a later publication keeps.
EDITABLE = ("README.md", "CHANGES", "LICENSE", "dataset_description.json")
_NO_LICENCE = "No licence is granted. Ask the authors before you use or share these data."
_MISSING = "n/a"  # in a table, as BIDS has it
_DICTIONARY: dict[str, Any] = json.loads(shipped_text("study_desk.analysis", "dictionary.json"))
_EVENT_COLUMNS = ("onset", "duration", "trial_type", "polarity", "attribute", "severity", "coder", "code",
                  "probability", "event", "speaker")  # fmt: skip


class PublishError(TactfulError, ValueError):
    """A study cannot be published as it is; the message gives the remedy."""


class _KeyContent(BaseModel):
    model_config = ConfigDict(extra="forbid")
    version: int = 1
    participants: dict[str, str] = {}
    coders: dict[str, str] = {}
    sessions: dict[str, str] = {}


class PublicationKey:
    """Random labels for participants and coders, and numbers for sessions, the same at each publication."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = _KeyContent.model_validate_json(path.read_bytes()) if path.exists() else _KeyContent()
        except (OSError, ValidationError) as error:
            raise PublishError(
                f"{path}: is not the key of a publication: {str(error).splitlines()[0]}; name one of study publish"
            ) from error

    def label_participant(self, pseudonym: str) -> str:
        """Return a participant's label, such as sub-7K3M."""
        return f"sub-{_draw_label(self._file.participants, pseudonym)}"

    def label_coder(self, pseudonym: str) -> str:
        """Return a coder's label, such as coder-9XQ2. The monitor and the consensus keep their names."""
        if pseudonym in (MONITOR, CONSENSUS):
            return pseudonym
        return f"coder-{_draw_label(self._file.coders, pseudonym)}"

    def label_session(self, name: str, subject: str) -> str:
        """Return a session's label, such as ses-01: the next free number of its subject."""
        sessions = self._file.sessions
        if not sessions.get(name, "").startswith(f"{subject}/"):
            numbers = [int(label.rpartition("-")[2]) for label in sessions.values() if label.startswith(f"{subject}/")]
            sessions[name] = f"{subject}/ses-{max(numbers, default=0) + 1:02}"
        return sessions[name].rpartition("/")[2]

    def find_folder(self, session: str) -> str:
        """Return the folder of a labelled session in the dataset, such as sub-7K3M/ses-01."""
        return self._file.sessions[session]

    def forget_except(self, participants: Container[str], sessions: Container[str]) -> None:
        """Forget the labels of everybody and every session that is not to be published again."""
        for table, names in ((self._file.participants, participants), (self._file.sessions, sessions)):
            for name in [name for name in table if name not in names]:
                del table[name]

    def save(self) -> None:
        """Write the key, readable by its owner alone."""
        write_atomic(self.path, self._file.model_dump_json(indent=2), mode=0o600, fsync=True)


def _draw_label(table: dict[str, str], name: str) -> str:
    """Return the label of a name, and draw it at first."""
    while name not in table:
        label = "".join(secrets.choice(ALPHABET) for _ in range(4))
        if label not in table.values():
            table[name] = label
    return table[name]


def make_dataset(
    file: StudyFile, recordings: Mapping[str, Recording], key: PublicationKey, licence: str
) -> dict[str, str]:
    """Make the text of each file by its path in the dataset."""
    contents: dict[str, str] = {}
    rows: dict[str, list[dict[str, str]]] = {}
    people: set[str] = set()
    for name, recording in sorted(recordings.items(), key=lambda item: (item[1].start_ns, item[0])):
        members = sorted(key.label_participant(p.pseudonym) for p in recording.info.participants)
        # The first is the subject in whose folder the session lies.
        subject, *others = members
        label = key.label_session(name, subject)
        people.update(members)
        path = f"{subject}/{label}/beh/{subject}_{label}_task-{_TASK}_events.tsv"
        contents[path] = _format_tsv(_EVENT_COLUMNS, _list_events(recording, key, file))
        rows.setdefault(subject, []).append(
            {
                "session_id": label,
                "condition": recording.info.condition or _MISSING,
                "minutes": f"{(recording.end_ns - recording.start_ns) / NS_PER_S / 60:.4f}",
                "coders": " ".join(sorted(map(key.label_coder, collect_by_coder(recording)))),
                "with": " ".join(others) or _MISSING,
                "config_sha256": " ".join(_collect_config_hashes(recording)) or _MISSING,
            }
        )
    for subject, sessions in rows.items():
        contents[f"{subject}/{subject}_sessions.tsv"] = _format_tsv(
            tuple(sessions[0]), sorted(sessions, key=lambda row: row["session_id"])
        )
    # Who has no folder of their own took part with others only.
    participants = (
        {
            "participant_id": person,
            "own_sessions": str(len(rows.get(person, ()))),
            "only_with_others": "no" if person in rows else "yes",
        }
        for person in sorted(people)
    )
    contents |= {
        "participants.tsv": _format_tsv(("participant_id", "own_sessions", "only_with_others"), participants),
        "participants.json": _format_json(_DICTIONARY["participants"]),
        "sessions.json": _format_json(_DICTIONARY["sessions"]),
        f"task-{_TASK}_events.json": _format_json(_make_event_dictionary(file)),
        "dataset_description.json": _format_json(_describe_dataset(file.study, licence)),
        "README.md": _write_readme(file, len(recordings), len(people)),
        "CHANGES": "1.0.0\n  - First release.\n",
        "LICENSE": f"{licence or _NO_LICENCE}\n",
        ".bidsignore": "checksums.sha256\n",
    }
    return contents


def _collect_config_hashes(recording: Recording) -> list[str]:
    """List the configurations of the monitor: of its flags, several if a judge took part, or else of the log."""
    hashes = {flag.provenance.config_sha256 for flag in recording.flags} or {recording.info.config_sha256}
    return sorted(hashes - {""})


def _list_events(recording: Recording, key: PublicationKey, file: StudyFile) -> list[dict[str, str]]:
    """Make a row for each label, and for each time that the robot or a participant spoke."""
    numbers: dict[str, int] = {}
    codes = {code.id for code in file.codes}
    rows = []
    for labels in collect_by_coder(recording).values():
        for label in labels:
            event = numbers.setdefault(label.event_id, len(numbers) + 1) if label.event_id else None
            rows.append((label.start_ns, _make_label_row(label, key, codes, event)))
    people = {i: key.label_participant(p.pseudonym) for p in recording.info.participants for i in p.person_ids}
    # Voices of people who are not participants stay out.
    for utterance in recording.utterances:
        speaker = "robot" if utterance.speaker is Speaker.ROBOT else people.get(utterance.speaker_id)
        if speaker:
            row = {
                "duration": _format_seconds(utterance.end_ns - utterance.start_ns),
                "trial_type": "speech_robot" if speaker == "robot" else "speech_participant",
                "speaker": speaker,
            }
            rows.append((utterance.start_ns, row))
    rows.sort(key=lambda pair: (pair[0], sorted(pair[1].items())))
    return [{"onset": _format_seconds(start_ns - recording.start_ns), **row} for start_ns, row in rows]


def _make_label_row(label: Label, key: PublicationKey, codes: set[str], event: int | None) -> dict[str, str]:
    """Make the row of a label. Comments, and codes outside the codebook, may hold anything, so they stay out."""
    is_known = label.coder == MONITOR or label.code in codes
    return {
        "duration": _format_seconds(label.end_ns - label.start_ns),
        "trial_type": f"{label.polarity.value}_{label.attribute.value}",
        "polarity": label.polarity.value,
        "attribute": label.attribute.value,
        "severity": label.severity.value if label.severity else _MISSING,
        "coder": key.label_coder(label.coder),
        "code": label.code if label.code and is_known else _MISSING,
        "probability": _MISSING if label.probability is None else f"{label.probability:.6g}",
        "event": _MISSING if event is None else str(event),
    }


def _format_seconds(ns: int) -> str:
    return f"{ns / NS_PER_S:.3f}"


def _format_tsv(columns: Sequence[str], rows: Iterable[Mapping[str, str]]) -> str:
    lines = ["\t".join(columns)]
    lines += ["\t".join(" ".join(row.get(name, _MISSING).split()) or _MISSING for name in columns) for row in rows]
    return "\n".join(lines) + "\n"


def _format_json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _make_event_dictionary(file: StudyFile) -> dict[str, Any]:
    kinds = {f"{p.value}_{a.value}": f"{p.value}: {to_words(a.value)}" for p in Polarity for a in Attribute}
    levels = {
        "trial_type": kinds | {"speech_robot": "the robot speaks", "speech_participant": "a participant speaks"},
        "polarity": {p.value: f"a social {p.value}" for p in Polarity},
        "attribute": {a.value: to_words(a.value) for a in Attribute},
        "severity": {s.value: s.value for s in Severity},
        "code": {code.id: f"{code.name}: {code.definition}".rstrip(": ") for code in file.codes},
    }
    columns = {
        name: description | ({"Levels": levels[name]} if name in levels else {})
        for name, description in _DICTIONARY["events"].items()
    }
    return {"TaskName": _TASK, **columns}


def _describe_dataset(study: str, licence: str) -> dict[str, Any]:
    commit = {"Description": f"commit {name}"} if (name := read_checkout_commit()) else {}
    return {
        "Name": study,
        "BIDSVersion": _BIDS_VERSION,
        "DatasetType": "raw",
        **({"License": licence} if licence else {}),
        "GeneratedBy": [{"Name": "Tactful", "Version": __version__} | commit],
    }


def _write_readme(file: StudyFile, session_count: int, people_count: int) -> str:
    return shipped_text("study_desk.analysis", "readme.md").format(
        study=file.study,
        sessions=session_count,
        people=people_count,
        conditions=", ".join(file.conditions) or "none",
        task=_TASK,
    )
