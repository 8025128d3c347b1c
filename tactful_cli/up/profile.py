"""A profile: the parameters of the nodes that a robot runs, and what only a process with ROS can say about them."""

import difflib
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from norm_core.files.data_files import shipped_file
from norm_core.models.catalogue import Catalogue
from norm_core.models.manifest import EngineKind
from norm_core.models.store import Store, WeightsError
from norm_core.records.json_codec import from_json, from_plain
from norm_core.records.record import record
from norm_core.records.speech import SpeechContent
from norm_core.records.status import MonitorStatus
from norm_core.runtime.config import ConfigError, load_yaml
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.program import PROGRAM

NAMESPACE = "tactful"
SHIPPED = shipped_file("tactful_cli.up", "profiles")
ENCOUNTERS = shipped_file("norm_monitor.encounters", "shipped")  # of a checkout alone
_PLAYER = "encounter_player"
# The nodes that show the selector who is there.
_SHOW_PEOPLE = {"camera", "people", "bag_player"}

# The parameter of a node that names the model which it asks. These nodes decide, and share the sentence encoder too.
_MODELS = {"monitor": "judge.model", "selector": "model"}
# Parameters that name a topic or a namespace of topics.
TOPIC_PARAMETERS = ("topic", "humans")
# Their defaults in the nodes; relative names are not among them.
DEFAULT_TOPICS = {
    "camera": {"topic": "/camera/image_raw/compressed", "humans": "/humans"},
    "ears": {
        "audio_topic": "/audio",
        "humans": "/humans",
        "words_topic": "/humans/voices/anonymous_speaker/speech",
        "is_speaking_topic": "/humans/voices/anonymous_speaker/is_speaking",
    },
    "people": {"humans": "/humans"},
    "encounter_player": {"audio_topic": "/simulated/audio", "camera_topic": "/simulated/camera/compressed"},
    "microphone": {"topic": "/microphone/audio"},
    "typed_robot": {"topic": "/typed_robot/says"},
    "webcam": {"topic": "/webcam/image/compressed"},
}
ROBOT_WIDE = "/**"  # the section whose parameters go to every node that has them
_QOS = "qos_overrides./"


class ProfileError(TactfulError, ValueError):
    """A profile does not exist or cannot be used."""


@record
class Profile:
    """The nodes that are started, each with its parameters by their full names, and the namespace in which they run."""

    source: Path
    parameters: Mapping[str, Mapping[str, Any]]
    robot_wide: Mapping[str, Any]  # of every node that has them, below those of its own
    namespace: str = ""
    is_apart: bool = False  # each node in a process of its own

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes in the order of the file."""
        return tuple(self.parameters)

    @property
    def node_namespace(self) -> str:
        """The namespace of the nodes, such as /tactful or /left/tactful."""
        return node_namespace(self.namespace)

    def processes(self) -> list[tuple[str, ...]]:
        """Group the nodes by process: those that decide share one, unless they load different models into it."""
        groups: dict[str, list[str]] = {}
        for node in self.nodes:
            shares = node in _MODELS and not self.is_apart
            groups.setdefault(f"asks {self._model_of(node)}" if shares else node, []).append(node)
        return [tuple(nodes) for nodes in groups.values()]

    def shared_model(self, nodes: Sequence[str]) -> str:
        """Return the model that nodes of one process load once."""
        return self._model_of(nodes[0]) or "the sentence encoder"

    def write_parameters(self, nodes: Sequence[str], path: Path) -> None:
        """Write the parameters of some nodes as a file for ROS, which reads JSON as YAML."""
        sections = {f"{self.node_namespace}/{node}": self.parameters[node] for node in nodes}
        sections = ({ROBOT_WIDE: self.robot_wide} if self.robot_wide else {}) | sections
        tree = {name: {"ros__parameters": parameters} for name, parameters in sections.items()}
        path.write_text(json.dumps(tree, ensure_ascii=False), encoding="utf-8")

    def model_problems(self) -> list[str]:
        """Say which nodes name a model that is unknown, or whose weights are absent."""
        catalogue, problems = Catalogue(), []
        for node, parameter in (_MODELS | {"ears": "model"}).items():
            model = self._value_of(node, parameter)
            if not model or not isinstance(model, str) or (node == "ears" and self._needs_no_whisper(model)):
                continue
            try:
                Store().open_files(catalogue.read_manifest(model), verify=False)
            except (ConfigError, WeightsError) as error:
                problems.append(f"parameters of {node}: {parameter}: {error}")
        return problems

    def _needs_no_whisper(self, model: str) -> bool:
        """Whether ears load no named model: another recognizer gives the words, or the name is that of a folder."""
        return self._value_of("ears", "words_from") not in {None, "whisper"} or "/" in model or Path(model).is_dir()

    def _value_of(self, node: str, parameter: str) -> Any:
        """Return what the file states of a node's parameter; None where the node does not run or has its default."""
        return {**self.robot_wide, **self.parameters[node]}.get(parameter) if node in self.parameters else None

    def _model_of(self, node: str) -> str:
        """Return the model that a node loads into its process, or an empty string."""
        model = self._value_of(node, _MODELS[node]) if node in _MODELS else None
        if not model or not isinstance(model, str):
            return ""
        try:
            return "" if Catalogue().read_manifest(model).engine is EngineKind.OPENAI else model
        except ConfigError:
            return ""  # the node says what is wrong with it


