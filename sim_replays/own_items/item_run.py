"""The folder in which items are made: what each phase kept, dropped and why."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from norm_core.records.json_codec import to_json
from norm_core.records.record import record
from norm_core.runtime.atomic_file import write_atomic
from norm_core.runtime.config import Config, check_config, load_config
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.program import PROGRAM
from sim_replays.suites.dataset_files import entries

PHASES = ("sample", "propose", "filter", "annotate", "assemble")
RUN_FILE, PICTURES, BATCH, ITEMS = "run.json", "pictures", "batch", "items"
_MODE, _FOLDER_MODE = 0o600, 0o700
SuiteToMake = Literal["egonormia", "egogapbench"]


class ItemError(TactfulError, ValueError):
    """Items cannot be made; the message gives the thing, the problem and the remedy."""


class Source(Config):
    """A recording, with what allows its use. `path` is that of a bag, a video or a picture."""

    name: str
    path: str
    licence: str
    consent: str


class PhaseCount(Config):
    """How many a phase kept, left open, and dropped by reason."""

    kept: int
    open: int = Field(default=0, description="waiting for a model's or a person's answer")
    dropped: dict[str, int] = Field(default={})


class RunFile(Config):
    """The contents of run.json."""

    suite: SuiteToMake
    seed: int = 0
    faces: Literal["blurred", "kept"] = "blurred"
    sources: tuple[Source, ...] = ()
    phases: dict[str, PhaseCount] = Field(default={})


class Candidate(Config):
    """An action that may become an option. `kind` is context or corruption; or direct, indirect, off_vantage, other."""

    id: str
    kind: str
    action: str
    justification: str = ""
    norms: tuple[str, ...] = ()
    context: str = ""
    role: str = ""
    appearance: str = ""


class Scene(Config):
    """A moment of a source, which each phase completes. `pictures` count from the folder of the run, one a second."""

    id: str
    source: str
    at_s: float
    faces: int
    pictures: tuple[str, ...] = Field(min_length=1)
    activity: str = ""
    verb: str = ""
    place: str = ""
    description: str = ""
    candidates: tuple[Candidate, ...] = ()
    best: str = Field(default="", description="the candidate that annotators agree on (EgoNormia)")
    sensible: tuple[str, ...] = ()


@record
class Drop:
    """What a phase leaves out, and why."""

    id: str
    why: str
    detail: str = ""


class ItemRun:
    """The folder of a run, which its owner alone can read."""

    def __init__(self, folder: Path, begins: RunFile | None = None) -> None:
        """Open a run, or begin one. Raises ItemError where there is none, or another one."""
        self.folder = folder
        path = folder / RUN_FILE
        if begins is not None and not path.is_file():
            if folder.is_dir() and any(folder.iterdir()):
                raise ItemError(f"{folder}: is not empty and holds no run of items; name a new folder")
            folder.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
            self._save(begins)
        if not path.is_file():
            raise ItemError(f"{folder}: holds no {RUN_FILE}; begin with {PROGRAM} items sample")
        self.file = load_config(RunFile, path)
        if begins is not None and (changed := self._changed(begins)):
            raise ItemError(f"{folder}: was begun with {changed}; give the same, or name another folder")

    def _changed(self, begins: RunFile) -> str:
        names = ("suite", "seed", "faces", "sources")
        differing = [name for name in names if getattr(begins, name) != getattr(self.file, name)]
        return ", ".join(f"another {name}" for name in differing)

    def _save(self, file: RunFile) -> None:
        write_atomic(self.folder / RUN_FILE, file.model_dump_json(indent=1) + "\n", mode=_MODE)
        self.file = file

    def has(self, phase: str) -> bool:
        """Whether a phase is done, with nothing open."""
        return phase in self.file.phases and not self.file.phases[phase].open

    def scenes(self, phase: str) -> list[Scene]:
        """Read what a phase kept. Raises ItemError where it has not run or kept nothing."""
        path = self.folder / f"{phase}.jsonl"
        if not path.is_file():
            raise ItemError(f"{self.folder}: {phase} has not run; run {PROGRAM} items {phase} {self.folder}")
        if not path.stat().st_size:
            why = ", ".join(f"{count} {why}" for why, count in self.file.phases[phase].dropped.items())
            raise ItemError(f"{self.folder}: {phase} kept nothing ({why or 'nothing is answered yet'}); see {path}")
        return [check_config(Scene, entry, where) for where, entry in entries(path)]

    def finish(self, phase: str, kept: Sequence[Scene], drops: Sequence[Drop], still_open: int = 0) -> PhaseCount:
        """Write what a phase kept and dropped; the phases after it are to run again."""
        for name, lines in (
            (f"{phase}.jsonl", [scene.model_dump_json(exclude_defaults=True) for scene in kept]),
            (f"{phase}_dropped.jsonl", [to_json(drop) for drop in drops]),
        ):
            write_atomic(self.folder / name, "".join(f"{line}\n" for line in lines), mode=_MODE)
        count = PhaseCount(kept=len(kept), open=still_open, dropped=dict(Counter(drop.why for drop in drops)))
        before = {name: self.file.phases[name] for name in PHASES[: PHASES.index(phase)] if name in self.file.phases}
        self._save(self.file.model_copy(update={"phases": {**before, phase: count}}))
        return count

    def write(self, name: str, content: str | bytes) -> None:
        """Write a file of the run that its owner alone can read."""
        path = self.folder / name
        path.parent.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
        write_atomic(path, content, mode=_MODE)

    def pictures(self, scene: Scene, count: int = 0) -> list[bytes]:
        """Read the last pictures of a scene, or all."""
        return [(self.folder / name).read_bytes() for name in scene.pictures[-count:]]
