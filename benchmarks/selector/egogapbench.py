"""Score EgoGapBench's text with the selector, beside controls that put the figures in context.

python -m benchmarks.selector.egogapbench [--data FOLDER] [--ablations] [--json]
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from action_selector.choose.abstain import WhenUnsure
from action_selector.config import SelectorConfig
from action_selector.decider import Decider
from action_selector.queries import answer_of, request_of
from benchmarks.runner import EGOGAPBENCH, Figure, Report, SkippedError
from norm_core.engines.request_context import Deadline
from norm_core.engines.sentences.encoder_engine import SentenceVectors
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.evaluation.figures import Figures, bootstrap
from norm_core.evaluation.intervals import percentile_interval
from norm_core.records.decision import OtherAgent
from norm_core.records.outcome import Outcome
from norm_core.records.record import record
from norm_core.runtime.time import ReplayClock
from sim_replays.suites import egogapbench as suite
from sim_replays.suites.egogapbench import SUITE, EgoGapItem, EgoGapLabel, EgoGapSetting
from sim_replays.suites.target import Prediction

SWAPS = 5
REMEMBERED = 100_000
BEST_EFFORT = SelectorConfig(when_unsure=WhenUnsure.BEST_EFFORT)
COLUMNS = SUITE.columns


@record
class EgoGapScorecard:
    """The suite's figures, the items without an answer, and which items were right."""

    figures: Figures
    unanswered: int
    right: dict[str, bool]


def main() -> int:
    """Print the selector's shares on EgoGapBench per setting and ablation."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=EGOGAPBENCH, help="folder of the items")
    parser.add_argument("--ablations", action="store_true", help="also without each step")
    parser.add_argument("--json", action="store_true", help="print JSON alone")
    options = parser.parse_args()
    items, labels = suite.read(options.data)
    encoder = SentenceEncoder(remembered=REMEMBERED)
    texts = sorted({option for item in items for option in item.options})
    encoder.encode(texts[:1])
    began_s = time.perf_counter()
    encoder.encode(texts)
    encoded_ms = 1000 * (time.perf_counter() - began_s) / len(texts)
    bench = Bench(items, labels, encoder)
    rows = {"blind": bench.run(EgoGapSetting.BLIND), "captions": bench.run(EgoGapSetting.CAPTIONS)}
    rows["others given"] = bench.run(EgoGapSetting.OTHERS)
    swaps = [bench.run(EgoGapSetting.SWAPPED, others=suite.swapped(items, seed)) for seed in range(SWAPS)]
    rows |= {f"swapped, seed {seed}": card for seed, card in enumerate(swaps)}
    rows["others and captions given"] = bench.run(EgoGapSetting.OTHERS_CAPTIONS)
    if options.ablations:
        rows |= bench.ablations()
    headline = bench.difference(rows["others given"], swaps)
    took_s = time.perf_counter() - began_s
    if options.json:
        shares = {name: {column: vars_of(card, column) for column in COLUMNS} for name, card in rows.items()}
        print(json.dumps({"items": len(items), "rows": shares, "others_minus_swapped": headline, "took_s": took_s}))
        return 0
    print(f"EgoGapBench, {len(items)} items of {len({item.image for item in items})} images, text alone, in percent")
    print("| setting | " + " | ".join(COLUMNS) + " | unanswered |\n|---|" + "---|" * (len(COLUMNS) + 1))
    for name, card in rows.items():
        print(f"| {name} | " + " | ".join(str(card.figures[column]) for column in COLUMNS) + f" | {card.unanswered} |")
    mean, low, high = headline
    print(
        f"\nothers given minus swapped (mean of {SWAPS}): {mean:.1f} [{low:.1f}, {high:.1f}] points; no weight fitted"
    )
    print(f"{took_s:.1f} s for {bench.asked} decisions; {encoded_ms:.2f} ms an option encoded", file=sys.stderr)
    return 0


def run(report: Report, *, quick: bool) -> None:
    """Report what knowing the others' true actions adds to the score."""
    if not EGOGAPBENCH.is_dir():
        raise SkippedError(f"{EGOGAPBENCH}: is not here; set TACTFUL_SHARED to the folder with data/egogapbench")
    items, labels = suite.read(EGOGAPBENCH)
    bench = Bench(items, labels, SentenceEncoder(remembered=REMEMBERED))
    given = bench.run(EgoGapSetting.OTHERS)
    seeds = range(1 if quick else SWAPS)
    swaps = [bench.run(EgoGapSetting.SWAPPED, others=suite.swapped(items, seed)) for seed in seeds]
    swapped = sum(card.figures["overall"].value for card in swaps) / len(swaps)
    score = given.figures["overall"].value
    name, against = "egogapbench_others_given", "others swapped"
    report.add(Figure(name, round(score, 1), "% right", against, round(score / swapped, 3), better="more"))
    report.note(difference=bench.difference(given, swaps), unanswered=given.unanswered)


