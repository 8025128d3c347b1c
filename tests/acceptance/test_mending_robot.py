"""The example robot with scripted people who protest, and a scripted stand-in for its language model."""

import asyncio
import json
import runpy
from pathlib import Path
from typing import Any

from action_selector.selector import SelectorFiles, open_selector
from norm_core.records.speech import RobotSpeech, Speaker, SpeechEdge, Utterance, silence_mark
from norm_core.runtime.time import NS_PER_S, ReplayClock, WallClock
from norm_core.runtime.watermarks import UTTERANCES
from sim_replays.drivers.bag_driver import replay_monitor
from study_desk.log.session_config import WordsPolicy
from tactful_cli.mcp.session import Session

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/mending_robot.py"
MOST_PROTESTS = 3
# What a person asks, what the stand-in says wrongly, how the person protests, and what it would say when told.
TALKS = [
    ("My mother died last week.", "Great! Do you want to hear a joke about whales?", "Did you not hear what I said?",
     "I am so sorry about your mother."),
    ("I'd like a coffee, please.", "Your blood test from Monday is positive, by the way.", "Why do you tell everybody?",
     "One coffee, coming right up."),
    ("Where can I buy a ticket?", "The museum was built by two brothers.", "No, that is not what I asked.",
     "You buy a ticket at the counter on your left."),
    ("I lost my wallet and I am really worried.", "That is your own fault.", "That is not very nice.",
     "That is upsetting. Let us look for it together."),
    ("Could you speak more slowly, please?", "No. Listen better.", "You are rude.", "Of course, I will speak slowly."),
    ("My name is Anna, not Hannah.", "Welcome, Hannah!", "I told you, my name is Anna.", "Welcome, Anna."),
    ("I cannot walk up the stairs.", "Just take the stairs to the second floor.", "I said that I cannot walk stairs.",
     "The lift is right behind you."),
    ("I am vegetarian. What can I eat?", "You should try the beef.", "I just told you that I eat no meat.",
     "The vegetable curry is good."),
]  # fmt: skip


class Talk:
    """A talk in simulated time, which a monitor hears as it goes."""

    def __init__(self) -> None:
        self.now_ns, self._clock = NS_PER_S, ReplayClock()
        self._monitor = replay_monitor((UTTERANCES,), self._clock)
        self.session = Session("talk", WordsPolicy(), open_selector(SelectorFiles(), WallClock()))

    def say(self, text: str, *, by_robot: bool) -> None:
        start_ns, end_ns = self.now_ns, self.now_ns + max(1, len(text) // 15) * NS_PER_S
        self.now_ns = end_ns + NS_PER_S
        if by_robot:
            edges = ((start_ns, SpeechEdge.START), (end_ns, SpeechEdge.STOP))
            for at_ns, edge in edges:
                self._take(RobotSpeech(stamp_ns=at_ns, speech_id=f"r{start_ns}", state=edge, text=text))
        else:
            self._take(
                Utterance(
                    stamp_ns=start_ns, utterance_id=f"u{start_ns}", speaker=Speaker.USER, text=text,
                    start_ns=start_ns, end_ns=end_ns,
                )
            )  # fmt: skip
        self._take(silence_mark(self.now_ns, "ears"))

    def _take(self, heard: Utterance | RobotSpeech) -> None:
        self._clock.advance_to(max(self.now_ns, self._clock.now_ns()))
        self.session.take(heard)
        for flag in self._monitor.take(heard):
            self.session.take(flag)


async def errors_of(script: tuple[str, ...], *, reads_flags: bool) -> tuple[int, int]:
    """How often the robot errs in a talk, and how often a model is asked for one answer at most."""
    opening, wrong, protest, right = script
    talk, asked = Talk(), 0
    talk.session.follow()

    async def ask(messages: list[dict[str, str]]) -> str:
        nonlocal asked
        asked += 1
        return right if messages[-1]["role"] == "system" or right in str(messages) else wrong

    async def tool(name: str, **given: Any) -> Any:
        return json.loads(json.dumps(getattr(talk.session, name)(**given))) if reads_flags else {}

    robot = runpy.run_path(str(EXAMPLE))["MendingRobot"](ask, tool)
    errors, most_asked, line = 0, 0, opening
    for _ in range(1 + MOST_PROTESTS):
        talk.say(line, by_robot=False)
        asked = 0
        said = await robot.answer(line)
        most_asked = max(most_asked, asked)
        talk.say(said, by_robot=True)
        errors += said == wrong
        if said != wrong:
            break
        line = protest
    return errors, most_asked


def test_a_robot_that_reads_its_flags_repeats_fewer_errors_and_does_not_loop() -> None:
    """The stand-in obeys whatever it is told, so this bounds from above what a model gains."""
    errors = {}
    for reads_flags in (False, True):
        found = [asyncio.run(errors_of(script, reads_flags=reads_flags)) for script in TALKS]
        errors[reads_flags] = sum(count - 1 for count, _ in found if count)

        assert max(asked for _, asked in found) <= 2
    assert errors[False] == len(TALKS) * MOST_PROTESTS
    assert errors[True] < errors[False]
