"""Find the default cosine from which a candidate counts as another's activity, on pairs written for the purpose.

python benchmarks/selector/match_least.py
"""

import sys
from pathlib import Path

import numpy as np

from action_selector.candidates import of_request
from action_selector.config import SelectorConfig
from action_selector.observe.observation import observation_given
from action_selector.retrieve.likeness import similarity
from action_selector.veto.vetoes import of_others
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.records.decision import OtherAgent, Viewpoint
from norm_core.runtime.config import load_yaml


def main() -> int:
    """Print the quartiles of similarity for three kinds of pairs, and the vetoes per threshold."""
    pairs = load_yaml(Path(__file__).with_name("match_pairs.yaml"))
    encoder = SentenceEncoder()
    same = np.array([similarity(encoder, [pair["same"]], [pair["other"]])[0, 0] for pair in pairs])
    answers = np.array([similarity(encoder, [pair["answers_it"]], [pair["other"]])[0, 0] for pair in pairs])
    not_same = np.array([similarity(encoder, [pair["other_deed"]], [pair["other"]])[0, 0] for pair in pairs])
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
    print("| vetoed as shipped | " + " | ".join(f"{np.mean(fell):.0%}" for fell in as_shipped(pairs, encoder)) + " |")
    return 0


def as_shipped(pairs: list[dict[str, str]], encoder: SentenceEncoder) -> list[list[bool]]:
    """Tell, by kind of action, for which pairs the selector's veto applies."""
    least = SelectorConfig().match_least
    fell: list[list[bool]] = []
    for kind in ("same", "other_deed", "answers_it"):
        fell.append([])
        for pair in pairs:
            role, doing = pair["other"].split(", ", 1)
            seen = observation_given((OtherAgent(agent_id="other", role=role, doing=doing),), None)
            fell[-1].append(bool(of_others(of_request((pair[kind],), None, Viewpoint(), ()), seen, encoder, least)))
    return fell


if __name__ == "__main__":
    sys.exit(main())
