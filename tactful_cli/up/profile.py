"""A profile: the parameters of the nodes that a robot runs. Each section is a node that is started."""

import difflib
import json
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from norm_core.engines.errors import EngineFailedError
from norm_core.models.catalogue import Catalogue
from norm_core.models.manifest import EngineKind
from norm_core.models.store import Store
from norm_core.records.record import record
from norm_core.runtime.config import ConfigError, load_yaml
from norm_core.runtime.data_files import shipped_file
from norm_core.runtime.errors import TactfulError

NAMESPACE = "tactful"
SHIPPED = shipped_file("tactful_cli.up", "profiles")
ENCOUNTERS = shipped_file("sim_replays.scenarios", "shipped")  # of a checkout alone
_PLAYER = "encounter_player"

# The parameter of a node that names the model which it asks.
_MODELS = {"monitor": "judge.model", "selector": "model"}
# Parameters that name a topic or a namespace of topics.
TOPIC_PARAMETERS = ("topic", "humans")
# Their defaults in the nodes; relative names are not among them.
DEFAULT_TOPICS = {
    "camera": {"topic": "/camera/image_raw/compressed"},
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
# What the node microphone publishes where its package is installed, and else.
_STAMPED_SOUND, _BARE_SOUND = "audio_common_msgs/msg/AudioDataStamped", "std_msgs/msg/UInt8MultiArray"


class ProfileError(TactfulError, ValueError):
    """A profile does not exist or cannot be used."""


@record
class Profile:
    """The nodes that are started, each with its parameters by their full names, and the namespace in which they run."""

    source: Path
    parameters: Mapping[str, Mapping[str, Any]]
    robot_wide: Mapping[str, Any]  # of every node that has them, below those of its own
    namespace: str = ""

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes in the order of the file."""
        return tuple(self.parameters)

    @property
    def node_namespace(self) -> str:
        """The namespace of the nodes, such as /tactful or /left/tactful."""
        return node_namespace(self.namespace)

    def processes(self) -> list[tuple[str, ...]]:
        """Group the nodes by process: those that name one model of this process share one, so that it loads once."""
        groups: dict[str, list[str]] = {}
        for node in self.nodes:
            groups.setdefault(self._model_of(node) or node, []).append(node)
        return [tuple(nodes) for nodes in groups.values()]

    def shared_model(self, nodes: Sequence[str]) -> str:
        """Return the model for whose sake nodes share a process."""
        return self._model_of(nodes[0]) if len(nodes) > 1 else ""

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
                Store().open(catalogue.manifest(model), catalogue.path(model).parent, verify=False)
            except (ConfigError, EngineFailedError) as error:
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
            return "" if Catalogue().manifest(model).engine is EngineKind.OPENAI else model
        except ConfigError:
            return ""  # the node says what is wrong with it


def checked_namespace(namespace: str, verb: str) -> str:
    """Return a namespace without slashes around it; raise ProfileError if it is none."""
    stripped = namespace.strip("/")
    if stripped and not all(part.isidentifier() and part.isascii() for part in stripped.split("/")):
        raise ProfileError(
            f"{verb}: {namespace!r} is no namespace; use letters, digits and _, not a digit first, such as left"
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
        raise ProfileError(f"{path}: has no section; begin with one such as /tactful/monitor, see docs/your_robot.md")
    contents = {
        "" if section == ROBOT_WIDE else _node_of(section, path): _parameters_of(section, content, path)
        for section, content in sections.items()
    }
    robot_wide = contents.pop("", {})
    if not contents:
        raise ProfileError(f"{path}: names no node; add a section such as /tactful/monitor, see docs/your_robot.md")
    for node, topics in DEFAULT_TOPICS.items() if namespace else ():
        if node in contents:
            contents[node] = {name: topics[name] for name in topics.keys() - robot_wide.keys()} | contents[node]
    parameters = {node: _moved(content, namespace) for node, content in contents.items()}
    if "microphone" in parameters and "ears" in parameters and not parameters["ears"].get("audio_type"):
        parameters["ears"]["audio_type"] = _STAMPED_SOUND if _has_stamped_sound() else _BARE_SOUND
    if "encounters" not in parameters.get(_PLAYER, {"encounters": ()}) and not ENCOUNTERS.is_dir():
        raise ProfileError(
            f"{path}: {_PLAYER}: this installation holds no encounters to play; name folders of bags in its parameter "
            "encounters, or run it in a checkout"
        )
    return Profile(source=path, parameters=parameters, namespace=namespace, robot_wide=_moved(robot_wide, namespace))


def _has_stamped_sound() -> bool:
    """Whether the installed audio_common_msgs is that of ros-drivers, not another of the same name."""
    package = find_spec(_STAMPED_SOUND.partition("/")[0])
    folders = (package and package.submodule_search_locations) or ()
    return any(Path(folder, "msg/_audio_data_stamped.py").is_file() for folder in folders)


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
    return {
        name.replace(_QOS, f"{_QOS}{namespace}/"): (
            _moved_name(value, namespace) if name.endswith(TOPIC_PARAMETERS) and isinstance(value, str) else value
        )
        for name, value in parameters.items()
    }


def _moved_name(name: str, namespace: str) -> str:
    return f"/{namespace}{name}" if name.startswith("/") else name
