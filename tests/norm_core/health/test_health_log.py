"""The health log loses no count between threads and names the worst it knows."""

from threading import Thread

from norm_core.health.health_log import HealthLog
from norm_core.records.status import Counter, Health


def test_counts_from_many_threads_add_up_while_they_are_read() -> None:
    health_log = HealthLog()

    def work(which: int) -> None:
        for step in range(2000):
            health_log.count("all")
            health_log.raise_issue(f"{which}-{step % 50}", Health.DEGRADED, "busy")
            health_log.clear_issue(f"{which}-{step % 50}")

    threads = [Thread(target=work, args=(which,)) for which in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert health_log.health in (Health.OK, Health.DEGRADED)
        assert len(health_log.reasons) <= 4
    assert health_log.counters == (Counter(name="all", count=8000),)
    assert health_log.health is Health.OK


def test_the_health_is_the_worst_until_it_is_mended() -> None:
    health_log = HealthLog()
    assert health_log.raise_issue("engine", Health.FAILED, "the engine died")
    assert health_log.raise_issue("camera", Health.STALE, "no frames")
    assert not health_log.raise_issue("camera", Health.STALE, "no frames")
    assert (health_log.health, health_log.reasons) == (Health.FAILED, ("the engine died", "no frames"))
    health_log.clear_issue("engine")
    assert health_log.health is Health.STALE


def test_an_issue_keeps_its_first_detail_until_it_clears() -> None:
    now_s, news = [0.0], []
    health_log = HealthLog(lambda health, reason: news.append(reason), lambda: now_s[0])
    for detail in ("first", "second"):
        health_log.raise_issue("gap", Health.DEGRADED, "a gap", detail=detail, lasting_s=10)
    assert health_log.reasons == ("a gap (first)",)
    assert news == ["a gap (first)"]
    now_s[0] = 10.0
    assert not health_log.reasons
    assert health_log.health is Health.OK
    assert health_log.raise_issue("gap", Health.DEGRADED, "a gap", lasting_s=10)
    assert len(news) == 2
