"""Score the monitor on encounters: errors, competences and the error flags in harmless talk."""

from collections.abc import Sequence

import numpy as np

from norm_core.evaluation.intervals import draw_clusters, percentile_interval
from norm_core.records.flag import Polarity
from norm_core.records.record import record
from norm_core.runtime.time import NS_PER_S
from sim_replays.monitor_bench.event_metrics import DRAWS, EventSession, OnlineScores, score_online


@record
class Harmless:
    """Encounters without any labelled error, and the error flags in them, with a 95 % interval over encounters."""

    encounters: int
    minutes: float
    false_errors: int
    false_errors_per_hour: float
    false_errors_per_hour_interval: tuple[float, float]


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
        harmless=_harmless(sessions),
    )


def _harmless(sessions: Sequence[EventSession]) -> Harmless:
    chosen = [one for one in sessions if all(e.polarity is not Polarity.ERROR for e in one.truth.events)]
    if not chosen:
        return Harmless(
            encounters=0, minutes=0.0, false_errors=0, false_errors_per_hour=0.0, false_errors_per_hour_interval=(0, 0)
        )
    counts = np.array([sum(alarm.polarity is Polarity.ERROR for alarm in one.alarms) for one in chosen])
    hours = np.array([one.truth.end_ns - one.truth.start_ns for one in chosen]) / NS_PER_S / 3600
    drawn = draw_clusters(len(chosen), DRAWS)
    return Harmless(
        encounters=len(chosen),
        minutes=float(hours.sum() * 60),
        false_errors=int(counts.sum()),
        false_errors_per_hour=float(counts.sum() / hours.sum()),
        false_errors_per_hour_interval=percentile_interval(counts[drawn].sum(axis=1) / hours[drawn].sum(axis=1)),
    )
