"""Execute a run: build the bag if needed, ask the open questions and score the whole."""

import os
import platform
import random
import shutil
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from action_selector.choose.abstain import WhenUnsure
from action_selector.request import repeated_places
from action_selector.retrieval import NEAREST, Precedent, PrecedentIndex
from action_selector.selector import SelectorFiles
from action_selector.text_safety.injection_filter import strip_instructions
from norm_core import __version__
from norm_core.engines.engine_registry import model_info_of
from norm_core.engines.sentences.sentence_encoder import MODEL, SentenceEncoder
from norm_core.engines.talk_reader import NO_READER
from norm_core.models.catalogue import Catalogue
from norm_core.records.episode import Answer
from norm_core.records.json_codec import sha256_of
from norm_core.records.outcome import Outcome
from norm_core.records.record import record
from norm_core.runtime.data_files import make_cache_folder
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.json_lines import append_lines, drop_cut_line
from norm_core.runtime.wording import count_of
from norm_monitor.judge.deployment_context import DeploymentContext, PictureRules
from sim_replays.items.dataset_files import sha256_of_files
from sim_replays.items.item_bag import Key, build, is_built, read_key
from sim_replays.items.run_config import RunConfig, RunItems, part_of
from sim_replays.items.target import SuiteError
from sim_replays.runs.asked_model import ModelOptions
from sim_replays.runs.random_model import RANDOM
from sim_replays.runs.results import run_folder
from sim_replays.runs.results.grading import Grade
from sim_replays.runs.results.run_folder import Run, Spent
from sim_replays.runs.shards import DIRECT, RayShards, Shards
from sim_replays.runs.transport import (
    AnswererConfig,
    BareAnswererConfig,
    Direct,
    JudgeAnswererConfig,
    Transport,
)
from sim_replays.suites import egonormia
from sim_replays.suites.report import NO_MODEL, RANDOM_MODEL, Report
from sim_replays.suites.suite import items_of_suite, suite_called, suites
from sim_replays.suites.suite_questions import QuestionConfig

ENCODER = "encoder"
WHOLE_S = 3600.0
# Outcomes of a model that does not work: what is asked again may be answered.
FAILURES = frozenset({Outcome.FAILED, Outcome.TIMED_OUT})
ASKED_AGAIN = FAILURES | {Outcome.REFUSED}

# Steps that a run can leave out, to measure their contribution (ablation).
STEPS_LESS: Mapping[str, Mapping[str, Any]] = {
    "veto": {"veto_others": False},
    "avoidance": {"avoid_others": False},
    "viewpoint": {"ask_viewpoint": False},
    "precedents": {"precedents": 0},
    "permutation": {"orders": 1},
    "norms": {"ask_norms": False},
}

_PACKAGES = ("numpy", "onnxruntime", "rosbags", "pydantic", "torch", "transformers", "ray")

# Called with the numbers of answered questions and of all questions.
Progress = Callable[[int, int], None]


def selector_files(
    model: str,
    *,
    precedents_index: str = "",
    without: Sequence[str] = (),
    pictures_may_leave: bool = False,
) -> SelectorFiles:
    """Make the selector's settings for a run, without the ablated steps.

    A failed model gets no similarity fallback: that would be a guess.
    """
    if unknown := [step for step in without if step not in STEPS_LESS]:
        raise SuiteError(f"there is no step {unknown[0]!r} to do without; there are {', '.join(STEPS_LESS)}")
    left_out = {name: value for step in without for name, value in STEPS_LESS[step].items()}
    return SelectorFiles(
        model="" if model == ENCODER else model,
        reader=NO_READER,
        when_unsure=WhenUnsure.BEST_EFFORT,
        precedents_index=precedents_index,
        fall_back=model == ENCODER,
        pictures_may_leave=pictures_may_leave,
        **left_out,
    )


