"""Score the monitor on encounters: errors, competences and the error flags in harmless talk."""

from collections.abc import Iterable, Sequence

from norm_core.records.flag import Polarity
from norm_core.records.record import record
from norm_core.runtime.time import NS_PER_S
from sim_replays.monitor_bench.event_metrics import EventSession, OnlineScores, score_online


@record
class Harmless:
    """Encounters without any labelled error, and the error flags in them."""

    encounters: int
    minutes: float
    false_errors: int


@record
class EncounterScores:
    """The scores of one detector on a set of encounters."""

    errors: OnlineScores
    competences: OnlineScores
    harmless: Harmless


def score_encounters(sessions: Sequence[EventSession]) -> EncounterScores:
    """Score both polarities, and count the error flags in harmless encounters."""
    return EncounterScores(
        errors=score_online(sessions, Polarity.ERROR),
        competences=score_online(sessions, Polarity.COMPETENCE),
        harmless=_harmless(sessions),
    )


def _harmless(sessions: Iterable[EventSession]) -> Harmless:
    chosen = [one for one in sessions if all(e.polarity is not Polarity.ERROR for e in one.truth.events)]
    return Harmless(
        encounters=len(chosen),
        minutes=sum(one.truth.end_ns - one.truth.start_ns for one in chosen) / NS_PER_S / 60,
        false_errors=sum(alarm.polarity is Polarity.ERROR for one in chosen for alarm in one.alarms),
    )
