"""Score EgoNormia's robot set (11 items) with the selector, without a language model, and its EgoGapBench transform.

python benchmarks/selector/egonormia.py [--data FILE] [--seeds N]
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean

from action_selector.choose.abstain import WhenUnsure
from action_selector.choose.norms import infer_norms
from action_selector.config import SelectorConfig
from action_selector.decider import Decider
from action_selector.queries import answer_of, request_of
from action_selector.retrieve.precedents import PrecedentIndex
from norm_core.engines.request_context import Deadline
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.records.decision import Norm, OtherAgent
from norm_core.runtime.time import ReplayClock
from sim_replays.suites import egonormia as suite
from sim_replays.suites.egonormia import EgoNormiaItem, EgoNormiaLabel, EgoNormiaScorecard, EgoNormiaSetting, Fifth

ROOT = Path(__file__).resolve().parents[2]
CONFIG = SelectorConfig(when_unsure=WhenUnsure.BEST_EFFORT)
TASKS = ("action", "justification", "sensible")
COLUMNS = ("both", "action", "justification", "sensible", "picked_fifth")

Others = Callable[[EgoNormiaItem], Sequence[OtherAgent]]


def main() -> int:
    """Print the selector's scores on EgoNormia, averaged over shuffles of the options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared/data/egonormia/ood_robot.json")
    parser.add_argument("--seeds", type=int, default=20, help="shuffles of the options, averaged")
    options = parser.parse_args()
    encoder = SentenceEncoder(remembered=20_000)
    read = [suite.read(options.data, seed) for seed in range(options.seeds)]
    rows = {
        setting.value: [run(encoder, *one, setting) for one in read]
        for setting in (EgoNormiaSetting.BLIND, EgoNormiaSetting.PIPELINE)
    }
    rows["pipeline, precedents of other videos"] = [
        run(encoder, *one, EgoNormiaSetting.PIPELINE, PrecedentIndex.of(suite.precedents(*one), encoder))
        for one in read
    ]
    for fifth in Fifth:
        for veto in (True, False):
            name = f"transform: fifth option {fifth}, others and veto {'on' if veto else 'off'}"
            rows[name] = [transform(encoder, *one, fifth, veto) for one in read]
    print(f"EgoNormia robot set, {len(read[0][0])} items, mean of {options.seeds} shuffles, in percent")
    print("| setting | " + " | ".join(COLUMNS) + " |\n|---|" + "---|" * len(COLUMNS))
    for name, cards in rows.items():
        print(f"| {name} | " + " | ".join(f"{mean(getattr(c, k).value for c in cards):.1f}" for k in COLUMNS) + " |")
    hits = norm_hits(encoder, *read[0])
    wanted = [norms for label in read[0][1] for norms in label.norms.values() if norms]
    chance, constant = sum(map(len, wanted)) / 7, max(sum(norm in norms for norms in wanted) for norm in Norm)
    print(f"\nnorms by likeness: the first category of {sum(hits)} of {len(hits)} actions is among the dataset's")
    print(f"a category drawn at random: {chance:.1f}, always the commonest: {constant}")
    return 0


def run(
    encoder: SentenceEncoder,
    items: Sequence[EgoNormiaItem],
    labels: Sequence[EgoNormiaLabel],
    setting: EgoNormiaSetting,
    precedents: PrecedentIndex | None = None,
    *,
    config: SelectorConfig = CONFIG,
    others: Others = lambda item: (),
    fifth_is_none: bool = True,
) -> EgoNormiaScorecard:
    """Answer one shuffle of the items in a setting, and score the answers."""
    decider = Decider(encoder, config, precedents=precedents)
    answers = {}
    for item in items:
        for task in TASKS:
            query = suite.query(item, setting, task, others(item))
            decision = decider.decide(request_of(query, source=item.source), Deadline(ReplayClock()))
            answers[query.query_id] = answer_of(decision, query)
    return suite.score(items, labels, answers, fifth_is_none=fifth_is_none)


def transform(
    encoder: SentenceEncoder, items: Sequence[EgoNormiaItem], labels: Sequence[EgoNormiaLabel], fifth: Fifth, veto: bool
) -> EgoNormiaScorecard:
    """Score the transform. Frame descriptions replace others' activities, because EgoNormia names no agents."""
    config = CONFIG.model_copy(update={"veto_others": veto})

    def seen(item: EgoNormiaItem) -> list[OtherAgent]:
        return [] if not veto else [OtherAgent(agent_id=f"frame-{n}", doing=line) for n, line in enumerate(item.seen)]

    made = suite.to_egogap_items(items, fifth)
    return run(
        encoder, made, labels, EgoNormiaSetting.PIPELINE, config=config, others=seen, fifth_is_none=fifth is Fifth.NONE
    )


def norm_hits(encoder: SentenceEncoder, items: Sequence[EgoNormiaItem], labels: Sequence[EgoNormiaLabel]) -> list[bool]:
    """Tell for each action whether its likeliest norm category is one of the dataset's."""
    hits = []
    for item, label in zip(items, labels, strict=True):
        guesses = infer_norms(encoder, item.actions, margin=0.0)
        for place, guess in enumerate(guesses):
            wanted = label.norms.get(item.action_order[place], ())
            if item.actions[place] and wanted:
                hits.append(guess[0] in wanted)
    return hits


if __name__ == "__main__":
    sys.exit(main())
