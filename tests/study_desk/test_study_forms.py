"""Forms for coders, as other programs' readers see them, and tables of labels, which come back exactly."""

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pympi.Elan import Eaf

from norm_core.records.flag import Attribute, Polarity, Severity
from norm_core.records.speech import Speaker, Utterance
from norm_monitor.session_log.labels import Sheet, in_order, monitor_labels, one_line, rows, write_csv
from norm_monitor.session_log.recording import Recording, open_recording
from norm_monitor.session_log.schema import Label, LinkedMedia, Participant, linked_media
from norm_monitor.session_log.study_file import HSRI
from study_desk.coding.forms.eaf import write_eaf
from study_desk.coding.forms.form_file import CheckedForm
from study_desk.coding.forms.sheet import CodingTarget, FormError, sheet_of
from tests.study_session import START_NS, write_log

MS = 1_000_000
SEVERITIES = {Severity.MINOR: "one turn repairs it", Severity.MAJOR: "the aim is lost"}
FROM_START = CodingTarget(origin_ns=START_NS)
ANA = CodingTarget(coder="Ana")
WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=25)
CODES = st.sampled_from(["", "response_delay", "no_response"])


@st.composite
def label_of(draw: st.DrawFn) -> Label:
    start_ns = START_NS + draw(st.integers(0, 10_800_000 * MS))
    return Label(
        start_ns=start_ns,
        end_ns=start_ns + draw(st.one_of(st.just(0), st.integers(0, 3 * MS), st.integers(0, 60_000 * MS))),
        polarity=draw(st.sampled_from(Polarity)),
        attribute=draw(st.sampled_from(Attribute)),
        coder=draw(st.sampled_from(["monitor", "Ana", "李雷"])),
        code=draw(CODES),
        severity=draw(st.none() | st.sampled_from(Severity)),
        probability=draw(st.none() | st.floats(0, 1)),
        event_id=draw(st.sampled_from(["", "00ff", "e-1"])),
        comment=draw(WORDS),
    )


SHEETS = st.lists(label_of(), min_size=1, max_size=12).map(
    lambda labels: Sheet(origin_ns=START_NS, end_ns=START_NS + 10**13, labels=in_order(labels), session="S")
)


@given(SHEETS)
@settings(max_examples=60, deadline=None)
def test_a_csv_gives_back_exactly_what_was_written(tmp_path_factory: pytest.TempPathFactory, sheet: Sheet) -> None:
    folder = tmp_path_factory.mktemp("tables")
    write_csv(folder / "a.csv", sheet)
    # A CSV reader takes a bare carriage return for a line's end.
    plain = [{**row, "comment": one_line(row["comment"])} for row in rows(sheet)]
    labels = CheckedForm(folder / "a.csv").labels(FROM_START)
    read = Sheet(origin_ns=START_NS, end_ns=sheet.end_ns, labels=labels, session="S")
    assert [{**row, "comment": one_line(row["comment"])} for row in rows(read)] == plain


def eaf_of(sheet: Sheet, path: Path, *media: LinkedMedia) -> Eaf:
    """Write a form for Ana, and read it with an independent reader."""
    write_eaf(path, sheet, media, HSRI, SEVERITIES, study="library", coder="Ana")
    return Eaf(str(path))


def test_each_of_several_speakers_has_a_tier(tmp_path: Path) -> None:
    people = tuple(Participant(pseudonym=f"P-{n}", person_ids=(f"person_{n}",)) for n in (1, 2))
    write_log(tmp_path / "log", length_s=60, flags=0, participants=people)
    opened = eaf_of(sheet_of(open_recording(tmp_path / "log")), tmp_path / "a.eaf")
    tiers = {name: opened.get_annotation_data_for_tier(name) for name in opened.get_tier_names()}
    speech = {name: [text for *_, text in spans] for name, spans in tiers.items() if spans}
    assert [*speech] == ["speech robot", "speech P-1", "speech P-2"]
    assert "Good morning. I am looking for a book about whales." in speech["speech P-1"]
    assert "Is there a quiet place to read?" in speech["speech P-2"]
    assert {code.name for code in HSRI} <= {*tiers}
    (vocabulary,) = opened.controlled_vocabularies.values()
    assert {word for values, _ in vocabulary[1].values() for word, *_ in values} == {"minor", "major"}


