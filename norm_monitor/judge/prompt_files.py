"""Write the judge's prompts to private files: JSON, with the pictures beside it."""

from pathlib import Path
from typing import Any

from norm_core.engines.prompt import Image, Part, Prompt, Quoted
from norm_core.engines.reply import ModelInfo
from norm_core.files.atomic_file import write_atomic
from norm_core.records.flag import Polarity
from norm_core.records.json_codec import canonical, to_plain
from norm_core.records.window import window_digest
from norm_monitor.judge.excerpt import Excerpt, UnitView
from norm_monitor.judge.judge import POLARITIES, Batch, JudgeConfig, PromptPlan

MODE, FOLDER_MODE = 0o600, 0o700
_CONDITION = "the likeliest answer to the first question is a social error or competence"


class PromptFiles:
    """Write one JSON file per unit; a picture in several prompts is written once."""

    def __init__(self, folder: Path, config: JudgeConfig, model_info: ModelInfo) -> None:
        """Create the folder for prompts of this model; raise OSError if that fails."""
        folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        self._folder, self._config, self._model_info = folder, config, model_info

    def write(self, view: UnitView, planned: PromptPlan) -> Path:
        """Write what a judge asks about a unit; the file name contains its onset, its kind and the prompt's digest."""
        path = self._folder / f"{view.unit.onset_ns}_{view.unit.kind}_{planned.prompt.digest[:12]}.json"
        write_atomic(path, canonical(self._content(view, planned)) + b"\n", mode=MODE)
        return path

    def _content(self, view: UnitView, planned: PromptPlan) -> dict[str, Any]:
        window = view.window
        first = Batch(prompt=planned.prompt, questions=(planned.detection,), indices=(0,))
        return {
            "unit": to_plain(view.unit),
            "window": {
                "start_ns": window.start_ns,
                "end_ns": window.end_ns,
                "digest": window_digest(window),
                "late": window.late,
                "missing": list(window.missing),
            },
            "frames_ns": [frame.stamp_ns for frame in Excerpt.of_unit(view).frames],
            "model": self._model_info.model,
            "deployment_context": self._config.deployment_context.value,
            "locale": planned.locale,
            "prompts": [
                self._batch(first),
                *(
                    {"conditional": True, "asked_if": _CONDITION, **self._batch(attribute)}
                    for attribute in planned.attributes
                ),
            ],
            "notes": [
                self._note(planned, polarity)
                for polarity in POLARITIES
                if self._config.note_tokens and self._model_info.generates
            ],
        }

    def _batch(self, batch: Batch) -> dict[str, Any]:
        questions = [
            {
                "text": "\n".join(part.text for part in question.parts if not isinstance(part, Image)),
                "options": list(question.options),
                "prompt_digest": question.digest(batch.prompt),
            }
            for question in batch.questions
        ]
        return {**self._prompt(batch.prompt), "questions": questions}

    def _note(self, planned: PromptPlan, polarity: Polarity) -> dict[str, Any]:
        prompt = planned.note_prompt(POLARITIES.index(polarity))
        added = prompt.parts[len(planned.prompt.parts) :]
        return {
            "conditional": True,
            "asked_if": f"a flag opens on the answer that this is a social {polarity}",
            "after_prompt": 0,
            "parts": [self._part(part) for part in added],
            "prompt_digest": prompt.digest,
        }

    def _prompt(self, prompt: Prompt) -> dict[str, Any]:
        return {
            "version": prompt.version,
            "digest": prompt.digest,
            "parts": [self._part(part) for part in prompt.parts],
        }

    def _part(self, part: Part) -> dict[str, Any]:
        match part:
            case Image():
                name = f"{part.sha256[:24]}.jpg"
                if not (self._folder / name).exists():
                    write_atomic(self._folder / name, part.jpeg, mode=MODE)
                return {"kind": "picture", "file": name, "sha256": part.sha256}
            case Quoted():
                return {"kind": "quoted", "label": part.label, "text": part.text}
            case _:
                return {"kind": "text", "text": part.text}
