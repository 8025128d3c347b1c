"""Subscriptions to the voices of REP-155, and to the topics that state whose voice each is."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from rclpy.qos import QoSProfile
from rclpy.subscription import Subscription

from norm_monitor.senses.speech.voices import MAX_VOICES
from norm_nodes.base.convert import message_class
from norm_nodes.base.endpoint import SENSOR
from norm_nodes.base.endpoint_node import EndpointNode
from norm_nodes.tracked_ids import BOOL_TYPE, EITHER_DURABILITY, IDS_TYPE, STRING_TYPE, VOICES_TRACKED, TrackedIds

MATCH_TYPE = "hri_msgs/msg/IdsMatch"


class VoiceTopics:
    """The texts and voice activity of each tracked voice, and the owners of voices. Call `update` regularly."""

    def __init__(self, node: EndpointNode, humans: str, words_type: str, receive: Callable[[str, Any], object]) -> None:
        """Subscribe below the namespace `humans`; `receive` gets the topic below it, and the message."""
        self._node = node
        self._humans = humans
        self._receive = receive
        self.list_topic = f"{humans}/{VOICES_TRACKED}"
        self.tracked: tuple[str, ...] = ()
        self._words_class = node.find_class(words_type, f"{humans}/voices/ID/speech", "words_type")
        names = ("speech", "is_speaking")
        self._voices = TrackedIds(node, f"{humans}/voices", names, self._subscribe_to_voice, MAX_VOICES)
        self._owners = TrackedIds(node, f"{humans}/persons", ("voice_id",), self._subscribe_to_owner, MAX_VOICES)
        for type_name, topic, profiles in (
            (IDS_TYPE, self.list_topic, EITHER_DURABILITY),
            (MATCH_TYPE, f"{humans}/candidate_matches", (SENSOR,)),
        ):
            for subscription in self._listen(node.find_class(type_name, topic, ""), topic, profiles):
                node.on_release(partial(node.destroy_subscription, subscription))
        node.on_release(self._voices.close)
        node.on_release(self._owners.close)

    def update(self) -> None:
        """Follow voices and their owners as they come and go."""
        self._voices.find_published()
        self._voices.follow(self.tracked)
        self._owners.find_published()
        self._owners.follow(())

    def _on_message(self, topic: str, message: Any) -> None:
        if topic == VOICES_TRACKED:
            self.tracked = tuple(filter(None, message.ids))
            if beyond := max(0, len(self.tracked) - MAX_VOICES):
                self._node.health_log.count("voices_over_limit", beyond)
            self._voices.follow(self.tracked)
        self._receive(topic, message)

    def _subscribe_to_voice(self, _: str, prefix: str) -> list[Subscription]:
        texts = self._listen(self._words_class, f"{prefix}/speech", (SENSOR,))
        return texts + self._listen(message_class(BOOL_TYPE), f"{prefix}/is_speaking", (SENSOR,))

    def _subscribe_to_owner(self, _: str, prefix: str) -> list[Subscription]:
        return self._listen(message_class(STRING_TYPE), f"{prefix}/voice_id", EITHER_DURABILITY)

    def _listen(self, type_: Any, topic: str, profiles: Iterable[QoSProfile]) -> list[Subscription]:
        callback = partial(self._on_message, topic.removeprefix(f"{self._humans}/"))
        return self._node.listen(type_, topic, callback, profiles)
