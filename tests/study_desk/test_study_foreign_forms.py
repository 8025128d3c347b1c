"""Coded files as other programs save them: R, spreadsheets, ELAN and BORIS; and what is wrong in them."""

import csv
import io
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from norm_core.records.flag import Attribute, Polarity, Severity
from norm_core.runtime.time import NS_PER_S
from norm_monitor.session_log.study_file import HSRI, Code
from study_desk.coding.forms.boris import BorisProject
from study_desk.coding.forms.form_file import CheckedForm
from study_desk.coding.forms.sheet import CodingTarget, FormError
from tests.study_session import START_NS

MS = 1_000_000
JOKE = Code(id="joke", name="a joke", polarity=Polarity.COMPETENCE, attribute=Attribute.ENGAGEMENT, key="j")
GAZE = Code(id="gaze", name="gaze", polarity=Polarity.ERROR)
ANA = CodingTarget(coder="Ana", origin_ns=START_NS, codebook=(*HSRI, JOKE, GAZE))
HEADER = ["polarity", "attribute", "start_s", "end_s", "comment"]
# As Windows in Western Europe has it, and neither empty, missing nor a formula.
COMMENTS = st.text(st.characters(codec="cp1252", exclude_categories=["C"]), max_size=20).filter(
    lambda text: text.strip() not in {"", "NA"} and text[:1] not in "=+-@'\t\r"
)
ROWS = st.lists(
    st.tuples(
        st.sampled_from(Polarity),
        st.sampled_from(Attribute),
        st.integers(0, 10_000_000),
        st.integers(0, 60_000),
        COMMENTS,
    ),
    min_size=1,
    max_size=8,
)


def format_seconds(time_ms: int, *, comma: bool, scientific: bool) -> str:
    text = f"{Decimal(time_ms) / 1000:E}" if scientific else f"{time_ms / 1000:.3f}"
    return text.replace(".", ",") if comma else text


@given(
    ROWS,
    st.sampled_from([",", ";", "\t"]),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "cp1252"]),
    st.sampled_from(["\r\n", "\n"]),
    st.booleans(),
    st.booleans(),
)
@settings(max_examples=120, deadline=None)
def test_tables_are_read_in_each_separator_encoding_and_notation(  # noqa: PLR0917
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[Polarity, Attribute, int, int, str]],
    separator: str,
    encoding: str,
    newline: str,
    scientific: bool,
    has_names: bool,
) -> None:
    comma = separator != ","
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=separator, lineterminator=newline, quoting=csv.QUOTE_ALL)
    writer.writerow(["", *HEADER] if has_names else HEADER)
    for number, (polarity, attribute, start_ms, length_ms, comment) in enumerate(rows, 1):
        times = [format_seconds(ms, comma=comma, scientific=scientific) for ms in (start_ms, start_ms + length_ms)]
        writer.writerow([*([str(number)] if has_names else []), polarity.value, attribute.value, *times, comment])
    path = tmp_path_factory.mktemp("tables") / "a.csv"
    data = text.getvalue().encode(encoding)
    assume(encoding != "cp1252" or data.isascii() or data.decode("utf-8", "replace").count("\ufffd"))
    path.write_bytes(data)
    actual = sorted(
        (x.start_ns, x.end_ns, x.polarity, x.attribute, x.comment) for x in CheckedForm(path).read_labels(ANA)
    )
    assert actual == sorted(
        (START_NS + start * MS, START_NS + (start + length) * MS, polarity, attribute, comment)
        for polarity, attribute, start, length, comment in rows
    )


@pytest.mark.parametrize("end", ["NA", "", '"NA"', " "])
def test_a_row_without_an_end_is_an_instant(tmp_path: Path, end: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"polarity,attribute,start_s,end_s\nerror,engagement,1.5,{end}\nerror,emotions,3,4\n")
    first, second = CheckedForm(path).read_labels(ANA)
    assert first.start_ns == first.end_ns == START_NS + 1_500 * MS
    assert second.end_ns > second.start_ns


