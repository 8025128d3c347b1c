"""Propose what keeps p95 within the deadline with a headroom, from what was measured, and say what limits it."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.wording import count_of
from tactful_cli.calibrate.budget_parts import PartTiming

# The pause after which the ears take a turn as ended.
TURN_END_MS = 400.0


@record
class BudgetWishes:
    """What is asked of the machine: the profile's own settings where it names none."""

    deadline_s: float  # from the end of a turn to what it leads to, the judge included
    headroom: float  # the share of the deadline and of the processor that stays free
    cores: int
    keep_hz: float
    step_s: float
    calls_per_hour: float


@record
class JudgeTrial:
    """A model timed as judge with so many pictures and such a window; `reason` says why it gave no answer."""

    model: str
    pictures: int
    length_s: float
    timing: PartTiming | None
    reason: str = ""


@record
class BudgetPlan:
    """The proposal: the settings by node, the forecasts by part, and what limits them."""

    settings: Mapping[str, Mapping[str, Any]]
    forecast_p95_ms: Mapping[str, float]
    total_p95_ms: float
    cores_used: float
    model: str
    limits: tuple[str, ...]


def allowed_ms(wishes: BudgetWishes) -> float:
    """Return the deadline less the headroom."""
    return 1e3 * wishes.deadline_s * (1 - wishes.headroom)


def fits(trial: JudgeTrial, senses_p95_ms: float, wishes: BudgetWishes) -> bool:
    """Whether a judge answers in time after the senses."""
    return trial.timing is not None and senses_p95_ms + trial.timing.p95_ms <= allowed_ms(wishes)


def senses_p95_ms(senses: Mapping[str, PartTiming]) -> float:
    """Return an upper bound of p95 from the end of a turn to the cues' findings: the sum of the parts' p95."""
    heard_ms = senses["transcription"].p95_ms + TURN_END_MS if "transcription" in senses else 0.0
    return heard_ms + (senses["window"].p95_ms if "window" in senses else 0.0)


def propose(
    senses: Mapping[str, PartTiming],
    cores_used: float,
    trials: Sequence[JudgeTrial],
    wishes: BudgetWishes,
) -> BudgetPlan:
    """Propose settings; `trials` are in order of preference. Raises TactfulError where nothing fits, with what would.

    `cores_used` is the processor time that the senses take each second.
    """
    free = 1 - wishes.headroom
    _check_senses(senses, wishes, cores_used)
    chain_ms = senses_p95_ms(senses)
    limits = [_slowest(senses, wishes)]
    chosen = next((trial for trial in trials if fits(trial, chain_ms, wishes)), None)
    if trials and chosen is None:
        raise TactfulError(_nothing_fits(trials, chain_ms, wishes))
    forecast = {name: timing.p95_ms for name, timing in senses.items()}
    settings: dict[str, dict[str, Any]] = {}
    for name, node in (("picture", "camera"), ("transcription", "ears"), ("window", "monitor")):
        if name in senses:
            settings[node] = {"budget.p95_ms": _rounded(forecast[name] / free)}
    if "window" in senses:
        needed_s = senses["window"].p95_ms / 1e3 / free
        step_s = wishes.step_s if needed_s <= wishes.step_s else math.ceil(10 * needed_s) / 10
        settings["monitor"]["windows.step_s"] = step_s
    if chosen and chosen.timing:
        p95_s = chosen.timing.p95_ms / 1e3
        # A judge that works is taken as one core.
        left = free * wishes.cores - cores_used
        most = int(3600 * min(free / p95_s, left / (chosen.timing.mean_ms / 1e3)) + 1e-6)
        if not most:
            raise TactfulError(
                f"nothing fits: {_named(chosen)} takes {p95_s:.1f} s of a core, and the senses leave "
                f"{left:.2f} cores beside the headroom; name a smaller model in --model"
            )
        calls = float(min(wishes.calls_per_hour, most))
        if most < wishes.calls_per_hour:
            limits.append(
                f"judge.calls_per_hour: a unit takes {p95_s:.1f} s, and the senses take {cores_used:.2f} of "
                f"{count_of(wishes.cores, 'core')}, so {most} an hour in place of more"
            )
        passed = trials[: trials.index(chosen)]
        limits += [f"{_named(trial)}: {_why_not(trial, chain_ms, wishes)}" for trial in passed]
        forecast["judge_unit"] = chosen.timing.p95_ms
        cores_used += calls / 3600 * chosen.timing.mean_ms / 1e3
        settings["monitor"] |= {
            "windows.length_s": chosen.length_s,
            "judge.model": chosen.model,
            "judge.images": chosen.pictures,
            "judge.calls_per_hour": calls,
            "budget.judge_p95_ms": _rounded(chosen.timing.p95_ms / free),
        }
    return BudgetPlan(
        settings=settings,
        forecast_p95_ms=forecast,
        total_p95_ms=chain_ms + forecast.get("judge_unit", 0.0),
        cores_used=cores_used,
        model=chosen.model if chosen else "",
        limits=tuple(limits),
    )


