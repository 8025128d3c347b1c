"""Weaker detectors to compare with, and the parts of the events that rest on a cue or on none."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

import numpy as np

from sim_replays.monitor_bench.event_metrics import AT_S, Alarm, EventSession, match_alarms
from sim_replays.scenarios.encounter import Basis
from sim_replays.scenarios.truth import Truth

# Cues for a detector that knows who speaks when, but not the words.
TIMING_CUES = frozenset({
    "response_delay", "no_response", "robot_cuts_in", "waits_for_end", "talks_over_user", "monologue",
})  # fmt: skip
# Events that rest on understanding alone have no cue.
BASES_WITH_A_CUE = frozenset({Basis.TIMING, Basis.WORDING, Basis.SIGHT})


def baselines(sessions: Sequence[EventSession]) -> dict[str, list[EventSession]]:
    """Return the sessions with the alarms of each detector that uses less input, by name."""
    return {
        "speech timing alone": alarms_of_cues(sessions, lambda alarm: alarm.cue_id in TIMING_CUES),
        "prior": prior_alarms(sessions),
        "always no": without_alarms(sessions),
    }


def parts_by_cue(sessions: Sequence[EventSession]) -> dict[str, list[EventSession]]:
    """Split the events into those that rest on what cues measure and the others."""
    return {
        "events with a cue": events_resting_on(sessions, BASES_WITH_A_CUE),
        "events without a cue": events_resting_on(sessions, frozenset(Basis) - BASES_WITH_A_CUE),
    }


def alarms_of_cues(sessions: Iterable[EventSession], keep: Callable[[Alarm], bool]) -> list[EventSession]:
    """Keep some alarms of each session, such as those of one polarity or kind of cue."""
    return [EventSession(truth=one.truth, alarms=tuple(a for a in one.alarms if keep(a))) for one in sessions]


def events_resting_on(sessions: Iterable[EventSession], bases: Collection[Basis]) -> list[EventSession]:
    """Keep the events on these bases, and drop alarms that match other events."""
    return [_resting_on(one, bases) for one in sessions]


def _resting_on(session: EventSession, bases: Collection[Basis]) -> EventSession:
    events = session.truth.events
    chosen = EventSession(
        truth=replace(session.truth, events=tuple(e for e in events if e.basis in bases)), alarms=session.alarms
    )
    matched = {alarm for _, alarm in match_alarms(chosen, AT_S)}
    left = [place for place in range(len(session.alarms)) if place not in matched]
    others = EventSession(
        truth=replace(session.truth, events=tuple(e for e in events if e.basis not in bases)),
        alarms=tuple(session.alarms[place] for place in left),
    )
    elsewhere = {left[alarm] for _, alarm in match_alarms(others, AT_S)}
    alarms = tuple(alarm for place, alarm in enumerate(session.alarms) if place not in elsewhere)
    return EventSession(truth=chosen.truth, alarms=alarms)


def without_alarms(sessions: Iterable[EventSession]) -> list[EventSession]:
    """The baseline that never flags."""
    return [EventSession(truth=one.truth, alarms=()) for one in sessions]


def prior_alarms(sessions: Sequence[EventSession], seed: int = 0) -> list[EventSession]:
    """The baseline that knows how often each label occurs, and flags random robot turns at that rate."""
    marked = [(event.polarity, event.attributes) for one in sessions for event in one.truth.events]
    turns = sum(_robot_turns(one.truth).size for one in sessions)
    chance = np.random.default_rng(seed)
    made = []
    for one in sessions:
        onsets = [at_ns for at_ns in _robot_turns(one.truth) if chance.random() < len(marked) / max(turns, 1)]
        drawn = [marked[place] for place in chance.integers(0, len(marked), len(onsets))] if marked else []
        alarms = tuple(
            Alarm(polarity=polarity, attributes=attributes, onset_ns=int(at_ns), known_ns=int(at_ns))
            for at_ns, (polarity, attributes) in zip(onsets, drawn, strict=True)
        )
        made.append(EventSession(truth=one.truth, alarms=alarms))
    return made


def _robot_turns(truth: Truth) -> np.ndarray:
    return np.array([turn.start_ns for turn in truth.turns if turn.speaker.value == "robot"], np.int64)
