"""Read the topics of a bag by other names."""

from collections.abc import Iterable

from norm_core.bags.errors import BagError
from norm_core.records.record import record


@record
class TopicNames:
    """Pairs of an old and a new name. An old name that ends in / stands for all topics below it."""

    pairs: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, rules: Iterable[str]) -> "TopicNames":
        """Parse rules such as /mic=/audio and /robot1/=/. Raises BagError."""
        pairs = []
        for rule in rules:
            old, _, new = rule.partition("=")
            if not (old.startswith("/") and new.startswith("/") and old.endswith("/") == new.endswith("/")):
                raise BagError(
                    f"{rule}: renames no topic; write FROM=TO with full names, such as /mic=/audio or /robot1/=/"
                )
            pairs.append((old, new))
        return cls(pairs=tuple(pairs))

    def rule_for(self, topic: str) -> tuple[str, str] | None:
        """Return the pair that applies to a topic: the longest old name."""
        fitting = (
            pair for pair in self.pairs if topic == pair[0] or (pair[0].endswith("/") and topic.startswith(pair[0]))
        )
        return max(fitting, key=lambda pair: len(pair[0]), default=None)

    def idle(self, topics: Iterable[str]) -> list[str]:
        """List the old names of the rules that apply to none of the topics."""
        rules = {self.rule_for(topic) for topic in topics}
        return [pair[0] for pair in self.pairs if pair not in rules]

    def new_name(self, topic: str) -> str:
        """Return the name by which a topic is read."""
        rule = self.rule_for(topic)
        return rule[1] + topic.removeprefix(rule[0]) if rule else topic

    def check(self, topics: Iterable[str]) -> None:
        """Raise BagError where two topics of a bag would be read by one name."""
        by_name: dict[str, str] = {}
        for topic in topics:
            other = by_name.setdefault(self.new_name(topic), topic)
            if other != topic:
                raise BagError(f"{topic} and {other} would both be read as {self.new_name(topic)}; choose another name")