def _check_senses(senses: Mapping[str, PartTiming], wishes: BudgetWishes, cores_used: float) -> None:
    free = 1 - wishes.headroom
    if (picture := senses.get("picture")) and picture.p95_ms > 1e3 * free / wishes.keep_hz:
        most_hz = 1e3 * free / picture.p95_ms
        raise TactfulError(
            f"nothing fits: a picture takes {picture.p95_ms:.0f} ms in p95, and keep_hz of camera is "
            f"{wishes.keep_hz:g}; lower it to {most_hz:.2g}, or set faces to false"
        )
    if (chain_ms := senses_p95_ms(senses)) > allowed_ms(wishes):
        raise TactfulError(
            f"nothing fits: from the end of a turn to what the cues find takes {chain_ms / 1e3:.1f} s in p95 "
            f"({_parts(senses)}), and {_allowed(wishes)}; name a smaller Whisper model in the profile (model of ears), "
            f"end what else runs on this machine, or allow --deadline {_needed_s(chain_ms, wishes):.1f}"
        )
    if cores_used > free * wishes.cores:
        raise TactfulError(
            f"nothing fits: the senses take {cores_used:.1f} cores, and {free * wishes.cores:.1f} of "
            f"{count_of(wishes.cores, 'core')} are free beside the headroom; lower keep_hz of camera, name a smaller "
            "Whisper model in the profile, or set partial_every_s of ears to 0"
        )


def _slowest(senses: Mapping[str, PartTiming], wishes: BudgetWishes) -> str:
    name = max(senses, key=lambda part: senses[part].p95_ms)
    return f"senses: {name} is the slowest part, {senses[name].p95_ms:.0f} ms in p95; {_allowed(wishes)}"


def _nothing_fits(trials: Sequence[JudgeTrial], chain_ms: float, wishes: BudgetWishes) -> str:
    timed = [(chain_ms + trial.timing.p95_ms, trial) for trial in trials if trial.timing]
    if not timed:
        return f"nothing fits: {trials[-1].model} gave no answer: {trials[-1].reason}; name a smaller model in --model"
    fastest_ms, fastest = min(timed, key=lambda pair: pair[0])
    fewer = "fewer pictures, " if fastest.pictures else ""
    return (
        f"nothing fits: {_named(fastest)} takes {fastest_ms / 1e3:.1f} s from the end of a turn in p95, "
        f"{chain_ms / 1e3:.1f} s of it the senses, and {_allowed(wishes)}; take {fewer}a smaller model in --model, a "
        f"shorter window (windows.length_s), or allow --deadline {_needed_s(fastest_ms, wishes):.1f}"
    )


def _why_not(trial: JudgeTrial, chain_ms: float, wishes: BudgetWishes) -> str:
    if trial.timing is None:
        return trial.reason
    return f"{(chain_ms + trial.timing.p95_ms) / 1e3:.1f} s in p95 with the senses, and {_allowed(wishes)}"


def _named(trial: JudgeTrial) -> str:
    return f"{trial.model} with {count_of(trial.pictures, 'picture')} of {trial.length_s:g} s"


def _parts(senses: Mapping[str, PartTiming]) -> str:
    return ", ".join(f"{name} {timing.p95_ms:.0f} ms" for name, timing in senses.items() if name != "picture")


def _allowed(wishes: BudgetWishes) -> str:
    allowed_s = allowed_ms(wishes) / 1e3
    return f"{allowed_s:.1f} s of {wishes.deadline_s:g} s are allowed with a headroom of {wishes.headroom:g}"


def _needed_s(total_ms: float, wishes: BudgetWishes) -> float:
    return total_ms / 1e3 / (1 - wishes.headroom) + 0.1


def _rounded(value_ms: float) -> float:
    return max(0.1, round(value_ms, 1))  # 0 would turn the warning off
