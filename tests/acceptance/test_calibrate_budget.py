"""`tactful calibrate budget`: a profile that the nodes start with, and refusals that say what would fit."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from norm_core.runtime.errors import TactfulError
from tactful_cli.calibrate.budget_parts import shipped_pictures
from tactful_cli.main import app
from tests.acceptance.tactful_up import running_up
from tests.calibration.sensor_bags import Room, flash_bag
from tests.norm_core.engines.fake_server import describe_model, serving
from tests.observer import Observer

SOUND = Path(__file__).parents[1] / "norm_monitor/senses/conversation.flac"
JUDGE, DEADLINE_S = "served", "600"  # a busy machine keeps it too


def run(*options: str) -> Any:
    return CliRunner().invoke(app, ["calibrate", "budget", "--quick", *options])


def refusal(*options: str) -> str:
    result = run(*options)
    assert isinstance(result.exception, TactfulError), result.output
    return str(result.exception)


@pytest.fixture(scope="module")
def budget(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    """What is measured and proposed for a profile with settings of its own and a judge behind a server."""
    folder = tmp_path_factory.mktemp("budget")
    profile, written = folder / "robot.yaml", folder / "measured.yaml"
    sections = {
        "camera": {"topic": "/eye/compressed", "keep_hz": 2.0},
        "ears": {"audio_topic": "/mic", "audio_type": "std_msgs/msg/UInt8MultiArray"},
        "monitor": {"fusion": {"sensitivity": "quiet"}, "windows": {"length_s": 12.0}, "judge": {"note_tokens": 0}},
    }
    tree = {f"/tactful/{node}": {"ros__parameters": values} for node, values in sections.items()}
    profile.write_text(yaml.safe_dump(tree), encoding="utf-8")
    options = ("--sound", str(SOUND), "--deadline", DEADLINE_S, "--headroom", "0.2", "--write", str(written), "--json")
    with serving() as server, pytest.MonkeyPatch.context() as patch:
        server.letters = "ABC"
        describe_model(folder, JUDGE, server.url)
        patch.setenv("TACTFUL_MODELS", str(folder))
        result = run("--profile", str(profile), "--model", JUDGE, *options)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout), written


def test_each_part_is_measured_and_its_sum_keeps_the_deadline(budget: tuple[dict[str, Any], Path]) -> None:
    found, _ = budget
    forecast = found["plan"]["forecast_p95_ms"]
    assert set(forecast) == {"picture", "transcription", "window", "judge_unit"}
    assert all(ms > 0 for ms in forecast.values())
    assert all(0 < one["p50_ms"] <= one["p95_ms"] for one in found["measured"]["alone"].values())
    assert found["plan"]["total_p95_ms"] <= 0.8 * 600_000
    assert found["measured"]["real_time_factor"] > 0
    assert found["plan"]["limits"]


def test_the_written_profile_keeps_the_settings_and_adds_the_budget(budget: tuple[dict[str, Any], Path]) -> None:
    found, written = budget
    text = written.read_text(encoding="utf-8")
    nodes = {name.rpartition("/")[2]: one["ros__parameters"] for name, one in yaml.safe_load(text).items()}
    assert (nodes["camera"]["topic"], nodes["camera"]["keep_hz"]) == ("/eye/compressed", 2.0)
    assert nodes["monitor"]["fusion"] == {"sensitivity": "quiet"}
    assert nodes["monitor"]["judge"] == {"note_tokens": 0}
    forecast = found["plan"]["forecast_p95_ms"]
    assert nodes["ears"]["budget.p95_ms"] == pytest.approx(forecast["transcription"] / 0.8, abs=0.1)
    assert nodes["monitor"]["judge.model"] == JUDGE
    assert nodes["monitor"]["windows.length_s"] == 12.0
    assert text.startswith("# robot with the budget of one machine")


@pytest.mark.ros
@pytest.mark.slow
def test_real_nodes_start_with_the_written_profile(
    budget: tuple[dict[str, Any], Path], domain_id: int, observer: Observer, tmp_path: Path
) -> None:
    _, written = budget
    expected = yaml.safe_load(written.read_text(encoding="utf-8"))
    with running_up(tmp_path / "log", str(written)) as up:
        observer.meet("ears")
        for node in ("camera", "ears", "monitor"):
            own = expected[f"/tactful/{node}"]["ros__parameters"]
            assert parameter_value(observer, node, "budget.p95_ms") == own["budget.p95_ms"]
        assert up.interrupt() == 0


@pytest.mark.ros
@pytest.mark.slow
def test_a_bag_shows_beside_the_forecast_what_the_nodes_took(tmp_path: Path) -> None:
    bag = flash_bag(tmp_path / "flashes", Room(events=3, fps=10.0))
    result = run("--check", str(bag), "--sound", str(SOUND), "--deadline", DEADLINE_S, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    check = {one["name"]: one for one in found["check"]}
    picture = check["picture"]
    assert picture["forecast_ms"] == found["plan"]["forecast_p95_ms"]["picture"]
    assert picture["count"] >= 4  # one a second of 7 s
    assert picture["measured_ms"] > 0
    assert picture["error"] == pytest.approx(picture["forecast_ms"] / picture["measured_ms"] - 1)
    whole, of = check.pop("end of a turn to its flag", None), [one for name, one in check.items() if name != "picture"]
    assert (whole["measured_ms"] if whole else 0) == pytest.approx(sum(one["measured_ms"] for one in of))
    assert "playing flashes to camera, ears, monitor for" in result.stderr


def parameter_value(observer: Observer, node: str, name: str) -> float:
    from rcl_interfaces.srv import GetParameters

    (value,) = observer.call(GetParameters, f"/tactful/{node}/get_parameters", names=[name]).values
    return float(value.double_value)


@pytest.mark.parametrize("headroom", ["0.95", "-0.1", "nan"])
def test_a_headroom_that_leaves_nothing_is_refused(headroom: str) -> None:
    assert "is not from 0 to 0.9" in refusal("--headroom", headroom)


@pytest.mark.parametrize("deadline", ["0", "nan", "-3"])
def test_a_deadline_that_is_none_is_refused(deadline: str) -> None:
    assert "--deadline" in refusal("--deadline", deadline)


def test_unknown_names_are_refused_with_the_nearest() -> None:
    assert "did you mean pepper?" in refusal("--profile", "peper")
    assert "there is no model 'qwen3-vl-4'" in refusal("--model", "qwen3-vl-4")


def test_files_that_are_not_there_or_exist_are_refused(tmp_path: Path) -> None:
    assert "there is no such file" in refusal("--sound", str(tmp_path / "none.wav"))
    assert "is no folder of a bag" in refusal("--check", str(tmp_path / "none"))
    whole = bytes(shipped_pictures()[0])
    for number, data in enumerate((b"text", whole[: len(whole) // 2])):
        (tmp_path / f"{number}.jpg").write_bytes(data)
        assert "is no whole JPEG" in refusal("--picture", str(tmp_path / f"{number}.jpg"))
    mine = tmp_path / "mine.yaml"
    mine.write_text("# mine\n", encoding="utf-8")
    assert "exists already" in refusal("--write", str(mine))
    assert mine.read_text(encoding="utf-8") == "# mine\n"


def test_a_deadline_that_nothing_keeps_is_refused_with_one_that_fits() -> None:
    said = refusal("--deadline", "0.41", "--sound", str(SOUND))
    assert "nothing fits" in said
    assert "allow --deadline" in said


def test_whisper_that_is_not_installed_is_named_with_its_command(tmp_path: Path) -> None:
    profile = tmp_path / "robot.yaml"
    sections = "/tactful/monitor:\n  ros__parameters: {}\n/tactful/ears:\n  ros__parameters: {model: whisper-small-x}\n"
    profile.write_text(sections, encoding="utf-8")
    assert "whisper-small-x" in refusal("--profile", str(profile))
