"""Freeze the plan of a study with date and hash, draw crossed orders, and list deviations from the plan."""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from norm_core.records.json_codec import sha256_of, to_json
from norm_core.records.record import record
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.time import NS_PER_S, Clock
from norm_core.runtime.wording import count_of, to_words
from norm_monitor.session_log.study_folder import Study, StudyError, append_line, read_lines
from study_desk.study.removal import list_removed_sessions

# The file in a study's folder with one line for each frozen plan.
PLANS = "plan.jsonl"
# The line for a study without a frozen plan.
NO_PLAN = f"No plan was frozen, so all results are exploratory: see {PROGRAM} study plan STUDY --freeze."


@record
class FrozenPlan:
    """A version of the plan. `sha256` is the hash of the canonical JSON of all other fields."""

    version: int
    date: str
    plan: dict[str, Any]
    recorded: int  # sessions with a log when it was frozen
    coded: int  # sessions that somebody had coded by then
    earlier_sha256: str = ""  # of the version before
    sha256: str = ""

    def compute_hash(self) -> str:
        """Compute the hash that the fields should have."""
        names = ("version", "date", "plan", "recorded", "coded", "earlier_sha256")
        return sha256_of({name: getattr(self, name) for name in names})


@record
class PlanCheck:
    """The frozen versions in order, and the deviations of the study and its analysis from the latest."""

    versions: tuple[FrozenPlan, ...] = ()
    deviations: tuple[str, ...] = ()
    primary_outcome: str = ""


def read_frozen_plans(study: Study) -> tuple[FrozenPlan, ...]:
    """Read the versions of the plan. Raises StudyError if one was changed."""
    versions = read_lines(study.folder / PLANS, FrozenPlan, "restore it from a backup")
    earlier_sha256 = ""
    for version in versions:
        if version.sha256 != version.compute_hash() or version.earlier_sha256 != earlier_sha256:
            raise StudyError(
                f"{study.folder / PLANS}: version {version.version} was changed after it was frozen; restore it from a "
                "backup"
            )
        earlier_sha256 = version.sha256
    return versions


