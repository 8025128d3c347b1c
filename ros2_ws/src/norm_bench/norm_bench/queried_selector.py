"""The selector in a replay, which also answers the queries of suites about actions."""

from norm_nodes.base.convert import to_ros
from norm_nodes.base.endpoint import EVENTS
from norm_nodes.selector_node import SelectorNode, SelectorNodeConfig

from action_selector.selector import Recommendation
from norm_bench.drain import DrainReporter
from norm_core.records.episode import Answer, Episode, Query
from norm_core.records.topics import ANSWERS_TOPIC, EPISODES_TOPIC, QUERIES_TOPIC


class QueriedSelector(DrainReporter[SelectorNodeConfig], SelectorNode):
    """Answer goals as the robot's selector does, and queries."""

    def subscribe_senses(self) -> None:
        """Subscribe to queries and episodes too, and advertise answers."""
        super().subscribe_senses()
        self._answers = self.advertise(Answer, ANSWERS_TOPIC, EVENTS, "answers to queries, by the decisions on them")
        self.subscribe(Episode, EPISODES_TOPIC, self.decide_on(Episode), EVENTS, "where a replayed item begins")
        self.subscribe(
            Query, QUERIES_TOPIC, self.decide_on(Query), EVENTS, "questions of replayed suites about actions"
        )

    def publish(self, recommended: Recommendation) -> None:
        """Publish a decision, and the answer to its query."""
        super().publish(recommended)
        if recommended.answer:
            self._answers.publish(to_ros(recommended.answer))
