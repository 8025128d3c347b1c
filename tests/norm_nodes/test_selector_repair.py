"""The selector's node with repairs: flags published from outside, and the decisions that name them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from norm_core.records.decision import Decision
from norm_core.records.flag import SocialFlag
from tests.action_selector.questions import error_flag
from tests.norm_core.engines.fake_server import FakeServer, describe_model, serving
from tests.norm_nodes.test_selector import ask, ready
from tests.observer import Observer
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.ros

PARAMETERS = {"when_unsure": "best_effort", "repair.on_error_flags": True}


def flags_to(observer: Observer) -> Callable[[SocialFlag], None]:
    """Return what publishes a flag to the node."""
    from norm_nodes.base.convert import to_ros

    publisher = observer.publisher(SocialFlag, "flags")
    observer.until(publisher.get_subscription_count, "the node to listen")
    return lambda flag: publisher.publish(to_ros(flag))


def decisions_of(observer: Observer) -> list[Any]:

    return observer.records(Decision, "decisions")


def holding(server: FakeServer) -> None:
    """Make the model answer only once it is released."""
    complete = server.complete

    def wait(body: dict[str, Any]) -> Any:
        assert server.released.wait(PATIENCE_S)
        return complete(body)

    server.complete = wait  # type: ignore[method-assign]


def test_a_flood_of_flags_is_bounded_and_counted(domain_id: int, observer: Observer, own_models: Path) -> None:
    with serving() as server:
        holding(server)
        describe_model(own_models, "slow", server.url)
        with ready({**PARAMETERS, "model": "slow", "longest_s": 600.0}, domain_id):
            decided, statuses = decisions_of(observer), observer.watch_status()
            publish = flags_to(observer)
            observer.meet("selector")
            for number in range(40):
                publish(error_flag(f"e{number}"))
            observer.until(lambda: observer.counted("repairs_refused") == 36, "the flags to be counted")
            server.released.set()
            observer.until(lambda: len(decided) == 4, "the decisions on the first flags")
            ask(observer, query_id="last", candidates=["Lay the table."])
            observer.until(lambda: len(decided) == 5, "the last decision")
    assert statuses
    assert [message.query_id for message in decided] == ["e0", "e1", "e2", "e3", "last"]
