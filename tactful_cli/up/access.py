"""The access that the nodes of a profile need on the graph, as a policy of SROS2 for each process."""

import os
from collections.abc import Iterable, Mapping
from xml.etree import ElementTree

from norm_core.records.topics import NAMESPACE
from norm_core.runtime.errors import TactfulError
from tactful_cli.up.input_check import inputs_of
from tactful_cli.up.profile import EffectiveParameters, Profile, effective_parameters, node_access

TOOLS = "tools"  # the enclave of what looks at the graph: the commands, and `up` itself
RULES = {"topic": ("publish", "subscribe"), "service": ("reply", "request"), "action": ("execute", "call")}

Access = dict[str, set[str]]


def enclave_environment(namespace: str, process: str) -> dict[str, str]:
    """Name the enclave of a process, where the environment asks for security and names none but that of the tools."""
    is_wanted = os.environ.get("ROS_SECURITY_ENABLE", "").lower() == "true"
    tools = f"{namespace}/{TOOLS}"
    is_free = os.environ.get("ROS_SECURITY_ENCLAVE_OVERRIDE", tools) == tools
    return {"ROS_SECURITY_ENCLAVE_OVERRIDE": f"{namespace}/{process}"} if is_wanted and is_free else {}


def policy_of(profile: Profile) -> str:
    """Write the policy of a profile: an enclave a process, with a profile a node, and one for the tools."""
    effective = effective_parameters(profile)
    if effective.problems:
        raise TactfulError(f"{profile.source}: {'; '.join(effective.problems)}")
    namespace = profile.node_namespace
    accesses = node_access(profile.nodes)
    allowed = {node: _of_node(node, access, effective, namespace) for node, access in accesses.items()}
    root = ElementTree.Element("policy", version="0.2.0")  # of the schema
    enclaves = ElementTree.SubElement(root, "enclaves")
    for nodes in profile.processes():
        _add_enclave(enclaves, namespace, "_".join(nodes), {node: allowed[node] for node in nodes})
    _add_enclave(enclaves, namespace, TOOLS, {TOOLS: _of_tools(allowed.values(), namespace)})
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _of_node(node: str, access: Access, effective: EffectiveParameters, namespace: str) -> Access:
    """Move a node's names into the namespace, with the profile's inputs in place of those that it has by default."""
    allowed = {
        rule: {namespace + name.removeprefix(NAMESPACE) if name.startswith(f"{NAMESPACE}/") else name for name in names}
        for rule, names in access.items()
    }
    inputs = [read for read in inputs_of(effective.parameters, namespace) if read.node == node]
    if inputs:
        own = (f"{namespace}/", "/parameter_events")
        allowed["subscribe"] = {name for name in allowed["subscribe"] if name.startswith(own)}
        allowed["subscribe"] |= {read.topic for read in inputs}
    for read in inputs:
        if read.topic.endswith("/tracked"):  # each person and voice has topics of its own
            allowed["subscribe"] |= {f"{read.topic.rsplit('/', 2)[0]}/*", "/tf", "/tf_static"}
    parameters = effective.parameters.get(node, {})
    if node == "bag_recorder":
        allowed["subscribe"] |= {"/*" if topic == "*" else topic for topic in parameters["topics"]}
    if parameters.get("publish_hri"):
        allowed["publish"].add(f"{parameters['humans']}/{'voices' if node == 'ears' else 'faces'}/*")
    if parameters.get("bond"):
        allowed["publish"].add(f"{namespace}/bond")
        allowed["subscribe"].add(f"{namespace}/bond")
    if node == "bag_player":
        allowed["publish"].add("/*")
    allowed["subscribe"].add("/clock")  # under use_sim_time
    allowed["publish"] |= {"/rosout", "~/transition_event"}  # of rcl, which no client library lists
    return allowed


def _of_tools(nodes: Iterable[Access], namespace: str) -> Access:
    """Return what commands do: read all topics of the nodes, and ask all their services."""
    served = list(nodes)
    return {
        "publish": {"/rosout", "/parameter_events"},
        "subscribe": {f"{namespace}/*", "/parameter_events"}.union(*(access["subscribe"] for access in served)),
        "reply": {"/*/get_type_description", "/*_parameter*"},  # which every node serves
        "request": {name for access in served for name in access["reply"]},
        "call": {name for access in served for name in access["execute"]},
    }


def _add_enclave(enclaves: ElementTree.Element, namespace: str, process: str, nodes: Mapping[str, Access]) -> None:
    enclave = ElementTree.SubElement(enclaves, "enclave", path=f"{namespace}/{process}")
    profiles = ElementTree.SubElement(enclave, "profiles")
    for node, access in nodes.items():
        profile = ElementTree.SubElement(profiles, "profile", ns=namespace, node=node)
        for kind, rule in ((kind, rule) for kind, rules in RULES.items() for rule in rules if access.get(rule)):
            group = ElementTree.SubElement(profile, f"{kind}s", {rule: "ALLOW"})
            for name in sorted(access[rule]):
                ElementTree.SubElement(group, kind).text = name