def files_for(
    model: str,
    asking: RunConfig,
    *,
    precedents_index: str = "",
    without: Sequence[str] = (),
    rules: PictureRules | None = None,
) -> AnswererConfig:
    """Make the settings of whoever answers: the model alone, the judge for talk, or the selector for actions."""
    suite = suite_called(asking.suite)
    if asking.bare:
        if without or precedents_index or asking.precedents:
            raise SuiteError("--bare: asks the model alone; --without and --precedents are of the selector")
        if not suite.bare_settings:
            raise SuiteError(f"{suite.name}: asks no model alone, as it names no bare_settings; leave --bare out")
        if asking.setting not in suite.bare_settings:
            settings = ", ".join(suite.bare_settings)
            raise SuiteError(f"--bare: {asking.setting!r} is of the robot's steps; a model alone has {settings}")
        if model == ENCODER:
            raise SuiteError("--bare: the sentence encoder writes no text; name a model with --model")
        return BareAnswererConfig(suite=asking.suite, model=model, rules=rules or PictureRules())
    if suite.answered_by == "judge":
        if without:
            raise SuiteError(f"the judge answers {asking.suite}: --without is of the selector")
        return judge_files(model, asking, rules)
    rules = rules or PictureRules()
    if rules.deployment_context is not DeploymentContext.UNSPECIFIED:
        raise SuiteError(f"nothing in {asking.suite} asks about emotions: leave --deployment-context out")
    files = selector_files(
        model,
        precedents_index=precedents_index,
        without=without,
        pictures_may_leave=rules.pictures_may_leave,
    )
    return with_precedents(files, asking)


def judge_files(model: str, asking: RunConfig, rules: PictureRules | None = None) -> JudgeAnswererConfig:
    """The judge's settings for a run: the last 15 s of an episode as a robot has it, or all of it as the papers do."""
    name = MODEL if model == ENCODER else model
    suite = QuestionConfig()
    if asking.sampling == "paper":
        suite = QuestionConfig(window_s=WHOLE_S, images=suite_called(asking.suite).paper_frames)
    return JudgeAnswererConfig(model=name, suite=suite, rules=rules or PictureRules())


class RunStoppedError(TactfulError):
    """A run stopped itself. What was answered is kept."""

    exit_code = 1


class OverBudgetError(RunStoppedError):
    """The run's tokens are spent."""


@record
class RunLimits:
    """Which outcomes are asked again, and what stops a run: failures in a row, and tokens; 0 for no limit."""

    retry: frozenset[Outcome] = frozenset()
    max_failures: int = 0
    max_tokens: int = 0

    def check(self, spent: Spent, failures: Sequence[Answer | Grade]) -> None:
        """Raise RunStoppedError where a limit is reached."""
        if self.max_failures and len(failures) >= self.max_failures:
            raise RunStoppedError(
                f"{count_of(len(failures), 'question')} failed in a row, the last with: {failures[-1].reason}; "
                "correct that, then give the same command with --retry-failed"
            )
        if self.max_tokens and spent.silent:
            raise RunStoppedError("the server counts no tokens, so --max-tokens cannot hold; leave it out")
        if self.max_tokens and spent.tokens >= self.max_tokens:
            raise OverBudgetError(f"{spent.tokens} tokens were spent, and --max-tokens is {self.max_tokens}: give more")


def run(
    out: Path,
    asking: RunConfig,
    files: AnswererConfig,
    transport: Transport,
    *,
    how: str,
    progress: Progress,
    shards: str = "1",
    limits: RunLimits | None = None,
) -> tuple[Run, Report]:
    """Ask every question without an answer yet. However the run ends, its answers are kept and scored."""
    limits = limits or RunLimits()
    key, wanted, repeats = begin(out, asking, files, how, limits.retry, shards)
    bag = out / run_folder.BAG
    done, spent = len(key.orders) - len(wanted), run_folder.read_spent(out)
    failures: list[Answer] = []
    stopped: OverBudgetError | None = None
    progress(done, len(key.orders))
    try:
        if wanted:
            limits.check(spent, failures)
            with closing(run_folder.append(out, transport.play(bag, frozenset(wanted)))) as answers:
                for timed in answers:
                    done += 1
                    progress(done, len(key.orders))
                    spent = spent.plus(timed.requests)
                    failures = [*failures, timed.answer] if timed.answer.outcome in FAILURES else []
                    try:
                        limits.check(spent, failures)
                    except OverBudgetError as error:
                        if not isinstance(transport, Direct):
                            raise
                        transport.ask_no_more()  # requests under way are paid for: their answers are kept and counted
                        stopped = error
        if stopped:
            raise stopped
        _play_controls(out, bag, files, frozenset(key.orders), asking.seed, transport)
    finally:
        finished = run_folder.open_run(out)
        scored = run_folder.finish(finished)
    return finished, replace(scored, notes=(*scored.notes, *cautions(asking, files), *repeats))


