"""Generate the reference pages about endpoints and parameters from the nodes themselves."""

import inspect
import json
import os
import sys
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from norm_nodes.base import parameters
from norm_nodes.base.endpoint import EVENTS, LATCHED, SENSOR, SPEECH, Endpoint, describe_qos
from norm_nodes.base.parameters import ParameterSpec
from norm_nodes.catalogue import NODES
from norm_nodes.people_node import ENGAGEMENT_TYPE, GAZE_TYPE, TF, TF_STATIC, TF_TYPE
from norm_nodes.tools.node_access import configure_nodes
from norm_nodes.tracked_ids import BOOL_TYPE, EITHER_DURABILITY, IDS_TYPE, ROI_TYPE, SPEECH_TYPE, STRING_TYPE

from norm_core.records.topics import ATTENTION_TOPIC, FLAGS_JSON_TOPIC, FLAGS_TOPIC, OPEN_FLAGS_TOPIC, SHADOW
from norm_core.runtime.config import Config

ROS_API = """# ROS API

The topics, services and actions of each node. `python -m tactful_cli.reference` generates this page; do not edit it.

Each node is a lifecycle node in the namespace `/tactful`, with the standard lifecycle and parameter services and
[these parameters](parameters.md).

QoS is the reliability, the durability and the depth; change it with `qos_overrides`. The status also has a deadline of
two seconds and a liveliness lease of three. A linked type shows its fields and constants, with comments.

With `bond: true`, `camera`, `ears`, `monitor`, `people` and `selector` also publish and subscribe to `/tactful/bond`
(`bond/msg/Status`; reliable, volatile, 50).

In a replay, `norm_bench` adds topics: `drain_request` and `drain_report` to each node (how many messages it has
processed and published, as JSON), and `queries`, `episodes` and `answers` to the monitor and the selector.
"""

PARAMETERS = """# ROS parameters

The parameters of each node. `python -m tactful_cli.reference` generates this page; do not edit it.

A node reads its parameters when it is configured. To change one, clean up the node, set the parameter and configure
the node again. Only a parameter marked *live* can change while the node is active. A dot in a name stands for a section
of the parameter file: `windows.length_s` is `length_s` under `windows`. Topics and services are in
[the ROS API](ros_api.md).
"""

ENDPOINT_HEAD = ("| role | name | type | QoS | meaning |", "|---|---|---|---|---|")

_READ, _SENT, _LASTING = describe_qos(SENSOR), describe_qos(EVENTS), describe_qos(LATCHED)
_EITHER = "; ".join(map(describe_qos, EITHER_DURABILITY))
# Endpoints that exist only with parameters or packages that the page's nodes do not have.
CONDITIONAL_ROWS = {
    "camera": (
        f"| publisher | `/humans/faces/tracked` | `{IDS_TYPE}` | {_LASTING} | ids of faces, if `publish_hri` is true |",
        f"| publisher | `/humans/faces/ID/roi` | `{ROI_TYPE}` | {_LASTING} | the box of each face |",
    ),
    "ears": (
        f"| subscriber | `audio_topic` | any audio type | {_READ} | the microphone, if `audio_type` names its type |",
        f"| subscriber | `audio_info_topic` | any type of formats | {_EITHER} | the format of raw bytes |",
        f"| subscriber | `words_topic`, `is_speaking_topic` | any type of words; `std_msgs/msg/Bool` | {_READ} "
        "| what the robot's own recognizer heard, if `words_from` is `topic` |",
        f"| subscriber | `/humans/voices/tracked` | `{IDS_TYPE}` | {_EITHER} "
        "| ids of voices, if `words_from` is `voices`; `ears` reads `speech` and `is_speaking` of each |",
        "| subscriber | `robot_speech_topic`, `robot_speaking_topic` | any type | as published, 50 or 30 "
        "| when the robot speaks, and what it says, if these name other topics than `/tactful/robot_speech` |",
        f"| publisher | `/tactful/robot_speech` | `norm_interfaces/msg/RobotSpeech` | {describe_qos(SPEECH)} "
        "| the robot's speech, from the topics in the row above |",
        f"| publisher | `/humans/voices/tracked` | `{IDS_TYPE}` | {_LASTING} | one voice, if `publish_hri` is true |",
        f"| publisher | `/humans/voices/anonymous_speaker/speech`, `is_speaking` | `{SPEECH_TYPE}`; `{BOOL_TYPE}` "
        f"| {_SENT} | its words, and whether it speaks |",
    ),
    "monitor": tuple(
        f"| publisher | `/tactful/{SHADOW}{name}` | `{kind}` | {qos} "
        f"| with `shadow: true`, instead of `/tactful/{name}` |"
        for name, kind, qos in (
            (FLAGS_TOPIC, "norm_interfaces/msg/SocialFlag", _SENT),
            (OPEN_FLAGS_TOPIC, "norm_interfaces/msg/OpenFlags", _LASTING),
            (FLAGS_JSON_TOPIC, "std_msgs/msg/String", _SENT),
            (ATTENTION_TOPIC, "std_msgs/msg/Bool", _SENT),
        )
    ),
    "people": (
        f"| subscriber | `/humans/persons/tracked`, `/humans/faces/tracked` | `{IDS_TYPE}` | {_EITHER} "
        "| ids of persons; ids of faces until a message lists persons |",
        f"| subscriber | `/humans/persons/ID/engagement_status`, `anchor_frame` | `{ENGAGEMENT_TYPE}`; `{STRING_TYPE}` "
        f"| {_EITHER} "
        "| each person's engagement and frame |",
        f"| subscriber | `/humans/faces/ID/roi` | `{ROI_TYPE}` | {_EITHER} | the box of each face |",
        f"| subscriber | `/humans/interactions/gazing` | `{GAZE_TYPE}` | {_READ} | who looks at whom |",
        f"| subscriber | `/tf`, `/tf_static` | `{TF_TYPE}` | {describe_qos(TF)}; {describe_qos(TF_STATIC)} "
        "| where persons are |",
    ),
}

