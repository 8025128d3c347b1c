"""Time decisions without a language model, on live requests with new sentences.

Each figure stands beside the time of the sentence encoder, because ratios vary less between machines. The time that a
client waits for the node stands beside that of the decision alone.
`python -m benchmarks decision` runs it.
"""

import os
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import rclpy
from norm_interfaces.action import SelectAction
from norm_nodes.base.convert import to_ros
from numpy.typing import NDArray
from rclpy.action import ActionClient
from rclpy.task import Future

from action_selector.candidates import Skill, SkillCatalogue
from action_selector.decider import Decider
from action_selector.request import Request
from action_selector.selector_config import SelectorConfig, WhenUnsure
from benchmarks.figure import Figure
from norm_core.engines.request_context import Deadline
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import WallClock
from norm_monitor.replay.node_process import NodeProcess, claim_domain
from sim_replays.suites import egogapbench as suite

ROOT = Path(__file__).resolve().parents[1]
EGOGAPBENCH = Path(os.environ.get("TACTFUL_SHARED") or ROOT.parent / "shared", "data/egogapbench")
NODE_PARAMETERS = {"selector": {"reader": "none"}}
# The pause before each request, in which the node ends its work on the last one.
PAUSE_S = 0.05
# Number of requests, and of runs over which they are distributed.
REQUEST_COUNT = 99
RUN_COUNT = 3
CONFIG = SelectorConfig(when_unsure=WhenUnsure.BEST_EFFORT)


class TimedEncoder:
    """A sentence encoder that records its working time."""

    def __init__(self) -> None:
        """Load the encoder and encode one sentence, so that loading is not measured."""
        self._encoder = SentenceEncoder()
        self._encoder.encode(["This sentence loads the model before the measurement."])
        self.spent_s = 0.0

    def encode(self, sentences: Sequence[str]) -> NDArray[np.float32]:
        """Encode, and add the time."""
        started_s = time.perf_counter()
        vectors = self._encoder.encode(sentences)
        self.spent_s += time.perf_counter() - started_s
        return vectors


def measure() -> Iterator[Figure]:
    """Measure decisions among five candidates of the request or of the catalogue, and the wait for the node."""
    if not EGOGAPBENCH.is_dir():
        raise TactfulError(f"{EGOGAPBENCH}: is missing; set TACTFUL_SHARED to the folder with data/egogapbench")
    items, _ = suite.read(EGOGAPBENCH)
    medians_ms = []
    for name, is_skilled in (("decision_live", False), ("decision_live_skills", True)):
        spent_ms, encoding_ms = decide(items, REQUEST_COUNT, is_skilled=is_skilled)
        medians_ms.append(float(np.median(spent_ms)))
        for suffix, percentile in (("", 50), ("_p95", 95)):
            values = [float(np.percentile(spent_ms[start::RUN_COUNT], percentile)) for start in range(RUN_COUNT)]
            peers = [float(np.percentile(encoding_ms[start::RUN_COUNT], percentile)) for start in range(RUN_COUNT)]
            ratios = [value / peer for value, peer in zip(values, peers, strict=True)]
            yield Figure.of_runs(f"{name}{suffix}", "ms", values, "the encoder alone", ratios)
    node_ms = [float(np.median(part)) for part in np.array_split(ask_node(items, REQUEST_COUNT), RUN_COUNT)]
    ratios = [median_ms / medians_ms[0] for median_ms in node_ms]
    yield Figure.of_runs("decision_of_node", "ms", node_ms, "the decision alone", ratios)


def decide(items: list[suite.EgoGapItem], count: int, *, is_skilled: bool) -> tuple[list[float], list[float]]:
    """Return the milliseconds of each request, and those of the encoder in it.

    Each request has two others, a situation and reasons. All its sentences are new, except candidates of the catalogue.
    """
    encoder = TimedEncoder()
    clock = WallClock()
    skills = tuple(Skill(action=text) for text in list_options(items)[-5:])
    catalogue = SkillCatalogue(skills=skills, may_do_nothing=False)
    decider = Decider(encoder, CONFIG, catalogue=catalogue if is_skilled else None)
    decider.prepare()
    spent_ms = []
    encoding_ms = []
    for request in make_requests(items, count, is_skilled=is_skilled):
        encoder.spent_s = 0.0
        started_s = time.perf_counter()
        decider.decide(request, Deadline(clock))
        spent_ms.append(1000 * (time.perf_counter() - started_s))
        encoding_ms.append(1000 * encoder.spent_s)
    return spent_ms, encoding_ms


def list_options(items: list[suite.EgoGapItem]) -> list[str]:
    """Return every option once, in alphabetical order."""
    return sorted({option for item in items for option in item.options})


def make_requests(items: list[suite.EgoGapItem], count: int, *, is_skilled: bool) -> Iterator[Request]:
    """Return requests about `count` scenes, with candidates of their own unless the robot has skills."""
    texts = list_options(items)
    scenes = {item.image: item for item in items}
    for index, item in enumerate(islice(scenes.values(), count)):
        yield Request(
            query_id=item.uid,
            candidates=() if is_skilled else tuple(texts[5 * index : 5 * index + 5]),
            justifications=tuple(f"It helps {index} people {reason}." for reason in range(2 if is_skilled else 5)),
            situation=" ".join(item.captions[:2]),
            others=item.others,
        )


def ask_node(items: list[suite.EgoGapItem], count: int) -> list[float]:
    """Return the milliseconds from each request to the selector node over DDS to its result."""
    spent_ms = []
    with claim_domain() as domain_id, NodeProcess(["selector"], NODE_PARAMETERS, domain_id):
        rclpy.init(args=[], domain_id=domain_id)
        try:
            node = rclpy.create_node("benchmark_client")
            client = ActionClient(node, SelectAction, "/tactful/select_action")
            client.wait_for_server()
            for request in make_requests(items, count, is_skilled=False):
                others = [to_ros(other) for other in request.others or ()]
                goal = SelectAction.Goal(
                    candidates=request.candidates,
                    justifications=request.justifications,
                    situation=request.situation,
                    others=others,
                    others_given=True,
                )
                rclpy.spin_until_future_complete(node, Future(), timeout_sec=PAUSE_S)
                started_s = time.perf_counter()
                goal_future = client.send_goal_async(goal)
                rclpy.spin_until_future_complete(node, goal_future)
                rclpy.spin_until_future_complete(node, goal_future.result().get_result_async())
                spent_ms.append(1000 * (time.perf_counter() - started_s))
        finally:
            rclpy.try_shutdown()
    return spent_ms