def begin(  # noqa: PLR0917
    out: Path, asking: RunConfig, files: AnswererConfig, how: str, retry: Collection[Outcome], shards: str
) -> tuple[Key, list[str], list[str]]:
    """Begin the folder and build its bag, if needed. Returns the bag's key, the questions to ask, and cautions."""
    run_items = items_of_suite(asking)
    described_so = describe_run(asking, files, how, run_items)
    bag = out / run_folder.BAG
    built = is_built(bag, asking, run_items)
    run_folder.begin(out, {**described_so, "shards": shards})
    if not built:
        build(bag, asking, run_items)
    key, raw_answers = read_key(bag), run_folder.read_raw(out)
    wanted = [name for name in key.orders if name not in raw_answers or raw_answers[name].answer.outcome in retry]
    return key, wanted, _repeated_options(run_items)


def _repeated_options(run_items: RunItems) -> list[str]:
    """Name the published items that offer an option twice, as a caution."""
    queries = [query for item in run_items.asked for query in item.queries]
    names = [query.query_id for query in queries if any(map(repeated_places, (query.options, query.justifications)))]
    return [f"{count_of(len(names), 'question')} with an option that stands twice: {names[0]}"] if names else []


def _play_controls(  # noqa: PLR0917
    folder: Path, bag: Path, files: AnswererConfig, query_ids: frozenset[str], seed: int, transport: Transport
) -> None:
    """Play a robot's run again, in as many processes, with models that know nothing: what the steps alone decide."""
    if isinstance(files, BareAnswererConfig):
        return
    is_judge = isinstance(files, JudgeAnswererConfig)
    at_random = {"model": RANDOM} if is_judge else {"model": RANDOM, "fall_back": False}
    without = {"model": MODEL} if is_judge else {"model": "", "fall_back": True}
    for name, changed in ((RANDOM_MODEL, at_random), (NO_MODEL, without)):
        control, own = files.model_copy(update=changed), run_folder.control_folder(folder, name)
        drop_cut_line(own / run_folder.RAW)
        wanted = query_ids - set(run_folder.read_raw(own))
        if control != files and wanted:
            own.mkdir(parents=True, exist_ok=True)
            options = ModelOptions(seed=seed)
            again: Transport = Direct(control, options=options)
            if isinstance(transport, Shards | RayShards):
                again = replace(transport, config=control, how=DIRECT, options=options)
            for timed in again.play(bag, wanted):
                append_lines(own / run_folder.RAW, [replace(timed, requests=(), decision=None)])


