"""When attention is raised, by the states of flags and a passed-in clock."""

from dataclasses import replace
from typing import Any

import pytest
from norm_nodes.attention import Attention

from norm_core.records.flag import FlagState, Polarity, Severity
from norm_core.runtime.time import NS_PER_S
from tests.action_selector.questions import error_flag

OPENED, UPDATED, CLOSED, WITHDRAWN = FlagState.OPENED, FlagState.UPDATED, FlagState.CLOSED, FlagState.WITHDRAWN
ENDED: dict[str, Any] = {"offset_ns": 2 * NS_PER_S}
MINOR: dict[str, Any] = {"severity": Severity.MINOR}


def state(state: FlagState, event_id: str = "a", **fields: Any) -> Any:
    values = {"onset_ns": NS_PER_S, "offset_ns": None, "severity": Severity.MAJOR} | fields
    return replace(error_flag(event_id, state=state), **values)


@pytest.mark.parametrize(
    ("steps", "raised_at_s"),
    [
        ([(0, state(OPENED, **ENDED))], [0, 2]),
        ([(0, state(OPENED)), (6, state(UPDATED, **ENDED))], [0, 2, 4, 6, 8]),
        ([(0, state(OPENED, **ENDED)), (6, state(UPDATED, probability=0.6, **ENDED))], [0, 2]),
        ([(0, state(OPENED, **ENDED)), (2, state(UPDATED, probability=0.6, **ENDED))], [0, 2]),
        ([(0, state(OPENED, **ENDED)), (6, state(WITHDRAWN, **ENDED))], [0, 2]),
        ([(0, state(OPENED)), (2, state(WITHDRAWN))], [0]),
        ([(0, state(OPENED, **ENDED)), (4, state(WITHDRAWN, **ENDED)), (6, state(UPDATED, **ENDED))], [0, 2]),
        ([(0, state(OPENED)), (2, state(WITHDRAWN)), (6, state(UPDATED))], [0, 6, 8, 10]),
        ([(0, state(OPENED)), (4, state(UPDATED, **MINOR))], [0, 2]),
        ([(0, state(OPENED, **MINOR, **ENDED)), (4, state(UPDATED, **ENDED))], [4, 6]),
        ([(0, state(OPENED)), (2, state(UPDATED, polarity=Polarity.COMPETENCE))], [0]),
        ([(0, state(CLOSED, **ENDED))], []),
        ([(0, state(OPENED)), (0, state(OPENED, "b")), (2, state(WITHDRAWN))], [0, 2, 4, 6, 8, 10]),
        ([(0, state(OPENED, **ENDED)), (6, state(OPENED, "b", **ENDED))], [0, 2, 6, 8]),
    ],
    ids=[
        "flagged after its end", "goes on, then ends", "another probability later", "another probability meanwhile",
        "withdrawn later", "withdrawn meanwhile", "withdrawn and back after its end", "withdrawn and back, goes on",
        "only minor", "major at last", "a competence", "closed", "another goes on", "another",
    ],
)  # fmt: skip
def test_attention_rises_once_an_error(steps: list[tuple[int, Any]], raised_at_s: list[int]) -> None:
    attention, raised = Attention(), []
    for now_s in range(0, 12, 2):
        for at_s, flag in steps:
            if at_s == now_s:
                attention.update(flag, now_s)
        if attention.is_raised(now_s):
            raised.append(now_s)
    assert raised == raised_at_s