Lines = Iterator[str]


def generate_ros_api() -> Lines:
    """Generate the page of topics, services and actions, with those that all nodes have in one table."""
    endpoints: dict[str, list[Endpoint]] = {}
    descriptions: dict[str, str] = {}
    for node in configure_nodes(NODES):
        name = node.get_fully_qualified_name()
        endpoints[name] = list(node.endpoints)
        descriptions[name] = inspect.getdoc(type(node)) or ""
    first, *others = endpoints.values()
    shared = [endpoint for endpoint in first if all(endpoint in other for other in others)]
    yield ROS_API
    yield from ("## Every node", "", *ENDPOINT_HEAD, *map(_format_endpoint, shared))
    for name, served in endpoints.items():
        own = [endpoint for endpoint in served if endpoint not in shared]
        rows = [*map(_format_endpoint, own), *CONDITIONAL_ROWS.get(name.rpartition("/")[2], ())]
        yield from ("", f"## {name}", "", descriptions[name], *(("", *ENDPOINT_HEAD, *rows) if rows else ()))


def generate_parameters() -> Lines:
    """Generate the page of parameters, by node and section."""
    yield PARAMETERS.rstrip()
    for node in configure_nodes(NODES):
        yield from ("", f"## {node.get_fully_qualified_name()}")
        model: type[Config] = node.config_model
        specs = sorted(parameters.list_specs(model).values(), key=_find_section)
        for section, inside in groupby(specs, key=_find_section):
            yield from (("", f"### {section}") if section else ())
            yield from ("", "| parameter | type | default | meaning and range |", "|---|---|---|---|")
            yield from map(_format_parameter, inside)


def _format_endpoint(endpoint: Endpoint) -> str:
    about = f"{endpoint.qos} | {endpoint.description}"
    package, kind, name = endpoint.type_name.split("/")
    type_ = f"`{endpoint.type_name}`"
    if package in {"norm_interfaces", "norm_bench_interfaces"}:
        type_ = f"[{type_}](../../ros2_ws/src/{package}/{kind}/{name}.{kind})"
    return f"| {endpoint.direction} | `{endpoint.name}` | {type_} | {about} |"


def _format_parameter(spec: ParameterSpec) -> str:
    default = json.dumps(spec.default, ensure_ascii=False)
    live = " *live*" if spec.is_live else ""
    return (
        f"| `{spec.name}` | {_name_type(spec)} | `{default}` | {spec.description}{_format_limits(spec.schema)}{live} |"
    )


def _find_section(spec: ParameterSpec) -> str:
    return spec.name.rpartition(".")[0]


def _name_type(spec: ParameterSpec) -> str:
    names = {bool: "bool", int: "int", float: "float", str: "string", list: "list of strings"}
    return names[type(spec.default)]


def _format_limits(schema: Mapping[str, Any]) -> str:
    signs = {"exclusiveMinimum": ">", "minimum": "≥", "exclusiveMaximum": "<", "maximum": "≤"}
    limits = [f"{sign} {schema[key]:g}" for key, sign in signs.items() if key in schema]
    limits += [f"one of {', '.join(schema['enum'])}"] if "enum" in schema else []
    return f" ({', '.join(limits)})" if limits else ""


PAGES = {"ros_api": generate_ros_api, "parameters": generate_parameters}


if __name__ == "__main__":
    # The page alone goes to standard output, where the middleware would complain too.
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as page:
        os.dup2(2, 1)
        print(*PAGES[sys.argv[1]](), sep="\n", file=page)
