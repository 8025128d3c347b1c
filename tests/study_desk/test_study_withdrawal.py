"""A withdrawal as its user calls it: whatever quotes or names the participant goes, and what is left is named."""

import csv
import json
import tarfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from norm_core.bags.writer import BagWriter
from norm_core.records.decision import Decision
from norm_core.records.flag import Attribute, FlagState, Polarity, SocialFlag, Verdict
from norm_core.records.outcome import Outcome
from norm_core.records.speech import RobotSpeech, Speaker, SpeechEdge, Utterance, Word
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.time import NS_PER_S, ReplayClock
from norm_monitor.session_log.reader import read
from norm_monitor.session_log.recording import open_recording
from norm_monitor.session_log.redact import WITHHELD
from norm_monitor.session_log.schema import Coding, Label, Participant, Review
from norm_monitor.session_log.study_folder import Study
from norm_monitor.session_log.writer import StudyLog
from tactful_cli.main import app
from tests.study_session import START_NS, info, records

CLOCK = ReplayClock(START_NS + 3600 * NS_PER_S)
OWN_WORDS = ("My goldfish Bubbles died on the stairs, you know.", "Hush now.")
GREETING = "How can I help you today?"
TRACES = ("goldfish", "Bubbles", "Hush", "Zebulon", "Quartermaine")
ALONE = (Participant(pseudonym="P-1"),)
PAIR = (Participant(pseudonym="P-1", person_ids=("one",)), Participant(pseudonym="P-2", person_ids=("two",)))


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["study", *map(str, arguments)], prog_name="tactful")


def make_utterance(number: int, text: str, speaker: Speaker = Speaker.USER, speaker_id: str = "") -> Utterance:
    at_ns = START_NS + number * NS_PER_S
    return Utterance(
        stamp_ns=at_ns, utterance_id=f"u{number}", speaker=speaker, speaker_id=speaker_id, text=text, start_ns=at_ns,
        end_ns=at_ns + NS_PER_S,
    )  # fmt: skip


def make_flag(event_id: str, rationale: str, quote: str, utterance_id: str = "") -> SocialFlag:
    template = next(record for _, record in records(flags=1) if isinstance(record, SocialFlag))
    fact = replace(template.evidence[0], quote=quote, utterance_id=utterance_id)
    return replace(template, event_id=event_id, evidence=(fact,), rationale=rationale, person_id="")


def list_records(speaker_id: str) -> list[object]:
    return [
        make_utterance(1, GREETING, Speaker.ROBOT),
        RobotSpeech(stamp_ns=START_NS, speech_id="s", state=SpeechEdge.START, text=GREETING),
        make_utterance(2, OWN_WORDS[0], speaker_id=speaker_id),
        make_utterance(3, OWN_WORDS[1], speaker_id=speaker_id),
        make_utterance(4, "So my goldfish Bubbles died on the stairs, you know? I am sorry.", Speaker.ROBOT),
        make_flag("long", "It passed over “My goldfish Bubbles …”.", "", "u2"),
        make_flag("short", "After “Hush now.” it talked on.", "Hush now."),
        make_flag("mixed", "It asked “How can I help you today?”.", f"{OWN_WORDS[1]} / {GREETING}"),
        make_flag("robots", "It asked “How can I help you today?”.", GREETING),
        Decision(
            stamp_ns=START_NS, decided_ns=START_NS, decision_id="d", outcome=Outcome.ABSTAINED,
            situation="They said “Hush now.”", question="Now that Bubbles died on the stairs, what?",
        ),
        Label(
            start_ns=START_NS, end_ns=START_NS, polarity=Polarity.ERROR, attribute=Attribute.EMOTIONS, coder="C-1",
            comment="the goldfish Bubbles died on it, and nothing",
        ),
        Review(event_id="long", coder="C-2", verdict=Verdict.ACCEPT, note="goldfish Bubbles died on ..."),
    ]  # fmt: skip


