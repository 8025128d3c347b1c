"""The monitor in a replay: queries and episodes end windows."""

from norm_nodes.monitor_node import MonitorNode, MonitorNodeConfig

from norm_bench.drain import DrainReporter
from norm_core.records.episode import Episode, Query
from norm_core.records.topics import EPISODES_TOPIC, QUERIES_TOPIC


class QueriedMonitor(DrainReporter[MonitorNodeConfig], MonitorNode):
    """Publish flags as the robot's monitor does."""

    def subscribe_senses(self) -> None:
        """Subscribe to queries and episodes too."""
        super().subscribe_senses()
        self.listen_to(Episode, EPISODES_TOPIC, "an episode's end is an event too")
        self.listen_to(Query, QUERIES_TOPIC, "an event, whose window ends at it")
