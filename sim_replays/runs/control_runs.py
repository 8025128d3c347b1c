"""Play a robot's run again with models that know nothing, as its controls: what the steps alone decide."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from norm_core.engines.sentences.sentence_encoder import MODEL
from sim_replays.runs.asked_model import ModelOptions
from sim_replays.runs.bare_answerer import BareAnswererConfig
from sim_replays.runs.random_model import RANDOM
from sim_replays.runs.results.json_lines import drop_cut_line
from sim_replays.runs.results.run_folder import RAW, append, control_folder, read_raw
from sim_replays.runs.transport import AnswererConfig, Direct, JudgeAnswererConfig, TimedAnswer
from sim_replays.suites.report import NO_MODEL, RANDOM_MODEL


def control_files(files: AnswererConfig) -> Mapping[str, AnswererConfig]:
    """The same steps with a model that answers at random, and with the sentence encoder alone."""
    if isinstance(files, BareAnswererConfig):
        return {}
    is_judge = isinstance(files, JudgeAnswererConfig)
    at_random = {"model": RANDOM} if is_judge else {"model": RANDOM, "fall_back": False}
    without = {"model": MODEL} if is_judge else {"model": "", "fall_back": True}
    controls = {RANDOM_MODEL: files.model_copy(update=at_random), NO_MODEL: files.model_copy(update=without)}
    return {name: control for name, control in controls.items() if control != files}


def play_controls(
    folder: Path, bag: Path, files: AnswererConfig, query_ids: frozenset[str], seed: int
) -> Iterator[str]:
    """Ask each control what it was not asked yet, in this process; yield the name of each that begins."""
    for name, control in control_files(files).items():
        own = control_folder(folder, name)
        drop_cut_line(own / RAW)
        if wanted := query_ids - set(read_raw(own)):
            yield name
            own.mkdir(parents=True, exist_ok=True)
            for _ in append(own, _without_requests(Direct(control, options=ModelOptions(seed=seed)), bag, wanted)):
                pass


def _without_requests(transport: Direct, bag: Path, wanted: frozenset[str]) -> Iterator[TimedAnswer]:
    return (replace(timed, requests=()) for timed in transport.play(bag, wanted))
