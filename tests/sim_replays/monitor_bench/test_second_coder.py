"""A second coder's labels: what their file may say, and their agreement with the encounters' own."""

import csv
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from norm_core.records.flag import Attribute, Polarity
from sim_replays.monitor_bench.labels_file import LabelFileError
from sim_replays.monitor_bench.second_coder import COLUMNS, NOTHING, CodedEvent, Coding, measure_coder, read_coding
from sim_replays.scenarios.generate import records
from sim_replays.scenarios.library import find, read
from sim_replays.scenarios.moment import parse_moment

SHOP, ART = read(find("farm_shop")), read(find("art_class"))
TURNS = [turn.id for turn in SHOP.turns]

Rows = list[tuple[str, str, str, str]]


def written(folder: Path, rows: Rows) -> Path:
    path = folder / "second.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([COLUMNS, *rows])
    return path


def own_labels() -> Rows:
    """The shop's labels, as a coder who agrees with each would write them."""
    return [(SHOP.id, event.polarity.value, ";".join(event.attributes), event.onset) for event in SHOP.events]


def test_the_same_labels_agree_wholly(tmp_path: Path) -> None:
    rows: Rows = [*own_labels(), (ART.id, NOTHING, "", "")]
    truths = [records(SHOP, 3)[1]]
    found = measure_coder(read_coding(written(tmp_path, rows), [SHOP, ART]), truths)
    assert (found.errors.f1, found.errors.events, found.errors.labels, found.errors.matched) == (100.0, 1, 1, 1)
    assert (found.competences.f1, found.competences.matched) == (100.0, 4)
    assert (found.coded, found.not_coded) == ((SHOP.id,), ())


def test_an_encounter_coded_with_nothing_counts_and_an_absent_one_does_not(tmp_path: Path) -> None:
    path = written(tmp_path, [(SHOP.id, NOTHING, "", "")])
    found = measure_coder(read_coding(path, [SHOP, ART]), [records(one, 0)[1] for one in (SHOP, ART)])
    assert (found.coded, found.not_coded) == ((SHOP.id,), (ART.id,))
    assert (found.errors.recall, found.errors.events, found.errors.labels) == (0.0, 1, 0)


@pytest.mark.parametrize(("shift", "matched"), [("+2", 1), ("+2.5", 0)])
def test_onsets_match_within_two_seconds(tmp_path: Path, shift: str, matched: int) -> None:
    path = written(tmp_path, [(SHOP.id, "competence", "emotions", f"r4{shift}")])
    found = measure_coder(read_coding(path, [SHOP]), [records(SHOP, 0)[1]])
    assert (found.competences.matched, found.competences.labels) == (matched, 1)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (("farm_shp", "error", "emotions", "r1"), "line 2: unknown encounter 'farm_shp'; did you mean farm_shop"),
        ((SHOP.id, "eror", "emotions", "r1"), "unknown polarity 'eror'; did you mean error"),
        ((SHOP.id, "", "emotions", "r1"), "polarity is empty; known are competence, error, nothing"),
        ((SHOP.id, "error", "emotion", "r1"), "unknown attribute 'emotion'; did you mean emotions"),
        ((SHOP.id, "error", " ; ", "r1"), "attributes is empty"),
        ((SHOP.id, "error", "emotions", "soon"), "'soon' is no moment"),
        ((SHOP.id, "error", "emotions", "r99"), "farm_shop has no turn r99"),
        ((SHOP.id, "error", "emotions", "9999"), "onset 9999 is 9999 s, outside farm_shop"),
        ((SHOP.id, NOTHING, "emotions", ""), "takes no attributes and no onset"),
    ],
)
def test_a_faulty_row_is_refused_with_its_line(tmp_path: Path, row: tuple[str, str, str, str], message: str) -> None:
    with pytest.raises(LabelFileError, match=message):
        read_coding(written(tmp_path, [row]), [SHOP])


def test_contradictions_and_empty_files_are_refused(tmp_path: Path) -> None:
    event = (SHOP.id, "error", "emotions", "r1")
    with pytest.raises(LabelFileError, match="line 3: farm_shop has events and nothing"):
        read_coding(written(tmp_path, [event, (SHOP.id, NOTHING, "", "")]), [SHOP])
    with pytest.raises(LabelFileError, match="line 3: the same event stands twice"):
        read_coding(written(tmp_path, [event, event]), [SHOP])
    with pytest.raises(LabelFileError, match="has no row"):
        read_coding(written(tmp_path, []), [SHOP])


EVENTS = st.builds(
    lambda polarity, attributes, turn, end, shift: (polarity, attributes, f"{turn}{'.end' * end}+{shift}"),
    st.sampled_from(Polarity),
    st.lists(st.sampled_from(Attribute), min_size=1, max_size=7, unique=True),
    st.sampled_from(TURNS),
    st.booleans(),
    st.decimals(0, 1, places=2),
)
REUSED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@REUSED
@given(st.lists(EVENTS, min_size=1, max_size=5, unique_by=lambda event: event[2]), st.sampled_from([";", ", ", " ; "]))
def test_events_are_read_back(
    tmp_path: Path, events: list[tuple[Polarity, list[Attribute], str]], separator: str
) -> None:
    rows: Rows = [(SHOP.id, polarity, separator.join(names), onset) for polarity, names, onset in events]
    coding = read_coding(written(tmp_path, rows), [SHOP])
    assert list(coding[SHOP.id]) == [
        CodedEvent(polarity=polarity, attributes=tuple(names), onset=parse_moment(onset))
        for polarity, names, onset in events
    ]


CELLS = st.one_of(st.text(max_size=8), st.sampled_from([SHOP.id, "error", NOTHING, "emotions", "r1", "u2.end+0.4"]))


@REUSED
@given(st.lists(st.lists(CELLS, max_size=5), max_size=4))
def test_any_file_is_read_or_refused_with_its_name(tmp_path: Path, rows: list[list[str]]) -> None:
    path = tmp_path / "any.csv"
    with path.open("w", encoding="utf-8", errors="replace", newline="") as file:
        csv.writer(file).writerows([COLUMNS, *rows])
    coding: Coding | str
    try:
        coding = read_coding(path, [SHOP])
    except LabelFileError as error:
        coding = str(error)
    assert coding.startswith(str(path)) if isinstance(coding, str) else set(coding) == {SHOP.id}