def test_a_table_of_a_european_spreadsheet_is_read(tmp_path: Path) -> None:
    """As Excel saves it where the decimal sign is a comma."""
    (tmp_path / "a.csv").write_bytes(
        "sep=;\r\npolarity;attribute;start_s;end_s;comment\r\n"
        "error;Social norms and routines;1,2E+01;12,75;grüßt nicht – €\r\n".encode("cp1252")
    )
    (label,) = CheckedForm(tmp_path / "a.csv").read_labels(ANA)
    assert (label.start_ns, label.end_ns) == (START_NS + 12 * NS_PER_S, START_NS + 12_750 * MS)
    assert label.comment == "grüßt nicht – €"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('start_s,end_s,polarity,attribute\n"1,234",1235,error,emotions\n', "line 2: start_s '1,234' .* 1.234 or 1234"),
        ("start_s;end_s;polarity;attribute\n1.234,5;1235;error;emotions\n", "line 2: start_s '1.234,5' is not"),
        ("start_s,end_s,polarity,attribute\n1,2,error,emotions,more\n", "line 2: has 5 cells, and the header 4"),
        ("start_s,end_s,polarity,attribute\n1,2,error,emotions\n1,2,error,moods\n", "line 3: 'error moods' is not"),
        ("start_s,end_s,code\n1,2,jest\n", "line 2: 'jest' is not a code of .*, joke, gaze: rename it"),
        ("start_s,end_s,polarity,attribute\n1,2,error,emotions\n\n9,2,error,emotions\n", "line 4: a label ends at 2 s"),
        ('start_s,end_s,polarity,attribute\n1,2,"error,emotions\n3,4,error,emotions\n', "line 3: is not CSV"),
        ("start_s,end_s,polarity,attribute,Code,code\n1,2,error,emotions,a,b\n", "column 'code' appears twice"),
        ("start_s,end_s,polarity,attribute\n1,1e30,error,emotions\n", "line 2: end_s 1e30 is too large"),
        ("start_s,end_s,polarity,attribute\nNA,2,error,emotions\n", "line 2: start_s '' is not a number"),
        ("start_s,end_s,polarity,attribute\n1,\0,error,emotions\n", "line 2: holds a NUL byte"),
        ("start_s,end_s,code\n1,2,gaze\n", "line 2: code gaze counts as no attribute of HSRI"),
        ("a,b\n1,2\n", "needs the columns polarity and attribute"),
        ("start_s,end_s,polarity,attribute,coder\n1,2,error,emotions,\n", "line 2: names no coder; give --coder"),
    ],
)
def test_a_faulty_table_is_refused_with_its_line(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "a.csv").write_text(text)
    target = ANA if "coder" not in text else CodingTarget()
    with pytest.raises(FormError, match=f"a.csv, {problem}" if problem.startswith("line") else problem):
        CheckedForm(tmp_path / "a.csv").read_labels(target)


def make_project(*events: list[Any], offset: float = 0.0, kind: str = "State event") -> dict[str, Any]:
    """Make what BORIS saves, as far as it is read."""
    observation = {"type": "LIVE", "time offset": offset, "events": list(events)}
    return {
        "observations": {"S1": observation},
        "behaviors_conf": {"0": {"code": "error engagement", "type": kind}, "1": {"code": "a joke", "type": kind}},
    }


def save_project(path: Path, content: dict[str, Any]) -> BorisProject:
    path.write_text(json.dumps(content))
    return BorisProject(path)


def test_a_project_of_boris_is_read(tmp_path: Path) -> None:
    events: list[list[Any]] = [
        [12.5, "", "error engagement", "severe", ""], [10.0, "", "error engagement", "severe", "left"],
        [11.0, "", "a joke", "", "", "NA"], [11.5, "", "a joke", "", "late", "NA"],
    ]  # fmt: skip
    first, second = save_project(tmp_path / "a.boris", make_project(*events)).read_labels(ANA)
    assert (first.start_ns, first.end_ns) == (START_NS + 10 * NS_PER_S, START_NS + 12_500 * MS)
    assert (first.severity, first.comment, first.coder) == (Severity.SEVERE, "left", "Ana")
    assert (second.code, second.comment) == ("joke", "late")
    (point, _) = save_project(tmp_path / "b.boris", make_project(*events[:2], kind="Point event")).read_labels(ANA)
    assert point.start_ns == point.end_ns


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (make_project([1, "", "lunch", "", ""]), "observation S1, event 1: 'lunch' is not a code of the study"),
        (make_project([1, "", "a joke", "", ""]), "event 1: 'a joke' of '' begins and never stops"),
        (make_project(["x", "", "a joke", "", ""]), "event 1: 'x' is not a time"),
        (make_project([float("nan"), "", "a joke", "", ""]), "event 1: nan is not a time"),
        (make_project([1, "", "a joke", "", "a\0b"]), "event 1: holds a NUL character"),
        (make_project(offset=5.0), "observation S1: has a time offset of 5.0 s; set it to 0 in BORIS"),
        (make_project([1, ""]), "is not a project of BORIS"),
        ({"observations": []}, "is not a project of BORIS"),
    ],
)
def test_a_faulty_project_is_refused_with_its_event(tmp_path: Path, content: dict[str, Any], problem: str) -> None:
    with pytest.raises(FormError, match=problem):
        save_project(tmp_path / "a.boris", content).read_labels(ANA)


