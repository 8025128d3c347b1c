"""Forms for coders, as other programs' readers see them, and tables of labels, which come back exactly."""

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from pympi.Elan import Eaf

from norm_core.records.flag import Attribute, Polarity, Severity
from norm_core.records.speech import Speaker, Utterance
from norm_monitor.session_log.labels import Sheet, make_monitor_labels, write_csv
from norm_monitor.session_log.recording import Recording, open_recording
from norm_monitor.session_log.schema import Label, LinkedMedia, Participant, parse_media
from norm_monitor.session_log.study_file import HSRI
from study_desk.coding.forms.eaf import write_eaf
from study_desk.coding.forms.form_file import CheckedForm
from study_desk.coding.forms.sheet import CodingTarget, FormError, build_sheet
from tests.study_session import START_NS, write_log

MS = 1_000_000
SEVERITIES = {Severity.MINOR: "one turn repairs it", Severity.MAJOR: "the aim is lost"}
FROM_START = CodingTarget(origin_ns=START_NS)
ANA = CodingTarget(coder="Ana")


def write_and_open(sheet: Sheet, path: Path, *media: LinkedMedia) -> Eaf:
    """Write a form for Ana, and read it with an independent reader."""
    write_eaf(path, sheet, media, HSRI, SEVERITIES, study="library", coder="Ana")
    return Eaf(str(path))


def test_each_of_several_speakers_has_a_tier(tmp_path: Path) -> None:
    people = tuple(Participant(pseudonym=f"P-{n}", person_ids=(f"person_{n}",)) for n in (1, 2))
    write_log(tmp_path / "log", length_s=60, flags=0, participants=people)
    opened = write_and_open(build_sheet(open_recording(tmp_path / "log")), tmp_path / "a.eaf")
    tiers = {name: opened.get_annotation_data_for_tier(name) for name in opened.get_tier_names()}
    speech = {name: [text for *_, text in spans] for name, spans in tiers.items() if spans}
    assert [*speech] == ["speech robot", "speech P-1", "speech P-2"]
    assert "Good morning. I am looking for a book about whales." in speech["speech P-1"]
    assert "Is there a quiet place to read?" in speech["speech P-2"]
    assert {code.name for code in HSRI} <= {*tiers}
    (vocabulary,) = opened.controlled_vocabularies.values()
    assert {word for values, _ in vocabulary[1].values() for word, *_ in values} == {"minor", "major"}


def test_overlapping_speech_has_further_tiers_from_the_start_of_the_media(tmp_path: Path) -> None:
    def utterance(start_ms: int, end_ms: int, text: str = "مرحبا <b> & שלום") -> Utterance:
        return Utterance(
            stamp_ns=MS, utterance_id=str(start_ms), speaker=Speaker.USER, text=text, start_ns=start_ms * MS,
            end_ns=end_ms * MS,
        )  # fmt: skip

    utterances = tuple(utterance(*times_ms) for times_ms in ((10, 20), (80, 130), (120, 160), (200, 200)))
    opened = write_and_open(Sheet(origin_ns=100 * MS, end_ns=300 * MS, utterances=utterances), tmp_path / "a.eaf")
    spans_ms = {
        name: sorted(span[:2] for span in opened.get_annotation_data_for_tier(name))
        for name in opened.get_tier_names()
        if name.startswith("speech ")
    }
    assert spans_ms == {"speech user": [(0, 1), (20, 60), (100, 101)], "speech user +2": [(0, 30)]}


def test_an_eaf_links_cameras_by_relative_path(tmp_path: Path) -> None:
    cameras = [tmp_path / "video files" / name for name in ("front.mp4", "side ü.mp4")]
    (tmp_path / "forms").mkdir()
    links = (LinkedMedia(path=str(cameras[0])), LinkedMedia(path=str(cameras[1]), offset_s=3.2))
    write_and_open(Sheet(origin_ns=0, end_ns=10**9), tmp_path / "forms/S1.eaf", *links)
    media = list(ElementTree.parse(tmp_path / "forms/S1.eaf").iter("MEDIA_DESCRIPTOR"))
    paths = [(tmp_path / "forms" / link.get("RELATIVE_MEDIA_URL", "")).resolve() for link in media]
    assert paths == cameras
    assert [link.get("TIME_ORIGIN") for link in media] == [None, "3200"]


@pytest.mark.parametrize("name", ["coded.eaf", "coded.csv"])
def test_the_coding_of_another_session_is_refused(tmp_path: Path, session: Recording, name: str) -> None:
    if name == "coded.eaf":
        write_and_open(build_sheet(session), tmp_path / name)
    else:
        write_csv(tmp_path / name, replace(build_sheet(session), labels=make_monitor_labels(session)))
    form = CheckedForm(tmp_path / name)
    coded = () if name == "coded.eaf" else make_monitor_labels(session)
    assert len(form.read_labels(replace(FROM_START, coder="Ana", session="S07"))) == len(coded)
    with pytest.raises(FormError, match=r"is of session S07, and the log of S08: import it into that session's log"):
        form.read_labels(replace(FROM_START, coder="Ana", session="S08"))


def test_a_comment_in_a_csv_is_not_a_formula(tmp_path: Path) -> None:
    label = Label(
        start_ns=1, end_ns=2, polarity=Polarity.ERROR, attribute=Attribute.EMOTIONS, comment='=HYPERLINK("evil")'
    )
    sheet = Sheet(origin_ns=0, end_ns=3, labels=(label,))
    write_csv(tmp_path / "a.csv", sheet)
    assert "'=HYPERLINK" in (tmp_path / "a.csv").read_text(encoding="utf-8-sig")
    assert CheckedForm(tmp_path / "a.csv").read_labels(CodingTarget()) == (label,)


@pytest.mark.parametrize(
    ("text", "path", "offset_s"),
    [
        ("a.mp4", "a.mp4", 0),
        ("a.mp4=3.2", "a.mp4", 3.2),
        ("take=2.mp4", "take=2.mp4", 0),
        ("a.mp4=nan", "a.mp4=nan", 0),
        ("https://x.org/a.mp4=4", "https://x.org/a.mp4", 4),
    ],
)
def test_parse_media_reads_path_and_offset(text: str, path: str, offset_s: float) -> None:
    assert parse_media(text) == LinkedMedia(path=path, offset_s=offset_s)


def test_parse_media_prefers_an_existing_file(tmp_path: Path) -> None:
    (tmp_path / "take=2").touch()
    assert parse_media(str(tmp_path / "take=2")).offset_s == 0
