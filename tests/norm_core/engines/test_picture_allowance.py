"""Memory that runs out costs pictures, then all of them; after a while they come back."""

import pytest
from pydantic import BaseModel

from norm_core.engines.direct_engine import DirectEngine
from norm_core.engines.prompt import Prompt, Text
from norm_core.engines.reply import Generation
from norm_core.records.outcome import Outcome
from norm_core.runtime.time import NS_PER_S, ReplayClock
from tests.norm_core.engines.contract import QUESTIONS, picture
from tests.norm_core.engines.scripted import BoundedBackend

SEEN = Prompt(version="1", parts=(*(picture(64 + index, 48) for index in range(8)), Text(text="What now?")))


def opened(pictures: float) -> tuple[DirectEngine, BoundedBackend, ReplayClock]:
    backend, clock = BoundedBackend(int(pictures * len(SEEN.images[-1].jpeg))), ReplayClock(0)
    return DirectEngine(backend, clock), backend, clock


def counts(engine: DirectEngine) -> dict[str, int]:
    return {counter.name: counter.count for counter in engine.health.counters}


@pytest.mark.parametrize(
    ("room", "shown", "wording"),
    [
        (5, [8, 4], "one picture in 2"),
        (2.5, [8, 4, 2], "one picture in 4"),
        (0, [8, 4, 2, 1, 0], "one picture in 16"),
    ],
)
def test_a_window_too_large_is_asked_again_with_less(room: float, shown: list[int], wording: str) -> None:
    engine, backend, _ = opened(room)
    answers = engine.ask_many(SEEN, QUESTIONS)
    assert [answer.outcome for answer in answers] == [Outcome.ANSWERED] * 3
    assert [answer.usage.images for answer in answers] == [shown[-1], 0, 0]
    assert {answer.usage.retries for answer in answers} == {len(shown) - 1}
    assert backend.shown == shown
    (issue,) = engine.health.issues
    assert f"it gets {wording}; stop what else uses the memory" in issue
    assert counts(engine)["model_out_of_memory"] == len(shown) - 1


def test_the_digest_names_the_pictures_that_were_shown() -> None:
    whole, reduced = (opened(room)[0].ask_many(SEEN, QUESTIONS)[0] for room in (20, 5))
    assert whole.prompt_digest != reduced.prompt_digest
    assert whole.prompt_digest == QUESTIONS[0].digest(SEEN)


def test_pictures_come_back_after_a_while_and_later_after_each_failure() -> None:
    engine, backend, clock = opened(5)

    def after(seconds: int) -> list[int]:
        backend.shown.clear()
        clock.advance_to(clock.now_ns() + seconds * NS_PER_S)
        engine.ask_many(SEEN, QUESTIONS)
        return list(backend.shown)

    assert after(0) == [8, 4]
    assert after(59) == [4]
    assert after(2) == [8, 4]  # too early: the pause doubles
    assert after(60) == [4]
    backend.room_bytes *= 10
    assert after(61) == [8]
    assert engine.health.issues == ()


def test_words_that_do_not_fit_fail_and_reduce_nothing() -> None:
    engine, backend, _ = opened(-1)
    words = Prompt(version="1", parts=SEEN.parts[-1:])
    assert [answer.outcome for answer in engine.ask_many(words, QUESTIONS)] == [Outcome.FAILED] * 3
    assert (backend.shown, engine.health.issues) == ([0], ())
    assert counts(engine) == {"model_out_of_memory": 1, "pictures_withheld": 0}


def test_writing_drops_pictures_when_memory_runs_out() -> None:
    engine, backend, _ = opened(2.5)
    written: Generation[BaseModel] = engine.generate(SEEN)
    assert (written.outcome, written.usage.retries, backend.shown) == (Outcome.ANSWERED, 2, [8, 4, 2])
