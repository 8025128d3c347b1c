"""Score each turn of a robot, and make rewards and preference pairs of the scores."""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import field
from statistics import fmean
from typing import Any

from norm_core.records.flag import Attribute, FlagState, Polarity, SocialFlag, Verdict
from norm_core.records.record import record
from norm_core.records.speech import Utterance
from norm_core.runtime.time import ReplayClock, ns_to_s
from norm_monitor.context.meaning import EncoderMatcher
from norm_monitor.cues.threshold_table import ThresholdTable
from norm_monitor.fusion.fusion import ClosedUnit
from norm_monitor.fusion.unit_model import shipped_unit_model
from norm_monitor.monitor import Monitor, MonitorConfig
from norm_monitor.units.unit import UnitKind
from norm_monitor.windows.cutter import Record
from sim_replays.drivers.bag_driver import feed_monitor
from study_desk.log.recording import Recording
from study_desk.log.schema import Review
from study_desk.log.session_config import WordsPolicy

PRIVATE, NOT_READ = "words that somebody keeps private", "in a language that is not read, or cut off"


def logged_records(recording: Recording) -> list[tuple[int, Record]]:
    """Return a log's speech and sightings in the order in which they were available."""
    timed: list[tuple[int, Record]] = [(said.end_ns, said) for said in recording.utterances]
    timed += [(edge.stamp_ns, edge) for edge in recording.robot_speech]
    timed += [(seen.stamp_ns, seen) for seen in recording.presences]
    return sorted(timed, key=lambda pair: pair[0])


@record
class RewardedTurn:
    """One turn of the robot. The score is the probability of a competence minus that of an error."""

    source: str
    session: str
    condition: str
    onset_s: float  # since the first turn of the session
    earlier: str  # what the robot said before
    heard: str  # what people said since
    said: str
    score: float
    error: float
    competence: float
    attributes: tuple[Attribute, ...] = ()
    event_id: str = ""  # of its flag, if it has one
    reason: str = ""
    correction: str = ""
    confirmed: bool | None = None  # whether reviewers agree with the flag; None: nobody said, or they disagree


@record
class SessionRewards:
    """The turns of one session, and how many stay out, by reason."""

    source: str
    made_of: str  # a digest of what they were made of
    turns: tuple[RewardedTurn, ...]
    left_out: dict[str, int] = field(default_factory=dict)


def rewards_of(  # noqa: PLR0917
    records: Iterable[tuple[int, Record]],
    sources: Iterable[str],
    source: str,
    session: str,
    made_of: str,
    recording: Recording | None = None,
    condition: str = "",
) -> SessionRewards:
    """Score the robot's turns by all that follows them. A recording adds its own flags, reviews and consents."""
    policy = WordsPolicy.of_participants(recording.info.participants if recording else ())
    closed: list[ClosedUnit] = []
    flags: dict[str, SocialFlag] = {}
    private: list[Utterance] = []
    clock, matcher = ReplayClock(), EncoderMatcher.shipped()
    model = shipped_unit_model(matcher.reader_size)
    config = MonitorConfig.for_replay(sources)
    monitor = Monitor(config, ThresholdTable.shipped(), matcher, clock, unit_model=model, note_closed=closed.append)
    for _, taken in feed_monitor(records, monitor, clock):
        if isinstance(taken, SocialFlag):
            flags[taken.event_id] = taken
        elif isinstance(taken, Utterance) and taken.final and policy.withheld(taken.speaker_id):
            private.append(taken)
    known = recording.flags if recording and recording.flags else tuple(flags.values())
    by_id = {flag.event_id: flag for flag in known if flag.state is not FlagState.WITHDRAWN}
    units = sorted((one for one in closed if one.unit.kind is UnitKind.ROBOT_TURN), key=lambda one: one.unit.onset_ns)
    onsets = [-(2**63), *sorted({one.unit.onset_ns for one in units}), 2**63]
    left_out: Counter[str] = Counter()
    turns, is_private = [], False
    for unit in units:
        exchange, flag = unit.measured.exchange if unit.measured else None, by_id.get(unit.unit.event_id)
        # An exchange reaches from the turn before to the turn after, and a reason may quote what was said long before.
        place, followed_private = bisect_left(onsets, unit.unit.onset_ns), is_private
        spans = [(onsets[place - 1], onsets[place + 1])]
        spans += [(quoted.start_ns, quoted.end_ns) for quoted in flag.evidence if quoted.quote] if flag else []
        is_private = any(
            one.start_ns < end_ns and start_ns <= one.end_ns for one in private for start_ns, end_ns in spans
        )
        # What was erased leaves it without words.
        if is_private or (policy.private is not None and not (exchange and exchange.before)):
            left_out[PRIVATE] += 1
            is_private = True
        elif exchange is None:
            left_out[NOT_READ] += 1
        else:
            assessment = unit.assessment(model)
            likely = assessment.likely | ({flag.polarity: flag.probability} if flag else {})
            error, competence = likely[Polarity.ERROR], likely[Polarity.COMPETENCE]
            turns.append(
                RewardedTurn(
                    source=source,
                    session=session,
                    condition=condition,
                    onset_s=round(ns_to_s(unit.unit.onset_ns - onsets[1]), 3),
                    earlier="" if followed_private else exchange.earlier,
                    heard=exchange.before,
                    said=exchange.said,
                    score=round(competence - error, 3),
                    error=round(error, 3),
                    competence=round(competence, 3),
                    attributes=flag.attributes if flag else assessment.attributes,
                    event_id=flag.event_id if flag else "",
                    reason=flag.rationale if flag else "",
                    correction=flag.correction if flag else "",
                    confirmed=_confirmed(flag, recording.reviews) if flag and recording else None,
                )
            )
    return SessionRewards(source=source, made_of=made_of, turns=tuple(turns), left_out=dict(left_out))


def _confirmed(flag: SocialFlag, reviews: Iterable[Review]) -> bool | None:
    verdicts = {
        one.verdict is Verdict.ACCEPT or (one.verdict is Verdict.RELABEL and one.polarity is flag.polarity)
        for one in reviews
        if one.event_id == flag.event_id
    }
    return verdicts.pop() if len(verdicts) == 1 else None


def preference_pairs(turns: Iterable[RewardedTurn]) -> Iterator[dict[str, Any]]:
    """Yield what was said in a flagged error against its correction, as trl reads conversations."""
    for turn in turns:
        if turn.correction and turn.heard and turn.error > turn.competence and turn.confirmed is not False:
            before = [{"role": "assistant", "content": turn.earlier}] if turn.earlier else []
            yield {
                "prompt": [*before, {"role": "user", "content": turn.heard}],
                "chosen": [{"role": "assistant", "content": turn.correction}],
                "rejected": [{"role": "assistant", "content": turn.said}],
                "confirmed": turn.confirmed,
            }


def grouped(turns: Iterable[RewardedTurn], by: str) -> list[dict[str, Any]]:
    """Sum turns up by a field of theirs; an error that a reviewer rejected is none."""
    groups: defaultdict[str, list[RewardedTurn]] = defaultdict(list)
    for turn in turns:
        groups[getattr(turn, by)].append(turn)
    return [
        {
            by: group,
            "sessions": len({(turn.source, turn.session) for turn in own}),
            "turns": len(own),
            "mean_score": round(fmean(turn.score for turn in own), 3),
            "errors": (errors := sum(bool(turn.correction) and turn.confirmed is not False for turn in own)),
            "errors_per_100_turns": round(100 * errors / len(own), 1),
        }
        for group, own in sorted(groups.items())
    ]
