"""A profile: which nodes run in which process, and what is wrong with a file."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from norm_core.runtime.errors import TactfulError
from tactful_cli.up import profile as profiles
from tactful_cli.up.profile import ProfileError, effective_parameters, load, shipped
from tests.node_records import node_status

JUDGED = """
/tactful/monitor:
  ros__parameters: {judge.model: smolvlm2-256m}
/tactful/camera:
  ros__parameters: {topic: /eye}
/tactful/selector:
  ros__parameters: {model: %s}
"""

SERVED = """
name: served
task: vision-language
engine: openai
quantization: none
licence: none
source: {url: "http://127.0.0.1:1/v1"}
memory: {load_mb: 1, peak_mb: 1, how: the server has its own}
"""


def written(folder: Path, text: str) -> str:
    path = folder / "robot.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("judge", "model", "shared"),
    [
        ("smolvlm2-256m", "smolvlm2-256m", "smolvlm2-256m"),
        ("''", "''", "the sentence encoder"),
        ("served", "served", "the sentence encoder"),
        ("smolvlm2-256m", "''", ""),
        ("served", "smolvlm2-256m", ""),
    ],
)
def test_what_decides_shares_a_process_unless_its_models_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, judge: str, model: str, shared: str
) -> None:
    models = tmp_path / "models"
    models.mkdir()
    (models / "served.yaml").write_text(SERVED, encoding="utf-8")
    monkeypatch.setenv("TACTFUL_MODELS", str(models))
    profile = load(written(tmp_path, JUDGED.replace("smolvlm2-256m", judge) % model))
    together = [nodes for nodes in profile.processes() if len(nodes) > 1]
    assert together == ([("monitor", "selector")] if shared else [])
    assert [profile.shared_model(nodes) for nodes in together] == ([shared] if shared else [])
    assert replace(profile, is_apart=True).processes() == [("monitor",), ("camera",), ("selector",)]


def test_without_shipped_encounters_the_player_needs_bags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiles, "ENCOUNTERS", tmp_path / "shipped")
    own = "/tactful/encounter_player:\n  ros__parameters: {encounters: [/bags/mine]}\n"
    assert load(written(tmp_path, own)).nodes == ("encounter_player",)
    with pytest.raises(ProfileError, match=r"simulated.yaml: encounter_player: .* name folders of bags"):
        load("simulated")


def test_a_namespace_moves_nodes_and_topics(tmp_path: Path) -> None:
    profile = load(written(tmp_path, JUDGED % "''"), "left")
    profile.write_parameters(["camera"], tmp_path / "parameters.json")
    tree = json.loads((tmp_path / "parameters.json").read_text(encoding="utf-8"))
    assert tree == {"/left/tactful/camera": {"ros__parameters": {"topic": "/left/eye", "humans": "/left/humans"}}}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "has no section; begin with one such as /tactful/monitor"),
        ("monitor: {}\n", "monitor: a section names one node; write /tactful/monitor"),
        ("/left/tactful/camera: {}\n", "write /tactful/camera, and use --namespace"),
        ("/**: {ros__parameters: {use_sim_time: true}}\n", "names no node; add a section"),
        ("/tactful/camera: {topic: /eye}\n", "put the parameters under that key"),
        ("/tactful/camera: {ros__parameters: [1]}\n", "write them as NAME: VALUE"),
    ],
)
def test_a_file_that_is_no_profile_is_told_with_its_mend(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(ProfileError, match=complaint):
        load(written(tmp_path, text))


@pytest.mark.ros
@pytest.mark.parametrize("name", sorted(shipped()))
def test_a_shipped_profile_meets_the_checklist(name: str, domain_id: int) -> None:
    profile, text = load(name), (profiles.SHIPPED / f"{name}.yaml").read_text(encoding="utf-8")
    assert effective_parameters(profile).problems == ()
    comment = text.partition("\n/")[0]
    assert all(line.startswith("#") for line in comment.splitlines())
    assert "tried" in comment.lower()
    assert "robot_speech_topic: /" in text or "Robot: none" in comment
    assert "camera" in profile.nodes or "windows.sources: [utterances]" in text


NODES = ("camera", "ears", "people", "monitor", "selector", "encounter_player", "microphone", "typed_robot", "webcam")


def test_a_namespace_moves_the_default_topic_of_every_node(tmp_path: Path) -> None:
    """The defaults are those of the nodes, which cannot be imported without ROS."""
    pytest.importorskip("rclpy")
    from norm_nodes.base.parameters import list_specs
    from norm_nodes.catalogue import import_config_model

    profile = load(written(tmp_path, "".join(f"/tactful/{node}:\n  ros__parameters: {{}}\n" for node in NODES)), "left")
    for node in NODES:
        defaults = {
            name: spec.default for name, spec in list_specs(import_config_model(node)).items() if name.endswith("topic")
        }
        absolute = {name: default for name, default in defaults.items() if default.startswith("/")}
        moved = {name: value for name, value in profile.parameters[node].items() if name.endswith("topic")}
        assert moved == {name: f"/left{default}" for name, default in absolute.items()}, node
    assert profile.parameters["people"]["humans"] == profile.parameters["ears"]["humans"] == "/left/humans"


WIDE = "/**:\n  ros__parameters: {use_sim_time: true, judge: {model: smolvlm2-256m}, topic: /eye}\n"


def test_what_holds_for_every_node_is_written_apart_and_moved(tmp_path: Path) -> None:
    profile = load(written(tmp_path, f"{WIDE}/tactful/camera:\n  ros__parameters: {{}}\n"), "left")
    profile.write_parameters(["camera"], tmp_path / "parameters.json")
    tree = json.loads((tmp_path / "parameters.json").read_text(encoding="utf-8"))
    wide = {"use_sim_time": True, "judge.model": "smolvlm2-256m", "topic": "/left/eye"}
    assert tree == {
        "/**": {"ros__parameters": wide},
        "/left/tactful/camera": {"ros__parameters": {"humans": "/left/humans"}},
    }


@pytest.mark.parametrize(
    ("beside", "has_camera"),
    [
        ("/tactful/ears: {ros__parameters: }", False),
        ("/tactful/people: {ros__parameters: }", None),
        ("/**: {ros__parameters: {has_camera: true}}", None),
    ],
)
def test_selector_without_a_camera_is_told_so(tmp_path: Path, beside: str, has_camera: bool | None) -> None:
    profile = load(written(tmp_path, f"{beside}\n/tactful/selector: {{ros__parameters: }}\n"))
    assert profile.parameters["selector"].get("has_camera") is has_camera


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("/tactful/ears: {ros__parameters: {model: whisper-base}}\n", "ears: model: the weights of whisper-base"),
        ("/tactful/ears: {ros__parameters: {model: whisper-base, words_from: topic}}\n", ""),
        ("/tactful/ears: {ros__parameters: {model: /models/mine}}\n", ""),
        (f"{WIDE}/tactful/monitor: {{ros__parameters: }}\n", "monitor: judge.model: the weights of smolvlm2-256m are"),
        (f"{WIDE}/tactful/camera: {{ros__parameters: }}\n", ""),
    ],
)
def test_a_model_without_weights_is_named_with_its_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, problem: str
) -> None:
    monkeypatch.setenv("TACTFUL_WEIGHTS", str(tmp_path / "none"))
    found = load(written(tmp_path, text)).model_problems()
    assert len(found) == bool(problem)
    assert all(problem in line and "models add" in line for line in found)


@pytest.mark.parametrize(("beating", "is_named"), [("ears", True), ("people", False)])
def test_all_nodes_are_named_where_one_sends_heartbeats(
    monkeypatch: pytest.MonkeyPatch, beating: str, is_named: bool
) -> None:
    profile = load("simulated")
    monkeypatch.setattr(profiles, "node_names", lambda: [f"/tactful/{node}" for node in profile.nodes])
    monkeypatch.setattr(profiles, "heartbeats", lambda profile: [node_status(1, node=f"/tactful/{beating}")])
    assert profiles.running_nodes(profile) == (profile.nodes if is_named else ())


def test_a_look_at_the_graph_that_does_not_end_is_an_error_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiles, "TIMEOUT_S", 0.0)
    with pytest.raises(TactfulError, match=r"topic_survey: did not end in 0 s; .* stop other programs"):
        profiles.node_names()
