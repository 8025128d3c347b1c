"""Blind coding: sessions are packed, coded in ELAN's and BORIS's formats, and imported again."""

import csv
import json
import shutil
import wave
from decimal import Decimal
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from norm_core.records.flag import Verdict
from norm_core.runtime.time import ReplayClock
from norm_monitor.session_log.schema import Review
from norm_monitor.session_log.writer import StudyLog
from tests.acceptance.coded_study import read_labels, study
from tests.command_line import tactful
from tests.study_session import START_NS, write_log

CODERS = ("C-1", "C-2", "C-3")
CODERS_BY_SESSION = {"S1": ("C-1", "C-3"), "S2": ("C-1", "C-2"), "S3": ("C-2",), "S4": ("C-3",)}
CONDITIONS = {"S1": "cond-quiet", "S2": "cond-chatty", "S3": "cond-quiet", "S4": "cond-chatty"}
SECRET = "what only C-3 noticed"
JOKE = "{id: joke, name: joke, definition: the robot jokes, polarity: competence, attribute: engagement, key: j}"


@pytest.fixture(scope="module")
def assigned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of four sessions with sound, of which C-3 has coded one, and Rev-9 judged a flag."""
    folder = tmp_path_factory.mktemp("packs") / "library-2026"
    options = [part for coder in CODERS for part in ("--coder", coder)]
    study("init", folder, "--condition", "cond-quiet", "--condition", "cond-chatty", *options)
    study("participant", folder, "P-7K3MX", "--coders")
    for name, condition in CONDITIONS.items():
        log = folder.parent / name
        write_log(log, session=name, condition=condition, length_s=60, flags=4)
        study("add", folder, log)
        sound = folder.parent / f"{name}.wav"
        with wave.open(str(sound), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(8000)
            file.writeframes(bytes(2 * 8000 * 60))
        replace(folder, f"  {name}: {{", f"  {name}: {{media: [../{name}.wav], ")
    replace(folder, "codes: []", f"codes:\n  - {JOKE}")
    for name, coders in CODERS_BY_SESSION.items():
        replace(folder, f"  {name}: {{", f"  {name}: {{coders: [{', '.join(coders)}], ")
    coded = folder.parent / "early.csv"
    coded.write_text(f"session,polarity,attribute,start_s,end_s,comment\nS1,error,emotions,33.3,34.4,{SECRET}\n")
    study("import", folder, coded, "--coder", "C-3")
    event_id = read_labels(folder / "sessions/S1", "monitor")[0].event_id
    with StudyLog.resume(folder / "sessions/S1", ReplayClock(START_NS)) as writer:
        writer.append(Review(event_id=event_id, coder="Rev-9", verdict=Verdict.REJECT, note="not so"), START_NS)
    return folder


@pytest.fixture
def own(assigned: Path, tmp_path: Path) -> Path:
    """A copy to write on."""
    for sound in assigned.parent.glob("*.wav"):
        shutil.copy(sound, tmp_path)
    return shutil.copytree(assigned, tmp_path / "own")


def replace(folder: Path, old: str, new: str) -> None:
    text = (folder / "study.yaml").read_text()
    assert text.count(old) == 1, old
    (folder / "study.yaml").write_text(text.replace(old, new))


def read_status(folder: Path, session: str) -> dict[str, Any]:
    """Read a session's status, whatever else is owed."""
    status = json.loads(tactful("study", "status", str(folder), "--json").stdout)
    (chosen,) = [entry for entry in status["sessions"] if entry["name"] == session]
    return dict(chosen)


def mark_in_elan(path: Path, marks: list[tuple[str, int, int, str]]) -> None:
    """Add annotations to the tiers as ELAN does: time slots at the end of TIME_ORDER, ids that go on."""
    tree = ElementTree.parse(path)
    root = tree.getroot()
    order = root.find("TIME_ORDER")
    assert order is not None
    first = 900 + len(list(root.iter("ALIGNABLE_ANNOTATION")))
    for number, (name, start_ms, end_ms, value) in enumerate(marks, first):
        (tier,) = [element for element in root.iter("TIER") if element.get("TIER_ID") == name]
        for part, at_ms in (("a", start_ms), ("b", end_ms)):
            ElementTree.SubElement(order, "TIME_SLOT", TIME_SLOT_ID=f"ts{number}{part}", TIME_VALUE=str(at_ms))
        inside = ElementTree.SubElement(
            ElementTree.SubElement(tier, "ANNOTATION"),
            "ALIGNABLE_ANNOTATION",
            {"ANNOTATION_ID": f"a{number}", "TIME_SLOT_REF1": f"ts{number}a", "TIME_SLOT_REF2": f"ts{number}b"},
        )
        ElementTree.SubElement(inside, "ANNOTATION_VALUE").text = value
    tree.write(path, encoding="UTF-8", xml_declaration=True)