def checked_namespace(namespace: str, verb: str) -> str:
    """Return a namespace without slashes around it; raise ProfileError if it is none."""
    stripped = namespace.strip("/")
    if stripped and not all(part.isidentifier() and part.isascii() for part in stripped.split("/")):
        raise ProfileError(
            f"{verb}: {namespace!r} is not a namespace; use letters, digits and _, not a digit first, such as left"
        )
    return stripped


def node_namespace(namespace: str) -> str:
    """Return the namespace of the nodes, such as /tactful or /left/tactful."""
    return f"/{namespace}/{NAMESPACE}" if namespace else f"/{NAMESPACE}"


def load(name: str, namespace: str = "") -> Profile:
    """Read a shipped profile by its name or a profile of one's own by its path. Raises ProfileError."""
    path = SHIPPED / f"{name}.yaml"
    if not path.is_file():
        path = Path(name).expanduser()
    if not path.is_file():
        close = difflib.get_close_matches(name, shipped(), 1)
        remedy = f"did you mean {close[0]}?" if close else f"name a file, or one of {', '.join(shipped())}"
        raise ProfileError(f"up: there is no profile {name!r}; {remedy}")
    namespace = checked_namespace(namespace, "up")
    sections = load_yaml(path)
    if not isinstance(sections, dict) or not sections:
        raise ProfileError(
            f"{path}: has no section; begin with one such as /tactful/monitor, see docs/reference/profile.md"
        )
    contents = {
        "" if section == ROBOT_WIDE else _node_of(section, path): _parameters_of(section, content, path)
        for section, content in sections.items()
    }
    robot_wide = contents.pop("", {})
    if not contents:
        raise ProfileError(
            f"{path}: names no node; add a section such as /tactful/monitor, see docs/reference/profile.md"
        )
    for node, topics in DEFAULT_TOPICS.items() if namespace else ():
        if node in contents:
            contents[node] = {name: topics[name] for name in topics.keys() - robot_wide.keys()} | contents[node]
    if "selector" in contents and "has_camera" not in robot_wide and not contents.keys() & _SHOW_PEOPLE:
        contents["selector"] = {"has_camera": False} | contents["selector"]
    parameters = {node: _moved(content, namespace) for node, content in contents.items()}
    if "encounters" not in parameters.get(_PLAYER, {"encounters": ()}) and not ENCOUNTERS.is_dir():
        raise ProfileError(
            f"{path}: {_PLAYER}: this installation holds no encounters to play; name folders of bags in its parameter "
            "encounters, or run it in a checkout"
        )
    return Profile(source=path, parameters=parameters, namespace=namespace, robot_wide=_moved(robot_wide, namespace))


def shipped() -> dict[str, str]:
    """List the shipped profiles with the first line of each, which says what it is for."""
    return {file.stem: about_of(file) for file in sorted(SHIPPED.glob("*.yaml"))}


def about_of(path: Path) -> str:
    """Return the comment in the first line of a profile, which says what it is for."""
    first = path.read_text(encoding="utf-8").partition("\n")[0]
    return first.lstrip("# ") if first.startswith("#") else ""


def _node_of(section: object, path: Path) -> str:
    prefix = f"/{NAMESPACE}/"
    node = str(section).removeprefix(prefix)
    if not isinstance(section, str) or node == section or "/" in node or "*" in node:
        name = str(section).rpartition("/")[2].strip("*") or "monitor"
        raise ProfileError(f"{path}: {section}: a section names one node; write {prefix}{name}, and use --namespace")
    return node


def _parameters_of(section: str, content: object, path: Path) -> dict[str, Any]:
    parameters = content.get("ros__parameters") if isinstance(content, dict) else None
    if not isinstance(content, dict) or set(content) != {"ros__parameters"}:
        raise ProfileError(f"{path}: {section}: holds no ros__parameters; put the parameters under that key")
    if not isinstance(parameters, dict | None):
        raise ProfileError(f"{path}: {section}: ros__parameters: holds no names; write them as NAME: VALUE")
    return _flat(parameters or {})


