"""The ledger loses no count between threads and names the worst it knows."""

from threading import Thread

from norm_core.records.status import Counter, Health
from norm_core.runtime.bounded_queue import Policy
from norm_core.runtime.health_log import Ledger


def test_counts_from_many_threads_add_up_while_they_are_read() -> None:
    ledger = Ledger()

    def work(which: int) -> None:
        for step in range(2000):
            ledger.count("all")
            ledger.trouble(f"{which}-{step % 50}", Health.DEGRADED, "busy")
            ledger.mended(f"{which}-{step % 50}")

    threads = [Thread(target=work, args=(which,)) for which in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert ledger.health in (Health.OK, Health.DEGRADED)
        assert len(ledger.reasons) <= 4
    assert ledger.counters == (Counter(name="all", count=8000),)
    assert ledger.health is Health.OK


def test_the_health_is_the_worst_until_it_is_mended() -> None:
    ledger = Ledger()
    assert ledger.trouble("engine", Health.FAILED, "the engine died")
    assert ledger.trouble("camera", Health.STALE, "no frames")
    assert not ledger.trouble("camera", Health.STALE, "no frames")
    assert (ledger.health, ledger.reasons) == (Health.FAILED, ("the engine died", "no frames"))
    ledger.mended("engine")
    assert ledger.health is Health.STALE


def test_a_passing_trouble_is_stated_with_its_latest_particular_until_it_has_passed() -> None:
    now_s, news = [0.0], []
    ledger = Ledger(lambda health, reason: news.append(reason), lambda: now_s[0])
    for latest in ("first", "second"):
        ledger.trouble("gap", Health.DEGRADED, "a gap", latest=latest, lasting_s=10)
    assert ledger.reasons == ("a gap (second)",) and news == ["a gap (first)"]
    now_s[0] = 10.0
    assert not ledger.reasons and ledger.health is Health.OK
    assert ledger.trouble("gap", Health.DEGRADED, "a gap", lasting_s=10) and len(news) == 2


def test_beginning_anew_forgets_all() -> None:
    ledger = Ledger()
    ledger.queue("q", 1, Policy.REFUSE).put(1)
    ledger.count("n")
    ledger.trouble("x", Health.FAILED, "y")
    assert ledger.queues[0].depth == 1
    ledger.begin_anew()
    assert (ledger.queues, ledger.counters, ledger.reasons, ledger.health) == ((), (), (), Health.OK)
