"""Check the measured sensor offsets that a profile names: whether they fit its topics, and whether they drift."""

from collections.abc import Iterable

from norm_core.records.status import MonitorStatus
from norm_core.runtime.config import ConfigError
from norm_monitor.senses.sensor_offsets import DRIFT, SensorOffsets, listed
from tactful_cli.up.inputs import ROBOT_PARAMETERS, inputs_of
from tactful_cli.up.ros_tools import EffectiveParameters


def offset_problems(effective: EffectiveParameters, node_namespace: str) -> list[str]:
    """Say which named offsets cannot be loaded, or were measured on other topics."""
    inputs = inputs_of(effective.parameters, node_namespace)
    named = {node: str(parameters.get("sensor_offsets", "")) for node, parameters in effective.parameters.items()}
    problems = []
    try:
        for each in inputs:
            if each.node == "camera":
                SensorOffsets.camera_ns(named["camera"], each.topic)
    except ConfigError as error:
        problems.append(f"sensor_offsets of camera: {error}")
    try:
        SensorOffsets.robot_speech_ns(
            named.get("ears", ""), listed(each.topic for each in inputs if each.parameter in ROBOT_PARAMETERS)
        )
    except ConfigError as error:
        problems.append(f"sensor_offsets of ears: {error}")
    return problems


def drift_problems(statuses: Iterable[MonitorStatus], ears: str) -> tuple[list[str], str]:
    """Return the drift that running ears state, and otherwise a remark on what is known of it."""
    reasons = [one.reasons for one in statuses if one.node == ears]
    if not reasons:
        return [], "sensor offsets: cannot tell whether they drift, because ears do not run; check again while they do"
    drifted = [reason for reason in reasons[-1] if reason.startswith(DRIFT)]
    return drifted, "" if drifted else "sensor offsets: ears state no drift; they need six starts of the robot's speech"
