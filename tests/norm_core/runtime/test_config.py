"""A configuration is right, or the error says which key of which file is wrong and what is allowed."""

from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from norm_core.runtime.config import Config, ConfigError, check_config, load_config, parse_yaml


class Inner(Config):
    device: Literal["cpu", "cuda"] = "cpu"


class Outer(Config):
    rate_hz: float = Field(default=1.0, gt=0)
    engine: Inner = Inner()


def write(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "robot.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("rate_hz: 0", "rate_hz: input should be greater than 0, not 0"),
        ("rate: 1", "rate: unknown key; did you mean rate_hz\\? known are engine, rate_hz"),
        ("engine: {device: tpu}", "engine.device: input should be 'cpu' or 'cuda', not 'tpu'"),
        ("device: cpu", "device: unknown key; did you mean engine.device\\? known are engine, rate_hz"),
        ("engine_device: cpu", "engine_device: unknown key; did you mean engine.device\\?"),
        ("engine: {devise: cpu}", "engine.devise: unknown key; did you mean device\\?"),
        ("rate_hz: 1\nrate_hz: 2", "line 2, column 1: the key 'rate_hz' appears twice; merge the two into one"),
        ("rate_hz: [1", "line [12], column"),  # the C parser names the line after
        ("- 1", "the whole: .* not \\[1\\]"),
        (b"\xff\xfe\x00", "is not UTF-8 text"),
        ("rate_hz: .nan", "rate_hz: input should be a finite number, not nan"),
        ("a: !!python/object:os.system x", "line 1, column 4: the tag .*python/object:os.system' is not allowed"),
        ("a: !!binary aGk=", "the tag .* is not allowed"),
        ("a: !!int x", "'x' is not of the type int"),
        ("a: !!int ''", "'' is not of the type int"),
        ("a: !!bool maybe", "'maybe' is not of the type bool"),
        ("a:\n- &b [x]\n- [*b, *b]", "line 3, column 4: the alias \\*b is not allowed; write its value out"),
        ("<<: 3", "<<: unknown key"),
        ("? [a]\n: 1", "line 1, column 3: a key must be a text"),
        ("a: 1\n---\nb: 1", "line 2, column 1: a second document begins"),
        ("a: b\nc: \0", "line 2: the character '.x00' is not allowed in YAML"),
        (f"a: {'9' * 5000}", "line 1, column 4: a number of 5000 characters is too long"),
        ("a: " + "1:" * 3000 + "1", "a number of 6001 characters is too long"),
        ("[" * 100_000, "line 1, column 50: is nested more than 50 deep"),
        ("{a: " * 100_000, "is nested more than 50 deep"),
        ("- " * 100_000, "is nested more than 50 deep"),
        ("#" * (4 << 20) + "\n", "is larger than 4 MB"),
        ("ä" * (2 << 20) + " ", "is larger than 4 MB"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_a_bad_file_names_itself_the_key_and_the_allowed(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=f"robot.yaml.*{complaint}"):
        load_config(Outer, write(tmp_path, text))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.yaml: cannot be read: No such file"):
        load_config(Outer, tmp_path / "none.yaml")


@given(st.recursive(st.none() | st.integers() | st.text(), lambda s: st.lists(s) | st.dictionaries(st.text(), s)))
def test_whatever_is_in_a_file_is_a_configuration_or_a_config_error(plain: object) -> None:
    try:
        result: Outer | str = check_config(Outer, plain, "here")
    except ConfigError as error:
        result = str(error)
    assert isinstance(result, Outer) or result.startswith("here: ")


def test_the_digest_tells_configurations_apart() -> None:
    assert Outer().sha256() == Outer(rate_hz=1.0).sha256() != Outer(rate_hz=2.0).sha256()


def test_only_plain_types_are_read() -> None:
    text = "1: 2026-03-01\nyes: no\n~: ~\n'2': '2'\na: [1, 0x10, 1.5, !!str 3, {}, []]\n".removeprefix("\ufeff")
    assert parse_yaml(text, "here") == {
        "1": "2026-03-01",
        "yes": False,
        "~": None,
        "2": "2",
        "a": [1, 16, 1.5, "3", {}, []],
    }
