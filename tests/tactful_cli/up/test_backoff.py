"""The wait before a process is started again."""

from tactful_cli.up.backoff import BAD_INPUT_DELAY_S, DELAYS_S, FORGIVEN_AFTER_S, Backoff


def test_crashes_in_a_row_wait_longer_up_to_a_bound() -> None:
    backoff, delays = Backoff(), []
    for _ in range(len(DELAYS_S) + 3):
        backoff, delay_s = backoff.after(0.5, bad_input=False)
        delays.append(delay_s)
    assert delays[0] == 0.0
    assert delays == sorted(delays)
    assert delays[-1] == max(DELAYS_S)
    assert backoff.restarts == len(delays)


def test_a_long_run_is_forgiven_and_still_counted() -> None:
    backoff, _ = Backoff(restarts=5, in_a_row=5).after(FORGIVEN_AFTER_S, bad_input=False)
    assert backoff == Backoff(restarts=6, in_a_row=1)


def test_what_cannot_be_configured_is_tried_seldom() -> None:
    assert Backoff().after(0.5, bad_input=True)[1] == BAD_INPUT_DELAY_S
