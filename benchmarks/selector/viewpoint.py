"""Measure what tells the right option from the one that needs another place: scene, precedents, a model.

Of an EgoGapBench item with four options, the veto on others' actions leaves these two. The figure is the share of such
pairs in which the right option scores higher: with the item's own scene, with another image's, and with none.

python benchmarks/selector/viewpoint.py [--data FOLDER] [--encoder FOLDER] [--model NAME --pairs 60]
"""

import argparse
import random
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from action_selector import prompts
from action_selector.choose.candidate_scoring import ScoringEvidence, by_likeness, yes_by_engine
from action_selector.observe.observation import Observation, describe_others
from action_selector.request import Request
from action_selector.retrieve.likeness import SentenceEncoding
from benchmarks.selector.transformers_sentences import open_sentences
from norm_core.engines.engine_factory import open_engine_by_name
from norm_core.engines.request_context import Deadline
from norm_core.evaluation.figures import bootstrap, share
from norm_core.evaluation.intervals import percentile_interval
from norm_core.records.decision import OtherAgent, Viewpoint
from norm_core.records.record import record
from norm_core.runtime.time import ReplayClock, WallClock
from sim_replays.suites import egogapbench as suite
from sim_replays.suites.egogapbench import EgoGapKind
from sim_replays.suites.fitting import FOLDS, fold_of

ROOT = Path(__file__).resolve().parents[2]
SWAPS = 5
SCALE = 0.1  # a precedent nearer by this cosine counts e times as much
RIDGE = 1.0
PLACE = re.compile(r"\b(?:behind|beside|near|inside|outside|under|next to|in front of|at|in|on|by|from) .+", re.I)

Margins = NDArray[np.float64]


@record
class Scene:
    """What is known of an image without seeing it."""

    image: str
    captions: tuple[str, ...] = ()
    others: tuple[OtherAgent, ...] = ()

    @property
    def places(self) -> tuple[str, ...]:
        """The captions' words of place, as a robot might state where it stands."""
        found = [match.group() for match in map(PLACE.search, self.captions) if match]
        return tuple(found) or self.captions


@record
class Pair:
    """The two options that the veto leaves, and the scene they belong to."""

    uid: str
    image: str
    right: str
    elsewhere: str


Signal = Callable[[Sequence[Pair], Sequence[Scene]], Margins]


