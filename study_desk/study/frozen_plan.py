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
from norm_core.runtime.wording import count_of, in_words
from norm_monitor.session_log.study_folder import Study, StudyError, append_line, read_lines
from study_desk.study.withdrawal import removed_sessions

PLANS = "plan.jsonl"


@record
class FrozenPlan:
    """A version of the plan. `sha256` is that of the canonical JSON of all other fields, with the hash before it."""

    version: int
    date: str
    plan: dict[str, Any]
    recorded: int  # sessions with a log when it was frozen
    coded: int  # sessions that somebody had coded by then
    earlier_sha256: str = ""
    sha256: str = ""

    def digest(self) -> str:
        """Compute the hash that the fields have."""
        names = ("version", "date", "plan", "recorded", "coded", "earlier_sha256")
        return sha256_of({name: getattr(self, name) for name in names})


@record
class PlanCheck:
    """The frozen versions in order, and the deviations of the study and its analysis from the latest."""

    versions: tuple[FrozenPlan, ...] = ()
    deviations: tuple[str, ...] = ()
    primary_outcome: str = ""


def frozen_plans(study: Study) -> tuple[FrozenPlan, ...]:
    """Read the versions of the plan. Raises StudyError if one was changed."""
    versions = read_lines(study.folder / PLANS, FrozenPlan, "restore it from a backup")
    earlier = ""
    for version in versions:
        if version.sha256 != version.digest() or version.earlier_sha256 != earlier:
            raise StudyError(
                f"{study.folder / PLANS}: version {version.version} was changed after it was frozen; restore it from a "
                "backup"
            )
        earlier = version.sha256
    return versions


