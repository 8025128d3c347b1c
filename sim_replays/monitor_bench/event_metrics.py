"""The scores of the monitor's flags against labelled events, and of flags at random."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from norm_core.records.flag import Attribute, Polarity, SocialFlag
from norm_core.records.record import record
from norm_core.runtime.time import NS_PER_S, s_to_ns
from norm_monitor.encounters.library import Truth
from scoring.event_matching import match_events
from scoring.f1 import f1_score
from scoring.intervals import draw_clusters, percentile_interval, percentiles

TOLERANCE_S = 2.0
BOOTSTRAP_DRAWS = 1000

Bounds = tuple[float, float] | None  # None for one encounter: a bootstrap over encounters takes two


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
    """The scores of one detector over all sessions. Shares are in percent, with 95 % intervals over encounters."""

    f1: float
    f1_interval: Bounds
    any_attribute: float  # F1 where a flag need not share an attribute
    precision: float
    recall: float
    events: int
    flags: int
    false: int  # flags that match no event
    false_alarms_per_hour: float
    latency_s: dict[str, float]  # from the onset of a label to its flag
    by_attribute: dict[str, float]  # F1
    by_attribute_interval: dict[str, Bounds]
    events_by_attribute: dict[str, int]
    by_basis: dict[str, float]  # recall
    events_by_basis: dict[str, int]


def match_alarms(
    session: EventSession, tolerance_s: float, attribute: Attribute | None = None
) -> list[tuple[int, int]]:
    """Match events and alarms one to one, as many pairs as possible. Returns pairs of indices."""
    events = session.truth.events
    alarms = session.alarms

    def is_match(event: int, alarm: int) -> bool:
        shared = set(events[event].attributes) & set(alarms[alarm].attributes)
        return events[event].polarity is alarms[alarm].polarity and bool(
            shared if attribute is None else attribute in shared
        )

    onsets_ns = ([event.onset_ns for event in events], [alarm.onset_ns for alarm in alarms])
    return list(match_events(*onsets_ns, s_to_ns(tolerance_s), is_match).pairs)


def score_online(
    sessions: Sequence[EventSession], polarity: Polarity | None = None, at_s: float = TOLERANCE_S
) -> OnlineScores:
    """Compute all scores. Precision, recall, latency and attributes use one tolerance."""
    chosen = [_select_polarity(session, polarity) for session in sessions]
    counts = np.array([_count_matches(session, at_s) for session in chosen])
    hours = sum(session.truth.end_ns - session.truth.start_ns for session in chosen) / NS_PER_S / 3600
    hits, events, flags = map(int, counts.sum(axis=0)) if chosen else (0, 0, 0)
    matched = [
        (session.alarms[alarm], session.truth.events[event])
        for session in chosen
        for event, alarm in match_alarms(session, at_s)
    ]
    rows = {
        attribute.value: np.array([_count_matches(session, at_s, attribute) for session in chosen])
        for attribute in Attribute
    }
    rows = {name: counted for name, counted in rows.items() if counted.size and counted[:, 1:].sum()}
    by_attribute = {name: _compute_f1(counted) for name, counted in rows.items()}
    matches_by_basis = _match_by_basis(chosen, at_s)
    f1, f1_interval = _compute_f1(counts)
    lenient = [
        replace(session, alarms=tuple(replace(alarm, attributes=tuple(Attribute)) for alarm in session.alarms))
        for session in chosen
    ]
    return OnlineScores(
        f1=f1,
        f1_interval=f1_interval,
        any_attribute=_compute_f1(np.array([_count_matches(session, at_s) for session in lenient]))[0],
        precision=100 * hits / flags if flags else 0.0,
        recall=100 * hits / events if events else 0.0,
        events=events,
        flags=flags,
        false=flags - hits,
        false_alarms_per_hour=(flags - hits) / hours if hours else 0.0,
        latency_s=percentiles([(alarm.known_ns - event.onset_ns) / NS_PER_S for alarm, event in matched]),
        by_attribute={name: f1 for name, (f1, _) in by_attribute.items()},
        by_attribute_interval={name: interval for name, (_, interval) in by_attribute.items()},
        events_by_attribute={name: int(counted[:, 1].sum()) for name, counted in rows.items()},
        by_basis={basis: 100 * sum(matches) / len(matches) for basis, matches in matches_by_basis.items()},
        events_by_basis={basis: len(matches) for basis, matches in matches_by_basis.items()},
    )


def _select_polarity(session: EventSession, polarity: Polarity | None) -> EventSession:
    if polarity is None:
        return session
    events = tuple(event for event in session.truth.events if event.polarity is polarity)
    alarms = tuple(alarm for alarm in session.alarms if alarm.polarity is polarity)
    return EventSession(truth=replace(session.truth, events=events), alarms=alarms)


def _count_matches(
    session: EventSession, tolerance_s: float, attribute: Attribute | None = None
) -> tuple[int, int, int]:
    events = [event for event in session.truth.events if attribute is None or attribute in event.attributes]
    alarms = [alarm for alarm in session.alarms if attribute is None or attribute in alarm.attributes]
    return len(match_alarms(session, tolerance_s, attribute)), len(events), len(alarms)


def _compute_f1(rows: np.ndarray) -> tuple[float, Bounds]:
    """Compute F1 in percent with its interval, from hits, events and alarms per session."""
    if not len(rows):
        return 0.0, None

    def of(totals: np.ndarray) -> np.ndarray:
        return f1_score(totals[..., 0], totals[..., 1] + totals[..., 2], scale=100)

    drawn = rows[draw_clusters(len(rows), BOOTSTRAP_DRAWS)].sum(axis=1)
    return float(of(rows.sum(axis=0))), percentile_interval(of(drawn)) if len(rows) > 1 else None


def _match_by_basis(sessions: Sequence[EventSession], tolerance_s: float) -> dict[str, list[bool]]:
    matches_by_basis: dict[str, list[bool]] = {}
    for session in sessions:
        matched_events = {event for event, _ in match_alarms(session, tolerance_s)}
        for index, event in enumerate(session.truth.events):
            matches_by_basis.setdefault(event.basis.value, []).append(index in matched_events)
    return dict(sorted(matches_by_basis.items()))


@record
class Harmless:
    """Encounters without any labelled error, and the error flags in them, with a 95 % interval over encounters."""

    encounters: int
    minutes: float
    false_errors: int
    false_errors_per_hour: float
    false_errors_per_hour_interval: Bounds


@record
class EncounterScores:
    """The scores of one detector on a set of encounters."""

    errors: OnlineScores
    competences: OnlineScores
    harmless: Harmless

    def of(self, polarity: Polarity) -> OnlineScores:
        """Return the scores of a polarity."""
        return self.errors if polarity is Polarity.ERROR else self.competences


def score_encounters(sessions: Sequence[EventSession]) -> EncounterScores:
    """Score both polarities, and count the error flags in harmless encounters."""
    return EncounterScores(
        errors=score_online(sessions, Polarity.ERROR),
        competences=score_online(sessions, Polarity.COMPETENCE),
        harmless=_score_harmless(sessions),
    )


def _score_harmless(sessions: Sequence[EventSession]) -> Harmless:
    chosen = [session for session in sessions if all(e.polarity is not Polarity.ERROR for e in session.truth.events)]
    if not chosen:
        return Harmless(
            encounters=0, minutes=0.0, false_errors=0, false_errors_per_hour=0.0, false_errors_per_hour_interval=None
        )
    counts = np.array([sum(alarm.polarity is Polarity.ERROR for alarm in session.alarms) for session in chosen])
    hours = np.array([session.truth.end_ns - session.truth.start_ns for session in chosen]) / NS_PER_S / 3600
    drawn = draw_clusters(len(chosen), BOOTSTRAP_DRAWS)
    rates = counts[drawn].sum(axis=1) / hours[drawn].sum(axis=1)
    return Harmless(
        encounters=len(chosen),
        minutes=float(hours.sum() * 60),
        false_errors=int(counts.sum()),
        false_errors_per_hour=float(counts.sum() / hours.sum()),
        false_errors_per_hour_interval=percentile_interval(rates) if len(chosen) > 1 else None,
    )


def draw_prior_alarms(sessions: Sequence[EventSession], seed: int = 0) -> list[EventSession]:
    """Return the sessions with the alarms of a baseline that flags random robot turns at the rate of the labels."""
    marked = [(event.polarity, event.attributes) for session in sessions for event in session.truth.events]
    turns = sum(_list_robot_turns_ns(session.truth).size for session in sessions)
    chance = np.random.default_rng(seed)
    prior_sessions = []
    for session in sessions:
        onsets = [
            at_ns for at_ns in _list_robot_turns_ns(session.truth) if chance.random() < len(marked) / max(turns, 1)
        ]
        drawn = [marked[index] for index in chance.integers(0, len(marked), len(onsets))] if marked else []
        alarms = tuple(
            Alarm(polarity=polarity, attributes=attributes, onset_ns=int(at_ns), known_ns=int(at_ns))
            for at_ns, (polarity, attributes) in zip(onsets, drawn, strict=True)
        )
        prior_sessions.append(EventSession(truth=session.truth, alarms=alarms))
    return prior_sessions


def _list_robot_turns_ns(truth: Truth) -> np.ndarray:
    return np.array([turn.start_ns for turn in truth.turns if turn.speaker.value == "robot"], np.int64)
