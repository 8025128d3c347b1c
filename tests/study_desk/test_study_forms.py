"""Exports: what was labelled comes back within a millisecond, and other programs' readers agree."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote, urlparse
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from praatio.textgrid import openTextgrid
from pympi.Elan import Eaf

from norm_core.records.flag import Attribute, Polarity, Severity
from norm_core.records.speech import Speaker, Utterance
from study_desk.coding.forms import eaf, tables, textgrid
from study_desk.coding.forms.eaf import EafForm, write_eaf
from study_desk.coding.forms.form_file import CheckedForm
from study_desk.coding.forms.sheet import CodingTarget, FormError, Sheet, remarks, sheet_of
from study_desk.coding.labels import in_order, one_line
from study_desk.log.recording import Recording, open_recording
from study_desk.log.schema import Label, LinkedMedia, Participant, linked_media
from tests.study_session import START_NS, write_log

MS = 1_000_000
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


def within_a_millisecond(written: Sheet, read: tuple[Label, ...]) -> None:
    def rest(label: Label) -> tuple[object, ...]:
        return (label.polarity, label.attribute, label.coder, label.code, label.severity, label.probability,
                label.event_id, one_line(label.comment))  # fmt: skip

    assert len(read) == len(written.labels)
    left = list(read)
    for label in written.labels:
        twins = [
            other
            for other in left
            if rest(other) == rest(label)
            and abs(other.start_ns - label.start_ns) <= MS
            and abs(other.end_ns - label.end_ns) <= MS
        ]
        assert twins, (label, left)
        left.remove(twins[0])


@given(SHEETS)
@settings(max_examples=60, deadline=None)
def test_elan_gives_back_what_was_written(tmp_path_factory: pytest.TempPathFactory, sheet: Sheet) -> None:
    path = tmp_path_factory.mktemp("eaf") / "a.eaf"
    eaf.write_eaf(path, sheet)
    within_a_millisecond(sheet, EafForm(path).labels(CodingTarget()))


@given(SHEETS)
@settings(max_examples=60, deadline=None)
def test_a_csv_gives_back_exactly_what_was_written(tmp_path_factory: pytest.TempPathFactory, sheet: Sheet) -> None:
    folder = tmp_path_factory.mktemp("tables")
    tables.write_csv(folder / "a.csv", sheet)
    # A CSV reader takes a bare carriage return for a line's end.
    plain = [{**row, "comment": one_line(row["comment"])} for row in tables.rows(sheet)]
    labels = CheckedForm(folder / "a.csv").labels(FROM_START)
    read = Sheet(origin_ns=START_NS, end_ns=sheet.end_ns, labels=labels, session="S")
    assert [{**row, "comment": one_line(row["comment"])} for row in tables.rows(read)] == plain


def test_an_independent_reader_opens_the_eaf(tmp_path: Path, session: Recording) -> None:
    eaf.write_eaf(tmp_path / "a.eaf", sheet_of(session))
    opened = Eaf(str(tmp_path / "a.eaf"))
    names = set(opened.get_tier_names())
    assert {"speech robot", "speech user", "error engagement", "error engagement notes"} <= names
    for name in names:
        if not name.endswith(" notes"):
            spans = sorted(opened.get_annotation_data_for_tier(name))
            assert spans
            assert all(start < end for start, end, *_ in spans)
            assert all(a[1] <= b[0] for a, b in itertools.pairwise(spans))
    vocabulary = opened.controlled_vocabularies["tactful cues"]
    words = {value[0] for _, (values, _) in vocabulary[1].items() for value in values}
    assert words == {flag.cue_id for flag in session.flags}
    assert opened.get_parameters_for_tier("error engagement notes")["PARENT_REF"] == "error engagement"


def test_an_independent_reader_opens_the_textgrid(tmp_path: Path, session: Recording) -> None:
    textgrid.write_textgrid(tmp_path / "a.TextGrid", sheet_of(session))
    opened = openTextgrid(str(tmp_path / "a.TextGrid"), includeEmptyIntervals=False, reportingMode="error")
    said = [entry.label for entry in opened.getTier("speech user").entries]
    assert said[0] == "Good morning. I am looking for a book about whales."
    assert "什么时候关门？" in said
    assert opened.maxTimestamp == pytest.approx(600)


def test_each_of_several_speakers_has_a_tier(tmp_path: Path) -> None:
    people = tuple(Participant(pseudonym=f"P-{n}", person_ids=(f"person_{n}",)) for n in (1, 2))
    write_log(tmp_path / "log", length_s=60, flags=0, participants=people)
    sheet = sheet_of(open_recording(tmp_path / "log"))
    eaf.write_eaf(tmp_path / "a.eaf", sheet)
    opened = Eaf(str(tmp_path / "a.eaf"))
    said = {name: [text for *_, text in opened.get_annotation_data_for_tier(name)] for name in opened.get_tier_names()}
    assert [*said] == ["speech robot", "speech P-1", "speech P-2"]
    assert "Good morning. I am looking for a book about whales." in said["speech P-1"]
    assert "Is there a quiet place to read?" in said["speech P-2"]


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


@pytest.mark.parametrize(("write", "name"), [(eaf.write_eaf, "coded.eaf"), (tables.write_csv, "coded.csv")])
def test_the_coding_of_another_session_is_refused(
    tmp_path: Path, session: Recording, write: Callable[..., None], name: str
) -> None:
    write(tmp_path / name, sheet_of(session))
    assert CheckedForm(tmp_path / name).labels(replace(FROM_START, coder="Ana", session="S07"))
    with pytest.raises(FormError, match=r"is of session S07, and the log of S08: import it into that session's log"):
        CheckedForm(tmp_path / name).labels(replace(FROM_START, coder="Ana", session="S08"))


def test_what_was_said_is_never_a_formula(tmp_path: Path) -> None:
    label = Label(
        start_ns=1, end_ns=2, polarity=Polarity.ERROR, attribute=Attribute.EMOTIONS, comment='=HYPERLINK("evil")'
    )
    sheet = Sheet(origin_ns=0, end_ns=3, labels=(label,))
    tables.write_csv(tmp_path / "a.csv", sheet)
    assert "'=HYPERLINK" in (tmp_path / "a.csv").read_text(encoding="utf-8-sig")
    assert CheckedForm(tmp_path / "a.csv").labels(CodingTarget()) == (label,)


def test_overlaps_spill_and_instants_are_widened_and_said(tmp_path: Path) -> None:
    def label(start_ms: int, end_ms: int) -> Label:
        return Label(start_ns=start_ms * MS, end_ns=end_ms * MS, polarity=Polarity.ERROR, attribute=Attribute.EMOTIONS)

    sheet = Sheet(
        origin_ns=0, end_ns=99 * MS, labels=(label(0, 50), label(20, 60), label(60, 60)), media=("/nowhere/a.mp4",)
    )
    eaf.write_eaf(tmp_path / "a.eaf", sheet)
    text = (tmp_path / "a.eaf").read_text()
    assert 'TIER_ID="error emotions +2"' in text
    assert "instant" in text
    assert "<MEDIA_DESCRIPTOR" not in text
    assert remarks(sheet) == (
        "widened to 1 ms, with instant in the note: 1 label shorter than 1 ms",
        "media not found from here: /nowhere/a.mp4; an EAF has no link to them",
    )


def test_labels_before_the_media_do_not_overlap_at_their_start(tmp_path: Path) -> None:
    labels = tuple(
        Label(start_ns=start_ms * MS, end_ns=end_ms * MS, polarity=Polarity.ERROR, attribute=Attribute.EMOTIONS)
        for start_ms, end_ms in ((10, 20), (30, 40), (80, 130))
    )
    sheet = Sheet(origin_ns=100 * MS, end_ns=200 * MS, labels=labels)
    textgrid.write_textgrid(tmp_path / "a.TextGrid", sheet)
    grid = openTextgrid(str(tmp_path / "a.TextGrid"), includeEmptyIntervals=False, reportingMode="error")
    eaf.write_eaf(tmp_path / "a.eaf", sheet)
    opened = Eaf(str(tmp_path / "a.eaf"))
    for name, end_ms in (("error emotions", 1), ("error emotions +2", 1), ("error emotions +3", 30)):
        assert [(entry.start, entry.end) for entry in grid.getTier(name).entries] == [(0, end_ms / 1000)]
        assert [each[:2] for each in opened.get_annotation_data_for_tier(name)] == [(0, end_ms)]


def test_a_session_without_labels_still_exports(tmp_path: Path) -> None:
    said = Utterance(
        stamp_ns=MS, utterance_id="u", speaker=Speaker.USER, text="مرحبا <b> & שלום", start_ns=MS, end_ns=3 * MS
    )
    sheet = Sheet(origin_ns=0, end_ns=5 * MS, labels=(), utterances=(said,))
    eaf.write_eaf(tmp_path / "a.eaf", sheet)
    assert EafForm(tmp_path / "a.eaf").labels(CodingTarget()) == ()
    textgrid.write_textgrid(tmp_path / "a.TextGrid", replace(sheet, utterances=()))
    grid = openTextgrid(str(tmp_path / "a.TextGrid"), includeEmptyIntervals=True)
    assert (grid.maxTimestamp, grid.tierNames) == (0.005, ())
    assert remarks(sheet) == ("there are no labels in this session; the form holds its speech alone",)


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


def test_an_eaf_links_to_each_camera_from_where_it_lies(tmp_path: Path) -> None:
    (tmp_path / "video files").mkdir()
    (tmp_path / "forms").mkdir()
    cameras = [tmp_path / "video files" / name for name in ("front.mp4", "side ü.mp4", "late.mp4")]
    for camera in cameras:
        camera.touch()
    media = (str(cameras[0]), f"{cameras[1]}=3.2", f"{cameras[2]}=-2", "/nowhere/a.mp4=1")
    sheet = Sheet(origin_ns=0, end_ns=10**9, labels=(), media=media, session="S1")
    write_eaf(tmp_path / "forms/S1.eaf", sheet)
    found = list(ElementTree.parse(tmp_path / "forms/S1.eaf").iter("MEDIA_DESCRIPTOR"))
    assert [Path(unquote(urlparse(each.get("MEDIA_URL", "")).path)) for each in found] == cameras[:2]
    there = [(tmp_path / "forms" / each.get("RELATIVE_MEDIA_URL", "")).resolve() for each in found]
    assert there == cameras[:2]
    assert [each.get("TIME_ORIGIN") for each in found] == [None, "3200"]
    notes = " ".join(remarks(sheet))
    assert "not found from here: /nowhere/a.mp4" in notes
    assert f"which ELAN cannot place: {cameras[2]}" in notes
