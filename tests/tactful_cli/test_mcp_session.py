"""What `tactful mcp` tells of a session: whose words, what is new, and by when."""

import time
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest

from norm_core.records.flag import Attribute, Evidence, FlagState, Polarity, Severity, SocialFlag, Tier
from norm_core.records.json_codec import to_plain
from norm_core.records.presence import Presence, PresenceState
from norm_core.records.speech import Speaker, Utterance
from norm_core.runtime.time import NS_PER_S
from norm_monitor.session_log.session_config import WordsPolicy
from tactful_cli.graph_stream import GraphLine
from tactful_cli.mcp.serve import GraphFeed
from tactful_cli.mcp.session import Session as McpSession
from tests.node_records import node_status
from tests.patience import PATIENCE_S

FLAG = SocialFlag(
    stamp_ns=9 * NS_PER_S, event_id="e1", state=FlagState.OPENED, polarity=Polarity.ERROR,
    attributes=(Attribute.EMOTIONS,), severity=Severity.MINOR, probability=0.9, onset_ns=5 * NS_PER_S,
    decision_ns=9 * NS_PER_S, tier=Tier.CUE, person_id="p2", rationale="The person said “my secret”.",
    evidence=(Evidence(measure="m", value=1, start_ns=0, end_ns=NS_PER_S, quote="my secret"),), correction="Say sorry.",
)  # fmt: skip
HEARD = Utterance(stamp_ns=0, utterance_id="u", speaker=Speaker.USER, text="words at", start_ns=0, end_ns=7 * NS_PER_S)


def session(policy: WordsPolicy) -> McpSession:
    made = McpSession("test", Mock(), lambda: made.talk.newest_ns)
    made.policy = policy
    for at_s, who in ((1, "p1"), (3, "p2"), (5, ""), (6, "p2")):  # the last two are one turn
        stamp_ns = at_s * NS_PER_S
        times: Any = {"stamp_ns": stamp_ns, "start_ns": stamp_ns, "end_ns": stamp_ns + NS_PER_S}
        made.take(replace(HEARD, utterance_id=f"u{at_s}", speaker_id=who, text=f"words at {at_s}", **times))
    made.take(FLAG)
    return made


def of_study(*no_words: str, ids: str = "=p1") -> WordsPolicy:
    return WordsPolicy.from_settings({"study.participants": [f"P-1{ids}", "P-2=p2"], "study.no_words": list(no_words)})


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        (WordsPolicy(), [True, True, True]),
        (of_study(), [True, True, True]),
        (of_study("P-1"), [False, True, False]),  # an unknown voice may be theirs
        (of_study("P-1", ids=""), [False, False, False]),
        (WordsPolicy(is_known=False), [False, False, False]),
    ],
)
def test_private_words_are_told_nowhere(policy: WordsPolicy, told: list[bool]) -> None:
    asked = session(policy)
    assert ["words at" in line["words"] for line in asked.talk_so_far()["lines"]] == told
    answers = str([asked.recent_flags(), asked.explain_flag("e1")])
    assert ("secret" in answers) is told[0]


def test_each_change_is_told_once_and_sightings_leave_what_was_said() -> None:
    asked = session(WordsPolicy())
    since_s = asked.recent_flags()["newest_s"]
    for name in ("e1", "e2"):  # closing keeps the time of the decision
        asked.take(replace(FLAG, event_id=name, state=FlagState.CLOSED))
    first = asked.recent_flags(since_s=since_s, limit=1)
    second = asked.recent_flags(since_s=first["newest_s"], limit=1)
    assert [page["flags"][0]["event_id"] for page in (first, second)] == ["e1", "e2"]
    for _ in range(3_000):
        asked.take(Presence(stamp_ns=7 * NS_PER_S, source_topic="camera", state=PresenceState.ABSENT))
    assert len(asked.talk_so_far()["lines"]) == 3


def test_what_was_said_under_other_consents_is_forgotten() -> None:
    asked = session(WordsPolicy(is_known=False))
    lines = []
    first = (("first", "a", ["of no study"]), ("first", "a", ["P-1"]), ("first", "b", ["P-1"]))
    for name, config, no_words in (*first, ("second", "b", list[str]())):  # a monitor may be configured again
        beat = to_plain(node_status(NS_PER_S, node="/tactful/monitor", instance_id=name, config_sha256=config))
        reply = {"id": 1, "values": {"study.participants": ["P-1"], "study.no_words": no_words}}
        for kind, plain in (("status", beat), ("reply", reply)):
            lines.append(GraphLine(kind=kind, topic="", arrival_ns=9 * NS_PER_S, record=plain))
    stream = Mock(namespace="/tactful", get=Mock(side_effect=[*lines, KeyboardInterrupt]), send=Mock(return_value=1))
    feed = GraphFeed(stream, asked, lambda _: None)
    with pytest.raises(KeyboardInterrupt):
        feed.listen()
    assert feed.behind_ns == 8 * NS_PER_S
    assert stream.send.call_count == 3
    assert asked.policy == WordsPolicy()
    assert asked.recent_flags()["flags"] == asked.talk_so_far()["lines"] == []


def server_of(asked: McpSession, deadline_s: float) -> Any:
    pytest.importorskip("mcp", reason="the extra mcp is not installed")
    from tactful_cli.mcp.server import build_server

    return build_server(asked, deadline_s)


def test_a_new_flag_is_told_to_who_listens() -> None:
    asked = session(WordsPolicy())
    server = server_of(asked, 5.0)
    import anyio
    from mcp import Client

    async def listen() -> None:
        async with Client(server) as client, client.listen(resource_subscriptions=["tactful://flags"]) as events:
            asked.take(FLAG)
            with anyio.fail_after(PATIENCE_S):
                assert (await anext(aiter(events))).uri == "tactful://flags"

    anyio.run(listen)


def test_a_request_ends_by_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = session(WordsPolicy())
    released = [False]

    def slow(text: str) -> dict[str, Any]:
        while not released[0]:
            time.sleep(0.01)
        return {}

    monkeypatch.setattr(asked, "check_utterance", slow)
    server = server_of(asked, 0.5)
    import anyio
    from mcp import Client

    async def ask() -> None:
        async with Client(server) as client:
            late = await client.call_tool("slow", {"text": "x"})
            assert late.is_error
            assert "--deadline" in late.content[0].text
            assert not (await client.call_tool("talk_so_far", {})).is_error
        released[0] = True

    anyio.run(ask)