def freeze_plan(study: Study, clock: Clock) -> FrozenPlan:
    """Freeze the plan of study.yaml as a new version, unless it equals the latest. Earlier versions stay."""
    plan = study.file.plan
    lacking = [name for name in ("hypotheses", "primary_outcome", "primary_coder") if not getattr(plan, name)]
    if lacking:
        raise StudyError(f"{study.path}: plan: has no {', no '.join(lacking)}; state it before you freeze the plan")
    versions = frozen_plans(study)
    content = _content(study)
    if versions and versions[-1].plan == content:
        return versions[-1]
    frozen = FrozenPlan(
        version=len(versions) + 1,
        date=datetime.fromtimestamp(clock.now_ns() // NS_PER_S, UTC).isoformat(),
        plan=content,
        recorded=sum(1 for _ in study.logs()),
        coded=sum(bool(study.recording_of(name).coders) for name, _ in study.logs()),
        earlier_sha256=versions[-1].sha256 if versions else "",
    )
    frozen = replace(frozen, sha256=frozen.digest())
    append_line(study.folder / PLANS, to_json(frozen))
    return frozen


def _content(study: Study) -> dict[str, Any]:
    return {"conditions": list(study.file.conditions), **study.file.plan.model_dump(mode="json")}


def changes_of_plan(study: Study) -> tuple[str, ...]:
    """List the changes between versions, and from the latest to study.yaml."""
    versions = frozen_plans(study)
    named = [(f"version {v.version}, of {v.date[:10]} with {_count_data(v)},", v.plan) for v in versions]
    named.append(("study.yaml", _content(study)))
    return tuple(
        f"{where} changes {in_words(key)} from {_in_text(old.get(key, ''))} to {_in_text(new[key])}"
        for (_, old), (where, new) in pairwise(named)
        for key in new
        if old.get(key) != new[key]
    )


def check_plan(study: Study, counted: Mapping[str, str], met: Mapping[str, Iterable[str]]) -> PlanCheck:
    """Compare an analysis with the plan.

    `counted` names the coder by whom each analysed session counts, `met` the conditions of each participant in the
    order of recording.
    """
    versions = frozen_plans(study)
    deviations = [*changes_of_plan(study), *_order_deviations(study, met)]
    if versions:
        deviations += _session_deviations(study, versions[-1], counted)
    return PlanCheck(versions=versions, deviations=tuple(deviations), primary_outcome=study.file.plan.primary_outcome)


def _session_deviations(study: Study, frozen: FrozenPlan, counted: Mapping[str, str]) -> Iterator[str]:
    coder, rules = frozen.plan["primary_coder"], frozen.plan["exclusions"]
    for name, session in study.file.sessions.items():
        if session.excluded and session.excluded not in rules:
            yield f"session {name} is excluded, which is not planned: {session.excluded}"
        elif not session.excluded and name not in counted:
            yield f"session {name} is not analysed, and no planned exclusion names it"
        elif name in counted and counted[name] != coder:
            yield f"session {name} counts by {counted[name]}, planned is {coder}"
    first = datetime.fromisoformat(frozen_plans(study)[0].date)
    for stone in removed_sessions(study):
        if datetime.fromtimestamp(stone.wall_ns / NS_PER_S, UTC) >= first and stone.session not in study.file.sessions:
            why = f": {stone.reason}" if stone.reason else ""
            yield f"session {stone.session} was removed after the plan was frozen{why}"


def _order_deviations(study: Study, met: Mapping[str, Iterable[str]]) -> Iterator[str]:
    if study.file.plan.design != "crossed":
        return
    for name, conditions in met.items():
        participant = study.file.participants.get(name)
        drawn, actual = participant.order if participant else (), tuple(conditions)
        if sorted(actual) != sorted(study.file.conditions):
            yield f"participant {name} met {_in_text(actual)}, the design has {_in_text(study.file.conditions)}"
        elif actual != drawn:
            yield f"participant {name} met {_in_text(actual)}, drawn was {_in_text(drawn)}"


def draw_orders(study: Study) -> None:
    """Draw the order of conditions for participants without one, and write it to study.yaml. Others stay.

    Each order is one of the least used so far, so that orders are counterbalanced.
    """
    if study.file.plan.design != "crossed":
        return
    rng = random.Random(f"{study.file.study} {study.file.seed} {len(study.file.participants)}")
    orders = _orders(study.file.conditions)
    used = Counter(participant.order for participant in study.file.participants.values())
    for name, participant in study.file.participants.items():
        if not participant.order:
            min_uses = min(used[order] for order in orders)
            order = rng.choice([order for order in orders if used[order] == min_uses])
            used[order] += 1
            study.set(("participants", name, "order"), list(order))


def _orders(conditions: tuple[str, ...]) -> list[tuple[str, ...]]:
    """List the rows of a Williams square: each condition is equally often at each position and after each other."""
    number = len(conditions)
    first = [(index + 1) // 2 if index % 2 else -index // 2 for index in range(number)]
    rows = [[(condition + shift) % number for condition in first] for shift in range(number)]
    rows += [row[::-1] for row in rows] if number % 2 else []
    return [tuple(conditions[index] for index in row) for row in rows]


def _count_data(frozen: FrozenPlan) -> str:
    return f"{count_of(frozen.recorded, 'session')} recorded and {frozen.coded} coded"


def plan_lines(frozen: FrozenPlan) -> tuple[str, ...]:
    """Describe a version in words: its hash, its date, and the sessions recorded by then."""
    return (
        f"Plan version {frozen.version}, frozen {frozen.date} with {_count_data(frozen)}, sha256 {frozen.sha256}",
        *(f"{in_words(key)}: {_in_text(value)}" for key, value in frozen.plan.items()),
    )


def no_plan_line() -> str:
    """Return the line for a study without a frozen plan."""
    return f"No plan was frozen, so all results are exploratory: see {PROGRAM} study plan STUDY --freeze."


def _in_text(value: Any) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{name}: {rule}" for name, rule in value.items()) or "none"
    return ", ".join(value) or "none" if isinstance(value, list | tuple) else str(value) or "none"