def test_speech_that_overlaps_has_a_tier_more_and_none_begins_before_the_media(tmp_path: Path) -> None:
    def utterance(start_ms: int, end_ms: int, text: str = "مرحبا <b> & שלום") -> Utterance:
        return Utterance(
            stamp_ns=MS, utterance_id=str(start_ms), speaker=Speaker.USER, text=text, start_ns=start_ms * MS,
            end_ns=end_ms * MS,
        )  # fmt: skip

    utterances = tuple(utterance(*times_ms) for times_ms in ((10, 20), (80, 130), (120, 160), (200, 200)))
    opened = eaf_of(Sheet(origin_ns=100 * MS, end_ns=300 * MS, utterances=utterances), tmp_path / "a.eaf")
    spans_ms = {
        name: sorted(span[:2] for span in opened.get_annotation_data_for_tier(name))
        for name in opened.get_tier_names()
        if name.startswith("speech ")
    }
    assert spans_ms == {"speech user": [(0, 1), (20, 60), (100, 101)], "speech user +2": [(0, 30)]}


def test_an_eaf_links_to_each_camera_from_where_it_lies(tmp_path: Path) -> None:
    cameras = [tmp_path / "video files" / name for name in ("front.mp4", "side ü.mp4")]
    (tmp_path / "forms").mkdir()
    links = (LinkedMedia(path=str(cameras[0])), LinkedMedia(path=str(cameras[1]), offset_s=3.2))
    eaf_of(Sheet(origin_ns=0, end_ns=10**9), tmp_path / "forms/S1.eaf", *links)
    media = list(ElementTree.parse(tmp_path / "forms/S1.eaf").iter("MEDIA_DESCRIPTOR"))
    named = [(tmp_path / "forms" / link.get("RELATIVE_MEDIA_URL", "")).resolve() for link in media]
    assert named == cameras
    assert [link.get("TIME_ORIGIN") for link in media] == [None, "3200"]


def test_seconds_that_were_edited_are_not_passed_over(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        "polarity,attribute,start_s,end_s,start_ns,end_ns\nerror,engagement,7.5,9,5000000000,9000000000\n"
    )
    with pytest.raises(FormError, match=r"line 2: start_s says 7\.5 s and start_ns 5\.0+ s: .* empty start_ns"):
        CheckedForm(tmp_path / "a.csv").labels(ANA)
    (tmp_path / "a.csv").write_text(
        "polarity,attribute,start_s,end_s,start_ns,end_ns\nerror,engagement,7.5,9,,9000000000\n"
    )
    assert CheckedForm(tmp_path / "a.csv").labels(ANA)[0].start_ns == 7500 * MS


@pytest.mark.parametrize("name", ["coded.eaf", "coded.csv"])
def test_the_coding_of_another_session_is_refused(tmp_path: Path, session: Recording, name: str) -> None:
    if name == "coded.eaf":
        eaf_of(sheet_of(session), tmp_path / name)
    else:
        write_csv(tmp_path / name, replace(sheet_of(session), labels=monitor_labels(session)))
    form = CheckedForm(tmp_path / name)
    coded = () if name == "coded.eaf" else monitor_labels(session)
    assert len(form.labels(replace(FROM_START, coder="Ana", session="S07"))) == len(coded)
    with pytest.raises(FormError, match=r"is of session S07, and the log of S08: import it into that session's log"):
        form.labels(replace(FROM_START, coder="Ana", session="S08"))


def test_what_was_said_is_never_a_formula(tmp_path: Path) -> None:
    label = Label(
        start_ns=1, end_ns=2, polarity=Polarity.ERROR, attribute=Attribute.EMOTIONS, comment='=HYPERLINK("evil")'
    )
    sheet = Sheet(origin_ns=0, end_ns=3, labels=(label,))
    write_csv(tmp_path / "a.csv", sheet)
    assert "'=HYPERLINK" in (tmp_path / "a.csv").read_text(encoding="utf-8-sig")
    assert CheckedForm(tmp_path / "a.csv").labels(CodingTarget()) == (label,)


@pytest.mark.parametrize(
    ("text", "path", "offset_s"),
    [
        ("a.mp4", "a.mp4", 0),
        ("a.mp4=3.2", "a.mp4", 3.2),
        ("a.mp4=-1", "a.mp4", -1),
        ("a.mp4=.5", "a.mp4", 0.5),
        ("take=2.mp4", "take=2.mp4", 0),
        ("a.mp4=nan", "a.mp4=nan", 0),
        ("https://x.org/a.mp4=4", "https://x.org/a.mp4", 4),
        ("=3", "=3", 0),
    ],
)
def test_a_file_may_have_an_offset(text: str, path: str, offset_s: float) -> None:
    assert linked_media(text) == LinkedMedia(path=path, offset_s=offset_s)


def test_a_file_that_is_named_like_one_with_an_offset_is_taken_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "take=2").touch()
    assert linked_media(str(tmp_path / "take=2")).offset_s == 0
