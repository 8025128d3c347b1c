"""Precedents for a run of EgoNormia: right answers to the half of the items that is not asked."""

import os
import random
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from action_selector.retrieve.precedents import NEAREST, Precedent, PrecedentIndex
from action_selector.selector_factory import SelectorFiles
from action_selector.text_safety.injection_filter import strip_instructions
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.records.json_codec import sha256_of
from norm_core.runtime.cache_dir import make_cache_folder
from sim_replays.runs.run_config import RunConfig
from sim_replays.suites import egonormia
from sim_replays.suites.dataset_files import sha256_of_files
from sim_replays.suites.target import SuiteError


def with_precedents(files: SelectorFiles, asking: RunConfig) -> SelectorFiles:
    """Add the index that the run asks for: the five nearest at any distance, or five at random."""
    if not asking.precedents:
        return files
    if asking.suite != egonormia.SUITE:
        raise SuiteError(f"precedents are drawn for {egonormia.SUITE} alone: give an index of your own for others")
    if files.precedents_index:
        raise SuiteError("an index of precedents was given, and precedents of the data's own half were asked for too")
    given = files.model_dump()
    if asking.precedents == "none":
        return SelectorFiles(**{**given, "precedents": 0})
    index = _index(asking, at_random=asking.precedents == "random-5")
    return SelectorFiles(**{**given, "precedents_index": str(index), "precedents": NEAREST, "precedent_least": -1})


def _index(asking: RunConfig, *, at_random: bool) -> Path:
    """Cache the index by its contents, so that equal runs share it."""
    data, encoder = Path(asking.data), SentenceEncoder()
    file = egonormia.file_of(data)
    made_of = [sha256_of_files([file]), encoder.weights_sha256, asking.seed, at_random]
    folder = make_cache_folder("precedents") / sha256_of(made_of)[:16]
    if folder.is_dir():
        return folder
    known, _ = egonormia.halves(*egonormia.read(data, asking.seed), asking.seed)
    index = index_of(egonormia.precedents(*known), encoder, at_random_by=asking.seed if at_random else None)
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=folder.parent))
    try:
        index.save(made)
        os.replace(made, folder)  # noqa: PTH105
    except OSError:  # another run wrote it first
        shutil.rmtree(made, ignore_errors=True)
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