def describe_run(asking: RunConfig, files: AnswererConfig, how: str, run_items: RunItems) -> dict[str, Any]:
    """Describe how a run was made, for its folder."""
    catalogue, suite = Catalogue(), suite_called(asking.suite)
    kind = ["bare"] if asking.bare else []
    has_manifest = files.model not in {"", RANDOM}
    manifest = catalogue.manifest(files.model).model_dump(mode="json", exclude={"prices"}) if has_manifest else None
    settings = ("sampling", "frames", "precedents")
    choices = [] if isinstance(files, JudgeAnswererConfig) else [asking.style]
    choices += [
        getattr(asking, name) for name in settings if getattr(asking, name) != RunConfig.model_fields[name].default
    ]
    if _has_no_paper(asking):
        choices = [choice for choice in choices if choice not in {"default", "paper"}]
    model = ENCODER if files.model in {"", MODEL} else files.model
    marks = [f"without {step}" for step, values in STEPS_LESS.items() if _is_without(files, values)]
    return {
        "name": " ".join((suite.name, *kind, asking.setting, *choices, model, *marks, *part_of(asking))),
        "asking": asking.model_dump(mode="json"),
        "answering": files.model_dump(mode="json"),
        "answering_sha256": files.sha256(),
        "transport": how,
        "model": model,
        "encoder_sha256": SentenceEncoder().weights_sha256,
        "manifest": manifest,
        "data_sha256": sha256_of_files(list(run_items.files)),
        "seed": asking.seed,
        "versions": {
            "tactful": __version__,
            "python": platform.python_version(),
            "machine": platform.platform(),
            **{name: version(name) for name in _PACKAGES if find_spec(name)},
        },
        "began": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _has_no_paper(asking: RunConfig) -> bool:
    """Whether a model alone answers a suite of one's own, which has the options of no paper."""
    return asking.bare and asking.suite not in suites()


def _is_without(files: AnswererConfig, values: Mapping[str, Any]) -> bool:
    return all(getattr(files, name, None) == value for name, value in values.items())


def cautions(asking: RunConfig, files: AnswererConfig) -> list[str]:
    """List the cautions that belong beside a run's figures."""
    form = f", frames {asking.frames}" if asking.setting == "video" else ""
    kind = "the model alone" if asking.bare else "the robot's steps"
    prompt = "" if _has_no_paper(asking) else f", style {asking.style}, sampling {asking.sampling}"
    notes = [f"{kind}: setting {asking.setting}{prompt}, seed {asking.seed}{form}"]
    if oracle := suite_called(asking.suite).given.get(asking.setting):
        notes.append(f"text from an oracle: {oracle} of the dataset")
    if asking.setting in {"images", "video", "transcript-given", "whisper"} and files.model in {"", MODEL}:
        notes.append("the sentence encoder sees no pictures: this figure is of words alone")
    if files.model == RANDOM:
        notes.append("the model answers at random, by the seed: this is a control and no model's figure")
    rules = files if isinstance(files, SelectorFiles) else files.rules
    if files.model not in {"", RANDOM} and not (
        model_info_of(Catalogue().manifest(files.model)).on_this_machine or rules.pictures_may_leave
    ):
        notes.append(f"{files.model} does not run on this machine and was shown no pictures: --pictures-may-leave")
    if (
        not isinstance(files, SelectorFiles)
        and suite_called(asking.suite).answered_by == "judge"
        and not (files.rules.deployment_context.allows_emotions_from_pictures or asking.setting in {"text", "blind"})
    ):
        notes.append(
            f"deployment context {files.rules.deployment_context}: no emotion was inferred from pictures, and "
            "questions about emotions went over words alone"
        )
    if isinstance(files, SelectorFiles) and not files.model and asking.style != RunConfig.model_fields["style"].default:
        notes.append(f"the sentence encoder is asked in no style: {asking.style} changes nothing")
    if asking.precedents:
        notes.append(f"precedents {asking.precedents}: only the half of the items was asked that none are taken from")
    if asking.only:
        notes.append(f"only the items named in {asking.only} were asked")
    if asking.limit:
        notes.append(f"only the first {asking.limit} items were asked")
    return notes


def with_precedents(files: SelectorFiles, asking: RunConfig) -> SelectorFiles:
    """Add the index that the run asks for: the five nearest at any distance, or five at random."""
    if not asking.precedents:
        return files
    if asking.suite != egonormia.SUITE.name:
        raise SuiteError(f"precedents are drawn for {egonormia.SUITE.name} alone: give an index of your own for others")
    if files.precedents_index:
        raise SuiteError("an index of precedents was given, and precedents of the data's own half were asked for too")
    plain = files.model_dump()
    if asking.precedents == "none":
        return SelectorFiles(**{**plain, "precedents": 0})
    index = _index(asking, at_random=asking.precedents == "random-5")
    return SelectorFiles(**{**plain, "precedents_index": str(index), "precedents": NEAREST, "precedent_least": -1})


def _index(asking: RunConfig, *, at_random: bool) -> Path:
    """Cache the index by its contents, so that equal runs share it."""
    data, encoder = Path(asking.data), SentenceEncoder()
    file = egonormia.file_of(data)
    made_of = [sha256_of_files([file]), encoder.weights_sha256, asking.seed, at_random]
    folder = make_cache_folder("precedents") / sha256_of(made_of)[:16]
    if folder.is_dir():
        return folder
    fitted_half, _ = egonormia.halves(*egonormia.read(data, asking.seed), asking.seed)
    index = index_of(egonormia.precedents(*fitted_half), encoder, at_random_by=asking.seed if at_random else None)
    folder.parent.mkdir(parents=True, exist_ok=True)
    built = Path(tempfile.mkdtemp(dir=folder.parent))
    try:
        index.save(built)
        os.replace(built, folder)  # noqa: PTH105
    except OSError:  # another run wrote it first
        shutil.rmtree(built, ignore_errors=True)
        if not folder.is_dir():
            raise
    return folder


def index_of(precedents: Sequence[Precedent], encoder: SentenceEncoder, *, at_random_by: int | None) -> PrecedentIndex:
    """Key precedents by their own scenes or, at random, by those of others, so that distance means nothing."""
    scenes = [strip_instructions(precedent.scene) for precedent in precedents]
    if at_random_by is not None:
        order = random.Random(at_random_by).sample(range(len(scenes)), len(scenes))
        turned = dict(zip(order, [*order[1:], order[0]], strict=True))
        scenes = [scenes[turned[place]] for place in range(len(scenes))]
    return PrecedentIndex(precedents, encoder.encode(scenes), encoder.weights_sha256)
