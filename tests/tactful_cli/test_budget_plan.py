"""What is proposed from given measures, and what is refused with what would fit."""

from dataclasses import replace

import pytest

from norm_core.runtime.errors import TactfulError
from tactful_cli.calibrate.budget_parts import PartTiming
from tactful_cli.calibrate.budget_plan import BudgetWishes, JudgeTrial, propose

WISHES = BudgetWishes(deadline_s=10.0, headroom=0.3, cores=2, keep_hz=1.0, step_s=5.0, calls_per_hour=240.0)
CORES_USED = 0.5


def taking(p95_ms: float) -> PartTiming:
    return PartTiming(count=30, p50_ms=p95_ms / 2, p95_ms=p95_ms, mean_ms=p95_ms / 2)


SENSES = {"picture": taking(20.0), "transcription": taking(600.0), "window": taking(40.0)}


def trial(pictures: int, p95_s: float, model: str = "big", length_s: float = 15.0) -> JudgeTrial:
    return JudgeTrial(model=model, pictures=pictures, length_s=length_s, timing=taking(1e3 * p95_s))


def test_the_first_trial_that_keeps_the_deadline_with_its_headroom_is_proposed() -> None:
    trials = [trial(4, 9.0), trial(2, 6.5), trial(1, 5.5), trial(0, 3.0)]
    plan = propose(SENSES, CORES_USED, trials, WISHES)
    monitor = plan.settings["monitor"]
    assert (monitor["judge.images"], monitor["judge.model"], monitor["windows.length_s"]) == (1, "big", 15.0)
    assert plan.total_p95_ms == pytest.approx(400 + 600 + 40 + 5500)
    assert plan.total_p95_ms <= 7000
    assert monitor["judge.calls_per_hour"] == 240.0
    assert any("big with 2 pictures of 15 s: 7.5 s in p95 with the senses" in line for line in plan.limits)


def test_a_budget_is_the_forecast_with_the_headroom_used_up() -> None:
    plan = propose(SENSES, CORES_USED, [], WISHES)
    assert plan.settings["camera"] == {"budget.p95_ms": 28.6}
    assert plan.settings["ears"] == {"budget.p95_ms": 857.1}
    assert plan.settings["monitor"] == {"budget.p95_ms": 57.1, "windows.step_s": 5.0}
    assert plan.forecast_p95_ms == {"picture": 20.0, "transcription": 600.0, "window": 40.0}


def test_a_slow_judge_is_asked_less_often() -> None:
    plan = propose(SENSES, CORES_USED, [trial(0, 20.0)], replace(WISHES, deadline_s=60.0))
    assert plan.settings["monitor"]["judge.calls_per_hour"] == 126.0
    assert any("126 an hour" in line for line in plan.limits)


def test_a_judge_gets_what_the_senses_leave_of_the_processor() -> None:
    one_core = replace(WISHES, cores=1)
    plan = propose(SENSES, 0.65, [trial(0, 3.0)], one_core)
    assert plan.settings["monitor"]["judge.calls_per_hour"] == 120.0  # 0.05 of a core, in units of 1.5 s
    assert plan.cores_used <= 0.7 + 1e-9
    with pytest.raises(TactfulError, match=r"the senses leave 0\.00 cores beside the headroom"):
        propose(SENSES, 0.7, [trial(0, 3.0)], one_core)


@pytest.mark.parametrize(
    ("p95_ms", "step_s", "expected"), [(1400, 1, 2.0), (1349, 1, 2.0), (944.4, 1, 1.4), (7, 0.25, 0.25)]
)
def test_slow_windows_come_at_a_longer_step(p95_ms: float, step_s: float, expected: float) -> None:
    plan = propose({"window": taking(p95_ms)}, CORES_USED, [], replace(WISHES, step_s=step_s))
    assert plan.settings["monitor"]["windows.step_s"] == expected


def test_a_budget_never_turns_its_warning_off() -> None:
    plan = propose({"window": taking(0.02)}, CORES_USED, [], WISHES)
    assert plan.settings["monitor"]["budget.p95_ms"] == 0.1


def test_a_smaller_model_and_a_shorter_window_are_taken_where_the_first_is_too_slow() -> None:
    trials = [trial(0, 9.0), trial(0, 8.0, length_s=7.5), trial(0, 5.0, model="small")]
    assert propose(SENSES, CORES_USED, trials, WISHES).model == "small"


def test_where_nothing_fits_the_refusal_says_what_would() -> None:
    with pytest.raises(TactfulError) as refused:
        propose(SENSES, CORES_USED, [trial(2, 30.0), trial(1, 20.0)], WISHES)
    words = str(refused.value)
    assert "nothing fits: big with 1 picture of 15 s takes 21.0 s" in words
    assert "fewer pictures, a smaller model" in words
    assert "shorter window" in words
    needed_s = float(words.rpartition("--deadline ")[2])
    assert propose(SENSES, CORES_USED, [trial(1, 20.0)], replace(WISHES, deadline_s=needed_s)).model == "big"


@pytest.mark.parametrize(
    ("senses", "wishes", "words"),
    [
        ({"picture": taking(900.0)}, WISHES, "lower it to 0.78"),
        ({"transcription": taking(9000.0)}, WISHES, "name a smaller Whisper model"),
    ],
)
def test_senses_that_do_not_fit_are_refused(senses: dict[str, PartTiming], wishes: BudgetWishes, words: str) -> None:
    with pytest.raises(TactfulError, match="nothing fits") as refused:
        propose(senses, CORES_USED, [], wishes)
    assert words in str(refused.value)


def test_a_model_without_an_answer_is_named_with_its_reason() -> None:
    silent = JudgeTrial(model="big", pictures=0, length_s=15.0, timing=None, reason="the model timed out")
    with pytest.raises(TactfulError, match="big gave no answer: the model timed out"):
        propose(SENSES, CORES_USED, [silent], WISHES)


def test_senses_that_take_the_whole_processor_are_refused() -> None:
    with pytest.raises(TactfulError, match="nothing fits: the senses take"):
        propose(SENSES, 1.5, [], WISHES)