def main() -> int:
    """Print each signal's share of pairs, given, swapped and blind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared/data/egogapbench", help="folder of items")
    parser.add_argument("--encoder", type=Path, help="folder of another encoder, for transformers")
    parser.add_argument("--model", default="", help="also ask this model what can be done from here")
    parser.add_argument("--pairs", type=int, default=60, help="pairs that the model is asked about")
    options = parser.parse_args()
    pairs, scenes = read(options.data)
    if options.model:
        random.Random(0).shuffle(pairs)
        report(
            pairs[: options.pairs],
            scenes,
            {f"{options.model}: can it be done from here": by_model(options.model)},
            swaps=1,
        )
        return 0
    encoder = open_sentences(options.encoder)
    report(pairs, scenes, by_similarity(encoder) | by_precedents(encoder, scenes), swaps=SWAPS)
    return 0


def read(data: Path) -> tuple[list[Pair], dict[str, Scene]]:
    """Read the pairs of the items with four options, and the scene of every image."""
    items, labels = suite.read(data)
    scenes = {item.image: Scene(image=item.image, captions=item.captions, others=item.others) for item in items}
    pairs = [
        Pair(
            uid=item.uid,
            image=item.image,
            right=item.options[label.correct],
            elsewhere=item.options[label.kinds.index(EgoGapKind.OFF_VANTAGE)],
        )
        for item, label in zip(items, labels, strict=True)
        if EgoGapKind.OFF_VANTAGE in label.kinds
    ]
    return pairs, scenes


def report(pairs: Sequence[Pair], scenes: dict[str, Scene], signals: dict[str, Signal], swaps: int) -> None:
    """Print a row a signal; the interval of the difference is a bootstrap over images."""
    own = [scenes[pair.image] for pair in pairs]
    cycles = [swapped(scenes, seed) for seed in range(swaps)]
    groups = [pair.image for pair in pairs]
    print(f"{len(pairs)} pairs of {len(set(groups))} images, {len(signals)} variants; percent with the right one first")
    print("| signal | given | swapped | blind | given minus swapped |\n|---|---|---|---|---|")
    for name, signal in signals.items():
        given = won(signal(pairs, own))
        other = np.mean([won(signal(pairs, [cycle[pair.image] for pair in pairs])) for cycle in cycles], axis=0)
        blind = won(signal(pairs, [Scene(image=pair.image) for pair in pairs]))
        low, high = percentile_interval(bootstrap(list(given - other), groups))
        shares = " | ".join((str(share(list(given), groups)), *(f"{100 * hits.mean():.1f}" for hits in (other, blind))))
        print(
            f"| {name} | {shares} | {100 * (given - other).mean():.1f} [{100 * low:.1f}, {100 * high:.1f}] |",
            flush=True,
        )


def won(margins: Margins) -> Margins:
    """Count 1 where the right option leads, one half where neither does."""
    return np.where(np.abs(margins) < 1e-9, 0.5, (margins > 0).astype(float))


def swapped(scenes: dict[str, Scene], seed: int) -> dict[str, Scene]:
    """Give each image the scene of another, in a random cycle through all."""
    order = sorted(scenes)
    random.Random(seed).shuffle(order)
    return {image: scenes[order[place - 1]] for place, image in enumerate(order)}


def by_similarity(encoder: SentenceEncoding) -> dict[str, Signal]:
    """Compare options, or a part of them, with a text of the scene; nothing is fitted."""

    def signal(texts_of: Callable[[Scene], Sequence[str]], sign: int, part: int | None, mean: bool) -> Signal:
        def margins(pairs: Sequence[Pair], given: Sequence[Scene]) -> Margins:
            found = []
            for pair, scene in zip(pairs, given, strict=True):
                texts = list(texts_of(scene))
                options = [text if part is None else text.split(", ")[part] for text in (pair.right, pair.elsewhere)]
                alike = encoder.encode(options) @ encoder.encode(texts).T if texts else np.zeros((2, 1))
                worth = alike.mean(axis=1) if mean else alike.max(axis=1)
                found.append(sign * float(worth[0] - worth[1]))
            return np.array(found)

        return margins

    def captions(scene: Scene) -> Sequence[str]:
        return scene.captions

    def standing(scene: Scene) -> Sequence[str]:
        return [f"What can be done by someone who stands here and sees this: {text}" for text in scene.captions]

    def reach(scene: Scene) -> Sequence[str]:
        return [f"Within reach without a step: {text}" for text in scene.places]

    def around(scene: Scene) -> Sequence[str]:
        return [other.appearance for other in scene.others if other.appearance]

    def selector(with_captions: bool) -> Signal:
        def margins(pairs: Sequence[Pair], given: Sequence[Scene]) -> Margins:
            found = []
            for pair, scene in zip(pairs, given, strict=True):
                evidence = ScoringEvidence(
                    scene=" ".join(scene.captions) if with_captions else "",
                    others_do=tuple(filter(None, map(describe_others, scene.others))),
                )
                right, elsewhere = by_likeness(encoder, (pair.right, pair.elsewhere), evidence)
                found.append(right - elsewhere)
            return np.array(found)

        return margins

    def doing(scene: Scene) -> Sequence[str]:
        return [describe_others(other) for other in scene.others if describe_others(other)]

    apart = signal(doing, -1, None, mean=False)
    near = signal(captions, 1, 0, mean=False)
    return {
        "the selector as it is: others": selector(with_captions=False),
        "the selector as it is: others and captions": selector(with_captions=True),
        "others, and the nearest caption to the role": lambda *case: apart(*case) + near(*case),
        "nearest caption": signal(captions, 1, None, mean=False),
        "mean of the captions": signal(captions, 1, None, mean=True),
        "nearest caption, to the role alone": near,
        "nearest caption, to the act alone": signal(captions, 1, -1, mean=False),
        "nearest caption, said as seen from here": signal(standing, 1, None, mean=False),
        "nearest words of place": signal(lambda scene: scene.places, 1, None, mean=False),
        "nearest words of place, said as within reach": signal(reach, 1, None, mean=False),
        "nearest words of place, to the role alone": signal(lambda scene: scene.places, 1, 0, mean=False),
        "farthest from where the others are": signal(around, -1, None, mean=False),
    }


def by_precedents(encoder: SentenceEncoding, scenes: dict[str, Scene]) -> dict[str, Signal]:
    """Learn from labelled pairs of other images: FITTED, so that only given minus swapped counts."""

    def scene_vector(scene: Scene) -> Margins:
        if not scene.captions:
            return np.zeros(encoder.encode([""]).shape[1])
        mean = encoder.encode(list(scene.captions)).astype(float).mean(axis=0)
        return np.asarray(mean / np.linalg.norm(mean), np.float64)

    def vectors(pairs: Sequence[Pair]) -> tuple[Margins, Margins]:
        right, elsewhere = ([pair.right for pair in pairs], [pair.elsewhere for pair in pairs])
        return encoder.encode(right).astype(float), encoder.encode(elsewhere).astype(float)

    def retrieved(by_scene: float) -> Signal:
        def margins(pairs: Sequence[Pair], given: Sequence[Scene]) -> Margins:
            right, elsewhere = vectors(pairs)
            theirs = np.array([scene_vector(scenes[pair.image]) for pair in pairs])
            near = by_scene * np.array([scene_vector(scene) for scene in given]) @ theirs.T
            # A precedent of the item's image, or of the image whose scene is given, would tell the answer.
            shut = np.array(
                [
                    [other.image in {pair.image, scene.image} for other in pairs]
                    for pair, scene in zip(pairs, given, strict=True)
                ]
            )

            def vote(options: Margins) -> Margins:
                for_it, against = (
                    np.where(shut, 0.0, np.exp((options @ known.T + near) / SCALE)).sum(1)
                    for known in (right, elsewhere)
                )
                return np.asarray(np.log(for_it / against), np.float64)

            return vote(right) - vote(elsewhere)

        return margins

    def ridge(weight: float) -> Signal:
        def features(pairs: Sequence[Pair], given: Sequence[Scene]) -> Margins:
            right, elsewhere = vectors(pairs)
            with_scene = (right - elsewhere) * np.array([scene_vector(scene) for scene in given])
            return np.hstack([right - elsewhere, weight * with_scene * right.shape[1] ** 0.5])

        def margins(pairs: Sequence[Pair], given: Sequence[Scene]) -> Margins:
            known = features(pairs, [scenes[pair.image] for pair in pairs])
            asked = features(pairs, given)
            folds = np.array([fold_of(pair.image) for pair in pairs])
            found = np.zeros(len(pairs))
            for fold in range(FOLDS):
                rows = known[folds != fold]
                doubled = rows @ rows.T + RIDGE * np.eye(len(rows))
                found[folds == fold] = asked[folds == fold] @ rows.T @ np.linalg.solve(doubled, np.ones(len(rows)))
            return found

        return margins

    return {
        "FITTED: votes of like options": retrieved(0.0),
        "FITTED: votes of like options in like scenes": retrieved(1.0),
        "FITTED: votes of like options, scenes counted twice": retrieved(2.0),
        "FITTED: ridge on wording": ridge(0.0),
        "FITTED: ridge on wording and its product with the scene": ridge(1.0),
    }


def by_model(name: str) -> Signal:
    """Ask the selector's own question, in both orders of yes and no."""
    engine = open_engine_by_name(name, WallClock())

    def margins(pairs: Sequence[Pair], given: Sequence[Scene]) -> Margins:
        found = []
        for pair, scene in zip(pairs, given, strict=True):
            seen = Observation(others=scene.others, viewpoint=Viewpoint(description=" ".join(scene.captions)))
            request = Request(query_id=pair.uid, candidates=(pair.right, pair.elsewhere), others=scene.others)
            prefix = prompts.scene(request, seen, (), (), 0)
            yes, _ = yes_by_engine(
                engine, prefix, {0: pair.right, 1: pair.elsewhere}, "possible", Deadline(ReplayClock())
            )
            found.append(yes[0] - yes[1])
        return np.array(found)

    return margins


if __name__ == "__main__":
    sys.exit(main())
