"""From which cosine a candidate counts as what another is doing: the defaults, from pairs written for the purpose.

python benchmarks/selector/match_least.py
"""

import sys
from pathlib import Path

import numpy as np

from action_selector.likeness import likeness
from norm_core.config import load_yaml
from norm_core.engines.sentences import SentenceEncoder


def main() -> int:
    pairs = load_yaml(Path(__file__).with_name("match_pairs.yaml"))
    encoder = SentenceEncoder()
    same = np.array([likeness(encoder, [pair["same"]], [pair["other"]])[0, 0] for pair in pairs])
    answers = np.array([likeness(encoder, [pair["answers_it"]], [pair["other"]])[0, 0] for pair in pairs])
    not_same = np.array([likeness(encoder, [pair["other_deed"]], [pair["other"]])[0, 0] for pair in pairs])
    for name, values in (
        ("the same deed", same),
        ("another deed of the scene", not_same),
        ("a deed that answers it", answers),
    ):
        quartiles = " ".join(f"{value:.2f}" for value in np.percentile(values, [0, 5, 25, 50, 75, 95, 100]))
        print(f"{name}: cosines at 0, 5, 25, 50, 75, 95, 100 %: {quartiles}")
    print("| least cosine | same deeds vetoed | other deeds vetoed | answering deeds vetoed |\n|---|---|---|---|")
    for least in np.arange(0.2, 0.65, 0.05):
        shares = " | ".join(f"{np.mean(values >= least):.0%}" for values in (same, not_same, answers))
        print(f"| {least:.2f} | {shares} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