class Bench:
    """Run the items through one selector, each independently."""

    def __init__(self, items: Sequence[EgoGapItem], labels: Sequence[EgoGapLabel], encoder: SentenceVectors) -> None:
        self.items, self.labels, self.encoder = items, labels, encoder
        self.asked = 0

    def run(
        self,
        setting: EgoGapSetting,
        config: SelectorConfig = BEST_EFFORT,
        *,
        others: dict[str, tuple[OtherAgent, ...]] | None = None,
    ) -> EgoGapScorecard:
        """Answer every item in a setting, with the selector's changes, and score the answers."""
        decider = Decider(self.encoder, config)
        targets = [label.target for label in self.labels]
        answers = {}
        for item in self.items:
            query = suite.query(item, setting, (others or {}).get(item.image, ()))
            answer = answer_of(decider.decide(request_of(query, source=item.uid), Deadline(ReplayClock())), query)
            answers[item.uid, answer.task] = Prediction(
                id=item.uid, task=answer.task, outcome=answer.outcome, chosen=answer.chosen
            )
            self.asked += 1
        return EgoGapScorecard(
            figures=SUITE.figures(targets, answers),
            unanswered=sum(answer.outcome is not Outcome.ANSWERED for answer in answers.values()),
            right={target.id: answers[target.key].chosen == target.right for target in targets},
        )

    def ablations(self) -> dict[str, EgoGapScorecard]:
        """Score the selector without each of its steps."""
        no_veto = BEST_EFFORT.model_copy(update={"veto_others": False})
        no_avoidance = BEST_EFFORT.model_copy(update={"avoid_others": False})
        everyone = BEST_EFFORT.model_copy(update={"match_least": -1.0})
        return {
            "no veto: least like the others": self.run(EgoGapSetting.OTHERS, no_veto),
            "veto alone, the others not avoided": self.run(EgoGapSetting.OTHERS, no_avoidance),
            "neither vetoed nor avoided": self.run(
                EgoGapSetting.OTHERS, no_veto.model_copy(update={"avoid_others": False})
            ),
            "veto without a least cosine": self.run(EgoGapSetting.OTHERS, everyone),
            "captions and others, no veto": self.run(EgoGapSetting.OTHERS_CAPTIONS, no_veto),
            "captions and others, veto alone": self.run(EgoGapSetting.OTHERS_CAPTIONS, no_avoidance),
            "asking a person where unsure (unanswered is wrong)": self.run(EgoGapSetting.OTHERS, SelectorConfig()),
        }

    def difference(self, given: EgoGapScorecard, swaps: Sequence[EgoGapScorecard]) -> tuple[float, float, float]:
        """Compute the score with true others minus the mean with swapped ones, with its 95 % interval over images."""
        gains = [
            float(given.right[label.uid]) - sum(card.right[label.uid] for card in swaps) / len(swaps)
            for label in self.labels
        ]
        low, high = percentile_interval(bootstrap(gains, [label.image for label in self.labels]))
        return 100 * sum(gains) / len(gains), 100 * low, 100 * high


def vars_of(card: EgoGapScorecard, column: str) -> dict[str, float]:
    """Return one column of a scorecard as plain numbers for JSON."""
    found = card.figures[column]
    return {"percent": found.value, "low": found.low, "high": found.high, "count": found.count}


if __name__ == "__main__":
    sys.exit(main())
