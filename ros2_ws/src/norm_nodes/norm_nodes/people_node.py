"""The people node: tracked people of the robot (REP-155) in, presence out."""

import time
from collections.abc import Callable, Iterable
from functools import partial
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
from norm_nodes.tracked_ids import (
    EITHER_DURABILITY,
    FACES_TRACKED,
    HUMANS_PATTERN,
    IDS_TYPE,
    ROI_TYPE,
    STRING_TYPE,
    TrackedIds,
)

# How often ids are looked for and silence is noticed.
WATCH_S = 0.5
ENGAGEMENT_TYPE = "hri_msgs/msg/EngagementLevel"
GAZE_TYPE = "hri_msgs/msg/Gaze"
TF_TYPE = "tf2_msgs/msg/TFMessage"

TF_STATIC = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)
TF = QoSProfile(depth=100)


class PeopleNodeConfig(NodeConfig, PeopleConfig):
    """The parameters of the node people."""

    humans: str = Field(default="/humans", pattern=HUMANS_PATTERN, description="namespace of tracked people")
    ids_type: str = Field(default=IDS_TYPE, min_length=1, description="type of persons/tracked and faces/tracked")
    stale_after_s: float = Field(
        default=3.0,
        ge=0,
        le=600,
        description="time without any message until the input is stale; 0 for never",
        json_schema_extra=LIVE,
    )


class PeopleNode(NormNode[PeopleNodeConfig]):
    """Publish presence from the people that the robot's own recognizers track, instead of from faces.

    It subscribes only while it is active. Set the camera's `faces` to false.
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
        self._faces_topic = f"{config.humans}/{FACES_TRACKED}"
        self._roi_class = self.find_class(ROI_TYPE, f"{config.humans}/faces/ID/roi", "")
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
        humans, people = self.config.humans, PeopleAdapter(self.config, self._persons_topic)
        self._people = people
        names = ("anchor_frame", "engagement_status")
        self._persons = TrackedIds(self, f"{humans}/persons", names, self._subscribe_to_person, MAX_PERSONS)
        self._faces = TrackedIds(self, f"{humans}/faces", ("roi",), self._subscribe_to_face, MAX_PERSONS)
        self._last_message_s = time.monotonic()
        subscriptions: list[Subscription] = []
        for topic, of_faces in ((self._persons_topic, False), (self._faces_topic, True)):
            subscriptions += self._read(self._ids_class, topic, partial(self._on_ids, of_faces), EITHER_DURABILITY)
        subscriptions += self._read(self._gaze_class, f"{humans}/interactions/gazing", people.gaze, (SENSOR,))
        for topic, static, qos in (("/tf", False, TF), ("/tf_static", True, TF_STATIC)):
            subscriptions += self._read(self._tf_class, topic, partial(self._on_transforms, static), (qos,))
        self._active_subscriptions = subscriptions

    def stop(self) -> None:
        """Publish what is final, and end every subscription."""
        self._publish(self._people.flush())
        self._persons.close()
        self._faces.close()
        while self._active_subscriptions:
            self.destroy_subscription(self._active_subscriptions.pop())

    def _read(
        self,
        type_: Any,
        topic: str,
        read: Callable[[Any, int], Iterable[Presence] | None],
        profiles: Iterable[QoSProfile],
    ) -> list[Subscription]:
        def on_message(message: Any) -> None:
            if not self.is_active:
                return
            self._last_message_s = time.monotonic()
            self._people.set_rate(self.config.rate_hz)
            try:
                self._publish(read(message, self.clock.now_ns()) or ())
                self.health_log.clear_issue(f"messages on {topic}")
            except (NotPeopleError, ValueError, AttributeError) as error:
                self.health_log.count("messages_refused")
                self.health_log.state_issue(f"messages on {topic}", f"{topic}: a message was not used: {error}")
            for name, count in self._people.counts.items():
                self.health_log.count(name, count)
            self._people.counts.clear()

        return self.listen(type_, topic, on_message, profiles)

    def _publish(self, presences: Iterable[Presence]) -> None:
        for presence in presences:
            self._presence.publish(to_ros(presence))
            self.health_log.count("presences")

    def _on_ids(self, of_faces: bool, message: Any, arrival_ns: int) -> list[Presence]:
        presences = self._people.ids(message, arrival_ns, of_faces=of_faces)
        self._follow()
        return presences

    def _on_transforms(self, static: bool, message: Any, _: int) -> list[Presence]:
        return self._people.transforms(message, static)

    def _follow(self) -> None:
        self._persons.follow(self._people.tracked_ids)
        self._faces.follow(self._people.tracked_face_ids)

    def _subscribe_to_person(self, person_id: str, prefix: str) -> list[Subscription]:
        read_level = partial(self._people.engagement, person_id)
        levels = self._read(self._engagement_class, f"{prefix}/engagement_status", read_level, EITHER_DURABILITY)

        def read_anchor(message: Any, _: int) -> None:
            self._people.anchor(person_id, message)

        return levels + self._read(message_class(STRING_TYPE), f"{prefix}/anchor_frame", read_anchor, EITHER_DURABILITY)

    def _subscribe_to_face(self, face_id: str, prefix: str) -> list[Subscription]:
        return self._read(self._roi_class, f"{prefix}/roi", partial(self._people.face, face_id), EITHER_DURABILITY)

    def _watch(self) -> None:
        """Follow ids as they come and go, and report input that stopped; no presence depends on it."""
        if not self.is_active:
            return
        self._persons.find_published()
        self._follow()
        is_silent = 0 < self.config.stale_after_s < time.monotonic() - self._last_message_s
        has_persons, has_faces = map(self.count_publishers, (self._persons_topic, self._faces_topic))
        is_unpublished = not (has_persons or has_faces)
        remedy = "for distances, engagement and gaze, start hri_person_manager, which makes persons of faces"
        note = f"{self._persons_topic}: nobody lists persons, so the faces count; {remedy}"
        self.notes = (note,) if has_faces and not has_persons else ()
        if mismatch := self.describe_wrong_type(self._persons_topic, self.config.ids_type):
            why = f"because {mismatch}; correct ids_type or humans of people"
        elif is_unpublished:
            why = "because nobody publishes it; start the tracker of persons, check humans and ROS_DOMAIN_ID"
        else:
            why = "because its publisher has stopped sending, and so has tf; check the tracker of persons"
        absence = f"{self._persons_topic}: no persons arrive, {why}" if is_silent or is_unpublished else ""
        self.health_log.state_issue("people", absence, Health.STALE)
