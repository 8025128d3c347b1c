"""Score the monitor's event detection: one-to-one matching in time, and false alarms per hour."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

import numpy as np

from norm_core.evaluation.event_matching import match_events
from norm_core.evaluation.f1 import f1_score
from norm_core.evaluation.intervals import draw_clusters, percentile_interval, percentiles
from norm_core.records.flag import Attribute, Polarity, SocialFlag
from norm_core.records.record import record
from norm_core.runtime.time import NS_PER_S, s_to_ns
from norm_monitor.cues.exchange_evidence import CUES as EXCHANGE_CUES
from sim_replays.scenarios.encounter import Basis
from sim_replays.scenarios.truth import Truth

TOLERANCES_S = (0.5, 1.0, 2.0, 5.0)
# Cues for a detector that knows who speaks when, but not the words.
TIMING_CUES = frozenset({
    "response_delay", "timely_answer", "no_response", "robot_cuts_in", "waits_for_end", "talks_over_user",
    "yields_to_user", "monologue",
})  # fmt: skip
# The bases for which cues exist. Events that rest on understanding alone have no cue.
MEASURED = frozenset({Basis.TIMING, Basis.WORDING, Basis.SIGHT})
# Cues without a threshold row, from the exchange classifier.
READINGS = frozenset(EXCHANGE_CUES.values())
_AT_S = 2.0
_DRAWS = 1000


@record
class Alarm:
    """A flag and the time it became known. Times are stamps."""

    polarity: Polarity
    attributes: tuple[Attribute, ...]
    onset_ns: int
    known_ns: int
    cue_id: str = ""

    @classmethod
    def of(cls, flag: SocialFlag, known_ns: int) -> "Alarm":
        """Make an alarm from a flag."""
        return cls(
            polarity=flag.polarity,
            attributes=flag.attributes,
            onset_ns=flag.onset_ns,
            known_ns=known_ns,
            cue_id=flag.cue_id,
        )


@record
class EventSession:
    """One encounter's labels, and the alarms in it."""

    truth: Truth
    alarms: tuple[Alarm, ...]


@record
class OnlineScores:
    """The scores of one detector over all sessions. Shares are in percent, with intervals over encounters."""

    f1: dict[str, float]
    f1_interval: dict[str, tuple[float, float]]
    precision: float
    recall: float
    false_alarms_per_hour: float
    alarms_per_ten_minutes: float
    latency_s: dict[str, float]
    macro_f1_by_attribute: float
    by_attribute: dict[str, float]
    by_attribute_interval: dict[str, tuple[float, float]]
    by_basis: dict[str, float]
    events: int
    alarms: int


def alarms_of_cues(sessions: Iterable[EventSession], keep: Callable[[Alarm], bool]) -> list[EventSession]:
    """Keep some alarms of each session, such as those of one polarity or kind of cue."""
    return [EventSession(truth=one.truth, alarms=tuple(a for a in one.alarms if keep(a))) for one in sessions]


def events_resting_on(
    sessions: Iterable[EventSession], bases: Collection[Basis], answers_for: Callable[[Alarm], bool] = lambda _: True
) -> list[EventSession]:
    """Keep the events on these bases, and drop alarms that match other events.

    Of the alarms that match nothing, keep those that these bases answer for.
    """
    return [_resting_on(one, bases, answers_for) for one in sessions]


def _resting_on(session: EventSession, bases: Collection[Basis], answers_for: Callable[[Alarm], bool]) -> EventSession:
    events = session.truth.events
    chosen = EventSession(
        truth=replace(session.truth, events=tuple(e for e in events if e.basis in bases)), alarms=session.alarms
    )
    taken = {alarm for _, alarm in match_alarms(chosen, _AT_S)}
    left = [place for place in range(len(session.alarms)) if place not in taken]
    others = EventSession(
        truth=replace(session.truth, events=tuple(e for e in events if e.basis not in bases)),
        alarms=tuple(session.alarms[place] for place in left),
    )
    elsewhere = {left[alarm] for _, alarm in match_alarms(others, _AT_S)}
    kept = (
        a for place, a in enumerate(session.alarms) if place in taken or (place not in elsewhere and answers_for(a))
    )
    return EventSession(truth=chosen.truth, alarms=tuple(kept))


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


