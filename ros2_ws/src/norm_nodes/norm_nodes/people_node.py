"""The people node: tracked people of the robot (REP-155) in, presence out."""

import time
from collections.abc import Callable, Iterable
from typing import Any

from pydantic import Field
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.subscription import Subscription

from norm_core.records.presence import Presence
from norm_core.records.status import Health
from norm_core.records.topics import PRESENCE_TOPIC
from norm_core.runtime.config import LIVE
from norm_monitor.senses.people.adapter import MAX_PERSONS, NotPeopleError, PeopleAdapter, PeopleConfig
from norm_nodes.base.convert import message_class, to_ros
from norm_nodes.base.endpoint import EVENTS, SENSOR
from norm_nodes.base.norm_node import NodeConfig, NormNode
from norm_nodes.tracked_ids import EITHER_DURABILITY, HUMANS_PATTERN, IDS_TYPE, STRING_TYPE, TrackedIds

# How often ids are looked for and silence is noticed.
WATCH_S = 0.5
ENGAGEMENT_TYPE = "hri_msgs/msg/EngagementLevel"
GAZE_TYPE = "hri_msgs/msg/Gaze"
TF_TYPE = "tf2_msgs/msg/TFMessage"

_TF_STATIC = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)
_TF = QoSProfile(depth=100)


class PeopleNodeConfig(NodeConfig, PeopleConfig):
    """The parameters of the node people."""

    humans: str = Field(default="/humans", pattern=HUMANS_PATTERN, description="namespace of tracked people")
    ids_type: str = Field(default=IDS_TYPE, min_length=1, description="type of persons/tracked")
    stale_after_s: float = Field(
        default=3.0,
        ge=0,
        le=600,
        description="time without any message until the input is stale; 0 for never",
        json_schema_extra=LIVE,
    )


