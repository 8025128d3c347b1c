"""The voices of REP-155: the words of each, and the person whose voice it is."""

from typing import Any

from norm_core.records.speech import Utterance
from norm_core.records.stamps import join_stamp
from norm_core.runtime.time import NS_PER_S
from norm_monitor.senses.speech.external_recognizer import LATENESS_NS, LiveSpeechAdapter

# The topics below the namespace of humans that tell who says what.
VOICE_TOPICS = r"voices/tracked|voices/\w+/(?:speech|is_speaking)|persons/\w+/voice_id|candidate_matches"
VOICE_TEXTS = "voices/{}/speech"  # {} stands for the id of the voice
# PAL's recognizers give the words of everybody under this id, so that it is nobody's.
ANONYMOUS_VOICE, ANONYMOUS_PERSONS = "anonymous_speaker", "anonymous_"
MAX_VOICES, MAX_MATCHES = 64, 512
MIN_CONFIDENCE = 0.5  # below it, hri_person_manager does not connect a voice with a person either
# A list this much older than the newest belongs to another timeline.
_JUMP_NS = 60 * NS_PER_S
_PERSON, _VOICE = 1, 4  # types of ids in IdsMatch


class VoiceOwners:
    """Whose voice is whose: as persons/ID/voice_id states, or else by the likeliest candidate match."""

    def __init__(self) -> None:
        self._voices: dict[str, str] = {}  # by person, the newest statement last
        self._matches: dict[tuple[str, str], float] = {}  # by voice and person

    def state(self, person_id: str, voice_id: str) -> None:
        """Set the voice of a person, empty for none."""
        if self._voices.get(person_id, "") == voice_id:
            return
        self._voices.pop(person_id, None)
        if voice_id:
            self._voices[person_id] = voice_id
        _drop_oldest(self._voices, MAX_MATCHES)

    def match(self, message: Any) -> None:
        """Add an IdsMatch; one without a voice and a person changes nothing."""
        ids = {int(message.id1_type): str(message.id1), int(message.id2_type): str(message.id2)}
        pair = ids.get(_VOICE, ""), ids.get(_PERSON, "")
        if all(pair):
            self._matches.pop(pair, None)
            self._matches[pair] = float(message.confidence)
            _drop_oldest(self._matches, MAX_MATCHES)

    def person_of(self, voice_id: str) -> str:
        """Return the id of the person whose voice it is, or an empty one."""
        stated = [person for person, voice in self._voices.items() if voice == voice_id and _is_owner(person, voice)]
        if stated:
            return stated[-1]
        likely = {
            person: confidence
            for (voice, person), confidence in self._matches.items()
            if voice == voice_id and confidence > MIN_CONFIDENCE and _is_owner(person, voice)
        }
        return max(likely, key=lambda person: (likely[person], person), default="")


class Voices:
    """One recognizer's words by voice, in order of arrival; a recognizer of one voice gives it the empty id."""

    def __init__(self, topic: str, lateness_ns: int = LATENESS_NS) -> None:
        """In the `topic` of texts, {} stands for the id of the voice."""
        self._topic, self._lateness_ns = topic, lateness_ns
        self.owners = VoiceOwners()
        self._adapters: dict[str, LiveSpeechAdapter] = {}
        self._speakers: dict[str, str] = {}  # by voice, the person who began to speak with it
        self._has_edges = False  # whether is_speaking comes, so that a voice without it is silent
        self._listed_ns = 0

    def quiet_until_ns(self, now_ns: int) -> int:
        """No later text of any voice starts before this stamp, if texts keep to the lateness."""
        adapters = [adapter for adapter in self._adapters.values() if adapter.has_edges or not self._has_edges]
        quiet_ns = [adapter.quiet_until_ns(now_ns) for adapter in adapters]
        return min(quiet_ns, default=now_ns if self._has_edges else now_ns - self._lateness_ns)

    def is_speaking(self, speaking: bool, stamp_ns: int, voice_id: str = "") -> None:
        """Add a start or end of speech of one voice."""
        self._has_edges = True
        self._get_adapter(voice_id).is_speaking(speaking, stamp_ns)
        self._find_speaker(voice_id, begins=speaking)

    def take_text(self, message: Any, arrival_ns: int, voice_id: str = "") -> Utterance | None:
        """Return the utterance in a text of one voice, None if it is empty; NotSpeechError without a text field."""
        return self._get_adapter(voice_id).take_text(message, arrival_ns, self._find_speaker(voice_id))

    def track(self, message: Any, arrival_ns: int) -> bool:
        """Read the list of tracked voices, and end the speech of all others. Returns False for an outdated list."""
        stamp_ns = join_stamp(int(message.header.stamp.sec), int(message.header.stamp.nanosec)) or arrival_ns
        if 0 < self._listed_ns - stamp_ns < _JUMP_NS:
            return False
        self._listed_ns = stamp_ns
        for voice_id, adapter in self._adapters.items():
            if voice_id not in message.ids and adapter.has_edges:
                adapter.is_speaking(False, arrival_ns)
        return True

    def _get_adapter(self, voice_id: str) -> LiveSpeechAdapter:
        topic = self._topic.replace("{}", voice_id)
        adapter = self._adapters.pop(voice_id, None) or LiveSpeechAdapter(topic, lateness_ns=self._lateness_ns)
        self._adapters[voice_id] = adapter
        for dropped in _drop_oldest(self._adapters, MAX_VOICES):
            self._speakers.pop(dropped, None)
        return adapter

    def _find_speaker(self, voice_id: str, *, begins: bool = False) -> str:
        """Return who speaks. A person stays known until the next speech, as a text may follow the end of a match."""
        earlier = "" if begins else self._speakers.get(voice_id, "")
        speaker = self._speakers[voice_id] = self.owners.person_of(voice_id) or earlier
        return speaker or ("" if voice_id == ANONYMOUS_VOICE else voice_id)


def _is_owner(person_id: str, voice_id: str) -> bool:
    # A tracker of persons also makes one up for the voice that is everybody's.
    return not (voice_id == ANONYMOUS_VOICE and person_id.startswith(ANONYMOUS_PERSONS))


def _drop_oldest(table: dict[Any, Any], limit: int) -> list[Any]:
    oldest = list(table)[: max(0, len(table) - limit)]
    for key in oldest:
        del table[key]
    return oldest
