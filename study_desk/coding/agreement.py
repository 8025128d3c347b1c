"""Measure and describe agreement of coders: humans among themselves, the monitor with each, never mixed."""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.wording import count_of
from norm_monitor.session_log.schema import MONITOR
from study_desk.coding.labels import CodedSession
from study_desk.coding.reliability import (
    MIN_SESSIONS,
    AgreementRow,
    AgreementSettings,
    CoderRows,
    Estimator,
    select_rotating_sessions,
)


class AgreementError(TactfulError, ValueError):
    """The labels allow no measure of agreement."""


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
    remarks: tuple[str, ...]
    settings: AgreementSettings
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
        raise AgreementError("there is no human coder to agree with: import labels with study import")
    uncoded = [session.name for session in sessions if not session.labels.keys() - {MONITOR}]
    sessions = [session for session in sessions if session.name not in uncoded]
    settings = AgreementSettings(resamples=resamples, seed=seed)
    pairs = _pair_coders(humans, sessions)
    groups = [*_group_rows(Estimator(settings), pairs, sessions)]
    rows: list[AgreementRow] = []
    for done, group in enumerate(groups, 1):
        rows += group
        progress(done, len(groups))
    return Agreement(
        sessions=len(sessions),
        coders=tuple(coders),
        rows=tuple(rows),
        remarks=tuple(_describe_limits(sessions, humans, uncoded)),
        settings=settings,
        minutes=sum(session.minutes for session in sessions),
        shared=tuple(
            SharedSessions(coders=pair, sessions=len(shared), minutes=sum(session.minutes for session in shared))
            for _, pair, shared in pairs
        ),
    )


def _pair_coders(
    humans: Sequence[str], sessions: Sequence[CodedSession]
) -> list[tuple[str, tuple[str, str], list[CodedSession]]]:
    """List each two coders with the kind of their comparison and the sessions that they share."""
    pairs = [("human-human", pair) for pair in combinations(humans, 2)]
    if any(MONITOR in session.labels for session in sessions):
        pairs += [("monitor-human", (MONITOR, human)) for human in humans]
    return [
        (comparison, pair, [session for session in sessions if {*pair} <= session.labels.keys()])
        for comparison, pair in pairs
    ]


def _group_rows(
    estimator: Estimator,
    pairs: Sequence[tuple[str, tuple[str, str], list[CodedSession]]],
    sessions: Sequence[CodedSession],
) -> Iterator[Iterator[AgreementRow]]:
    """Yield the rows of each two coders, and of all. The rows are computed as they are taken."""
    for comparison, pair, shared in pairs:
        if shared:
            yield CoderRows(estimator, comparison, pair, shared).compute_pair()
    rotating = select_rotating_sessions(sessions)
    coders = sorted({coder for session in rotating for coder in session.labels})
    if len(coders) > 2:
        yield CoderRows(estimator, "human-human", tuple(coders), rotating).compute_rotating()


def _describe_limits(sessions: Sequence[CodedSession], humans: Sequence[str], uncoded: Sequence[str]) -> Iterator[str]:
    """Yield remarks on what was left out, and on what the figures cannot say."""
    if uncoded:
        yield f"{count_of(len(uncoded), 'session')} without a coding by a human left out: {', '.join(uncoded)}"
    if len(sessions) < MIN_SESSIONS:
        yield (
            f"{count_of(len(sessions), 'session')}: no figure has an interval, which resamples sessions and needs "
            f"{MIN_SESSIONS} that hold the label"
        )
    yield (
        "event-matched kappa has no count of what nobody marked, so it tends to lie below the frame-level one; "
        "nothing is a category of its own in it"
    )
    for coder in humans:
        if missing := [session.name for session in sessions if coder not in session.labels]:
            yield (
                f"{coder}: no coding of session {', '.join(missing)}, left out of comparisons with {coder}; "
                f"if one was assigned to {coder} and nothing was found in it, record that with "
                f"study import LOG --coder {coder} --complete"
            )
