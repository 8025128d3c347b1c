"""Time decisions without a language model, on live requests with new sentences.

The sentence encoder's own time stands beside each, because ratios vary less between machines; beside a decision of the
node, as its client waits for it, the decision alone.
`python -m benchmarks --only decision` runs it.
"""

import time
from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np
import rclpy
from norm_interfaces.action import SelectAction
from norm_nodes.base.convert import to_ros
from numpy.typing import NDArray
from rclpy.action import ActionClient
from rclpy.task import Future

from action_selector.candidates import Skill, SkillCatalogue
from action_selector.choose.abstain import WhenUnsure
from action_selector.decider import Decider
from action_selector.request import Request, SelectorConfig
from benchmarks.runner import EGOGAPBENCH, Figure, Report, SkippedError
from norm_core.engines.request_context import Deadline
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.runtime.time import WallClock
from norm_monitor.replay.node_process import NodeProcess, claimed_domain
from sim_replays.suites import egogapbench as suite

WITHOUT_READER, PAUSE_S = {"selector": {"reader": "none"}}, 0.05
RUNS = 3  # the requests are dealt out to so many
CONFIG = SelectorConfig(when_unsure=WhenUnsure.BEST_EFFORT)


class Counted:
    """An encoder that records its working time."""

    def __init__(self) -> None:
        """Load the encoder and encode one sentence, so that loading is not measured."""
        self._encoder = SentenceEncoder()
        self._encoder.encode(["What loads the model is no part of what is measured."])
        self.spent_s = 0.0

    def encode(self, sentences: Sequence[str]) -> NDArray[np.float32]:
        """Encode, and add the time."""
        began_s = time.perf_counter()
        vectors = self._encoder.encode(sentences)
        self.spent_s += time.perf_counter() - began_s
        return vectors


def run(report: Report, *, quick: bool) -> None:
    """Report live decisions among five candidates, given with the request and from the catalogue, and the node's."""
    if not EGOGAPBENCH.is_dir():
        raise SkippedError(f"{EGOGAPBENCH}: is not here; set TACTFUL_SHARED to the folder with data/egogapbench")
    items, _ = suite.read(EGOGAPBENCH)
    count, medians_ms = 50 if quick else 150, []
    for name, is_skilled in (("decision_live", False), ("decision_live_skills", True)):
        took_ms, encoding_ms = decide(items, count, is_skilled=is_skilled)
        medians_ms.append(float(np.median(took_ms)))
        for suffix, share in (("", 50), ("_p95", 95)):
            parts = [(took_ms[part::RUNS], encoding_ms[part::RUNS]) for part in range(RUNS)]
            values = [float(np.percentile(took, share)) for took, _ in parts]
            ratios = [value / float(np.percentile(peer, share)) for value, (_, peer) in zip(values, parts, strict=True)]
            report.add(Figure.of_runs(f"{name}{suffix}", "ms", values, "the encoder alone", ratios))
    waited_ms = [float(np.median(part)) for part in np.array_split(wait_for_node(items, count), RUNS)]
    ratios = [ms / medians_ms[0] for ms in waited_ms]
    report.add(Figure.of_runs("decision_of_node", "ms", waited_ms, "the decision alone", ratios))


def decide(items: list[suite.EgoGapItem], count: int, *, is_skilled: bool) -> tuple[list[float], list[float]]:
    """Return the milliseconds of requests with two others, a situation and two reasons, and the encoder's in each.

    All sentences are new, but for candidates from the catalogue, encoded when the selector was opened.
    """
    encoder, clock = Counted(), WallClock()
    skills = tuple(Skill(action=text) for text in options_of(items)[-5:])
    catalogue = SkillCatalogue(skills=skills, may_do_nothing=False)
    decider = Decider(encoder, CONFIG, catalogue=catalogue if is_skilled else None)
    decider.prepare()
    took_ms, encoding_ms = [], []
    for request in requests(items, count, is_skilled=is_skilled):
        encoder.spent_s, began_s = 0.0, time.perf_counter()
        decider.decide(request, Deadline(clock))
        took_ms.append(1000 * (time.perf_counter() - began_s))
        encoding_ms.append(1000 * encoder.spent_s)
    return took_ms, encoding_ms


def options_of(items: list[suite.EgoGapItem]) -> list[str]:
    """Return every option once, in alphabetical order."""
    return sorted({option for item in items for option in item.options})


def requests(items: list[suite.EgoGapItem], count: int, *, is_skilled: bool) -> Iterator[Request]:
    """Return requests about so many scenes, with candidates of their own unless the robot has skills."""
    texts, scenes = options_of(items), {item.image: item for item in items}
    for number, item in enumerate(islice(scenes.values(), count)):
        yield Request(
            query_id=item.uid,
            candidates=() if is_skilled else tuple(texts[5 * number : 5 * number + 5]),
            justifications=tuple(f"It helps {number} people {n}." for n in range(2 if is_skilled else 5)),
            situation=" ".join(item.captions[:2]),
            others=item.others,
        )


def wait_for_node(items: list[suite.EgoGapItem], count: int) -> list[float]:
    """Return the milliseconds from each request to the selector's node over DDS to its result."""
    took_ms = []
    with claimed_domain() as domain_id, NodeProcess(["selector"], WITHOUT_READER, domain_id):
        rclpy.init(args=[], domain_id=domain_id)
        try:
            node = rclpy.create_node("asks")
            client = ActionClient(node, SelectAction, "/tactful/select_action")
            client.wait_for_server()
            for request in requests(items, count, is_skilled=False):
                others = [to_ros(other) for other in request.others or ()]
                goal = SelectAction.Goal(
                    candidates=request.candidates,
                    justifications=request.justifications,
                    situation=request.situation,
                    others=others,
                    others_given=True,
                )
                rclpy.spin_until_future_complete(node, Future(), timeout_sec=PAUSE_S)
                began_s = time.perf_counter()
                accepted = client.send_goal_async(goal)
                rclpy.spin_until_future_complete(node, accepted)
                rclpy.spin_until_future_complete(node, accepted.result().get_result_async())
                took_ms.append(1000 * (time.perf_counter() - began_s))
        finally:
            rclpy.try_shutdown()
    return took_ms
