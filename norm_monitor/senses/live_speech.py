"""REP-155 voices: LiveSpeech texts, timed by the edges of is_speaking, as utterances."""

from typing import Any

from norm_core.speech import Speaker, Timing, Utterance
from norm_core.time import NS_PER_S, join_stamp

# An edge this long before a text does not time it.
_STALE_NS = 30 * NS_PER_S


class LiveSpeechAdapter:
    """One voice: feed it is_speaking and LiveSpeech messages as they come."""

    def __init__(self, source_topic: str, voice_id: str = "") -> None:
        self._source_topic, self._voice_id = source_topic, voice_id
        self._onset_ns: int | None = None
        self._offset_ns: int | None = None
        self._texts = 0

    def is_speaking(self, speaking: bool, stamp_ns: int) -> None:
        """Takes an edge; the same state again changes nothing."""
        under_way = self._onset_ns is not None and self._offset_ns is None
        if speaking and not under_way:
            self._onset_ns, self._offset_ns = stamp_ns, None
        elif not speaking and under_way:
            self._offset_ns = stamp_ns

    def live_speech(self, message: Any, arrival_ns: int) -> Utterance | None:
        """The utterance in a LiveSpeech; None where it says nothing."""
        final_text, partial_text = str(message.final).strip(), str(message.incremental).strip()
        text = final_text or partial_text
        if not text:
            return None
        stamp_ns = join_stamp(int(message.header.stamp.sec), int(message.header.stamp.nanosec)) or arrival_ns
        start_ns, end_ns, timing = self._times(stamp_ns, bool(final_text))
        if final_text:
            self._texts += 1
        confidence = float(message.confidence)
        return Utterance(
            stamp_ns=start_ns,
            frame_id=str(message.header.frame_id),
            utterance_id=f"{self._source_topic}@{start_ns}#{self._texts - bool(final_text)}",
            speaker=Speaker.USER,
            speaker_id=self._voice_id,
            text=text,
            locale=_locale(message),
            start_ns=start_ns,
            end_ns=end_ns,
            confidence=confidence if 0.0 < confidence <= 1.0 else None,
            final=bool(final_text),
            timing=timing,
            source_topic=self._source_topic,
        )

    def _times(self, stamp_ns: int, final: bool) -> tuple[int, int, Timing]:
        if self._onset_ns is None or not 0 <= stamp_ns - self._onset_ns <= _STALE_NS:
            return stamp_ns, stamp_ns, Timing.ABSENT
        ended = final and self._offset_ns is not None and self._offset_ns >= self._onset_ns
        end_ns = self._offset_ns if ended and self._offset_ns is not None else stamp_ns
        # The edges carry no stamp of their own, so they are timed by their arrival.
        return self._onset_ns, end_ns, Timing.ARRIVAL


def _locale(message: Any) -> str:
    """Version 2.0 has language, 2.1 locale and language, others locale alone."""
    given = getattr(message, "locale", "") or getattr(message, "language", "")
    return str(given).replace("_", "-")