class PeopleNode(NormNode[PeopleNodeConfig]):
    """Publish presence from the people that the robot's own recognizers track, instead of from faces.

    While active, it reads `/humans/persons/tracked`, `engagement_status` and `anchor_frame` of each person,
    `/humans/interactions/gazing`, `/tf` and `/tf_static`. Set the camera's `faces` to false.
    """

    config_model = PeopleNodeConfig

    def __init__(self) -> None:
        super().__init__("people")
        self._active_subscriptions: list[Subscription] = []

    def open(self) -> None:
        """Advertise presence, find the message classes and start the watch timer."""
        config, persons = self.config, f"{self.config.humans}/persons"
        self._persons_topic = f"{persons}/tracked"
        self._ids_class = self.find_class(config.ids_type, self._persons_topic, "ids_type")
        status = f"{persons}/ID/engagement_status"
        self._engagement_class = self.find_class(ENGAGEMENT_TYPE, status, "")
        self._gaze_class = self.find_class(GAZE_TYPE, f"{config.humans}/interactions/gazing", "")
        self._tf_class = self.find_class(TF_TYPE, "/tf", "")
        self._presence = self.advertise(
            Presence, PRESENCE_TOPIC, EVENTS, "who is there, as tracked by the robot's recognizers"
        )
        advice = f"{self._presence.topic_name} has two publishers; set the camera's faces to false"
        self.watch_rivals(self._presence, advice)
        self.repeat(WATCH_S, self._watch)

    def start(self) -> None:
        """Subscribe to the tracked people, their gaze and the transforms."""
        config = self.config
        self._people = PeopleAdapter(config, self._persons_topic)
        names = ("anchor_frame", "engagement_status")
        namespace = f"{config.humans}/persons"
        self._persons = TrackedIds(self, namespace, names, self._subscribe_to_person, MAX_PERSONS)
        self._last_message_s = time.monotonic()
        self._subscribe_each(self._ids_class, self._persons_topic, self._on_ids, EITHER_DURABILITY)
        gazing = f"{config.humans}/interactions/gazing"
        self._subscribe_each(self._gaze_class, gazing, self._on_gaze, (SENSOR,))
        self._subscribe_each(self._tf_class, "/tf", self._on_transforms, (_TF,))
        self._subscribe_each(self._tf_class, "/tf_static", self._on_fixed_transforms, (_TF_STATIC,))

    def stop(self) -> None:
        """Publish what is final, and end every subscription."""
        self._publish(self._people.flush())
        self._persons.close()
        while self._active_subscriptions:
            self.destroy_subscription(self._active_subscriptions.pop())

    def _subscribe_each(
        self,
        type_: Any,
        topic: str,
        read: Callable[[Any], Iterable[Presence] | None],
        profiles: Iterable[QoSProfile],
        subscriptions: list[Subscription] | None = None,
    ) -> None:
        def on_message(message: Any) -> None:
            if not self.is_active:
                return
            self._last_message_s = time.monotonic()
            self._people.set_rate(self.config.rate_hz)
            try:
                self._publish(read(message) or ())
                self.health_log.clear_issue(f"messages on {topic}")
            except (NotPeopleError, ValueError, AttributeError) as error:
                self.health_log.count("messages_refused")
                self.health_log.state_issue(f"messages on {topic}", f"{topic}: a message was not used: {error}")
            for name, count in self._people.counts.items():
                self.health_log.count(name, count)
            self._people.counts.clear()

        (self._active_subscriptions if subscriptions is None else subscriptions).extend(
            self.listen(type_, topic, on_message, profiles)
        )

    def _publish(self, presences: Iterable[Presence]) -> None:
        for presence in presences:
            self._presence.publish(to_ros(presence))
            self.health_log.count("presences")

    def _on_ids(self, message: Any) -> list[Presence]:
        presences = self._people.ids(message, self.clock.now_ns())
        self._persons.follow(self._people.tracked_ids)
        return presences

    def _on_gaze(self, message: Any) -> list[Presence]:
        return self._people.gaze(message, self.clock.now_ns())

    def _on_transforms(self, message: Any) -> list[Presence]:
        return self._people.transforms(message)

    def _on_fixed_transforms(self, message: Any) -> list[Presence]:
        return self._people.transforms(message, static=True)

    def _subscribe_to_person(self, person_id: str, prefix: str) -> list[Subscription]:
        subscriptions: list[Subscription] = []
        self._subscribe_each(
            self._engagement_class,
            f"{prefix}/engagement_status",
            lambda message: self._people.engagement(person_id, message, self.clock.now_ns()),
            EITHER_DURABILITY,
            subscriptions,
        )
        self._subscribe_each(
            message_class(STRING_TYPE),
            f"{prefix}/anchor_frame",
            lambda message: self._people.anchor(person_id, message),
            EITHER_DURABILITY,
            subscriptions,
        )
        return subscriptions

    def _watch(self) -> None:
        """Follow ids as they come and go, and report input that stopped; no presence depends on it."""
        if not self.is_active:
            return
        self._persons.find_published()
        self._persons.follow(self._people.tracked_ids)
        is_silent = 0 < self.config.stale_after_s < time.monotonic() - self._last_message_s
        is_unpublished = not self.count_publishers(self._persons_topic)
        if is_unpublished and self.count_publishers(f"{self.config.humans}/faces/tracked"):
            why = "only faces; start hri_person_manager, which makes persons of faces, bodies and voices"
        elif mismatch := self.describe_wrong_type(self._persons_topic, self.config.ids_type):
            why = f"because {mismatch}; correct ids_type or humans of people"
        elif is_unpublished:
            why = "because nobody publishes it; start the tracker of persons, check humans and ROS_DOMAIN_ID"
        else:
            why = "because its publisher has stopped sending, and so has tf; check the tracker of persons"
        absence = f"{self._persons_topic}: no persons arrive, {why}" if is_silent or is_unpublished else ""
        self.health_log.state_issue("people", absence, Health.STALE)