def mark_in_boris(path: Path, session: str, marks: list[tuple[str, str, str, str]]) -> None:
    """Press a behaviour's key at its start and its stop, as BORIS stores it, and save the project as BORIS does."""
    project = json.loads(path.read_text(), parse_float=Decimal)
    observation = project["observations"][session]
    by_key = {behaviour["key"]: behaviour["code"] for behaviour in project["behaviors_conf"].values()}
    for key, start, stop, modifier in marks:
        for time in (start, stop):
            observation["events"].append([Decimal(time), "", by_key[key], modifier, "", "NA"])
    observation["events"].sort()
    path.write_text(json.dumps(project, default=float))


def pack(folder: Path, coder: str, *options: str) -> Path:
    out = folder.parent / f"pack {coder}"
    study("pack", folder, out, "--coder", coder, *options)
    return out


def test_a_pack_holds_no_flags_conditions_or_others_work(own: Path) -> None:
    out = pack(own, "C-1", "--copy-media")
    flags = read_labels(own / "sessions/S1", "monitor")
    secrets = {text for flag in flags for text in (flag.event_id, flag.code, flag.comment)} - {""}
    secrets |= {*CONDITIONS.values(), "C-2", "C-3", SECRET, "Rev-9", "monitor", "33.3", "33300", "P-7K3MX", "verdict"}
    files = [path for path in out.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} == {".eaf", ".boris", ".csv", ".txt", ".wav"}
    assert flags
    for path in files:
        content = path.read_bytes().decode("utf-8", "replace")
        assert [secret for secret in secrets if secret in content] == [], path
        assert [secret for secret in secrets if secret in path.name] == [], path
    assert {path.stat().st_mode & 0o077 for path in (out,)} == {0}


def test_a_pack_holds_speech_media_and_the_codebook_with_keys(own: Path) -> None:
    out = pack(own, "C-1")
    document = ElementTree.parse(next(out.glob("*S1_C-1.eaf"))).getroot()
    tiers = {tier.get("TIER_ID"): tier for tier in document.iter("TIER")}
    assert {"speech robot", "speech user", "error emotions", "competence social norms and routines", "joke"} <= {*tiers}
    assert "Good morning" in " ".join(value.text or "" for value in tiers["speech user"].iter("ANNOTATION_VALUE"))
    assert not list(tiers["joke"].iter("ANNOTATION_VALUE"))
    (media,) = document.iter("MEDIA_DESCRIPTOR")
    assert (out / media.attrib["RELATIVE_MEDIA_URL"]).resolve() == (own.parent / "S1.wav").resolve()
    project = json.loads((out / "C-1.boris").read_text())
    keys = {behaviour["code"]: behaviour["key"] for behaviour in project["behaviors_conf"].values()}
    assert (keys["joke"], keys["error emotions"], len({*keys.values()})) == ("j", "1", 15)
    (linked,) = project["observations"]["S1"]["file"]["1"]
    assert (out / linked).resolve() == (own.parent / "S1.wav").resolve()
    assert project["observations"]["S1"]["media_info"]["length"][linked] == pytest.approx(60)
    with (out / "codebook.csv").open(encoding="utf-8-sig", newline="") as file:
        (joke,) = [row for row in csv.DictReader(file) if row["name"] == "joke"]
    assert (joke["key"], joke["definition"]) == ("j", "the robot jokes")


