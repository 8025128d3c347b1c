"""A configuration is right, or the error says which key of which file is wrong and what is allowed."""

from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from norm_core.runtime.config import Config, ConfigError, check_config, load_config


class Inner(Config):
    device: Literal["cpu", "cuda"] = "cpu"


class Outer(Config):
    rate_hz: float = Field(default=1.0, gt=0)
    engine: Inner = Inner()


def write(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "robot.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_good_file_is_read(tmp_path: Path) -> None:
    config = load_config(Outer, write(tmp_path, "rate_hz: 2\nengine: {device: cuda}\n"))
    assert (config.rate_hz, config.engine.device) == (2.0, "cuda")


def test_an_empty_file_is_all_defaults(tmp_path: Path) -> None:
    assert load_config(Outer, write(tmp_path, "")) == Outer()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("rate_hz: 0", "rate_hz: input should be greater than 0, not 0"),
        ("rate: 1", "rate: unknown key; did you mean rate_hz\\? known are engine, rate_hz"),
        ("engine: {device: tpu}", "engine.device: input should be 'cpu' or 'cuda', not 'tpu'"),
        ("device: cpu", "device: unknown key; did you mean engine.device\\? known are engine, rate_hz"),
        ("engine_device: cpu", "engine_device: unknown key; did you mean engine.device\\?"),
        ("engine: {devise: cpu}", "engine.devise: unknown key; did you mean device\\?"),
        ("rate_hz: 1\nrate_hz: 2", "line 2, column 1: the key 'rate_hz' stands twice; merge the two into one"),
        ("rate_hz: [1", "line [12], column"),  # the C parser names the line after
        ("- 1", "the whole: .* not \\[1\\]"),
        (b"\xff\xfe\x00", "is not UTF-8 text"),
        ("a: !!python/object:os.system x", "could not determine a constructor"),
    ],
)
def test_a_bad_file_names_itself_the_key_and_the_allowed(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=f"robot.yaml.*{complaint}"):
        load_config(Outer, write(tmp_path, text))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.yaml: cannot be read: No such file"):
        load_config(Outer, tmp_path / "none.yaml")


def test_every_fault_is_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        check_config(Outer, {"rate_hz": "x", "engine": {"device": "y"}}, "here")
    assert len(str(caught.value).splitlines()) == 2


@given(st.recursive(st.none() | st.integers() | st.text(), lambda s: st.lists(s) | st.dictionaries(st.text(), s)))
def test_whatever_is_in_a_file_is_a_configuration_or_a_config_error(plain: object) -> None:
    try:
        result: Outer | str = check_config(Outer, plain, "here")
    except ConfigError as error:
        result = str(error)
    assert isinstance(result, Outer) or result.startswith("here: ")


def test_the_digest_tells_configurations_apart() -> None:
    assert Outer().sha256() == Outer(rate_hz=1.0).sha256() != Outer(rate_hz=2.0).sha256()
