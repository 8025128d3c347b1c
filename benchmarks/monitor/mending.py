"""Count the errors that a robot driven by a language model repeats, with and without its flags.

python -m benchmarks.monitor.mending URL MODEL --out FILE.jsonl

URL is of any server of OpenAI's chat completions, such as http://127.0.0.1:8000/v1. In each scripted talk the robot's
first draft is an error; a person protests, three times at most, until an answer has what they need, which the words of
the answer tell. The robot is examples/mending_robot.py. After an interruption, the same command goes on.
"""

import argparse
import asyncio
import json
import re
import runpy
import sys
import urllib.request
from collections.abc import Awaitable, Callable
from itertools import product
from pathlib import Path
from typing import Any

from action_selector.selector import SelectorFiles, open_selector
from benchmarks.runner import ROOT
from norm_core.records.speech import RobotSpeech, Speaker, SpeechEdge, Utterance, silence_mark
from norm_core.runtime.time import NS_PER_S, ReplayClock, WallClock
from norm_core.runtime.watermarks import UTTERANCES
from sim_replays.drivers.bag_driver import replay_monitor
from study_desk.log.session_config import WordsPolicy
from tactful_cli.mcp.session import Session, advice_of

MAX_PROTESTS, MAX_TOKENS, TIMEOUT_S = 3, 60, 600.0
Messages = list[dict[str, str]]
Ask = Callable[[Messages], Awaitable[str]]


# What a person says, the robot's error, the protest, an answer that mends it, and the words of such answers.
SCRIPTS: list[dict[str, str]] = json.loads((ROOT / "benchmarks/monitor/mending.json").read_text(encoding="utf-8"))


class Talk:
    """A talk in simulated time, which a monitor hears as it goes."""

    def __init__(self) -> None:
        self.now_ns, self._clock = NS_PER_S, ReplayClock()
        self._monitor = replay_monitor((UTTERANCES,), self._clock)
        self.session = Session("talk", WordsPolicy(), advice_of(open_selector(SelectorFiles(), WallClock())))
        self.session.follow()

    def say(self, text: str, *, by_robot: bool) -> None:
        """Add what the robot or a person says next."""
        start_ns, end_ns = self.now_ns, self.now_ns + max(1, len(text) // 15) * NS_PER_S
        self.now_ns = end_ns + NS_PER_S
        if by_robot:
            for at_ns, edge in ((start_ns, SpeechEdge.START), (end_ns, SpeechEdge.STOP)):
                self._take(RobotSpeech(stamp_ns=at_ns, speech_id=f"r{start_ns}", state=edge, text=text))
        else:
            times: Any = {"stamp_ns": start_ns, "start_ns": start_ns, "end_ns": end_ns}
            self._take(Utterance(utterance_id=f"u{start_ns}", speaker=Speaker.USER, text=text, **times))
        self._take(silence_mark(self.now_ns, "ears"))

    def _take(self, taken: Utterance | RobotSpeech) -> None:
        self._clock.advance_to(max(self.now_ns, self._clock.now_ns()))
        self.session.take(taken)
        for flag in self._monitor.take(taken):
            self.session.take(flag)


async def play(script: dict[str, str], ask: Ask, *, reads_flags: bool) -> dict[str, Any]:
    """Play a talk; return what the robot said, which of it errs, and how often the model was asked for each answer."""
    talk, requests, line = Talk(), list[int](), script["opening"]

    async def draft(messages: Messages) -> str:
        requests[-1] += 1
        return script["error"] if (len(requests), requests[-1]) == (1, 1) else await ask(messages)

    async def tool(name: str, **arguments: Any) -> Any:
        return json.loads(json.dumps(getattr(talk.session, name)(**arguments))) if reads_flags else {}

    robot = runpy.run_path(str(ROOT / "examples/mending_robot.py"))["MendingRobot"](draft, tool)
    answers, errors = list[str](), list[bool]()
    while not errors or (errors[-1] and len(errors) <= MAX_PROTESTS):
        talk.say(line, by_robot=False)
        requests.append(0)
        answers.append(await robot.answer(line))
        talk.say(answers[-1], by_robot=True)
        errors.append(not re.search(script["words"], answers[-1], re.IGNORECASE | re.DOTALL))
        line = script["protest"]
    return {"answers": answers, "errors": errors, "requests": requests}


def main() -> int:
    """Play each talk with and without flags, and print how many errors are repeated."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.monitor.mending", description=(__doc__ or "")[:93])
    parser.add_argument("url", help="of a server of OpenAI's chat completions, to and with /v1")
    parser.add_argument("model", help="its name at the server")
    parser.add_argument(
        "--out", type=Path, required=True, help="JSON Lines, a talk each; what is there is not replayed"
    )
    options = parser.parse_args()

    def request(messages: Messages) -> str:
        body = {"model": options.model, "messages": messages, "temperature": 0, "max_tokens": MAX_TOKENS}
        headers = {"Content-Type": "application/json"}
        asked = urllib.request.Request(f"{options.url}/chat/completions", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(asked, timeout=TIMEOUT_S) as reply:
            return str(json.load(reply)["choices"][0]["message"]["content"])

    async def ask(messages: Messages) -> str:
        return await asyncio.to_thread(request, messages)

    with options.out.open("a+", encoding="utf-8") as file:
        file.seek(0)
        lines = [line for line in file if line.endswith("\n")]  # without one that was not finished
        file.truncate(len("".join(lines).encode()))
        rows = [json.loads(line) for line in lines]
        for talk, reads_flags in list(product(range(len(SCRIPTS)), (False, True)))[len(rows) :]:
            try:
                row = asyncio.run(play(SCRIPTS[talk], ask, reads_flags=reads_flags))
            except OSError as error:
                print(f"mending: {options.url}: {error}; start the server, and run it again", file=sys.stderr)
                return 1
            rows.append({"talk": talk, "reads_flags": reads_flags, **row})
            for shown in (file, sys.stderr):
                print(json.dumps(rows[-1], ensure_ascii=False), file=shown, flush=True)
    for reads_flags, label in ((False, "without"), (True, "with")):
        errors = [row["errors"] for row in rows if row["reads_flags"] == reads_flags]
        first, never = sum(talk[0] for talk in errors), sum(talk[-1] for talk in errors)
        repeated = sum(sum(talk[1:]) for talk in errors)
        print(f"{label} flags, {len(errors)} talks: {first} first errors, {repeated} repeated, {never} never mended")
    return 0


if __name__ == "__main__":
    sys.exit(main())
