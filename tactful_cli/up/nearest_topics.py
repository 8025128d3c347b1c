"""Which published topic an input probably means: one of this robot, of a type that the node reads."""

import difflib
from collections import Counter
from collections.abc import Sequence

from tactful_cli.up.inputs import STRING_TYPE, Input
from tactful_cli.up.profile import NAMESPACE
from tactful_cli.up.ros_tools import Survey, Topic


class NearestTopics:
    """The topics of this robot; those that no input of the profile names come first."""

    def __init__(self, inputs: Sequence[Input], survey: Survey, node_namespace: str) -> None:
        self.namespace = node_namespace.removesuffix(f"/{NAMESPACE}")
        self._survey = survey
        named = {each.topic.removeprefix(self.namespace) for each in inputs}
        prefixes = Counter(
            topic.name.removesuffix(name) for topic in survey.topics for name in named if topic.name.endswith(name)
        )
        others = {prefix for prefix, count in prefixes.items() if count > 1}  # one alone may be a folder of this robot
        for topic in survey.topics:
            others |= {each.partition(f"/{NAMESPACE}/")[0] for each in topic.publishers if f"/{NAMESPACE}/" in each}
        foreign = tuple(f"{prefix}/" for prefix in others - {"", self.namespace})
        self._used = {each.topic for each in inputs}
        self._foreign = foreign
        self._topics = [
            topic
            for topic in survey.topics
            if topic.name.startswith(f"{self.namespace}/") and not topic.name.startswith(foreign)
        ]

    @property
    def texts(self) -> list[str]:
        """The topics of strings, which may be those of a recogniser."""
        return [topic.name for topic in self._topics if STRING_TYPE in topic.types]

    def of(self, wanted: Input) -> Topic | None:
        """Return the topic of the nearest name, of the type that is read or else of one that can be read."""
        alike = [topic for topic in self._topics if wanted.type_name in topic.types]
        if not alike and "" not in wanted.readable:  # where any type will do, none points to the topic
            alike = [topic for topic in self._topics if is_readable(wanted, topic)]
        alike = [topic for topic in alike if topic.name not in self._used] or alike
        nearest = difflib.get_close_matches(wanted.topic, [topic.name for topic in alike], 1, cutoff=0.0)
        return next((topic for topic in alike if topic.name in nearest), None)

    def other_robot_with(self, wanted: Input) -> str:
        """Return the same topic of another robot, which may be this one without its namespace; else an empty string."""
        names = (topic.name for topic in self._survey.topics if topic.name.startswith(self._foreign))
        return "" if self.namespace else next((name for name in names if name.endswith(wanted.topic)), "")


def is_readable(wanted: Input, topic: Topic) -> bool:
    """Whether the node reads the one type of a topic once its type is set."""
    return bool(wanted.type_parameter) and len(topic.types) == 1 and topic.types[0].endswith(wanted.readable)
