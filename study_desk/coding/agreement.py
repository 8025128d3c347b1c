"""Measure and describe agreement of coders: humans among themselves, the monitor with each, never mixed."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations

from norm_core.records.flag import Attribute, Polarity
from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import s_to_ns
from norm_core.runtime.wording import count_of
from norm_monitor.session_log.schema import MONITOR
from scoring.agreement_coefficients import Tally
from study_desk.coding.labels import CodedSession
from study_desk.coding.reliability import (
    FEW_SESSIONS,
    NO_EVENT,
    AgreementRow,
    AgreementSettings,
    CoderRows,
    Estimator,
    event_units,
    rotating_sessions,
)


class AgreementError(TactfulError, ValueError):
    """The labels allow no measure of agreement."""


@record
class Confusion:
    """Counts of matched events by both coders' labels. "Nothing" stands for no match."""

    coders: tuple[str, str]
    categories: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    tolerance_s: float


@record
class SharedSessions:
    """How much two coders have both coded."""

    coders: tuple[str, str]
    sessions: int
    minutes: float


@record
class Agreement:
    """The agreement of all coders over a study's sessions, by attribute."""

    sessions: int
    coders: tuple[str, ...]
    rows: tuple[AgreementRow, ...]
    confusions: tuple[Confusion, ...]
    remarks: tuple[str, ...]
    settings: AgreementSettings
    conditions: dict[str, int]  # sessions by condition
    minutes: float
    shared: tuple[SharedSessions, ...]


def measure_agreement(
    sessions: Sequence[CodedSession],
    *,
    resamples: int = 1000,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda done, whole: None,
) -> Agreement:
    """Compute every measure for each two coders who share a session, and over all humans if there are several."""
    coders = sorted({coder for session in sessions for coder in session.labels})
    humans = [coder for coder in coders if coder != MONITOR]
    if not humans:
        raise AgreementError(
            "there is no human coder to agree with: import labels (study import), or code in the page (study code)"
        )
    uncoded = [session.name for session in sessions if not session.labels.keys() - {MONITOR}]
    sessions = [session for session in sessions if session.name not in uncoded]
    settings = AgreementSettings(resamples=resamples, seed=seed)
    estimator = Estimator(settings)
    conditions = sorted({session.condition for session in sessions})
    scopes = [("", sessions)]
    for condition in conditions if len(conditions) > 1 else ():
        scopes.append((condition or "no condition", [s for s in sessions if s.condition == condition]))
    parts = [part for name, chosen in scopes for part in _parts(estimator, chosen, humans, name)]
    rows: list[AgreementRow] = []
    for done, part in enumerate(parts, 1):
        rows += part
        progress(done, len(parts))
    pairs = _pairs(humans, sessions)
    return Agreement(
        sessions=len(sessions),
        coders=tuple(coders),
        rows=tuple(rows),
        confusions=tuple(_confusion(pair, shared, settings.kappa_tolerance_s) for _, pair, shared in pairs if shared),
        remarks=tuple(_remarks(sessions, humans, uncoded)),
        settings=settings,
        conditions={condition: sum(s.condition == condition for s in sessions) for condition in conditions},
        minutes=sum(session.minutes for session in sessions),
        shared=tuple(
            SharedSessions(coders=pair, sessions=len(shared), minutes=sum(session.minutes for session in shared))
            for _, pair, shared in pairs
        ),
    )


def _pairs(
    humans: Sequence[str], sessions: Sequence[CodedSession]
) -> list[tuple[str, tuple[str, str], list[CodedSession]]]:
    pairs = [("human-human", pair) for pair in combinations(humans, 2)]
    if any(MONITOR in session.labels for session in sessions):
        pairs += [("monitor-human", (MONITOR, human)) for human in humans]
    return [
        (comparison, pair, [of_pair for s in sessions if (of_pair := s.between(pair))]) for comparison, pair in pairs
    ]


def _parts(
    estimator: Estimator, sessions: Sequence[CodedSession], humans: Sequence[str], condition: str
) -> Iterator[Iterator[AgreementRow]]:
    """Yield the rows of each two coders, and of all, which are computed as they are taken."""
    for comparison, pair, shared in _pairs(humans, sessions):
        if shared:
            yield CoderRows(estimator, comparison, pair, shared, condition).of_pair()
    rotating = rotating_sessions(sessions)
    coders = sorted({coder for session in rotating for coder in session.labels})
    if len(coders) > 2:
        yield CoderRows(estimator, "human-human", tuple(coders), rotating, condition).of_rotating()


def _confusion(pair: tuple[str, str], sessions: Sequence[CodedSession], tolerance_s: float) -> Confusion:
    tallies = (event_units(s.labels[pair[0]], s.labels[pair[1]], s_to_ns(tolerance_s)) for s in sessions)
    units = sum(tallies, Tally())
    used = {value for unit in units for value in unit}
    order = [f"{p.value} {a.value}" for p in Polarity for a in Attribute]
    categories = (*(name for name in order if name in used), NO_EVENT)
    counts = tuple(tuple(units[a, b] for b in categories) for a in categories)
    return Confusion(coders=pair, categories=categories, counts=counts, tolerance_s=tolerance_s)


def _remarks(sessions: Sequence[CodedSession], humans: Sequence[str], uncoded: Sequence[str]) -> Iterable[str]:
    if uncoded:
        yield f"{count_of(len(uncoded), 'session')} without a coding by a human left out: {', '.join(uncoded)}"
    if len(sessions) < FEW_SESSIONS:
        yield (
            f"{count_of(len(sessions), 'session')}: no figure has an interval, which resamples sessions and needs "
            f"{FEW_SESSIONS} that hold the label"
        )
    if len(humans) < 2:
        yield "one human coder alone: there is no human agreement to hold the monitor's against"
    yield (
        "event-matched kappa has no count of what nobody marked, so it tends to lie below the frame-level one; "
        "nothing is a category of its own in it"
    )
    judges = sorted({coder for session in sessions for coder in session.judged})
    for coder in [human for human in humans if human not in judges]:
        if missing := [session.name for session in sessions if coder not in session.labels]:
            yield (
                f"{coder}: no coding of session {', '.join(missing)}, left out of comparisons with {coder}; "
                f"if one was assigned to {coder} and nothing was found in it, record that with "
                f"study import LOG --coder {coder} --complete"
            )
    for session in sessions:
        for coder, events in sorted(session.judged.items()):
            if events < session.events:
                yield (
                    f"{coder} has judged {len(events)} of "
                    f"{count_of(len(session.events), 'flag')} of session {session.name}: "
                    "only those are compared, with the monitor and others who judged flags; a coder who coded alone is "
                    "compared once all are judged"
                )
    if judges:
        yield (
            f"{', '.join(judges)} judged the monitor's own flags, so what it missed is not among their labels: "
            "against them its recall says nothing, and two of them agree more than two who code alone"
        )
    minutes = sum(session.minutes for session in sessions)
    yield f"computed over {minutes:.1f} minutes in {count_of(len(sessions), 'session')}"
