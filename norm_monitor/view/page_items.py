"""Records as the pages show them: plain JSON, with times in milliseconds from the session's start."""

import math
from typing import Any

from norm_core.records.decision import Decision, Veto
from norm_core.records.flag import SocialFlag
from norm_core.records.json_codec import to_plain
from norm_core.records.outcome import Outcome
from norm_core.records.presence import Presence
from norm_core.records.speech import SPEAKER_NAMES, Speaker, Utterance
from norm_core.runtime.time import NS_PER_MS, NS_PER_S
from norm_monitor.assessment.sightings import PRESENCE_VALID_NS

Item = dict[str, Any]

# Presence after a longer gap starts a new stretch.
_MAX_GAP_NS = 5 * NS_PER_S
MAX_VOICES = 1_000


def ms_since(start_ns: int, stamp_ns: int) -> float:
    """Return a time in milliseconds from the session's start."""
    return round((stamp_ns - start_ns) / NS_PER_MS, 3)


class VoiceNumbers:
    """The numbers of the users who speak, in the order of their first words. Their ids may be names."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, utterance: Utterance) -> int | None:
        """Return the number of a user; None for others, and for a user without an id."""
        if utterance.speaker is not Speaker.USER or not utterance.speaker_id:
            return None
        if utterance.speaker_id not in self._numbers and len(self._numbers) >= MAX_VOICES:
            return None
        return self._numbers.setdefault(utterance.speaker_id, len(self._numbers) + 1)


def make_speech_item(utterance: Utterance, start_ns: int, voices: VoiceNumbers) -> Item:
    """Return an utterance for the speech lanes and the transcript."""
    return {
        "id": utterance.utterance_id,
        "voice": voices.number(utterance),
        "who": SPEAKER_NAMES[utterance.speaker],
        "start": ms_since(start_ns, utterance.start_ns),
        "end": ms_since(start_ns, utterance.end_ns),
        "text": utterance.text,
        "locale": utterance.locale,
    }


def make_flag_item(flag: SocialFlag, start_ns: int) -> Item:
    """Return a flag with its facts."""
    end_ns = max(flag.onset_ns, flag.decision_ns) if flag.offset_ns is None else flag.offset_ns
    provenance: Item = {
        "event": flag.event_id,
        "cue": flag.cue_id,
        "tier": flag.tier.value,
        "kind of failure": flag.failure.value,
        "person": flag.person_id,
        "decided": f"{(flag.decision_ns - end_ns) / NS_PER_MS:.0f} ms after the end",
        "took": f"{flag.provenance.total_ns / NS_PER_MS:.1f} ms" if flag.provenance.latency else "",
        "closed late": "yes: outside parity" if flag.provenance.window_late else "",
    }
    plain = to_plain(flag.provenance)
    provenance |= {key: value for key, value in plain.items() if key not in ("latency", "window_late") and value}
    return {
        "id": flag.event_id,
        "polarity": flag.polarity.value,
        "attributes": [attribute.value for attribute in flag.attributes],
        "severity": flag.severity.value,
        "probability": _round_share(flag.probability),
        "least": _drop_infinite(flag.threshold),
        "base": _drop_infinite(flag.base_log_odds),
        "start": ms_since(start_ns, flag.onset_ns),
        "end": ms_since(start_ns, end_ns),
        "open": flag.offset_ns is None,
        "cue": flag.cue_id,
        "why": flag.rationale,
        "correction": flag.correction,
        "evidence": [
            {
                "measure": fact.measure,
                "value": _drop_infinite(fact.value),
                "threshold": _drop_infinite(fact.threshold),
                "weight": _drop_infinite(fact.weight),
                "unit": fact.unit,
                "utterance": fact.utterance_id,
                "quote": fact.quote,
            }
            for fact in flag.evidence
        ],
        "provenance": provenance,
    }


def make_decision_item(decision: Decision, start_ns: int) -> Item:
    """Return a decision with its candidates and their vetoes."""
    decided_ms = ms_since(start_ns, decision.decided_ns)
    return {
        "id": f"decision-{decision.decision_id}",
        "start": decided_ms,
        "end": decided_ms,
        "answered": decision.outcome is Outcome.ANSWERED,
        "outcome": decision.outcome.value,
        "chosen": decision.chosen,
        "choice": next(
            (index for index, candidate in enumerate(decision.candidates) if candidate.index == decision.chosen_index),
            None,
        ),
        "situation": decision.situation,
        "question": decision.question,
        "asker": decision.query_id,
        "why": decision.explanation,
        "candidates": [
            {
                "action": candidate.action,
                "probability": _round_share(candidate.probability),
                "veto": "" if candidate.veto is Veto.NONE else candidate.veto.value,
                "reason": candidate.veto_reason,
            }
            for candidate in decision.candidates
        ],
        "provenance": {"decision": decision.decision_id, "query": decision.query_id}
        | {key: value for key, value in to_plain(decision.provenance).items() if value and key != "latency"},
    }


class PresenceTrack:
    """The presence of all sources, merged into stretches with a constant number and gaze of people."""

    def __init__(self, start_ns: int) -> None:
        self._start_ns = start_ns
        self._latest: dict[str, Presence] = {}
        self._stretch: Item | None = None
        self._last_ns = 0
        self._count = 0

    def take(self, presence: Presence) -> list[Item]:
        """Return the stretches that this presence changed or began. Absence is a stretch without people."""
        self._latest[presence.source_topic] = presence
        now_ns = presence.stamp_ns
        now_ms = ms_since(self._start_ns, now_ns)
        recent = [other for other in self._latest.values() if now_ns - other.stamp_ns <= PRESENCE_VALID_NS]
        people = max(map(_count_people, recent))
        faces = [face for other in recent for face in other.faces]
        away = bool(faces) and all(face.looking_away for face in faces)
        before = self._stretch if now_ns - self._last_ns <= _MAX_GAP_NS else None
        self._last_ns = now_ns
        is_same = before is not None and (before["people"], before["away"]) == (people, away)
        changed = []
        # People who leave were there until a source last stated it.
        if before and (_count_people(presence) == people if is_same else people >= before["people"]):
            before["end"] = max(before["end"], now_ms)
            changed.append(before)
        if not is_same:
            self._count += 1
            self._stretch = {
                "id": f"presence-{self._count}",
                "start": now_ms,
                "end": now_ms,
                "people": people,
                "away": away,
            }
            changed.append(self._stretch)
        return changed


def _count_people(presence: Presence) -> int:
    return max(len(presence.faces), len(presence.persons))


def _drop_infinite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _round_share(value: float) -> float:
    return round(value, 3) if math.isfinite(value) else 0