@pytest.mark.parametrize(("start", "end"), [("10,5", "12"), ("0,25", "1,234"), ("10,500", "12,75")])
def test_quoted_decimal_commas_are_read_in_a_table_of_commas(tmp_path: Path, start: str, end: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f'polarity,attribute,start_s,end_s\nerror,engagement,"{start}","{end}"\n')
    (label,) = CheckedForm(path).read_labels(ANA)
    times_s = [float(text.replace(",", ".")) for text in (start, end)]
    assert [(ns - START_NS) / NS_PER_S for ns in (label.start_ns, label.end_ns)] == times_s


# Numbers that no clock shows, entities, damaged encodings and files of other programs.
HOSTILE = [
    "big.boris", "big25.boris", "big25.eaf", "bigint.eaf", "coder.jsonl", "csvbig.csv", "csvneg.csv", "dashes.eaf",
    "dtd.eaf", "enc.eaf", "lol.eaf", "lol16.eaf", "nan.json", "neg.boris", "origin.eaf", "sur.boris", "xxe.eaf",
    "xxe16.eaf",
]  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_with_its_name(shared_data: Path, name: str) -> None:
    with pytest.raises(FormError, match=name):
        CheckedForm(shared_data / "hostile" / name).read_labels(CodingTarget(origin_ns=START_NS))


def test_harmless_files_beside_hostile_ones_are_read(shared_data: Path) -> None:
    """Markup and formulas in a comment are words: pages escape them, and a CSV quotes them."""
    endings = {name.rpartition(".")[2] for name in HOSTILE}
    others = [path for path in (shared_data / "hostile").iterdir() if path.suffix[1:] in endings]
    read = {path.name: CheckedForm(path) for path in others if path.name not in HOSTILE}
    assert {"ok.boris", "ok.eaf", "csvformula.csv", "csvhtml.csv"} <= read.keys()
    for name, form in read.items():
        labels = form.read_labels(CodingTarget(origin_ns=START_NS))
        assert labels, name
        assert {label.coder for label in labels} == {"C1"}


def write_own_eaf(path: Path, value: str) -> Path:
    path.write_text(
        '<ANNOTATION_DOCUMENT><TIME_ORDER><TIME_SLOT TIME_SLOT_ID="t1" TIME_VALUE="1000"/><TIME_SLOT '
        'TIME_SLOT_ID="t2" TIME_VALUE="2000"/></TIME_ORDER><TIER TIER_ID="error emotions"><ANNOTATION>'
        '<ALIGNABLE_ANNOTATION ANNOTATION_ID="a1" TIME_SLOT_REF1="t1" TIME_SLOT_REF2="t2"><ANNOTATION_VALUE>'
        f"{value}</ANNOTATION_VALUE></ALIGNABLE_ANNOTATION></ANNOTATION></TIER></ANNOTATION_DOCUMENT>"
    )
    return path


def test_a_value_of_an_own_eaf_is_read_or_refused(tmp_path: Path) -> None:
    for value, *wanted in (("Major", "", Severity.MAJOR, ""), ("greets", "greets", None, ""), ("a b", "", None, "a b")):
        (label,) = CheckedForm(write_own_eaf(tmp_path / "a.eaf", str(value))).read_labels(ANA)
        assert [label.code, label.severity, label.comment] == wanted
    with pytest.raises(FormError, match=r"a\.eaf: tier 'error emotions', annotation a1: 'seveer' is neither"):
        CheckedForm(write_own_eaf(tmp_path / "a.eaf", "seveer")).read_labels(ANA)
