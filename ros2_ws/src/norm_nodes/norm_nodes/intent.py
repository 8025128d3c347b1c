"""Decisions as the intents of REP-155, in either of the definitions that are about."""

import json
from typing import Any

from norm_core.records.decision import Decision
from norm_nodes.convert import TypeMissingError, message_class

# The message has moved between packages.
TYPES = ("hri_actions_msgs/msg/Intent", "hri_msgs/msg/Intent")
RECOMMENDED = "RECOMMENDED_ACTION"  # none of the standing intents: whoever knows only those does nothing about it
PRIORITY = 128  # the default of 0 to 255


def intent_class() -> Any:
    """The class of the message, or a TypeMissingError that says what to install."""
    try:
        return message_class(TYPES[0])
    except TypeMissingError as missing:
        try:
            return message_class(TYPES[1])
        except TypeMissingError:
            raise missing from None


def intent_of(decision: Decision, message_type: Any) -> Any:
    """What was chosen, as the robot's own intent; its confidence is the decision's probability."""
    if decision.chosen_index is None:
        raise ValueError(f"decision {decision.decision_id} chooses nothing to be an intent")
    message = message_type()
    # Newer definitions call it action.
    setattr(message, "intent" if hasattr(message, "intent") else "action", RECOMMENDED)
    other = {"decision_id": decision.decision_id, "query_id": decision.query_id}
    message.data = json.dumps({"object": decision.chosen, "other_data": other}, ensure_ascii=False)
    message.source = getattr(message_type, "ROBOT_ITSELF", "__myself__")
    message.modality = getattr(message_type, "MODALITY_INTERNAL", "__modality_internal__")
    message.priority = PRIORITY
    message.confidence = decision.candidates[decision.chosen_index].probability
    return message
