"""Draw who codes which session: a share of them twice, balanced by condition and by coder."""

import math
import random
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import field
from itertools import combinations

from norm_core.records.record import record
from study_desk.study.study_folder import Study, StudyError


@record
class Assignment:
    """Who codes each session. `drawn` are the sessions that were assigned now."""

    coders: dict[str, tuple[str, ...]]
    drawn: tuple[str, ...] = ()
    twice: float = 0.0
    seed: int = 0
    loads: dict[str, int] = field(default_factory=dict)


def assign(study: Study, *, twice: float | None = None, seed: int | None = None) -> Assignment:
    """Draw coders for the sessions that name none, and write them to study.yaml. Others stay as they are.

    Who has coded such a session already is one of its coders.
    """
    share = study.file.coded_twice if twice is None else twice
    number = study.file.seed if seed is None else seed
    if not study.file.sessions:
        raise StudyError(f"{study.path}: has no session to assign; add one")
    needed = 2 if share else 1
    if len(study.file.coders) < needed:
        raise StudyError(f"{study.path}: has {len(study.file.coders)} coders, and the draw needs {needed}; add coders")
    conditions = {name: session.condition for name, session in study.file.sessions.items()}
    stated = {name: session.coders for name, session in study.file.sessions.items() if session.coders}
    begun = {
        name: tuple(coder for coder in study.file.coders if coder in study.recording_of(name).coders)
        for name, _ in study.logs()
        if name not in stated
    }
    drawn = draw(conditions, study.file.coders, stated, begun, share=share, rng=random.Random(number))
    changes: list[tuple[tuple[str, ...], object]] = []
    if share != study.file.coded_twice:
        changes.append((("coded_twice",), share))
    if number != study.file.seed:
        changes.append((("seed",), number))
    changes += [(("sessions", name, "coders"), list(drawn[name])) for name in conditions if name in drawn]
    study.set_all(changes)
    coders = {name: study.file.sessions[name].coders for name in conditions}
    return Assignment(
        coders=coders,
        drawn=tuple(name for name in conditions if name in drawn),
        twice=share,
        seed=number,
        loads={coder: sum(coder in each for each in coders.values()) for coder in study.file.coders},
    )


def draw(
    conditions: Mapping[str, str],
    coders: Collection[str],
    stated: Mapping[str, Collection[str]],
    begun: Mapping[str, Collection[str]],
    *,
    share: float,
    rng: random.Random,
) -> dict[str, tuple[str, ...]]:
    """Draw coders for the sessions without stated ones. Coders who have begun a session keep it."""
    taken = {name: tuple(each) for name, each in stated.items()}
    load: Counter[str] = Counter()
    in_condition: Counter[tuple[str, str]] = Counter()
    pairs: Counter[frozenset[str]] = Counter()

    def count(name: str) -> None:
        load.update(taken[name])
        in_condition.update((conditions[name], coder) for coder in taken[name])
        pairs.update(map(frozenset, combinations(taken[name], 2)))

    for name in taken:
        count(name)
    open_sessions = [name for name in conditions if name not in taken]
    rng.shuffle(open_sessions)
    twice = _twice(open_sessions, conditions, {**begun, **taken}, share)
    for name in sorted(open_sessions, key=lambda name: conditions[name]):  # the order within a condition is drawn
        there = tuple(begun.get(name, ()))
        wanted = max(len(there), 2 if name in twice else 1)
        ranks = {coder: rng.random() for coder in coders}

        def cost(group: tuple[str, ...], name: str = name, ranks: dict[str, float] = ranks) -> tuple[float, ...]:
            return (
                sum(load[coder] for coder in group),
                sum(in_condition[conditions[name], coder] for coder in group),
                sum(pairs[frozenset(pair)] for pair in combinations(group, 2)),
                sum(ranks[coder] for coder in group),
            )

        groups = [group for group in combinations(coders, wanted) if {*there} <= {*group}]
        taken[name] = min(groups, key=cost)
        count(name)
    return {name: taken[name] for name in open_sessions}


def _twice(
    open_sessions: Iterable[str],
    conditions: Mapping[str, str],
    coders: Mapping[str, Collection[str]],
    share: float,
) -> set[str]:
    """Choose the sessions to code twice, so that each condition comes as near to the share as it can."""
    doubled = Counter(conditions[name] for name, each in coders.items() if len(each) > 1)
    total = Counter(conditions.values())
    left = [name for name in open_sessions if len(coders.get(name, ())) < 2]
    missing = math.ceil(round(share * len(conditions), 9)) - doubled.total()
    chosen: set[str] = set()
    while left and missing > len(chosen):
        neediest = max(left, key=lambda name: share * total[conditions[name]] - doubled[conditions[name]])
        left.remove(neediest)
        doubled[conditions[neediest]] += 1
        chosen.add(neediest)
    return chosen
