"""Bags of encounters in lockstep through the real nodes, with the judge behind a server that knows the labels."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from norm_core.bags.writer import BagWriter
from norm_core.records.flag import FlagState, SocialFlag
from norm_core.records.json_codec import from_json, to_json
from norm_core.records.speech import Utterance
from sim_replays.drivers.node_driver import END, FLAGS, NodeOutput, hosts_for, play_to_nodes, topics_of
from sim_replays.drivers.script_driver import records_of_script
from sim_replays.monitor_bench.event_metrics import Alarm, EventSession
from sim_replays.scenarios.library import encounters, truth_path, write_truth

SERVER = Path(__file__).with_name("label_server.py")
JUDGE = "labels"
CALLS_PER_HOUR = 36_000.0  # no unit is left out


@contextmanager
def label_server(folder: Path, labels: Sequence[Path]) -> Iterator[Path]:
    """Serve the labels as a model; put its manifest into the folder, and yield the path of its log."""
    log = folder / "log.jsonl"
    command = [sys.executable, str(SERVER), *map(str, labels), "--log", str(log)]
    known = os.environ.get("TACTFUL_MODELS")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout
            (folder / f"{JUDGE}.yaml").write_text(
                f"name: {JUDGE}\ntask: vision-language\nengine: openai\n"
                f"source: {{url: '{server.stdout.readline().strip()}'}}\n"
                "quantization: none\ncontext_tokens: 32768\nmax_images: 8\nlicence: none\n",
                encoding="utf-8",
            )
            os.environ["TACTFUL_MODELS"] = str(folder)
            yield log
        finally:
            server.terminate()
            os.environ.pop("TACTFUL_MODELS")
            if known is not None:
                os.environ["TACTFUL_MODELS"] = known


def replay_judged(bag: Path, prompts_folder: str = "", muted: Sequence[str] = ()) -> list[NodeOutput]:
    """Play a bag to the nodes in lockstep with the judge; nothing may be lost or dropped on the way."""
    hosts = [dict(host) for host in hosts_for(topics_of(bag), 0.0)]
    judge = {"model": JUDGE, "calls_per_hour": CALLS_PER_HOUR, "deadline_s": 600.0, "prompts_folder": prompts_folder}
    settings: dict[str, Any] = {"judge": judge, **({"fusion": {"muted": list(muted)}} if muted else {})}
    for host in hosts:
        if "monitor" in host:
            host["monitor"] = {**host["monitor"], **settings}
    outputs = list(play_to_nodes(bag, hosts))
    end = outputs[-1]
    assert (end.topic, end.message["lost"], set(end.message["dropped"].values())) == (END, {}, {0})
    return outputs


def write_script_bag(folder: Path, number: int) -> Path:
    """Write a development encounter as a bag of the senses' records, with its labels beside it."""
    given, truth = records_of_script(encounters("development")[number])
    bag = folder / truth.encounter_id
    with BagWriter(bag) as writer:
        for stamp_ns, entry in given:
            topic = "utterances" if isinstance(entry, Utterance) else _TOPICS[type(entry).__name__]
            writer.write(f"/tactful/{topic}", entry, stamp_ns)
    write_truth(bag, truth)
    return bag


_TOPICS = {"RobotSpeech": "robot_speech", "Presence": "presence"}


def sessions_of(folder: Path, limit: int, muted: Sequence[str]) -> list[EventSession]:
    """Replay the first development encounters, and return their labels and final flags."""
    bags = [write_script_bag(folder, number) for number in range(limit)]
    found = []
    with label_server(folder, [truth_path(bag) for bag in bags]):
        for number, bag in enumerate(bags):
            newest: dict[str, SocialFlag] = {}
            for output in replay_judged(bag, muted=muted):
                if output.topic == FLAGS:
                    flag = from_json(SocialFlag, to_json(output.message))
                    newest[flag.event_id] = flag
            _, truth = records_of_script(encounters("development")[number])
            last = [flag for flag in newest.values() if flag.state is not FlagState.WITHDRAWN]
            assert {flag.state for flag in last} <= {FlagState.CLOSED}, bag.name
            found.append(EventSession(truth=truth, alarms=tuple(Alarm.of(flag, flag.decision_ns) for flag in last)))
    return found