def _flat(parameters: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return parameters with dots in their names, however they are nested."""
    flat: dict[str, Any] = {}
    for name, value in parameters.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return flat


def _moved(parameters: dict[str, Any], namespace: str) -> dict[str, Any]:
    """Move topics into the namespace; names that do not begin with / move with their node."""
    if not namespace:
        return parameters
    moved = {}
    for name, value in parameters.items():
        is_moved = name.endswith(TOPIC_PARAMETERS) and isinstance(value, str) and value.startswith("/")
        moved[name.replace(_QOS, f"{_QOS}{namespace}/")] = f"/{namespace}{value}" if is_moved else value
    return moved


TIMEOUT_S = 120.0
HEARTBEATS_S = 4.0  # until every node that runs has sent a heartbeat


@record
class Topic:
    """A published topic; a rate or content of None means that its type is not installed on this machine."""

    name: str
    types: tuple[str, ...]
    publishers: tuple[str, ...] = ()  # as DDS lists them, with those that were killed in the last twenty seconds
    reliable: bool = True
    rate_hz: float | None = None
    speech_content: SpeechContent | None = None
    sound_values: int = 0  # that came in `sound_s`: bytes, or samples of messages that are no bytes
    sound_s: float = 0.0


@record
class Survey:
    """The published topics of the domain, and the actions with their types."""

    topics: tuple[Topic, ...] = ()
    actions: Mapping[str, Sequence[str]]

    def topic(self, name: str) -> Topic | None:
        """Return a topic by its name."""
        return next((topic for topic in self.topics if topic.name == name), None)


@record
class EffectiveParameters:
    """All parameters of a profile's nodes with their defaults, and what is wrong with it."""

    parameters: Mapping[str, Mapping[str, Any]]
    problems: tuple[str, ...]
    missing_types: Mapping[str, str]
    warnings: tuple[str, ...] = ()


def survey_topics() -> Survey:
    """Look at the ROS domain for some seconds."""
    return from_json(Survey, _run("norm_nodes.tools.topic_survey"))


def node_names() -> tuple[str, ...]:
    """Return the full names of the nodes on the ROS domain."""
    return tuple(json.loads(_run("norm_nodes.tools.topic_survey", "graph"))["nodes"])


def running_nodes(profile: Profile) -> tuple[str, ...]:
    """Return the nodes of a profile that run already, if one sends heartbeats; DDS lists killed ones for a while."""
    own = {f"{profile.node_namespace}/{node}": node for node in profile.nodes}
    beating = {status.node for status in heartbeats(profile)} & own.keys()
    running = beating | set(node_names() if beating else ())  # a busy machine may miss some in either
    return tuple(node for name, node in own.items() if name in running)


def heartbeats(profile: Profile) -> list[MonitorStatus]:
    """Return what the nodes of a profile state of themselves within some seconds; nothing if none runs."""
    own = {f"{profile.node_namespace}/{node}" for node in profile.nodes}
    if not own & set(node_names()):
        return []
    command = [sys.executable, "-m", "norm_nodes.tools.graph_printer", profile.node_namespace, "--kinds", "status"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as watcher:
        try:
            lines = watcher.communicate(timeout=HEARTBEATS_S)[0]
        except subprocess.TimeoutExpired:
            watcher.terminate()
            lines = watcher.communicate()[0]
    records = [line["record"] for line in map(json.loads, lines.splitlines()) if line["kind"] == "status"]
    return [from_plain(MonitorStatus, record) for record in records]


def effective_parameters(profile: Profile) -> EffectiveParameters:
    """Return the parameters that the nodes of a profile would have."""
    with tempfile.TemporaryDirectory(prefix="tactful-up-") as folder:
        path = Path(folder, "parameters.json")
        path.write_text(json.dumps({ROBOT_WIDE: profile.robot_wide, **profile.parameters}), encoding="utf-8")
        return from_json(EffectiveParameters, _run("norm_nodes.tools.effective_parameters", str(path)))


def node_access(nodes: Sequence[str]) -> dict[str, dict[str, set[str]]]:
    """Return the topics, services and actions of nodes, by what each does with them."""
    accesses = json.loads(_run("norm_nodes.tools.node_access", *nodes))
    return {node: {rule: set(names) for rule, names in access.items()} for node, access in accesses.items()}


def _run(module: str, *arguments: str) -> str:
    command = [sys.executable, "-m", module, *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as error:
        remedy = f"stop other programs and try again, or run {PROGRAM} doctor"
        raise TactfulError(f"{module}: did not end in {TIMEOUT_S:.0f} s; the machine may be busy: {remedy}") from error
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise TactfulError(f"{module} failed: {why}; run {PROGRAM} doctor")
    return done.stdout.strip().rpartition("\n")[2]  # the middleware writes its own complaints before the result
