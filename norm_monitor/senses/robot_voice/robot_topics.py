"""Which topics tell of a robot's speech."""

from collections.abc import Collection, Iterable

# An action's states, feedback and goals. ROS 2 publishes its goals only where service introspection is on.
_ACTION_TOPICS = ("_action/status", "_action/feedback", "_action/send_goal/_service_event")
# Types whose topics are worth trying as the robot's speech.
_LIKELY_TYPES = ("std_msgs/msg/String", "/ClosedCaption", "/SoundRequest", "/TTS_FeedbackMessage", "/RobotSpeech")


def expand_topics(named: Iterable[str], present: Collection[str]) -> list[str]:
    """Replace the name of an action by its topics among those that are present; keep all other names."""
    found: list[str] = []
    for name in named:
        of_action = [topic for ending in _ACTION_TOPICS if (topic := f"{name}/{ending}") in present]
        found += [name] if name in present or not of_action else of_action
    return found


def is_likely_type(type_name: str) -> bool:
    """Whether topics of a type are often the robot's words."""
    return type_name.endswith(_LIKELY_TYPES)
