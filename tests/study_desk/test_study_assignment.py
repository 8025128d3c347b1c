"""The draw of who codes what: a share twice, balanced, seeded, and never drawn again."""

import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from norm_core.runtime.time import NS_PER_S, ReplayClock
from study_desk.log.schema import Coding
from study_desk.log.writer import StudyLog
from study_desk.study.add_session import add_log, set_consent
from study_desk.study.coding_pack import assign, draw
from study_desk.study.study_folder import Study, StudyError, init_study
from tests.study_session import START_NS, write_log

CLOCK = ReplayClock(START_NS + 3600 * NS_PER_S)


def planned(folder: Path, conditions: dict[str, str], coders: tuple[str, ...] = ("C-1", "C-2", "C-3")) -> Study:
    study = init_study(folder, "library-2026", sorted({*conditions.values()}), coders)
    listed = "".join(f"  {name}: {{condition: {each}}}  # {name}'s note\n" for name, each in conditions.items())
    if listed:
        study.path.write_text(study.path.read_text().replace("sessions: {}\n", f"sessions:\n{listed}"))
    return Study(folder)


TWELVE = {f"S{n:02d}": "quiet" if n % 2 else "chatty" for n in range(12)}


@given(
    st.dictionaries(st.integers(0, 99).map("S{}".format), st.sampled_from(["quiet", "chatty", "still"]), min_size=1),
    st.integers(2, 5),
    st.floats(0, 1),
    st.integers(0, 99),
)
@settings(max_examples=150, deadline=None)
def test_loads_and_conditions_are_balanced(conditions: dict[str, str], people: int, share: float, seed: int) -> None:
    coders = [f"C-{n}" for n in range(people)]
    drawn = draw(conditions, coders, {}, {}, share=share, rng=random.Random(seed))
    assert drawn.keys() == conditions.keys()
    assert all(len({*each}) == len(each) in (1, 2) for each in drawn.values())
    twice = [name for name, each in drawn.items() if len(each) == 2]
    assert share * len(conditions) - 1e-6 <= len(twice) < share * len(conditions) + 1
    load = Counter(coder for each in drawn.values() for coder in each)
    assert max(load[coder] for coder in coders) - min(load[coder] for coder in coders) <= 1
    for condition, total in Counter(conditions.values()).items():
        doubled = sum(conditions[name] == condition for name in twice)
        assert abs(doubled - share * total) < 2
        there = [sum(coder in drawn[name] for name in drawn if conditions[name] == condition) for coder in coders]
        assert max(there) - min(there) <= 2


def test_a_draw_is_written_with_the_comments_and_repeats_with_its_seed(tmp_path: Path) -> None:
    study = planned(tmp_path / "a", TWELVE)
    found = assign(study, twice=0.5, seed=7)
    assert sum(len(each) == 2 for each in found.coders.values()) == 6
    assert (Study(study.folder).file.coded_twice, Study(study.folder).file.seed) == (0.5, 7)
    text = study.path.read_text()
    assert all(f"# {name}'s note" in text for name in TWELVE)
    assert assign(planned(tmp_path / "b", TWELVE), twice=0.5, seed=7).coders == found.coders
    assert assign(planned(tmp_path / "c", TWELVE), twice=0.5, seed=8).coders != found.coders


def test_what_is_assigned_stays_and_new_sessions_make_up_for_it(tmp_path: Path) -> None:
    study = planned(tmp_path / "a", TWELVE)
    first = assign(study, twice=0.25).coders
    text = study.path.read_text()
    assert not assign(study, seed=0).drawn
    assert study.path.read_text() == text
    late = "".join(f"  T{n:02d}: {{condition: chatty}}\n" for n in range(4))
    study.path.write_text(text.replace("  S00:", f"{late}  S00:"))
    found = assign(Study(study.folder), twice=0.5)
    assert {name: found.coders[name] for name in first} == first
    assert sum(len(each) == 2 for each in found.coders.values()) == 7  # all four new ones, and 8 were wanted
    assert max(found.loads.values()) - min(found.loads.values()) <= 1


def test_who_has_coded_a_session_is_one_of_its_coders(tmp_path: Path) -> None:
    study = init_study(tmp_path / "study", "library-2026", [], ["C-1", "C-2", "C-3"])
    set_consent(study, "P-7K3MX", clips=True)
    for name in ("S1", "S2"):
        write_log(tmp_path / name, session=name, length_s=60, flags=0)
        add_log(study, tmp_path / name, CLOCK)
        with StudyLog.resume(study.log_of(name), CLOCK) as log:
            log.append(Coding(coder="C-3", labels=0), START_NS)
    assert all("C-3" in each for each in assign(study, twice=0.5).coders.values())


@pytest.mark.parametrize(
    ("conditions", "coders", "told"),
    [({}, ("C-1", "C-2"), "has no session to assign"), (TWELVE, ("C-1",), "has 1 coders, and the draw needs 2")],
)
def test_nothing_is_drawn_of_nothing(
    tmp_path: Path, conditions: dict[str, str], coders: tuple[str, ...], told: str
) -> None:
    with pytest.raises(StudyError, match=told):
        assign(planned(tmp_path / "a", conditions, coders))
