from norm_core.records.window import Window
from norm_core.runtime.time import NS_PER_S
from norm_monitor.judge.triggers import MOST_DUE, JudgeTriggers
from tests.norm_monitor.fusion.test_fusion import finding


def window(end_s: int) -> Window:
    return Window(start_ns=(end_s - 15) * NS_PER_S, end_ns=end_s * NS_PER_S)


def test_something_new_is_judged_once() -> None:
    triggers = JudgeTriggers(0)
    for end_s in (15, 20, 25):
        triggers.note_window(window(end_s), [finding(12)])
    assert triggers.take() == [window(15)]
    assert triggers.take() == []


def test_a_window_with_nothing_in_it_is_not_judged() -> None:
    triggers = JudgeTriggers(10)
    for end_s in range(15, 100, 5):
        triggers.note_window(window(end_s), [])
    assert triggers.take() == []


def test_windows_that_nobody_takes_are_let_go_and_counted() -> None:
    triggers = JudgeTriggers(0)
    for second in range(20, 20 + MOST_DUE + 3):
        triggers.note_window(window(second), [finding(second)])
    assert len(triggers.take()) == MOST_DUE
    assert [(counter.name, counter.count) for counter in triggers.counters] == [("windows_not_judged", 3)]
