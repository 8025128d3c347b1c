"""What people say as a voice of REP-155, for robots whose own recognizer publishes none."""

from std_msgs.msg import Bool

from norm_core.records.speech import Speaker, Utterance
from norm_monitor.senses.speech.voices import ANONYMOUS_VOICE
from norm_nodes.base.endpoint import EVENTS, LATCHED
from norm_nodes.base.endpoint_node import EndpointNode
from norm_nodes.tracked_ids import IDS_TYPE, SPEECH_TYPE, VOICES_TRACKED


class HriVoice:
    """Publish everybody's words as those of one voice, because ears do not tell voices apart."""

    def __init__(self, node: EndpointNode, humans: str) -> None:
        """Advertise below the namespace `humans`, and list the voice. Raises ConfigError without hri_msgs."""
        ids_class = node.require_class(IDS_TYPE, "publish_hri")
        self._speech_class = node.require_class(SPEECH_TYPE, "publish_hri")
        voice = f"{humans}/voices/{ANONYMOUS_VOICE}"
        tracked = node.advertise(ids_class, f"{humans}/{VOICES_TRACKED}", LATCHED, "the one voice, for publish_hri")
        self._state = node.advertise(Bool, f"{voice}/is_speaking", EVENTS, "whether somebody speaks, for publish_hri")
        self._speech = node.advertise(self._speech_class, f"{voice}/speech", EVENTS, "what is said, for publish_hri")
        self._is_speaking = False
        self._clock = node.get_clock()
        ids = ids_class(ids=[ANONYMOUS_VOICE])
        ids.header.stamp = self._clock.now().to_msg()
        tracked.publish(ids)

    def set_speaking(self, *, is_speaking: bool) -> None:
        """Publish that somebody begins or ends to speak."""
        if is_speaking != self._is_speaking:
            self._is_speaking = is_speaking
            self._state.publish(Bool(data=is_speaking))

    def publish_words(self, utterance: Utterance) -> None:
        """Publish the partial or final text of people."""
        if utterance.speaker is Speaker.ROBOT or not utterance.text:
            return
        speech = self._speech_class(confidence=utterance.confidence or 0.0)
        speech.header.stamp = self._clock.now().to_msg()  # is_speaking has no stamp, so it is compared with arrivals
        setattr(speech, "final" if utterance.final else "incremental", utterance.text)
        setattr(speech, "locale" if hasattr(speech, "locale") else "language", utterance.locale)
        self._speech.publish(speech)