def match_alarms(
    session: EventSession, tolerance_s: float, attribute: Attribute | None = None
) -> list[tuple[int, int]]:
    """Match events and alarms one to one, as many pairs as possible. Returns pairs of indices."""
    events, alarms = session.truth.events, session.alarms

    def are_one(event: int, alarm: int) -> bool:
        shared = set(events[event].attributes) & set(alarms[alarm].attributes)
        return events[event].polarity is alarms[alarm].polarity and bool(
            shared if attribute is None else attribute in shared
        )

    onsets_ns = ([event.onset_ns for event in events], [alarm.onset_ns for alarm in alarms])
    return list(match_events(*onsets_ns, s_to_ns(tolerance_s), are_one).pairs)


def score_online(
    sessions: Sequence[EventSession], polarity: Polarity | None = None, at_s: float = _AT_S
) -> OnlineScores:
    """Compute all scores. Precision, recall, latency and attributes use one tolerance."""
    chosen = [_of_polarity(one, polarity) for one in sessions]
    counts = {tolerance_s: np.array([_counts(one, tolerance_s) for one in chosen]) for tolerance_s in TOLERANCES_S}
    hours = sum(one.truth.end_ns - one.truth.start_ns for one in chosen) / NS_PER_S / 3600
    hits, events, alarms = map(int, counts[at_s].sum(axis=0)) if chosen else (0, 0, 0)
    latencies = [
        (one.alarms[alarm].known_ns - one.truth.events[event].onset_ns) / NS_PER_S
        for one in chosen
        for event, alarm in match_alarms(one, at_s)
    ]
    told = {attribute.value: np.array([_counts(one, at_s, attribute) for one in chosen]) for attribute in Attribute}
    told = {name: rows for name, rows in told.items() if rows.size and rows[:, 1:].sum()}
    by_tolerance = {f"{tolerance_s:g}": _f1(rows) for tolerance_s, rows in counts.items()}
    by_attribute = {name: _f1(rows) for name, rows in told.items()}
    attributes = {name: f1 for name, (f1, _) in by_attribute.items()}
    return OnlineScores(
        f1={name: f1 for name, (f1, _) in by_tolerance.items()},
        f1_interval={name: interval for name, (_, interval) in by_tolerance.items()},
        precision=100 * hits / alarms if alarms else 0.0,
        recall=100 * hits / events if events else 0.0,
        false_alarms_per_hour=(alarms - hits) / hours if hours else 0.0,
        alarms_per_ten_minutes=alarms / hours / 6 if hours else 0.0,
        latency_s=percentiles(latencies),
        macro_f1_by_attribute=float(np.mean(list(attributes.values()))) if attributes else 0.0,
        by_attribute=attributes,
        by_attribute_interval={name: interval for name, (_, interval) in by_attribute.items()},
        by_basis=_recall_by_basis(chosen, at_s),
        events=events,
        alarms=alarms,
    )


def _robot_turns(truth: Truth) -> np.ndarray:
    return np.array([turn.start_ns for turn in truth.turns if turn.speaker.value == "robot"], np.int64)


def _of_polarity(session: EventSession, polarity: Polarity | None) -> EventSession:
    if polarity is None:
        return session
    events = tuple(event for event in session.truth.events if event.polarity is polarity)
    alarms = tuple(alarm for alarm in session.alarms if alarm.polarity is polarity)
    return EventSession(truth=replace(session.truth, events=events), alarms=alarms)


def _counts(session: EventSession, tolerance_s: float, attribute: Attribute | None = None) -> tuple[int, int, int]:
    events = [event for event in session.truth.events if attribute is None or attribute in event.attributes]
    alarms = [alarm for alarm in session.alarms if attribute is None or attribute in alarm.attributes]
    return len(match_alarms(session, tolerance_s, attribute)), len(events), len(alarms)


def _f1(rows: np.ndarray) -> tuple[float, tuple[float, float]]:
    """Compute F1 in percent with its interval, from hits, events and alarms per session."""
    if not len(rows):
        return 0.0, (0.0, 0.0)

    def of(totals: np.ndarray) -> np.ndarray:
        return f1_score(totals[..., 0], totals[..., 1] + totals[..., 2], scale=100)

    drawn = rows[draw_clusters(len(rows), _DRAWS)].sum(axis=1)
    return float(of(rows.sum(axis=0))), percentile_interval(of(drawn))


def _recall_by_basis(sessions: Sequence[EventSession], at_s: float) -> dict[str, float]:
    found: dict[str, list[bool]] = {}
    for one in sessions:
        hit = {event for event, _ in match_alarms(one, at_s)}
        for place, event in enumerate(one.truth.events):
            found.setdefault(event.basis.value, []).append(place in hit)
    return {basis: 100 * sum(hits) / len(hits) for basis, hits in sorted(found.items())}
