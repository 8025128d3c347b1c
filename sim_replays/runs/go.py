"""One run: the bag built where it is not, the questions that are left asked, and the whole scored."""

import json
import platform
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from action_selector.abstain import WhenUnsure
from action_selector.open_selector import SelectorFiles
from norm_core import __version__
from norm_core.engines.sentences import SentenceEncoder
from norm_core.models.catalogue import Catalogue
from sim_replays.runs import folder as run_folder
from sim_replays.runs.asked import Asking, Material, material
from sim_replays.runs.bag import build, is_built, read_key
from sim_replays.runs.folder import Run
from sim_replays.runs.transport import Transport
from sim_replays.suites.files import sha256_of_files
from sim_replays.suites.report import Report, with_notes

ENCODER = "encoder"

PROGRESS_EVERY_S = 2.0
_PACKAGES = ("numpy", "onnxruntime", "rosbags", "pydantic", "torch", "transformers", "ray")

# Hears how many questions there are, and how many are answered.
Progress = Callable[[int, int], None]


def selector_files(model: str, *, when_unsure: str = "best_effort", precedents_index: str = "") -> SelectorFiles:
    """The selector's settings for a run. A model that fails is not helped out by likeness: that would be a guess."""
    return SelectorFiles(
        model="" if model == ENCODER else model,
        when_unsure=WhenUnsure(when_unsure),
        precedents_index=precedents_index,
        fall_back=model == ENCODER,
    )


def run(
    out: Path,
    asking: Asking,
    files: SelectorFiles,
    transport: Transport,
    *,
    how: str,
    progress: Progress,
    shards: str = "1",
) -> tuple[Run, Report]:
    """Asks what the folder has no answer to yet. However it ends, what was answered is kept and scored."""
    made = material(asking)
    bag = out / run_folder.BAG
    built = is_built(bag, asking, made)
    run_folder.begin(out, {**described(asking, files, how, made), "shards": shards})
    if not built:
        build(bag, asking, made)
    key = read_key(bag)
    known = run_folder.read_raw(out)
    wanted = [query_id for query_id in key.orders if query_id not in known]
    done = len(known)
    progress(done, len(key.orders))
    kept = Kept(out, done, len(key.orders))
    try:
        if wanted:
            for _ in run_folder.append(out, transport.play(bag, frozenset(wanted))):
                done += 1
                kept.tell(done)
                progress(done, len(key.orders))
    finally:
        kept.write(done)
        found = run_folder.open_run(out)
        scored = run_folder.finish(found)
    return found, with_notes(scored, *_cautions(asking, files))


class Kept:
    """How far a run has got, in its folder for whoever looks in from elsewhere: rate and time left of this call."""

    def __init__(self, out: Path, done: int, total: int) -> None:
        self._out, self._before, self._total = out, done, total
        self._began_s = self._written_s = time.monotonic()

    def tell(self, done: int) -> None:
        """Writes it, though at most once in a while."""
        if time.monotonic() - self._written_s >= PROGRESS_EVERY_S:
            self.write(done)

    def write(self, done: int) -> None:
        """Writes it now."""
        self._written_s = time.monotonic()
        rate = (done - self._before) / max(self._written_s - self._began_s, 1e-3)
        left_s = (self._total - done) / rate if rate else None
        plain = {"answered": done, "total": self._total, "answers_per_s": round(rate, 3), "left_s": left_s}
        run_folder.write_whole(self._out / run_folder.PROGRESS, f"{json.dumps(plain)}\n")


def described(asking: Asking, files: SelectorFiles, how: str, made: Material) -> dict[str, Any]:
    """What a run's folder says of how it was made."""
    catalogue = Catalogue()
    manifest = catalogue.manifest(files.model).model_dump(mode="json") if files.model else None
    return {
        "name": f"{asking.suite} {asking.setting} {asking.style} {files.model or ENCODER}",
        "asking": asking.model_dump(mode="json"),
        "selector": files.model_dump(mode="json"),
        "selector_sha256": files.sha256(),
        "transport": how,
        "model": files.model or ENCODER,
        "encoder_sha256": SentenceEncoder().weights_sha256,
        "manifest": manifest,
        "data_sha256": sha256_of_files(list(made.files)),
        "seed": asking.seed,
        "versions": {
            "tactful": __version__,
            "python": platform.python_version(),
            "machine": platform.platform(),
            **{name: version(name) for name in _PACKAGES if find_spec(name)},
        },
        "began": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _cautions(asking: Asking, files: SelectorFiles) -> list[str]:
    """What must stand beside a figure, for it not to be taken for more than it is."""
    notes = [f"setting {asking.setting}, style {asking.style}, sampling {asking.sampling}, seed {asking.seed}"]
    if asking.setting == "others-given":
        notes.append("others given: the dataset tells what each visible other does, as perfect perception would")
    if asking.setting in {"images", "video"} and not files.model:
        notes.append("the sentence encoder sees no pictures: this figure is of the options alone")
    if asking.limit:
        notes.append(f"only the first {asking.limit} items were asked")
    return notes
