"""`tactful bag` as its user calls it: results, exit codes, and nothing half-done."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from norm_core.runtime.errors import TactfulError
from tactful_cli.bag.bag import app
from tests.command_line import tactful
from tests.norm_core.bags.bag_files import cdr, write_before_iron, write_mcap, write_rosbags


def call(*arguments: str | Path) -> tuple[int, str, str]:
    """Exit code, standard output and standard error or the error's own words."""
    ended = CliRunner().invoke(app, [str(argument) for argument in arguments], prog_name="tactful bag")
    if isinstance(ended.exception, TactfulError):
        return ended.exception.exit_code, ended.stdout, str(ended.exception)
    return ended.exit_code, ended.stdout, ended.stderr


def cut_short(bag: Path, share: float = 0.6) -> Path:
    file = next(bag.glob("*.mcap"))
    data = file.read_bytes()
    file.write_bytes(data[: int(len(data) * share)])
    return bag


def test_info_tells_storage_definitions_and_what_is_odd(tmp_path: Path) -> None:
    bag = write_before_iron(tmp_path / "bag", "zoo_msgs/msg/Animal")
    code, printed, noted = call("info", bag, "--json")
    assert (code, noted) == (0, "")
    info = json.loads(printed)
    assert info["notes"] == ["has no metadata.yaml"]
    assert info["files"] == [{"file": "bag_0.db3", "bytes": (bag / "bag_0.db3").stat().st_size}]
    assert info["topics"][0] == {
        "topic": "/a", "type": "zoo_msgs/msg/Animal", "messages": 30, "decoded": False, "latched": False
    }  # fmt: skip
    code, printed, noted = call("info", bag)
    assert "type unknown" in printed
    assert "2 topics of an unknown type" in " ".join(noted.split())


def test_a_name_in_a_bag_commands_no_terminal(tmp_path: Path) -> None:
    """Not by an escape, not by one of 8 bits, not by a line break, and not by the markup of a table."""
    name = "/a\n/b\x1b]0;owned\x07\x1b[2J\x9b2J\u202e[red][/blue]"
    bag = write_before_iron(tmp_path / "bag", messages=[(name, 1, cdr("hello"))])
    as_json, shown = (tactful("bag", "info", bag, *option) for option in (("--json",), ()))
    refused = tactful("flags", bag, "--robot-topic", "/b")
    assert json.loads(as_json.stdout)["topics"][0]["topic"] == name
    assert "[red][/blue]" in shown.stdout
    assert "/a\\n/b" in shown.stdout
    assert "\\u001b]0;owned" in refused.stderr
    for text in (as_json.stdout, shown.stdout, shown.stderr, refused.stderr):
        assert text.replace("\n", "").isprintable(), text


def test_info_of_an_empty_bag(tmp_path: Path) -> None:
    assert "0 messages in 0.000 s" in call("info", write_rosbags(tmp_path / "empty", messages=[]))[1]


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (("record", "new"), "ros2 bag record -o new --all-topics"),
        (("record", "new", "/a", "/b"), "ros2 bag record -o new --topics /a /b"),
        (("play", "old"), "ros2 bag play old --rate 1 --exclude-topics /tactful/status /diagnostics"),
    ],
)
def test_where_rosbag2_is_installed_its_equal_command_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], command: str
) -> None:
    started: list[object] = []
    monkeypatch.setattr("os.execv", lambda *command: started.append(command))
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path))
    assert call(*arguments) == (0, "", "")
    packages = tmp_path / "share/ament_index/resource_index/packages"
    packages.mkdir(parents=True)
    (packages / "ros2bag").touch()
    code, _, note = call(*arguments)
    assert (code, len(started)) == (0, 2)
    assert f"`{command}`" in note


def test_a_cut_short_bag_is_refused_with_what_mends_it(tmp_path: Path) -> None:
    bag = cut_short(write_mcap(tmp_path / "bag"))
    code, printed, why = call("info", bag)
    assert (code, printed) == (2, "")
    assert "bag_0.mcap: File end magic is invalid; if it was cut short or damaged, " in why
    assert "save its readable part with mcap recover bag_0.mcap -o NEW.mcap" in why