def freeze_plan(study: Study, clock: Clock) -> None:
    """Freeze the plan of study.yaml as a new version, unless it equals the latest. Raises StudyError if it lacks part.

    Earlier versions stay.
    """
    plan = study.file.plan
    lacking = [name for name in ("hypotheses", "primary_outcome", "primary_coder") if not getattr(plan, name)]
    if lacking:
        raise StudyError(f"{study.path}: plan: has no {', no '.join(lacking)}; state it before you freeze the plan")
    versions = read_frozen_plans(study)
    content = _collect_content(study)
    if versions and versions[-1].plan == content:
        return
    frozen = FrozenPlan(
        version=len(versions) + 1,
        date=datetime.fromtimestamp(clock.now_ns() // NS_PER_S, UTC).isoformat(),
        plan=content,
        recorded=sum(1 for _ in study.logs()),
        coded=sum(bool(study.recording_of(name).coders) for name, _ in study.logs()),
        earlier_sha256=versions[-1].sha256 if versions else "",
    )
    frozen = replace(frozen, sha256=frozen.compute_hash())
    append_line(study.folder / PLANS, to_json(frozen))


def _collect_content(study: Study) -> dict[str, Any]:
    """Collect what a version freezes."""
    return {"conditions": list(study.file.conditions), **study.file.plan.model_dump(mode="json")}


def list_plan_changes(study: Study) -> tuple[str, ...]:
    """List the changes between versions, and from the latest to study.yaml."""
    plans = [
        (f"version {version.version}, of {version.date[:10]} with {_count_data(version)},", version.plan)
        for version in read_frozen_plans(study)
    ]
    plans.append(("study.yaml", _collect_content(study)))
    return tuple(
        f"{name} changes {to_words(key)} from {_to_text(old.get(key, ''))} to {_to_text(new[key])}"
        for (_, old), (name, new) in pairwise(plans)
        for key in new
        if old.get(key) != new[key]
    )


def check_plan(
    study: Study, coder_by_session: Mapping[str, str], conditions_by_participant: Mapping[str, Iterable[str]]
) -> PlanCheck:
    """Compare an analysis with the plan.

    `coder_by_session` has the coder by whom each analysed session counts. `conditions_by_participant` has the
    conditions of each participant in the order of recording.
    """
    versions = read_frozen_plans(study)
    deviations = [*list_plan_changes(study), *_find_order_deviations(study, conditions_by_participant)]
    if versions:
        deviations += _find_session_deviations(study, versions, coder_by_session)
    return PlanCheck(versions=versions, deviations=tuple(deviations), primary_outcome=study.file.plan.primary_outcome)


def _find_session_deviations(
    study: Study, versions: tuple[FrozenPlan, ...], coder_by_session: Mapping[str, str]
) -> Iterator[str]:
    """Yield sessions that are left out, counted or removed otherwise than planned."""
    coder = versions[-1].plan["primary_coder"]
    exclusions = versions[-1].plan["exclusions"]
    for name, session in study.file.sessions.items():
        if session.excluded and session.excluded not in exclusions:
            yield f"session {name} is excluded, which is not planned: {session.excluded}"
        elif not session.excluded and name not in coder_by_session:
            yield f"session {name} is not analysed, and no planned exclusion names it"
        elif name in coder_by_session and coder_by_session[name] != coder:
            yield f"session {name} counts by {coder_by_session[name]}, planned is {coder}"
    first_date = datetime.fromisoformat(versions[0].date)
    for removed in list_removed_sessions(study):
        date = datetime.fromtimestamp(removed.wall_ns / NS_PER_S, UTC)
        if date >= first_date and removed.session not in study.file.sessions:
            reason = f": {removed.reason}" if removed.reason else ""
            yield f"session {removed.session} was removed after the plan was frozen{reason}"


def _find_order_deviations(study: Study, conditions_by_participant: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """Yield participants who did not meet the conditions in the order drawn for them."""
    if study.file.plan.design != "crossed":
        return
    for name, conditions in conditions_by_participant.items():
        participant = study.file.participants.get(name)
        drawn = participant.order if participant else ()
        actual = tuple(conditions)
        if sorted(actual) != sorted(study.file.conditions):
            yield f"participant {name} met {_to_text(actual)}, the design has {_to_text(study.file.conditions)}"
        elif actual != drawn:
            yield f"participant {name} met {_to_text(actual)}, drawn was {_to_text(drawn)}"


def draw_orders(study: Study) -> None:
    """Draw the order of conditions for participants without one, and write it to study.yaml. Others stay.

    Each order is one of the least used so far, so that orders are counterbalanced.
    """
    if study.file.plan.design != "crossed":
        return
    rng = random.Random(f"{study.file.study} {study.file.seed} {len(study.file.participants)}")
    orders = _list_williams_orders(study.file.conditions)
    uses = Counter(participant.order for participant in study.file.participants.values())
    for name, participant in study.file.participants.items():
        if not participant.order:
            min_uses = min(uses[order] for order in orders)
            order = rng.choice([order for order in orders if uses[order] == min_uses])
            uses[order] += 1
            study.set(("participants", name, "order"), list(order))


def _list_williams_orders(conditions: tuple[str, ...]) -> list[tuple[str, ...]]:
    """List the rows of a Williams square: each condition is equally often at each position and after each other."""
    count = len(conditions)
    # 0, 1, -1, 2, -2, ...: neighbours differ by each amount once, so that shifts of the row balance what follows what.
    first_row = [(index + 1) // 2 if index % 2 else -index // 2 for index in range(count)]
    rows = [[(condition + shift) % count for condition in first_row] for shift in range(count)]
    # With an odd number of conditions, only the mirrored rows complete the balance.
    rows += [row[::-1] for row in rows] if count % 2 else []
    return [tuple(conditions[index] for index in row) for row in rows]


def describe_plan(frozen: FrozenPlan) -> tuple[str, ...]:
    """Describe a version in words: its hash, its date, and the sessions recorded by then."""
    return (
        f"Plan version {frozen.version}, frozen {frozen.date} with {_count_data(frozen)}, sha256 {frozen.sha256}",
        *(f"{to_words(key)}: {_to_text(value)}" for key, value in frozen.plan.items()),
    )


def _count_data(frozen: FrozenPlan) -> str:
    return f"{count_of(frozen.recorded, 'session')} recorded and {frozen.coded} coded"


def _to_text(value: Any) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{name}: {rule}" for name, rule in value.items()) or "none"
    return ", ".join(value) or "none" if isinstance(value, list | tuple) else str(value) or "none"