def test_packs_are_imported_from_elan_and_boris(own: Path) -> None:
    """The first coder works in ELAN, the second in BORIS. They agree on all but one event of the session they share."""
    shared = "S2"
    first, second = CODERS_BY_SESSION[shared]
    elan, boris = pack(own, first), pack(own, second)
    mark_in_elan(
        next(elan.glob(f"*_{shared}_{first}.eaf")),
        [("error engagement", 10_000, 12_500, "severe"), ("joke", 20_000, 21_000, "about whales"),
            ("error emotions", 40_000, 41_000, "")],
    )  # fmt: skip
    mark_in_boris(boris / f"{second}.boris", shared, [("2", "10.1", "12.6", "severe"), ("j", "20.2", "21.0", "")])
    done = json.loads(study("import", own, *sorted(elan.glob("*.eaf")), boris / f"{second}.boris", "--json"))
    assert {(coding["session"], *coding["coders"], coding["labels"]) for coding in done["sessions"]} == {
        (shared, first, 3), (shared, second, 2)
    }  # fmt: skip
    (engagement, joke, _) = read_labels(own / "sessions" / shared, first)
    assert (engagement.severity, engagement.end_ns) == ("severe", START_NS + 12_500_000_000)
    assert (joke.code, joke.polarity, joke.attribute, joke.comment) == (
        "joke", "competence", "engagement", "about whales"
    )  # fmt: skip
    (engagement, joke) = read_labels(own / "sessions" / shared, second)
    assert (engagement.severity, engagement.start_ns, joke.code) == ("severe", START_NS + 10_100_000_000, "joke")
    assert "S3" in {text.split()[0] for text in done["without_labels"]}
    session = read_status(own, shared)
    assert (session["coded_by"], session["owed_by"]) == (sorted([first, second]), [])
    rows = json.loads(study("agreement", own, "--json", "--resamples", "5"))["rows"]
    (f1,) = [
        row["estimate"]["value"]
        for row in rows
        if (row["measure"], row["tolerance_s"], row["attribute"]) == ("event F1", 1.0, "all")
        and {*row["coders"]} == {first, second}
    ]
    assert f1 == pytest.approx(4 / 5)
    study(
        "import", own, next(elan.glob(f"*_{shared}_{first}.eaf")), "--coder", "consensus"
    )  # they agree on the first's
    assert len(read_labels(own / "sessions" / shared, "consensus")) == 3


def test_import_replaces_a_coding_and_the_log_keeps_both(own: Path) -> None:
    out = pack(own, "C-1")
    coded = next(out.glob("*S1_C-1.eaf"))
    mark_in_elan(coded, [("error engagement", 10_000, 12_500, "severe")])
    study("import", own, coded)
    mark_in_elan(coded, [("error emotions", 40_000, 41_000, "minor")])
    assert "--replace it (the log keeps both)" in study("import", own, coded, code=2)
    assert "coding by C-1 revised: 2 labels" in study("import", own, coded, "--replace")
    assert [label.severity for label in read_labels(own / "sessions/S1", "C-1")] == ["severe", "minor"]
    assert read_status(own, "S1")["revised"] == {"C-1": 1}
    assert read_status(own, "S1")["log"] == "intact"
    lines = "".join(path.read_text() for path in (own / "sessions/S1").glob("events-*.jsonl"))
    assert lines.count('"start_ns":1767225610000000000') == 2  # the first version, and the same event in the second
    assert SECRET in [label.comment for label in read_labels(own / "sessions/S1", "C-3")]


def test_import_refuses_a_pack_of_another_coder_study_or_code(own: Path, tmp_path: Path) -> None:
    coded = next(pack(own, "C-1").glob("*S1_C-1.eaf"))
    text = coded.read_text()
    mark_in_elan(coded, [("error engagement", 10_000, 12_500, "")])
    assert "is the work of C-1; leave out --coder C-2" in study("import", own, coded, "--coder", "C-2", code=2)
    marked = coded.read_text()
    coded.write_text(marked.replace(">library-2026<", ">zoo<"))
    assert "is of study zoo, not of library-2026" in study("import", own, coded, code=2)
    coded.write_text(marked.replace('TIER_ID="error engagement"', 'TIER_ID="gaze"'))
    assert "'gaze' is not a code of the study" in study("import", own, coded, code=2)
    coded.write_text(marked.replace("<ANNOTATION_VALUE />", "<ANNOTATION_VALUE>lowish</ANNOTATION_VALUE>"))
    assert "'lowish' is not a severity; the value of an error is one of info" in study("import", own, coded, code=2)
    coded.write_text(text)
    assert study("import", own, coded) == ""
    assert "is there already, and may hold a coder's work" in study("pack", own, coded.parent, "--coder", "C-1", code=2)
    assert "C-1" in read_status(own, "S1")["owed_by"]


def test_withdraw_deletes_packs(own: Path) -> None:
    out = own / "packs"
    study("pack", own, out, "--coder", "C-1", "--copy-media")
    pack(own, "C-2")
    study("withdraw", own, "P-7K3MX", "--coders", code=1)  # a pack that lies elsewhere is left
    assert {path.suffix for path in out.rglob("*") if path.is_file()} == {".boris", ".csv", ".txt"}
