"""Records as the pages show them: plain JSON, with times in milliseconds from the session's start."""

import math
from collections.abc import Sequence
from typing import Any

from norm_core.records.decision import Decision, Veto
from norm_core.records.flag import SocialFlag
from norm_core.records.json_codec import to_plain
from norm_core.records.outcome import Outcome
from norm_core.records.presence import Presence
from norm_core.records.speech import Speaker, Utterance
from norm_core.runtime.time import NS_PER_MS, NS_PER_S

Item = dict[str, Any]

# Presence with a longer gap starts a new stretch.
_APART_NS = 5 * NS_PER_S


def ms_since(start_ns: int, stamp_ns: int) -> float:
    """Return a time in milliseconds from the session's start."""
    return round((stamp_ns - start_ns) / NS_PER_MS, 3)


def speech_item(said: Utterance, start_ns: int) -> Item:
    """Return an utterance for the speech lanes and the transcript."""
    known = said.speaker in (Speaker.ROBOT, Speaker.USER)
    return {
        "id": said.utterance_id,
        "who": said.speaker.value if known else "someone",
        "start": ms_since(start_ns, said.start_ns),
        "end": ms_since(start_ns, said.end_ns),
        "text": said.text,
        "locale": said.locale,
    }


def flag_item(flag: SocialFlag, start_ns: int, views: Sequence[int]) -> Item:
    """Return a flag with its measures; `views` number the cue behind each."""
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
        "probability": _share(flag.probability),
        "start": ms_since(start_ns, flag.onset_ns),
        "end": ms_since(start_ns, end_ns),
        "open": flag.offset_ns is None,
        "cue": flag.cue_id,
        "why": flag.rationale,
        "correction": flag.correction,
        "evidence": [
            {
                "measure": fact.measure,
                "value": _finite(fact.value),
                "threshold": _finite(fact.threshold),
                "weight": _finite(fact.weight),
                "unit": fact.unit,
                "utterance": fact.utterance_id,
                "quote": fact.quote,
                "view": views[number] if number < len(views) else 0,
            }
            for number, fact in enumerate(flag.evidence)
        ],
        "provenance": provenance,
    }


def decision_item(decision: Decision, start_ns: int) -> Item:
    """Return a decision with its candidates and their vetoes."""
    at = ms_since(start_ns, decision.decided_ns)
    return {
        "id": f"decision-{decision.decision_id}",
        "start": at,
        "end": at,
        "answered": decision.outcome is Outcome.ANSWERED,
        "outcome": decision.outcome.value,
        "chosen": decision.chosen,
        "why": decision.explanation,
        "candidates": [
            {
                "action": candidate.action,
                "probability": _share(candidate.probability),
                "veto": "" if candidate.veto is Veto.NONE else candidate.veto.value,
                "reason": candidate.veto_reason,
            }
            for candidate in decision.candidates
        ],
        "provenance": {"decision": decision.decision_id, "query": decision.query_id}
        | {key: value for key, value in to_plain(decision.provenance).items() if value and key != "latency"},
    }


class PresenceTrack:
    """Merge presence into stretches with a constant number and gaze of people, over all sources."""

    def __init__(self, start_ns: int) -> None:
        self._start_ns = start_ns
        self._latest: dict[str, Presence] = {}
        self._stretch: Item | None = None
        self._last_ns = 0
        self._count = 0

    def take(self, presence: Presence) -> list[Item]:
        """Return the stretches that this presence changed or began. Nobody is a stretch of no people."""
        self._latest[presence.source_topic] = presence
        now_ns, at = presence.stamp_ns, ms_since(self._start_ns, presence.stamp_ns)
        fresh = [one for one in self._latest.values() if now_ns - one.stamp_ns <= _APART_NS]
        people = max(max(len(one.faces), len(one.persons)) for one in fresh)
        faces = [face for one in fresh for face in one.faces]
        away = bool(faces) and all(face.looking_away for face in faces)
        before = self._stretch if now_ns - self._last_ns <= _APART_NS else None
        self._last_ns = now_ns
        changed = []
        if before:
            before["end"] = max(before["end"], at)
            changed.append(before)
        if not before or (before["people"], before["away"]) != (people, away):
            self._count += 1
            self._stretch = {"id": f"presence-{self._count}", "start": at, "end": at, "people": people, "away": away}
            changed.append(self._stretch)
        return changed


def presence_stretches(presences: Sequence[Presence], start_ns: int) -> list[Item]:
    """Return the stretches of a whole session in which somebody was present."""
    track = PresenceTrack(start_ns)
    found = {stretch["id"]: stretch for presence in presences for stretch in track.take(presence)}
    return [stretch for stretch in found.values() if stretch["people"]]


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _share(value: float) -> float:
    return round(value, 3) if math.isfinite(value) else 0
