"""The folder in which items are made: what each phase kept, dropped and why."""

import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Self

from pydantic import Field

from norm_core.files.atomic_file import write_atomic
from norm_core.records.json_codec import to_json
from norm_core.records.record import record
from norm_core.runtime.config import Config, load_config
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.program import PROGRAM
from norm_monitor.session_log.study_folder import Study
from norm_monitor.view.pictures import reason_against_pictures
from sim_replays.items.dataset_files import annotations

PHASES = ("sample", "propose", "filter", "annotate", "assemble")
RUN_FILE, PICTURES, BATCH, ITEMS, PROJECTS = "run.json", "pictures", "batch", "items", "label_studio"
RIGHT_KINDS = ("direct", "indirect")
REFUSED = "refused: "  # begins the consent of a source that may not be used


class ItemError(TactfulError, ValueError):
    """Items cannot be made; the message gives the thing, the problem and the remedy."""


class Source(Config):
    """A bag, video or picture, or else a study, with what allows its use."""

    name: str
    path: str
    licence: str
    consent: str
    study: str = Field(default="", description="the folder of its study, whose participants consent")
    session: str = ""

    def with_consent(self, suite: str) -> Self:
        """Return the source with what its study's participants consent to now; REFUSED where that is too little."""
        if not self.study:
            return self
        study, reason = Study(Path(self.study)), f"{self.study} has the session no longer"
        about = "words" if suite == "hsri" else "clips"
        if self.session in study.file.sessions:
            recording = study.recording_of(self.session)
            silent = ", ".join(
                participant.pseudonym for participant in recording.info.participants if not participant.transcript
            )
            reason = reason_against_pictures(recording) if about == "clips" else ""
            if about == "words":
                nobody = "" if recording.info.participants else "the log names no participant who consented"
                reason = f"{silent} did not consent to a transcript" if silent else nobody
        return self.model_copy(update={"consent": f"{REFUSED}{reason}" if reason else f"{about}, by every participant"})


class PhaseCount(Config):
    """How many a phase kept, left open for an answer, and dropped by reason."""

    kept: int
    open: int = 0
    dropped: dict[str, int] = Field(default={})


class RunFile(Config):
    """The contents of run.json."""

    suite: Literal["egonormia", "egogapbench", "hsri"]
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
    """A moment of a source, which each phase completes. Pictures count from the folder of the run, one a second."""

    id: str
    source: str
    at_s: float
    faces: int
    pictures: tuple[str, ...] = ()
    after: str = Field(default="", description="a picture of the second after, which annotators alone see")
    activity: str = ""
    verb: str = ""
    place: str = ""
    description: str = ""
    candidates: tuple[Candidate, ...] = ()
    best: str = Field(default="", description="the candidate that annotators agree on, or none")
    sensible: tuple[str, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether the candidates are enough for an item."""
        kinds = Counter(candidate.kind for candidate in self.candidates)
        is_normia = kinds["context"] == 1 and kinds["corruption"] == 3
        return is_normia or (kinds["other"] >= 2 and any(kinds[kind] for kind in RIGHT_KINDS))


@record
class Drop:
    """What a phase leaves out, and why."""

    id: str
    why: str
    detail: str = ""


class ItemRun:
    """The folder of a run, which its owner alone can read."""

    def __init__(self, folder: Path, begins: RunFile | None = None) -> None:
        """Open a run, or begin one. Raises ItemError where there is none, or one of other settings."""
        self.folder, path = folder, folder / RUN_FILE
        if begins and not path.is_file():
            if folder.is_dir() and any(folder.iterdir()):
                raise ItemError(f"{folder}: is not empty and holds no run of items; name a new folder")
            self._save(begins)
        if not path.is_file():
            raise ItemError(f"{folder}: holds no {RUN_FILE}; begin with {PROGRAM} items make")
        self.file = load_config(RunFile, path)
        sources = tuple(source.with_consent(self.file.suite) for source in self.file.sources)
        if sources != self.file.sources:  # consent was withdrawn since, or given: all phases are to run again
            self._save(self.file.model_copy(update={"sources": sources, "phases": {}}))
            self._remove_outputs()
        if begins and begins != self.file.model_copy(update={"phases": {}}):
            raise ItemError(f"{folder}: was begun with other sources or options; give the same, or name a new folder")

    def _remove_outputs(self) -> None:
        """Remove what phases made, and the pictures of each source that may not be used."""
        refused = [source.name for source in self.file.sources if source.consent.startswith(REFUSED)]
        pictures = [path for path in self.folder.glob(f"{PICTURES}/*") if path.name.rpartition("-m_")[0] in refused]
        for folder in (self.folder / ITEMS, self.folder / PROJECTS, *pictures):
            if folder.exists():
                shutil.rmtree(folder)
        for name in ("contact_sheet.png", *(f"{phase}{end}.jsonl" for phase in PHASES for end in ("", "_dropped"))):
            (self.folder / name).unlink(missing_ok=True)

    def _save(self, file: RunFile) -> None:
        self.write(RUN_FILE, file.model_dump_json(indent=1) + "\n")
        self.file = file

    def scenes(self, phase: str) -> list[Scene]:
        """Read what a phase kept. Raises ItemError where it has not run or kept nothing."""
        count = self.file.phases.get(phase)
        if count is None:
            raise ItemError(f"{self.folder}: {phase} has not run; repeat {PROGRAM} items make")
        if not count.kept:
            why = ", ".join(f"{number} {why}" for why, number in count.dropped.items()) or "nothing is answered yet"
            raise ItemError(f"{self.folder}: {phase} kept nothing ({why}); see {phase}_dropped.jsonl there")
        return annotations(self.folder, f"{phase}.jsonl", Scene, lambda scene: scene.id)

    def finish(self, phase: str, results: Sequence[Config], drops: Sequence[Drop], still_open: int = 0) -> PhaseCount:
        """Write what a phase kept and dropped; the phases after it are to run again."""
        self.write(f"{phase}.jsonl", "".join(f"{scene.model_dump_json(exclude_defaults=True)}\n" for scene in results))
        self.write(f"{phase}_dropped.jsonl", "".join(f"{to_json(drop)}\n" for drop in drops))
        count = PhaseCount(kept=len(results), open=still_open, dropped=dict(Counter(drop.why for drop in drops)))
        before = {name: self.file.phases[name] for name in PHASES[: PHASES.index(phase)] if name in self.file.phases}
        self._save(self.file.model_copy(update={"phases": {**before, phase: count}}))
        return count

    def write(self, name: str, content: str | bytes) -> None:
        """Write a file of the run that its owner alone can read."""
        path = self.folder / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomic(path, content, mode=0o600)
