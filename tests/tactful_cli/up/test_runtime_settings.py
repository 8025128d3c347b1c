import json
from pathlib import Path

import pytest

from tactful_cli.up.profile import load
from tactful_cli.up.run import RuntimeSettings, merged


@pytest.fixture
def settings(tmp_path: Path) -> RuntimeSettings:
    path = tmp_path / "robot.yaml"
    path.write_text("/tactful/monitor:\n  ros__parameters: {fusion: {sensitivity: balanced, open_s: 20.0}}\n")
    return RuntimeSettings(load(str(path)))


def changed(node: str, **values: object) -> str:
    return json.dumps({"node": node, "settings": {name.replace("__", "."): value for name, value in values.items()}})


@pytest.mark.parametrize("given", [{"fusion": {"muted": ["a"], "open_s": 20.0}}, {"fusion.muted": ["a"]}])
@pytest.mark.parametrize("value", [["b"], []])
def test_a_setting_takes_the_place_of_what_the_file_says(given: dict[str, object], value: list[str]) -> None:
    found = merged(given, {"fusion.muted": value})
    assert found.get("fusion.muted", []) == value
    assert "muted" not in json.dumps(found.get("fusion", {}))


def test_a_node_keeps_what_was_set_of_it_alone(settings: RuntimeSettings, tmp_path: Path) -> None:
    assert settings.take(changed("/tactful/monitor", fusion__sensitivity="keen"))
    assert settings.take(changed("/left/tactful/monitor", fusion__open_s=5.0))
    assert 'monitor: keeps fusion.sensitivity "keen"' in settings.keeping("monitor")
    settings.write_parameters(["monitor"], tmp_path / "parameters.json")
    written = json.loads((tmp_path / "parameters.json").read_text())
    assert written["/tactful/monitor"]["ros__parameters"] == {"fusion.sensitivity": "keen", "fusion": {"open_s": 20.0}}


def test_a_setting_that_is_dropped_is_named_and_gone(settings: RuntimeSettings) -> None:
    settings.take(changed("/tactful/monitor", fusion__sensitivity="keen"))
    assert "monitor: cannot start with fusion.sensitivity" in settings.drop(["monitor"])
    assert settings.keeping("monitor") == settings.drop(["monitor"]) == ""


@pytest.mark.parametrize("line", ["Traceback", "{}", "[]", "3"])
def test_another_line_is_no_setting(settings: RuntimeSettings, line: str) -> None:
    assert not settings.take(line)
