"""Measure how well a language model finds errors among the robot's turns, on a sample of development encounters.

The model gets the judge's first question alone: cold, and after coded exchanges that resemble the turn. The shipped
classifier reads the same turns. Answers are cached, so that an interrupted run resumes.

python benchmarks/monitor/judge_sample.py --model qwen2.5-coder-0.5b-q4 [--units 80] [--examples 4]
"""

import argparse
import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from calibration.labelled_talks import LabelledExchange, exchanges, read_talks
from norm_core.engines.engine import Engine
from norm_core.engines.engine_factory import open_engine
from norm_core.engines.prompt import Prompt, Question, Text
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.evaluation.average_precision import average_precision
from norm_core.evaluation.intervals import draw_clusters, percentile_interval
from norm_core.models.catalogue import Catalogue
from norm_core.prompts.judge import MARK
from norm_core.records.flag import Polarity, SocialFlag
from norm_core.records.record import record
from norm_core.runtime.time import NS_PER_S, WallClock
from norm_monitor.context.exchange_context import exchange_context
from norm_monitor.context.meaning import Concepts, Meanings
from norm_monitor.context.memory import MemoryConfig, PersonMemory
from norm_monitor.context.scene import Scene
from norm_monitor.cues.threshold_table import ThresholdTable
from norm_monitor.exchange.exchange_record import Exchange
from norm_monitor.judge.deployment_context import DeploymentContext
from norm_monitor.judge.excerpt import Excerpt
from norm_monitor.judge.judge import POLARITIES
from norm_monitor.judge.prompt_plan import PromptPlan, plan
from norm_monitor.monitor import Monitor
from norm_monitor.units.unit import Unit, UnitKind
from norm_monitor.units.unit_view import UnitView
from sim_replays.drivers.script_driver import Attend, monitor_script
from sim_replays.scenarios.library import encounters
from sim_replays.scenarios.truth import Truth

EVERY_UNIT = 36_000.0  # calls an hour: no unit is left out
SAME_ONSET_NS = NS_PER_S // 2
# One stratum after another, so that any first part of the sample has its shares.
STRATA = (Polarity.ERROR, None, Polarity.COMPETENCE, None)
ANSWERS = {Polarity.ERROR: "a social error", Polarity.COMPETENCE: "a social competence", None: "ordinary conduct"}
DRAWS = 2_000


@record
class Sampled:
    """A robot's turn: its label, its words, and the judge's questions about it."""

    polarity: Polarity | None
    exchange: Exchange
    questions: PromptPlan


class Precedents:
    """The coded exchanges of the labelled talks, searched by the robot's words."""

    def __init__(self, encoder: SentenceEncoder) -> None:
        """Read and encode all talks."""
        self._encoder = encoder
        self._coded = list(exchanges(read_talks()))
        self._vectors = encoder.encode([one.exchange.said for one in self._coded])

    def nearest(self, said: str, count: int) -> list[LabelledExchange]:
        """Return the exchanges with the most similar words of the robot, the most similar last."""
        likeness = self._vectors @ self._encoder.encode([said])[0]
        return [self._coded[at] for at in np.argsort(likeness, kind="stable")[-count:]] if count else []


class AnswerCache:
    """The model's answers in a file of JSON lines, by the digest of the question."""

    def __init__(self, path: Path) -> None:
        """Read the answers of earlier runs."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        self._known = {one["digest"]: one for one in map(json.loads, lines)}

    def ask(self, engine: Engine, questions: PromptPlan, examples: Sequence[LabelledExchange]) -> tuple[float, float]:
        """Return the probability of an error, and the seconds that the answer took; ask only for a new question.

        Only the task is the shared prefix, as it is the same for all units: the model then reads it once.
        """
        task, *rest = questions.prompt.parts
        shown = [Text(text=_words_of_examples(examples))] if examples else []
        prefix = Prompt(version=questions.prompt.version, parts=(task,))
        question = Question(parts=(*shown, *rest, *questions.detection.parts), options=questions.detection.options)
        digest = question.digest(prefix)
        if digest not in self._known:
            began_s = time.perf_counter()
            (answer,) = engine.ask_many(prefix, [question])
            if answer.best is None:
                raise SystemExit(f"{answer.outcome}: {answer.reason}")
            line = {
                "digest": digest,
                "probabilities": answer.probabilities,
                "tokens": answer.usage.prompt_tokens,
                "seconds": round(time.perf_counter() - began_s, 3),
            }
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
            self._known[digest] = line
        known = self._known[digest]
        return float(known["probabilities"][POLARITIES.index(Polarity.ERROR)]), float(known["seconds"])


def main() -> None:
    """Ask about each turn of the sample, and print the average precision of errors by each reader."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="a language model (tactful models list)")
    parser.add_argument("--units", type=int, default=80, help="robot turns: a quarter errors, a quarter competences")
    parser.add_argument("--examples", type=int, default=4, help="coded exchanges before the turn; 0: cold alone")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cache-folder", type=Path, default=Path("scratch/judge_sample"))
    options = parser.parse_args()
    encoder = SentenceEncoder(remembered=100_000)
    meaning = Meanings(encoder, Concepts.shipped())
    sample = sample_turns(meaning, options.units, options.seed)
    catalogue = Catalogue()
    manifest = catalogue.manifest(options.model)
    manifest = manifest.model_copy(update={"settings": {**manifest.settings, "threads": options.threads}})
    engine = open_engine(manifest, WallClock(), beside=catalogue.path(options.model).parent)
    cache = AnswerCache(options.cache_folder / f"{options.model}.jsonl")
    precedents = Precedents(encoder) if options.examples else None
    found: dict[str, list[float]] = defaultdict(list)
    spent: dict[str, list[float]] = defaultdict(list)
    try:
        for nth, one in enumerate(sample, 1):
            near = precedents.nearest(one.exchange.said, options.examples) if precedents else []
            for name, examples in {"cold": [], f"{options.examples} examples": near}.items():
                if name == "cold" or examples:
                    likely, seconds = cache.ask(engine, one.questions, examples)
                    found[name].append(likely)
                    spent[name].append(seconds)
            if near:
                found["the examples' labels"].append(sum(e.polarity is Polarity.ERROR for e in near) / len(near))
            found["exchange classifier"].append(meaning.read(one.exchange).probability[Polarity.ERROR])
            print(f"{nth}/{len(sample)}", file=sys.stderr, flush=True)
    finally:
        engine.close()
    is_error = np.array([one.polarity is Polarity.ERROR for one in sample])
    print(f"{options.model}, {len(sample)} turns, {is_error.sum()} errors: chance {is_error.mean():.2f}")
    for name, scores in found.items():
        precision, (low, high) = precision_with_interval(np.array(scores), is_error)
        took = f", median {np.median(spent[name]):.1f} s" if name in spent else ""
        print(f"{name}: average precision {precision:.2f} [{low:.2f}, {high:.2f}]{took}")


