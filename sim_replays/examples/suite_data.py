"""Write example folders, in the layout of the suites with restricted data, from the development encounters.

They exercise a suite end to end. Scores on them are no benchmark results.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from norm_core.records.flag import Attribute, Polarity
from norm_core.records.json_codec import to_json
from norm_core.records.speech import Speaker
from norm_core.runtime.time import ns_to_s, s_to_ns
from sim_replays.scenarios.encounter import Encounter
from sim_replays.scenarios.library import encounters
from sim_replays.scenarios.timeline import lay_out
from sim_replays.scenarios.truth import TrueEvent, TrueTurn, Truth, truth_of
from sim_replays.suites import hsri, videonorms
from sim_replays.suites.target import SuiteError

SPLIT, ENCOUNTERS = "development", 12
BEFORE_NS, AFTER_NS = s_to_ns(10.0), s_to_ns(5.0)
# VideoNorms names kinds of norms, such as greeting or thanks; encounters do not.
CATEGORY = "everyday courtesy"


def write(suite: str, folder: Path) -> int:
    """Write the folder, one annotation per line. Returns their number."""
    if suite not in _MADE:
        known = ", ".join(sorted(_MADE))
        raise SuiteError(f"an example is made for {known}; {suite} is public, see docs/how-to/benchmarks.md")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise SuiteError(f"{folder}: is there already and holds something; name a new folder")
    file, annotate = _MADE[suite]
    lines = [line for encounter in encounters(SPLIT)[:ENCOUNTERS] for line in annotate(encounter)]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text("".join(f"{to_json(line)}\n" for line in lines), encoding="utf-8")
    except OSError as error:
        raise SuiteError(f"{folder}: cannot be made: {error}") from error
    return len(lines)


def _segments(encounter: Encounter) -> Iterator[dict[str, Any]]:
    """Yield each labelled event with its talk, and as much talk without labels."""
    truth = truth_of(lay_out(encounter), 0, 0)
    for number, event in enumerate(truth.events):
        start_ns, end_ns = _around(event, truth)
        yield {
            "id": f"{truth.encounter_id}-{number}",
            "session": truth.encounter_id,
            "kind": event.polarity.value,
            "attributes": [attribute.value for attribute in event.attributes],
            "transcript": _told(_within(truth, start_ns, end_ns), start_ns),
            "rationale": event.rationale,
            "correction": event.correction,
            "duration_s": ns_to_s(end_ns - start_ns),
        }
    for number, turns in enumerate(_unmarked(truth)):
        yield {
            "id": f"{truth.encounter_id}-plain{number}",
            "session": truth.encounter_id,
            "kind": "none",
            "transcript": _told(turns, turns[0].start_ns),
            "duration_s": ns_to_s(turns[-1].end_ns - turns[0].start_ns),
        }


def _annotations(encounter: Encounter) -> Iterator[dict[str, Any]]:
    """Yield each event about norms and routines: adhered to or violated, with the robot's words."""
    truth = truth_of(lay_out(encounter), 0, 0)
    for number, event in enumerate(truth.events):
        if Attribute.SOCIAL_NORMS_AND_ROUTINES not in event.attributes:
            continue
        start_ns, end_ns = _around(event, truth)
        kept = event.polarity is Polarity.COMPETENCE
        robot = [turn.text for turn in _within(truth, event.onset_ns, event.offset_ns) if turn.speaker is Speaker.ROBOT]
        yield {
            "id": f"{truth.encounter_id}-{number}",
            "clip": f"{truth.encounter_id}-{number}",
            "show": truth.encounter_id,
            "culture": "cn" if truth.language == "zh" else "us",
            "category": CATEGORY,
            "norm": event.rationale if kept else event.correction,
            "label": "adherence" if kept else "violation",
            "verbal": robot,
            "transcript": "\n".join(
                f"{turn.speaker.value.upper()}: {turn.text}" for turn in _within(truth, start_ns, end_ns)
            ),
            "duration_s": ns_to_s(end_ns - start_ns),
        }


def _around(event: TrueEvent, truth: Truth) -> tuple[int, int]:
    return max(truth.start_ns, event.onset_ns - BEFORE_NS), min(truth.end_ns, event.offset_ns + AFTER_NS)


def _within(truth: Truth, start_ns: int, end_ns: int) -> list[TrueTurn]:
    return [turn for turn in truth.turns if turn.start_ns < end_ns and turn.end_ns > start_ns]


def _unmarked(truth: Truth) -> Iterator[list[TrueTurn]]:
    """Yield runs of turns of both sides without an event."""
    run: list[TrueTurn] = []
    for turn in truth.turns:
        if any(event.onset_ns < turn.end_ns and event.offset_ns >= turn.start_ns for event in truth.events):
            run = []
            continue
        run.append(turn)
        if {one.speaker for one in run} == {Speaker.ROBOT, Speaker.USER}:
            yield run
            run = []


def _told(turns: Sequence[TrueTurn], start_ns: int) -> list[dict[str, Any]]:
    return [
        {
            "speaker": "agent" if turn.speaker is Speaker.ROBOT else "user",
            "text": turn.text,
            "start_s": max(0.0, ns_to_s(turn.start_ns - start_ns)),
            "end_s": ns_to_s(turn.end_ns - start_ns),
        }
        for turn in turns
    ]


_MADE: dict[str, tuple[str, Callable[[Encounter], Iterator[dict[str, Any]]]]] = {
    "hsri": (hsri.FILE, _segments),
    "videonorms": (videonorms.FILE, _annotations),
}
