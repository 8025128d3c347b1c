"""Log a study session from the monitor node, with the verdicts that coders give live."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from norm_core import __version__
from norm_core.health.health_log import HealthLog
from norm_core.records.flag import Attribute, Polarity, SocialFlag, Verdict
from norm_core.records.text_limits import cut_texts
from norm_core.runtime.time import Clock, WallClock
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.session_log.live_log import LiveLog
from norm_monitor.session_log.schema import Review, SessionInfo
from norm_monitor.session_log.session_config import StudyConfig, make_redactor, parse_participants
from norm_monitor.session_log.writer import StudyLog

# The longest wait until a flag is on the disk.
FLAG_WAIT_S = 0.2
# The longest wait until a verdict is on the disk.
VERDICT_WAIT_S = 2.0
# How many events coders can judge; beyond that, the oldest are forgotten.
MAX_EVENTS = 10_000


class StudySession:
    """The study log of the monitor, if one is configured. Closing it seals the log."""

    def __init__(
        self,
        config: StudyConfig,
        table: ThresholdTable,
        clock: Clock,
        health_log: HealthLog,
        *,
        context: str,
        weighed_by: str,
        config_sha256: str,
    ) -> None:
        """Open the log, if one is configured. `config_sha256` covers the whole configuration of the node.

        Raises LogError, KeyFileError or ConfigError if it cannot be opened, or would keep words against its policy.
        """
        self._clock, self._health_log = clock, health_log
        self._events: dict[str, None] = {}
        self._log = None
        if config.log:
            self._log = LiveLog(
                _make_opener(config, table, clock, context=context, weighed_by=weighed_by, config_sha256=config_sha256),
                health_log,
            )

    @property
    def keeps(self) -> bool:
        """Return whether a study log is configured."""
        return self._log is not None

    def keep(self, record: Any) -> bool:
        """Queue a record for the log; return whether a log took it."""
        return self._log is not None and self._log.put(record, self._clock.now_ns())

    def keep_flags(self, flags: Sequence[SocialFlag]) -> None:
        """Write flags to the log. Call it before they are published, so that a crash loses no flag that was seen."""
        if self._log is None or not flags:
            return
        self._events |= dict.fromkeys(flag.event_id for flag in flags)
        while len(self._events) > MAX_EVENTS:
            del self._events[next(iter(self._events))]
        queued = [self.keep(flag) for flag in flags]  # a list, so that each flag is tried
        if not (all(queued) and self._log.flush(FLAG_WAIT_S)):
            self._health_log.count("study_log_late", len(flags))

    def review(self, request: Any, response: Any) -> Any:
        """Handle the review service. A verdict counts as recorded only once it is on disk."""
        response.recorded = False
        response.message = ""
        if self._log is None:
            response.message = "no verdict is kept: set the parameter study.log"
        elif request.event_id not in self._events:
            response.message = f"{request.event_id} is not among the flags since the node started; judge one of those"
        else:
            try:
                verdict, cut = cut_texts(_read_review(request))
            except ValueError as error:
                response.message = str(error)
            else:
                self._health_log.note_cut_texts(cut)
                response.recorded = self.keep(verdict) and self._log.flush(VERDICT_WAIT_S)
                response.message = "" if response.recorded else "it is not on the disk yet: the status says why"
        return response

    def close(self) -> None:
        """Write what is queued and seal the log."""
        if self._log:
            self._log.close()


def _make_opener(
    config: StudyConfig, table: ThresholdTable, clock: Clock, *, context: str, weighed_by: str, config_sha256: str
) -> Callable[[], StudyLog]:
    participants = parse_participants(config.participants, config.no_words)
    redactor = make_redactor(_expand_path(config.key_file), participants, _expand_path(config.policy))
    info = SessionInfo(
        study=config.name,
        session=config.session,
        condition=config.condition,
        participants=participants,
        deployment_context=context,
        start_ns=clock.now_ns(),
        retention_days=config.retention_days or None,
        table_version=table.version,
        weighed_by=weighed_by,
        config_sha256=config_sha256,
        software_version=__version__,
    )
    folder = Path(config.log).expanduser()
    return lambda: StudyLog.begin_or_resume(folder, info, WallClock(), redactor=redactor)


def _expand_path(text: str) -> Path | None:
    return Path(text).expanduser() if text else None


def _read_review(request: Any) -> Review:
    verdict = _read_member(Verdict, request.verdict)
    relabels = verdict is Verdict.RELABEL
    return Review(
        event_id=request.event_id,
        coder=request.coder,
        verdict=verdict,
        polarity=_read_member(Polarity, request.polarity) if relabels else None,
        attributes=tuple(_read_member(Attribute, a) for a in request.attributes) if relabels else (),
        note=request.comment,
    )


def _read_member(kind: type[StrEnum], code: int) -> Any:
    members = list(kind)
    if code >= len(members):
        raise ValueError(f"{code} is not a {kind.__name__}: the known values are 0 to {len(members) - 1}")
    return members[code]