def sample_turns(meaning: Meanings, count: int, seed: int) -> list[Sampled]:
    """Return English turns of the robot: of any four an error, a competence and two that no label marks."""
    found: dict[Polarity | None, list[tuple[Polarity | None, UnitView]]] = defaultdict(list)
    table = ThresholdTable.shipped()
    for encounter in (one for one in encounters("development") if one.language == "en"):
        views: list[UnitView] = []
        session = monitor_script(encounter, meaning, table, attend=_collector(views), calls_per_hour=EVERY_UNIT)
        for view in (one for one in views if one.unit.kind is UnitKind.ROBOT_TURN):
            labels = _labels(view.unit, session.truth) or {None}
            if len(labels) == 1:
                (label,) = labels
                found[label].append((label, view))
    random = np.random.default_rng(seed)
    shuffled = {polarity: iter(random.permutation(len(found[polarity]))) for polarity in ANSWERS}
    wanted = [STRATA[nth % len(STRATA)] for nth in range(count)]
    return [_sampled(*found[polarity][next(shuffled[polarity])]) for polarity in wanted]


def _collector(views: list[UnitView]) -> Attend:
    def attend(monitor: Monitor) -> Iterable[SocialFlag]:
        views.extend(monitor.units_to_judge())
        return ()

    return attend


def _labels(unit: Unit, truth: Truth) -> set[Polarity | None]:
    return {event.polarity for event in truth.events if abs(event.onset_ns - unit.onset_ns) <= SAME_ONSET_NS}


def _sampled(polarity: Polarity | None, view: UnitView) -> Sampled:
    scene = Scene(view.window, view.known_until_ns, view.turns, (), PersonMemory(MemoryConfig()))
    robot = next(turn for turn in scene.robot_turns if Unit.of_turn(turn).unit_id == view.unit.unit_id)
    return Sampled(
        polarity=polarity,
        exchange=exchange_context(scene, robot).exchange,
        questions=plan(Excerpt.of_unit(view), 0, DeploymentContext.UNSPECIFIED),
    )


def _words_of_examples(examples: Sequence[LabelledExchange]) -> str:
    """Return examples as short transcripts, each with a coder's answer."""
    lines = chain.from_iterable(
        (
            f"Example {nth}",
            *(f"PERSON: {one.exchange.before}" for _ in range(bool(one.exchange.before))),
            f"{MARK} ROBOT: {one.exchange.said}",
            *(f"PERSON: {one.exchange.after}" for _ in range(bool(one.exchange.after))),
            f"Answer: {ANSWERS[one.polarity]}",
        )
        for nth, one in enumerate(examples, 1)
    )
    return "\n".join(["Examples from other talks, with a coder's answer:", *lines])


def precision_with_interval(
    scores: NDArray[np.float64], is_error: NDArray[np.bool_]
) -> tuple[float, tuple[float, float]]:
    """Return the average precision, and its 95 % interval over turns drawn with replacement."""
    draws = (at for at in draw_clusters(len(scores), DRAWS) if is_error[at].any())
    drawn = [average_precision(scores[at], is_error[at]) for at in draws]
    return average_precision(scores, is_error), percentile_interval(drawn)


if __name__ == "__main__":
    main()
