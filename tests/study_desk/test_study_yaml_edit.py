"""Edits of study.yaml: the value is set, and what a person wrote stays."""

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from norm_core.runtime.config import ConfigError
from study_desk.study.study_folder import remove_from_yaml, set_in_yaml

TEXT = """# ours
study: kiosk  # the name
sessions:
  S1: {condition: a}  # first
  S2:
    condition: b   # second
    media:
      - one.mp4
# people
participants: {}
retention_days:
"""


@pytest.mark.parametrize(
    ("keys", "value", "line"),
    [
        (("sessions", "S3"), {"condition": "a"}, "  S3: {condition: a}"),
        (("sessions", "S2", "bag"), "bags/x", "    bag: bags/x"),
        (("sessions", "S1", "bag"), "b", "  S1: {condition: a, bag: b}  # first"),
        (("participants", "P-1", "words"), False, "  P-1: {words: false}"),
        (("retention_days",), 30, "retention_days: 30"),
        (("seed",), 4, "seed: 4"),
        (("sessions", "S2", "condition"), "no: b", "    condition: 'no: b'   # second"),
    ],
)
def test_a_value_is_set_on_one_line(keys: tuple[str, ...], value: object, line: str) -> None:
    edited = set_in_yaml(TEXT, keys, value)
    assert line in edited.splitlines()
    comments = ("# ours", "# the name", "# first", "# second", "# people")
    assert all(comment in edited for comment in comments)


@pytest.mark.parametrize(
    ("keys", "gone"),
    [
        (("sessions", "S1"), "  S1: {condition: a}  # first\n"),
        (("sessions", "S2"), "  S2:\n    condition: b   # second\n    media:\n      - one.mp4\n"),
        (("sessions", "S2", "media"), "    media:\n      - one.mp4\n"),
        (("retention_days",), "retention_days:\n"),
    ],
)
def test_a_key_goes_with_its_lines_alone(keys: tuple[str, ...], gone: str) -> None:
    assert remove_from_yaml(TEXT, keys) == TEXT.replace(gone, "")


def test_the_last_key_leaves_an_empty_mapping() -> None:
    for text in ("a: {b: 1}  # x\nc: 2\n", "a:\n  b: 1\n# x\nc: 2\n"):
        left = remove_from_yaml(text, ("a", "b"))
        assert (yaml.safe_load(left), "# x" in left) == ({"a": {}, "c": 2}, True)


KEYS = st.text(st.characters(codec="utf-8", categories=["L", "N"]), min_size=1, max_size=4)
PLAIN = st.recursive(
    st.integers() | st.booleans() | KEYS, lambda inner: st.dictionaries(KEYS, inner, max_size=3), max_leaves=8
)


@given(st.dictionaries(KEYS, PLAIN, min_size=1, max_size=4), st.lists(KEYS, min_size=1, max_size=3), PLAIN)
@settings(max_examples=200, deadline=None)
def test_an_edit_sets_that_value_and_no_other(plain: dict[str, object], keys: list[str], value: object) -> None:
    text = yaml.safe_dump(plain, allow_unicode=True)
    edited = yaml.safe_load(set_in_yaml(text, tuple(keys), value))
    untouched = {key: inner for key, inner in plain.items() if key != keys[0]}
    assert {key: inner for key, inner in edited.items() if key != keys[0]} == untouched
    for key in keys:
        edited = edited[key]
    assert edited == value


def test_a_text_that_takes_no_edit_is_told() -> None:
    with pytest.raises(ConfigError, match=r"the file, line 1, column 36: the alias \*same is not allowed"):
        set_in_yaml("sessions: {S1: &same {bag: a}, S2: *same}\n", ("sessions", "S2", "bag"), "b")
    with pytest.raises(ConfigError, match=r"the file: holds no keys"):
        set_in_yaml("- S1\n", ("sessions",), {})
