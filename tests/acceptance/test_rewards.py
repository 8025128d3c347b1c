"""`tactful rewards` on a study's session and on a bag that another program wrote."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from norm_core.bags.storage import STORED_AS
from norm_core.records.flag import Evidence, SocialFlag, Verdict
from norm_core.records.speech import Speaker
from norm_core.runtime.time import NS_PER_S, WallClock
from norm_monitor.context.turns import Turn
from norm_monitor.units.unit import Unit
from sim_replays.drivers.bag_driver import feed_monitor
from sim_replays.rewards import rewards_of
from study_desk.log.schema import Participant, Review
from study_desk.log.writer import StudyLog
from tactful_cli.mcp.verb import policy_of
from tests.acceptance.conversation_bag import robot, user, write_talk
from tests.command_line import tactful
from tests.norm_monitor import encounter_talk as spoken
from tests.tactful_cli.test_mcp_session import FLAG

TALK = [
    user(1, 3, "Where can I buy a ticket?"),
    robot(4, 6, "You buy it at the counter on the left."),
    user(33, 36, "I'd like a coffee, please."),
    robot(37, 41, "Your blood test from Monday is positive, by the way."),
]


def run(*arguments: object, fails: bool = False) -> str:
    result = tactful(*arguments)
    assert (result.returncode != 0) is fails, result.stderr
    return result.stderr if fails else result.stdout


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def bag(tmp_path: Path) -> Path:
    return write_talk(tmp_path / "bag", TALK, 100)


def test_a_session_gives_turns_pairs_and_a_card_until_its_participant_withdraws(tmp_path: Path) -> None:
    study, made, pairs = tmp_path / "study", tmp_path / "r.jsonl", tmp_path / "p.jsonl"
    run("study", "init", study, "--condition", "quiet")
    bag = write_talk(study / "bags/bag", TALK, 100)
    run("study", "participant", study, "P-1", "--words")
    run("study", "add", study, bag, "--session", "S01", "--condition", "quiet", "--participant", "P-1")
    run("rewards", study, "--out", made, "--pairs", pairs)
    assert [path.stat().st_mode & 0o077 for path in (made, pairs)] == [0, 0]
    good, error = lines(made)
    assert [good["said"], error["said"]] == [TALK[1][3], TALK[3][3]]
    assert error["score"] < -0.5 < good["score"]
    assert [pair["rejected"][0]["content"] for pair in lines(pairs)] == [error["said"]]
    assert lines(pairs)[0]["prompt"][-1] == {"role": "user", "content": TALK[2][3]}
    assert lines(pairs)[0]["chosen"] == [{"role": "assistant", "content": error["correction"]}]
    card = made.with_name("r.jsonl.card.md").read_text(encoding="utf-8")
    assert "Preference pairs: 1" in card

    with StudyLog.resume(study / "sessions/S01", WallClock()) as log:
        log.append(Review(event_id=error["event_id"], reviewer="R-1", verdict=Verdict.REJECT), 0)
    groups = json.loads(run("rewards", study / "sessions/S01", "--out", made, "--pairs", pairs, "--json"))["groups"]
    assert [turn["confirmed"] for turn in lines(made)] == [None, False]
    assert lines(pairs) == []
    assert [(row["condition"], row["turns"], row["errors"]) for row in groups] == [("quiet", 2, 0)]

    for named in (bag, next(file for file in bag.iterdir() if file.suffix in STORED_AS)):
        assert "belongs to a study" in run("rewards", named, "--out", made, fails=True)
    assert not policy_of(bag).withheld("")
    run("study", "withdraw", study, "P-1", "--words", fails=True)  # the bag is left to erase
    left_out = json.loads(run("rewards", study, "--out", made, "--json"))["left_out"]
    assert lines(made) == []
    assert sum(left_out.values()) == 2
    assert policy_of(bag).withheld("")


def test_an_interrupted_command_goes_on(bag: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other, made = write_talk(tmp_path / "other", TALK[:2], 40), tmp_path / "r.jsonl"
    played: list[int] = []

    def fails_second(*given: Any) -> Any:
        played.append(len(played))
        if played == [0, 1]:
            raise KeyboardInterrupt
        return feed_monitor(*given)

    monkeypatch.setattr("sim_replays.rewards.feed_monitor", fails_second)
    assert tactful("rewards", bag, other, "--out", made).returncode == 130
    run("rewards", tmp_path / "none", "--out", made, fails=True)
    run("rewards", bag, other, "--out", made)
    assert len(played) == 3  # the first bag is not played again
    assert [turn["source"] for turn in lines(made)] == ["bag", "bag", "other"]
    assert sorted(path.name for path in tmp_path.glob("*r.jsonl*")) == ["r.jsonl", "r.jsonl.card.md"]


def test_the_card_tells_the_measured_figures() -> None:
    root = Path(__file__).resolve().parents[2]
    told = (root / "docs/results/monitor.md").read_text(encoding="utf-8").replace("**", "")
    card = " ".join((root / "sim_replays/rewards_card.md").read_text(encoding="utf-8").split())
    for figure in ("60 [57, 64]", "59 [56, 62]", "4.3 [2.3, 6.9]", "0.57 [0.55, 0.60]", "0.53 [0.51, 0.57]"):
        assert figure in told
        assert figure in card


def test_private_words_stay_out_of_reasons_and_of_what_was_said_before() -> None:
    talk = [
        *spoken.user(1, 3, "My mother died last week.", person="p1"),
        *spoken.robot(4, 5, "I am sorry about your mother."),
        *spoken.user(7, 8, "Where is the lift?", person="p2"),
        *spoken.robot(9, 11, "Great! Do you want to hear a joke about whales?"),
        *spoken.user(12, 14, "No. Did you not hear that?", person="p2"),
        *spoken.robot(15, 17, "The lift is behind you."),
    ]

    def flag(at_s: float, event_id: str, quoted_s: float) -> SocialFlag:
        quoted_ns = spoken.at(quoted_s)
        quote = Evidence(measure="m", value=1, start_ns=quoted_ns, end_ns=quoted_ns + NS_PER_S, quote="words")
        onset_ns = spoken.at(at_s)
        return replace(FLAG, event_id=event_id, onset_ns=onset_ns, evidence=(quote,), rationale=event_id)

    def event_of(at_s: float) -> str:
        start_ns = spoken.at(at_s)
        turn = Turn(speaker=Speaker.ROBOT, start_ns=start_ns, end_ns=start_ns, text="", turn_id=f"r{at_s}", spans=())
        return Unit.of_turn(turn).event_id

    people = (
        Participant(pseudonym="P-1", person_ids=("p1",), transcript=False),
        Participant(pseudonym="P-2", person_ids=("p2",)),
    )
    flags = (flag(9, event_of(9), 9), flag(9, "of a person's turn", 9), flag(15, event_of(15), 2))
    recording: Any = SimpleNamespace(info=SimpleNamespace(participants=people), flags=flags, reviews=())
    made = rewards_of(spoken.with_silence(talk, 40), ("utterances",), "source", "S01", "digest", recording)
    (turn,) = made.turns
    assert (turn.earlier, turn.said, turn.reason) == ("", talk[4].text, event_of(9))  # type: ignore[union-attr]
    assert list(made.left_out.values()) == [2]
