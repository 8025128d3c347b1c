"""Transcripts of external recognizers as utterances: REP-155 LiveSpeech with is_speaking, or any transcript."""

from typing import Any

from norm_core.records.speech import Speaker, Timing, Utterance
from norm_core.records.stamps import join_stamp
from norm_core.runtime.time import NS_PER_S

# An edge of speech that is older than this says nothing about the times of a text.
_MAX_EDGE_AGE_NS = 30 * NS_PER_S
# The longest delay of a text behind its speech.
LATENESS_NS = 2 * NS_PER_S


class NotSpeechError(ValueError):
    """A message has none of the fields that recognizers use for their text."""


class LiveSpeechAdapter:
    """The texts of one voice, with their times by is_speaking, in order of arrival."""

    def __init__(self, source_topic: str, lateness_ns: int = LATENESS_NS) -> None:
        """Prepare for texts that come at most `lateness_ns` after their speech."""
        self._source_topic = source_topic
        self._lateness_ns = lateness_ns
        self._onset_ns: int | None = None
        self._offset_ns: int | None = None
        self.has_edges = False
        self._has_text = False  # whether the text of the latest speech came after its end
        self._text_count = 0

    def quiet_until_ns(self, now_ns: int) -> int:
        """Return the stamp before which no later text starts, if texts keep to the lateness."""
        if not self.has_edges:
            return now_ns - self._lateness_ns
        if self._onset_ns is None or now_ns - self._onset_ns > _MAX_EDGE_AGE_NS:
            return now_ns
        is_due = self._offset_ns is None or (not self._has_text and now_ns - self._offset_ns <= self._lateness_ns)
        return self._onset_ns if is_due else now_ns

    def set_speaking(self, speaking: bool, stamp_ns: int) -> None:
        """Add a start or an end of speech. A repeated state changes nothing."""
        self.has_edges = True
        under_way = self._onset_ns is not None and self._offset_ns is None
        if speaking and not under_way:
            self._onset_ns = stamp_ns
            self._offset_ns = None
            self._has_text = False
        elif not speaking and under_way:
            self._offset_ns = stamp_ns

    def take_text(self, message: Any, arrival_ns: int, speaker_id: str = "") -> Utterance | None:
        """Return the utterance in a LiveSpeech or transcript; None if it is empty.

        Raises NotSpeechError for a message without a text.
        """
        final_text, partial_text = _read_texts(message)
        text = final_text or partial_text
        if not text:
            return None
        header = getattr(message, "header", None)
        stamp_ns = join_stamp(int(header.stamp.sec), int(header.stamp.nanosec)) if header else 0
        stamp_ns = stamp_ns or arrival_ns
        start_ns, end_ns, timing = self._find_times(stamp_ns, bool(final_text))
        if final_text:
            self._text_count += 1
            self._has_text = self._offset_ns is not None
        confidence = float(getattr(message, "confidence", 0.0))
        return Utterance(
            stamp_ns=start_ns,
            frame_id=str(header.frame_id) if header else "",
            utterance_id=f"{self._source_topic}@{start_ns}#{self._text_count - bool(final_text)}",
            speaker=Speaker.USER,
            speaker_id=speaker_id,
            text=text,
            locale=_read_locale(message),
            start_ns=start_ns,
            end_ns=end_ns,
            confidence=confidence if 0.0 < confidence <= 1.0 else None,
            final=bool(final_text),
            timing=timing,
            source_topic=self._source_topic,
        )

    def _find_times(self, stamp_ns: int, final: bool) -> tuple[int, int, Timing]:
        """Return start and end of a text, and how they were measured."""
        if self._onset_ns is None or not 0 <= stamp_ns - self._onset_ns <= _MAX_EDGE_AGE_NS:
            return stamp_ns, stamp_ns, Timing.ABSENT
        has_end = final and self._offset_ns is not None and self._offset_ns >= self._onset_ns
        end_ns = self._offset_ns if has_end and self._offset_ns is not None else stamp_ns
        # The edges have no stamps, so their arrival times count.
        return self._onset_ns, end_ns, Timing.ARRIVAL


def _read_texts(message: Any) -> tuple[str, str]:
    """Return the final and the partial text. A transcript is final unless it states otherwise."""
    if hasattr(message, "final") and hasattr(message, "incremental"):
        return str(message.final).strip(), str(message.incremental).strip()
    for name in ("text", "transcript", "data"):
        text = getattr(message, name, None)
        if isinstance(text, str):
            return text.strip(), ""
    raise NotSpeechError(f"{type(message).__name__} has none of the fields of a transcript")


def _read_locale(message: Any) -> str:
    """Return the locale. LiveSpeech 2.0 has language, 2.1 locale and language, and others have locale alone."""
    locale = getattr(message, "locale", "") or getattr(message, "language", "")
    return str(locale).replace("_", "-")