def make_study(folder: Path, people: Sequence[Participant], *more: object) -> Path:
    """A study of one session S1."""
    run("init", folder, "--name", "library-2026", "--coder", "C-1", "--coder", "C-3")
    for person in people:
        run("participant", folder, person.pseudonym, "--coders")
    with StudyLog.begin(folder.parent / "log", info("S1", participants=tuple(people)), CLOCK) as log:
        for record in (*list_records(people[0].person_ids[0] if people[0].person_ids else ""), *more):
            log.append(record, START_NS)
        log.close(sealed=True)
    assert run("add", folder, folder.parent / "log").exit_code == 0
    return folder


def find_traces(folder: Path, traces: Sequence[str] = TRACES) -> set[str]:
    """The files that hold a trace, in bytes as they lie there."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {p.relative_to(folder).as_posix() for p in files if any(t.encode() in p.read_bytes() for t in traces)}


@pytest.mark.parametrize("people", [ALONE, PAIR], ids=["alone, without ids", "of two, with ids"])
def test_withdrawn_words_leave_log_and_exports(tmp_path: Path, people: Sequence[Participant]) -> None:
    study = make_study(tmp_path / "study", people)
    assert run("pack", study, study / "pack", "--coder", "C-3").exit_code == 0
    assert "pack/1_S1_C-3.eaf" in find_traces(study)
    done = run("withdraw", study, "P-1", "--words")
    assert done.exit_code == 0, done.output
    assert "0 names and 6 runs of words" in done.output
    assert find_traces(study) == set()
    after, contents = open_recording(study / "sessions/S1"), read(study / "sessions/S1")
    assert (contents.faults, contents.sealed) == ((), True)
    assert [u.text for u in after.utterances] == [GREETING, WITHHELD, WITHHELD, f"So {WITHHELD}? I am sorry."]
    assert [u.start_ns for u in after.utterances] == [START_NS + n * NS_PER_S for n in (1, 2, 3, 4)]
    quotes = {f.event_id: (f.rationale, f.evidence[0].quote) for f in after.flags}
    assert quotes["robots"] == ("It asked “How can I help you today?”.", GREETING)
    assert {quotes[event_id][0] for event_id in ("long", "short", "mixed")} == {WITHHELD}
    assert len(after.labels) == len(after.decisions) == 1
    assert sum(isinstance(entry.record, Review) for entry in contents.entries) == 1


# P-1's words, and a phrase that the robot has of its own.
PIGEONS, PHRASE = "carrier pigeons above the bakery in Zwolle", "What would you like to know about the house?"


@pytest.mark.parametrize("what", ["--words", "--everything"])
def test_withdrawn_words_leave_other_sessions(tmp_path: Path, what: str) -> None:
    def make_speech(text: str) -> RobotSpeech:
        return RobotSpeech(stamp_ns=START_NS + 5 * NS_PER_S, speech_id=text, state=SpeechEdge.START, text=text)

    asked = replace(make_speech(PHRASE), stamp_ns=START_NS)
    repeated = make_utterance(7, f"You keep {PIGEONS}?", speaker_id="two")
    words = tuple(Word(text=w, start_ns=0, end_ns=0, probability=1.0) for w in repeated.text.split())
    study = make_study(
        tmp_path / "study", PAIR, asked, make_utterance(6, f"I breed {PIGEONS}.", speaker_id="one"),
        make_utterance(8, "What would you like to know about?", speaker_id="one"),
        replace(repeated, words=words), make_speech(f"Lovely, {PIGEONS}!"),
        replace(asked, stamp_ns=START_NS + 9 * NS_PER_S),
    )  # fmt: skip
    comment, *_ = (record for record in list_records("") if isinstance(record, Label))
    stale = replace(make_flag("gone", f"They said “{PIGEONS}”.", "", "x"), person_id="two")
    withdrawn = replace(stale, state=FlagState.WITHDRAWN, rationale="No.")
    with StudyLog.begin(tmp_path / "other", info("S2", participants=PAIR[1:]), CLOCK) as log:
        for record in (
            make_utterance(2, f"She has {PIGEONS}.", speaker_id="two"), make_speech(f"So, {PIGEONS}?"), asked,
            replace(comment, comment=f"about {PIGEONS}"), Coding(coder="C-1", labels=1, replaces=True),
            replace(comment, comment=f"laughed at {PIGEONS}"), stale, withdrawn,
        ):  # fmt: skip
            log.append(record, START_NS)
        log.close(sealed=True)
    assert run("add", study, tmp_path / "other").exit_code == 0
    assert run("pack", study, study / "pack", "--coder", "C-3").exit_code == 0
    (packed,) = (study / "pack").glob("*_S2_C-3.eaf")
    (study / "memo.txt").write_text("seen pigeons above the bakery")
    bag = tmp_path / "bag_of_s2"
    bag.mkdir()
    (bag / "bag.mcap").write_bytes(b"sound")
    Study(study).set(("sessions", "S2", "bag"), str(bag))
    (study / "chance.txt").write_text(f"the robot always asks: {PHRASE}")
    assert {f"pack/{packed.name}", "sessions/S2/events-000001.jsonl"} <= find_traces(study, (PIGEONS,))

    done = run("withdraw", study, "P-1", what, "--json")
    left = {Path(path).name for path in json.loads(done.stdout)["left"]}
    assert (done.exit_code, left) == (1, {"memo.txt", "bag.mcap"})
    assert find_traces(study, ("pigeons", "Zwolle", "bakery")) == {"memo.txt"}
    first, second = (open_recording(study / f"sessions/{name}") for name in ("S1", "S2"))
    assert [u.text for u in second.utterances] == [f"She has {WITHHELD}."]
    assert {r.text for r in second.robot_speech} == {f"So, {WITHHELD}?", PHRASE}
    assert (f"You keep {WITHHELD}?", ()) in {(u.text, u.words) for u in first.utterances}
    assert {f"Lovely, {WITHHELD}!", PHRASE} <= {r.text for r in first.robot_speech}
    assert ([label.comment for label in second.labels], second.flags) == ([f"laughed at {WITHHELD}"], ())
    assert read(study / "sessions/S2").faults == ()
    (study / "memo.txt").unlink()
    assert "bag.mcap" in run("withdraw", study, "P-1", what).stderr  # which a later run names still
    (bag / "bag.mcap").unlink()
    assert run("withdraw", study, "P-1", what).exit_code == 0


def test_a_locked_log_without_the_words_is_no_fault(tmp_path: Path) -> None:
    study = make_study(tmp_path / "study", ALONE)
    run("participant", study, "P-2")
    with StudyLog.begin(tmp_path / "other", info("S2", participants=PAIR[1:]), CLOCK) as log:
        log.append(make_utterance(1, "Good day.", speaker_id="two"), START_NS)
    assert run("add", study, tmp_path / "other").exit_code == 0
    with StudyLog.resume(study / "sessions/S2", CLOCK) as log:
        assert run("withdraw", study, "P-1", "--words").exit_code == 0
        log.append(make_utterance(2, OWN_WORDS[0], speaker_id="two"), START_NS)


def test_withdrawing_words_removes_names_in_comments(tmp_path: Path) -> None:
    study = make_study(tmp_path / "study", ALONE)
    label = next(record for record in list_records("") if isinstance(record, Label))
    with StudyLog.resume(study / "sessions/S1", CLOCK) as log:
        log.append(replace(label, comment="Zebulon left"), START_NS)
    with StudyLog.begin(tmp_path / "other", info("S2", participants=PAIR[1:], site="Zebulon's home"), CLOCK) as log:
        log.close(sealed=True)
    run("participant", study, "P-2")
    assert run("add", study, tmp_path / "other").exit_code == 0
    run("participant", study, "P-1", "--keys", tmp_path / "keys.json", "--name", "Zebulon Quartermaine")
    options = ("P-1", "--words", "--keys", tmp_path / "keys.json", "--reason", "Zebulon called")
    done = run("withdraw", study, *options)
    assert (done.exit_code, find_traces(study, ("Zebulon",))) == (1, {"sessions/S2/events-000001.jsonl"})
    assert f"remove the session, and add it anew: {PROGRAM} study withdraw {study} --session S2" in " ".join(
        done.stderr.split()
    )
    assert run("withdraw", study, "--session", "S2", "--yes").exit_code == 0
    assert run("withdraw", study, *options).exit_code == 0
    assert open_recording(study / "sessions/S1").labels[-1].comment == "P-1 left"


def test_a_withdrawal_keeps_words_and_flags_of_others(tmp_path: Path) -> None:
    other = make_utterance(9, "I would like a book about ships.", speaker_id="two")
    quoting = make_flag("other", "It passed over “a book about ships”.", "a book about ships")
    repeating = make_utterance(10, f"Oh, {OWN_WORDS[0]} Fish die.", speaker_id="two")
    flags = [replace(make_flag(person, "It was late.", ""), person_id=person) for person in ("one", "two")]
    study = make_study(tmp_path / "study", PAIR, other, repeating, quoting, *flags)
    assert run("withdraw", study, "P-1", "--words").exit_code == 0
    after = open_recording(study / "sessions/S1")
    assert {other, replace(repeating, text=f"Oh, {WITHHELD}. Fish die.")} <= {*after.utterances}
    assert quoting in after.flags
    assert run("withdraw", study, "P-1", "--everything").exit_code == 0
    after = open_recording(study / "sessions/S1")
    assert other in after.utterances
    assert "one" not in {flag.person_id for flag in after.flags}
    assert "two" in {flag.person_id for flag in after.flags}


def test_files_with_withdrawn_words_are_named_until_erased(tmp_path: Path) -> None:
    study = make_study(tmp_path / "study", ALONE)
    (study / "backup").mkdir()
    with tarfile.open(study / "backup/old.tar.gz", "w:gz") as archive:
        archive.add(study / "sessions", "sessions")
    with BagWriter(study / "bags_s1") as bag:
        bag.write("/tactful/utterances", make_utterance(2, OWN_WORDS[0]), START_NS)
    (study / "memo.txt").write_text(f"P-1 said: {OWN_WORDS[0]}")
    done = run("withdraw", study, "P-1", "--words", "--json")
    assert done.exit_code == 1
    bag_file = next(path for path in find_traces(study) if path.startswith("bags_s1/"))
    assert set(json.loads(done.stdout)["left"]) == {"backup/old.tar.gz", "memo.txt", bag_file}
    again = run("withdraw", study, "P-1", "--words")  # by now, no log knows the sentences
    assert (again.exit_code, again.stderr.count("erase it, or take that out of it")) == (1, 3)
    printed = " ".join(run("status", study).output.split())
    assert "backup/old.tar.gz: may hold words or a name that a participant withdrew" in printed
    (study / "backup/old.tar.gz").unlink()
    (study / bag_file).unlink()
    (study / "memo.txt").write_text("nothing of that")
    assert run("withdraw", study, "P-1", "--words").exit_code == 0
    assert "withdrew" not in run("status", study).output


def test_erased_sessions_count_in_no_figure(tmp_path: Path) -> None:
    study = make_study(tmp_path / "study", PAIR)
    flags = [record for _, record in records(flags=2) if isinstance(record, SocialFlag)]
    for name, person in (("S2", PAIR[1]), ("S3", Participant(pseudonym="P-3"))):
        run("participant", study, person.pseudonym)
        with StudyLog.begin(tmp_path / name, info(name, participants=(person,), retention_days=None), CLOCK) as log:
            for record in (make_utterance(1, "Good day.", speaker_id="two"), *flags):
                log.append(record, START_NS)
            log.close(sealed=True)
        assert run("add", study, tmp_path / name).exit_code == 0
    (tmp_path / "c.csv").write_text(
        "session,polarity,attribute,start_s,end_s,comment\n"
        + "".join(f"{name},error,engagement,{at},{at + 1},P-1 left\n" for name in ("S1", "S2", "S3") for at in (10, 20))
    )
    for coder in ("C-1", "C-3"):
        options = ("--coder", coder, "--replace") if coder == "C-1" else ("--coder", coder)
        assert run("import", study, tmp_path / "c.csv", *options).exit_code == 0

    def sessions_in_report() -> list[str]:
        assert run("report", study).exit_code == 0
        assert (study / "exports/analysis/events.csv").read_text().count("S1") == 0
        with (study / "exports/analysis/sessions.csv").open() as file:
            return sorted({row["session"] for row in csv.DictReader(file)})

    assert run("withdraw", study, "P-1", "--everything").exit_code == 0
    assert sessions_in_report() == ["S2", "S3"]
    agreed = json.loads(run("agreement", study, "--resamples", "2", "--json").stdout)
    assert (agreed["sessions"], agreed["minutes"]) == (2, 20)
    assert "session S1: P-1 withdrew everything, so is left out" in agreed["remarks"]

    assert run("withdraw", study, "P-3", "--everything").exit_code == 0
    assert run("import", study / "sessions/S3", "--coder", "C-1", "--complete").exit_code == 0
    assert sessions_in_report() == ["S2"]
    assert json.loads(run("agreement", study, "--resamples", "2", "--json").stdout)["sessions"] == 1
    owed = {s["name"]: s["owed_by"] for s in json.loads(run("status", study, "--json").stdout)["sessions"]}
    assert owed == {"S1": [], "S2": [], "S3": []}


@pytest.mark.parametrize("keys_in_study", [False, True])
def test_withdrawing_everything_removes_names(tmp_path: Path, *, keys_in_study: bool) -> None:
    study = make_study(tmp_path / "study", ALONE)
    with StudyLog.begin(tmp_path / "other", info("S2", participants=PAIR[1:]), CLOCK) as log:
        label = next(record for record in list_records("") if isinstance(record, Label))
        log.append(replace(label, comment="as with Zebulon before"), START_NS)
        log.close(sealed=True)
    run("participant", study, "P-2")
    assert run("add", study, tmp_path / "other").exit_code == 0
    keys = (study if keys_in_study else tmp_path) / "keys.json"
    for pseudonym, name in (("P-1", "Zebulon Quartermaine"), ("P-2", "Ana Quartermaine")):
        run("participant", study, pseudonym, "--keys", keys, "--name", name)
    assert run("report", study, "-o", study / "analysis").exit_code == 0
    (study / "analysis/estimates_r.csv").write_text("term,estimate\n")
    (study / "S1_C-1.csv").write_text("comment\nZEBULON left\n")
    with BagWriter(study / "s1") as bag:
        bag.write("/tactful/utterances", make_utterance(2, "Good day."), START_NS)
    plan = (study / "study.yaml").read_text().replace("S1: {", "S1: {bag: s1, ")
    (study / "study.yaml").write_text(plan)

    options = () if keys_in_study else ("--keys", keys)
    away = (study / "sessions/S2").rename(tmp_path / "away")
    assert run("withdraw", study, "P-2", "--everything", *options).exit_code == 1
    assert "Ana Quartermaine" in keys.read_text()  # the name is to be looked for in that log too
    away.rename(study / "sessions/S2")
    done = run("withdraw", study, "P-1", "--everything", *options)
    assert done.exit_code == 1
    assert "S1_C-1.csv: has a part of a name" in done.stderr
    assert "s1: is not reached from here; erase it yourself" in done.stderr
    assert "Zebulon" not in done.output
    assert "Zebulon" not in keys.read_text()
    assert "Ana Quartermaine" in keys.read_text()
    assert find_traces(study, ("Zebulon",)) == set()
    assert not list((study / "analysis").glob("estimates*"))
    (other,) = open_recording(study / "sessions/S2").labels
    assert other.comment == "as with [name] before"

    (study / "S1_C-1.csv").unlink()
    for path in (study / "s1").iterdir():
        path.unlink()
    (study / "s1").rmdir()
    assert run("withdraw", study, "P-1", "--everything").exit_code == 0
    session = json.loads(run("status", study, "--json").stdout)["sessions"][0]
    assert (session["log"], session["problems"]) == ("emptied", [])


def test_withdraw_needs_a_consent_and_an_existing_key_file(tmp_path: Path) -> None:
    study = make_study(tmp_path / "study", ALONE)
    assert "name --words, --coders or" in str(run("withdraw", study, "P-1").exception)
    printed = str(run("withdraw", study, "P-1", "--everything", "--keys", tmp_path / "kyes.json").exception)
    assert "there is no such key file" in printed
    assert "goldfish" in (study / "sessions/S1/events-000001.jsonl").read_text()
