"""Make the report of a session: one HTML file that works offline and contacts no server."""

import base64
import hashlib
import html
import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from norm_core.records.decision import Decision, Veto
from norm_core.records.flag import Attribute, SocialFlag
from norm_core.records.json_codec import to_plain
from norm_core.records.outcome import Outcome
from norm_core.records.presence import Presence
from norm_core.records.speech import Speaker
from norm_core.runtime.data_files import shipped_file
from norm_core.runtime.time import NS_PER_MS, NS_PER_S
from norm_monitor.cues.finding import AT_MOST
from study_desk.coding.forms.sheet import sheet_of
from study_desk.log.recording import Recording

PAGE = shipped_file("study_desk.report", "page")
SCRIPTS = ("model", "timeline", "list", "details", "verdicts", "main")
# Presence with a longer gap starts a new stretch.
_APART_NS = 5 * NS_PER_S


def page(
    recording: Recording,
    frames: Mapping[str, Sequence[str]] | None = None,
    server: Mapping[str, Any] | None = None,
    notes: Sequence[str] = (),
) -> str:
    """Render the page. `frames` are data URLs by event; `server` is set if a review server runs."""
    style = (PAGE / "page.css").read_text(encoding="utf-8")
    parts = [(PAGE / f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS]
    script = '"use strict";\n(() => {\n' + "\n".join(parts) + "\n})();\n"
    script_hash = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    values = {
        "title": html.escape(f"Session {recording.info.session}"),
        "style": style,
        # The policy allows only this script, whatever the transcript contains.
        "script_hash": f"'sha256-{script_hash}'",
        "script": script,
        "data": _embedded(page_data(recording, frames or {}, server, notes)),
    }
    template = (PAGE / "page.html").read_text(encoding="utf-8")
    pieces = template.split("{{")
    filled = [pieces[0]]
    for piece in pieces[1:]:  # in one pass, so that no value is read as template text
        name, _, rest = piece.partition("}}")
        filled += [values[name], rest]
    return "".join(filled)


def page_data(
    recording: Recording, frames: Mapping[str, Sequence[str]], server: Mapping[str, Any] | None, notes: Sequence[str]
) -> dict[str, Any]:
    """Collect the page's data, with times in milliseconds from the session's start."""
    info, start_ns = recording.info, recording.start_ns
    origin_ns = sheet_of(recording).origin_ns
    flags = [_flag(flag, start_ns, recording.views.get(flag.event_id, ())) for flag in recording.flags]
    used = {attribute for flag in flags for attribute in flag["attributes"]}
    return {
        "info": {
            "study": info.study,
            "session": info.session,
            "condition": info.condition,
            "participants": [participant.pseudonym for participant in info.participants],
            "robot": info.robot,
            "date": datetime.fromtimestamp(start_ns / NS_PER_S, UTC).strftime("%Y-%m-%d") if start_ns > 0 else "",
            "software_version": info.software_version,
            "media": [Path(name).name for name in info.media],
        },
        "source": recording.source.name,
        "head": recording.head,
        "notes": [*recording.notes, *notes],
        "end": _ms(recording.end_ns, start_ns),
        "origin_ns": str(origin_ns),
        "offset": _ms(start_ns, origin_ns),
        "at_most": AT_MOST,
        "attributes": [a.value for a in Attribute if a in used] or [a.value for a in Attribute],
        "all_attributes": [a.value for a in Attribute],
        "flags": flags,
        "decisions": [_decision(decision, start_ns) for decision in recording.decisions],
        "speech": [
            {
                "id": said.utterance_id,
                "who": "robot"
                if said.speaker is Speaker.ROBOT
                else "user"
                if said.speaker is Speaker.USER
                else "someone",
                "start": _ms(said.start_ns, start_ns),
                "end": _ms(said.end_ns, start_ns),
                "text": said.text,
                "locale": said.locale,
            }
            for said in recording.utterances
        ],
        "presence": _stretches(recording.presences, start_ns),
        "reviews": [to_plain(review) for review in recording.reviews] if not server else server["reviews"],
        "frames": {event_id: list(pictures) for event_id, pictures in frames.items()},
        "server": {key: value for key, value in server.items() if key != "reviews"} if server else None,
    }


def _flag(flag: SocialFlag, start_ns: int, views: Sequence[int]) -> dict[str, Any]:
    end_ns = max(flag.onset_ns, flag.decision_ns) if flag.offset_ns is None else flag.offset_ns
    provenance: dict[str, Any] = {
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
        "probability": round(flag.probability, 3) if math.isfinite(flag.probability) else 0,
        "start": _ms(flag.onset_ns, start_ns),
        "end": _ms(end_ns, start_ns),
        "open": flag.offset_ns is None,
        "cue": flag.cue_id,
        "why": flag.rationale,
        "correction": flag.correction,
        "evidence": [
            {
                "measure": fact.measure,
                "value": fact.value if math.isfinite(fact.value) else None,
                "threshold": fact.threshold if fact.threshold is not None and math.isfinite(fact.threshold) else None,
                "unit": fact.unit,
                "utterance": fact.utterance_id,
                "quote": fact.quote,
                "view": views[number] if number < len(views) else 0,
            }
            for number, fact in enumerate(flag.evidence)
        ],
        "provenance": provenance,
    }


def _decision(decision: Decision, start_ns: int) -> dict[str, Any]:
    at = _ms(decision.decided_ns, start_ns)
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
                "probability": round(candidate.probability, 3) if math.isfinite(candidate.probability) else 0,
                "veto": "" if candidate.veto is Veto.NONE else candidate.veto.value,
                "reason": candidate.veto_reason,
            }
            for candidate in decision.candidates
        ],
        "provenance": {"decision": decision.decision_id, "query": decision.query_id}
        | {key: value for key, value in to_plain(decision.provenance).items() if value and key != "latency"},
    }


def _stretches(presences: Sequence[Presence], start_ns: int) -> list[dict[str, Any]]:
    """Merge presence into stretches with a constant number and gaze of people."""
    found: list[dict[str, Any]] = []
    last_ns = 0
    for presence in presences:
        people = len(presence.faces)
        away = bool(people) and all(face.looking_away for face in presence.faces)
        at = _ms(presence.stamp_ns, start_ns)
        joins = found and presence.stamp_ns - last_ns <= _APART_NS
        if joins:
            found[-1]["end"] = at
        if not (joins and found[-1]["people"] == people and found[-1]["away"] == away):
            found.append({"start": at, "end": at, "people": people, "away": away})
        last_ns = presence.stamp_ns
    return [stretch for stretch in found if stretch["people"]]


def _ms(stamp_ns: int, start_ns: int) -> float:
    return round((stamp_ns - start_ns) / NS_PER_MS, 3)


def _embedded(value: Any) -> str:
    """Encode JSON that no text can terminate inside a script element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    text = text.encode("utf-8", "replace").decode()
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
