"""Decisions as intents of REP-155."""

import json
from typing import Any

from norm_core.records.decision import Decision
from norm_nodes.base.convert import TypeMissingError, message_class

# The message moved from one package to the other.
TYPES = ("hri_actions_msgs/msg/Intent", "hri_msgs/msg/Intent")
RECOMMENDED = "RECOMMENDED_ACTION"  # not a standard intent: a subscriber that knows only those ignores it
PRIORITY = 128  # the default of the range 0 to 255


def intent_class() -> Any:
    """Import the message class. Raises TypeMissingError, which names the package to install."""
    try:
        return message_class(TYPES[0])
    except TypeMissingError as missing:
        try:
            return message_class(TYPES[1])
        except TypeMissingError:
            raise missing from None


def intent_of(decision: Decision, message_type: Any) -> Any:
    """Convert a decision to the robot's own intent. Its confidence is the decision's probability."""
    if decision.chosen_index is None:
        raise ValueError(f"decision {decision.decision_id} chooses nothing to be an intent")
    message = message_type()
    # Newer definitions name this field `action`.
    setattr(message, "intent" if hasattr(message, "intent") else "action", RECOMMENDED)
    other = {"decision_id": decision.decision_id, "query_id": decision.query_id}
    message.data = json.dumps({"object": decision.chosen, "other_data": other}, ensure_ascii=False)
    message.source = getattr(message_type, "ROBOT_ITSELF", "__myself__")
    message.modality = getattr(message_type, "MODALITY_INTERNAL", "__modality_internal__")
    message.priority = PRIORITY
    message.confidence = decision.candidates[decision.chosen_index].probability
    return message
