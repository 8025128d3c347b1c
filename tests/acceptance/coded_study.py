"""A study of two conditions and six participants, made by the study's own commands from logs written here."""

import csv
from collections.abc import Sequence
from pathlib import Path

from norm_core.records.speech import Speaker, Utterance
from norm_core.runtime.time import NS_PER_S, ReplayClock
from norm_monitor.session_log.recording import open_recording
from norm_monitor.session_log.schema import Label, Participant
from norm_monitor.session_log.writer import StudyLog
from study_desk.coding.labels import collect_by_coder
from tests.command_line import tactful
from tests.study_session import START_NS, info

MINUTES = 10
CONFIG_SHA256 = "c0" * 32
SPOKEN = "my sister Rosalind works in the harbour office"
# By session: condition, participants, and the onsets in seconds of what each coder found: errors of engagement.
SESSIONS: dict[str, tuple[str, tuple[str, ...], dict[str, Sequence[int]]]] = {
    "S1": ("quiet", ("P-AAA11",), {"C-1": (5, 20, 41), "C-2": (5, 20)}),
    "S2": ("chatty", ("P-BBB22",), {"C-1": (10, 30, 50, 70, 90, 95)}),
    "S3": ("quiet", ("P-CCC33",), {"C-1": ()}),
    "S4": ("chatty", ("P-DDD44",), {"C-2": (15, 44, 300)}),
    "S5": ("quiet", ("P-EEE55", "P-FFF66"), {"C-1": (3, 33, 53, 60, 61)}),
    "S6": ("chatty", ("P-AAA11",), {"C-1": (100, 200, 300, 400), "C-2": ()}),
}
PEOPLE = sorted({person for _, people, _ in SESSIONS.values() for person in people})


def study(*arguments: str | Path, code: int = 0) -> str:
    """Run a study verb, check its exit code, and return what it prints."""
    done = tactful("study", *map(str, arguments))
    assert done.returncode == code, done.stderr
    return done.stderr if code else done.stdout


def read_labels(log: Path, coder: str) -> list[Label]:
    """Read a coder's labels, or the monitor's."""
    return list(collect_by_coder(open_recording(log))[coder])


def read_rows(path: Path) -> list[dict[str, str]]:
    """Read the rows of a CSV file by column."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def make_coded_study(folder: Path) -> Path:
    """Make the study, in which two coders share six sessions."""
    study("init", folder, "--name", "kiosk", "--condition", "quiet", "--condition", "chatty", "--coder", "C-1",
          "--coder", "C-2")  # fmt: skip
    for person in PEOPLE:
        study("participant", folder, person)
    for number, (name, (condition, people, codings)) in enumerate(SESSIONS.items()):
        log = folder.parent / name
        write_session(log, name, condition, people, START_NS + number * 86_400 * NS_PER_S)
        study("add", folder, log)
        for coder, starts_s in codings.items():
            file = folder.parent / f"{name}-{coder}.csv"
            rows = "".join(f"error,engagement,{start_s},{start_s + 2}\n" for start_s in starts_s)
            file.write_text(f"polarity,attribute,start_s,end_s\n{rows}")
            study("import", folder / "sessions" / name, file, "--coder", coder)
    return folder


def write_session(log: Path, name: str, condition: str, people: Sequence[str], start_ns: int) -> None:
    """Write a log of ten minutes in which the first participant says one sentence."""
    end_ns = start_ns + MINUTES * 60 * NS_PER_S
    about = info(
        name,
        study="kiosk",
        condition=condition,
        participants=tuple(Participant(pseudonym=p, person_ids=(f"person_{n}",)) for n, p in enumerate(people, 1)),
        start_ns=start_ns,
        end_ns=end_ns,
        bag=None,
        retention_days=None,
        config_sha256=CONFIG_SHA256,
    )
    with StudyLog.begin(log, about, ReplayClock(end_ns)) as writer:
        utterance = Utterance(
            stamp_ns=start_ns + NS_PER_S,
            utterance_id="u1",
            speaker=Speaker.USER,
            speaker_id="person_1",
            text=SPOKEN,
            start_ns=start_ns + NS_PER_S,
            end_ns=start_ns + 4 * NS_PER_S,
        )
        writer.append(utterance, utterance.end_ns)
        writer.close(sealed=True)
