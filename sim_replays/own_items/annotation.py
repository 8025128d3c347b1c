"""Annotation in Label Studio: annotators who do not see each other, a third who reconciles, an expert; agreement."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from norm_core.files.data_files import shipped_file
from norm_core.records.json_codec import sha256_of
from norm_core.runtime.config import load_yaml
from scoring.agreement_coefficients import cohen_kappas, krippendorff_alphas, number_or_none
from sim_replays.own_items.candidates import MARKUP
from sim_replays.own_items.item_run import RIGHT_KINDS, Candidate, Drop, ItemError, ItemRun, PhaseCount, Scene
from sim_replays.own_items.label_studio import Answers, Task, answers_of, read_export, write_projects

FOLDER, AGREEMENT = "annotations", "agreement.json"
NONE, OWN = "none", "own"
LATER = "happens"  # the question that the second after answers
LABEL, AFTER, DECIDE, EXPERT = "label", "after", "decide", "expert"  # rounds
MAX_CHARACTERS = 2000  # of an own wording


class ItemAnnotation:
    """What people answered about a run's scenes, in a file a person, and what each is to answer next."""

    def __init__(self, run: ItemRun, annotators: Sequence[str], reconciler: str = "", expert: str = "") -> None:
        """Read what people answered so far. Raises ItemError for names that do not do."""
        people, form = (*annotators, *filter(None, (reconciler, expert))), str(run.file.suite)
        is_fit = all(re.fullmatch(r"\w[\w.-]*", name) for name in people) and len({*people}) == len(people)
        if len(annotators) != 2 or not is_fit:
            raise ItemError(
                "--annotator: give two pseudonyms of letters and digits, others as --reconciler and --expert"
            )
        self.run, self.people, self.annotators, self.reconciler, self.expert = (
            run, people, tuple(annotators), reconciler, expert,
        )  # fmt: skip
        self.scenes = {scene.id: scene for scene in run.scenes("filter")}
        self._words = load_yaml(shipped_file("sim_replays.own_items", "worked.yaml"))
        self._form: dict[str, dict[str, Any]] = self._words["questions"][form]
        self._worked: list[dict[str, Any]] = self._words["worked"][form]
        self.questions = {name: self._questions(scene.candidates) for name, scene in self.scenes.items()}
        # By person and scene, the answers with the digest of what they answer.
        self._notes: dict[str, dict[str, dict[str, Any]]] = {}
        for name in people:
            path = run.folder / FOLDER / f"{name}.json"
            self._notes[name] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}

    def _questions(self, candidates: Sequence[Candidate]) -> dict[str, dict[str, Any]]:
        """Return the paper's questions about a scene, by id, with the answers that each allows."""
        questions = {name: {"answers": {}, **question} for name, question in self._form.items()}
        drawn = sorted(candidates, key=lambda candidate: sha256_of(candidate.action))  # the model's best is anywhere
        actions = {
            candidate.id: f"{candidate.action} {candidate.justification}".strip()
            for candidate in drawn
            if candidate.kind != "other"
        }
        for name in questions.keys() & {"best", "sensible"}:
            questions[name]["answers"] = actions | questions[name]["answers"]
        if "singleton" in questions:
            others = (candidate.action for candidate in candidates if candidate.kind == "other")
            questions["singleton"]["text"] += "".join(f" ({action})" for action in others)
            labels = self._words["labels"]
            off = {label: text for label, text in labels.items() if label != "pass"}
            kinds = {candidate.id: candidate.kind for candidate in candidates}
            questions |= {
                name: {"text": text, "answers": labels if kinds[name] in RIGHT_KINDS else off}
                for name, text in actions.items()
            }
        return questions

    def _questions_to(self, name: str, scene: str) -> dict[str, dict[str, Any]]:
        return self._words["expert"] if name == self.expert else self.questions[scene]

    def _digest(self, name: str, scene: str) -> str:
        """Digest what somebody answers about: the questions, and what those before them answered."""
        before = () if name in self.annotators else sorted({*self.people} - {name, self.expert})
        notes = [self._notes[other][scene] for other in before if scene in self._notes[other]]
        answers = [(note["asked"], note["answers"]) for note in notes]
        return sha256_of([self._questions_to(name, scene), *answers])

    def _noted(self, name: str, scene: str) -> Answers:
        """Return what somebody answered to what is asked now, whole or in part."""
        note = self._notes[name].get(scene, {})
        answers: Answers = note["answers"] if note and note["asked"] == self._digest(name, scene) else {}
        return answers

    def complete_answers(self, name: str) -> dict[str, Answers]:
        """Return the whole answers of somebody, by scene."""
        noted = {scene: self._noted(name, scene) for scene in self.scenes}
        return {
            scene: answers
            for scene, answers in noted.items()
            if self._questions_to(name, scene).keys() <= answers.keys()
        }

    def _is_in_two_rounds(self, name: str, scene: str) -> bool:
        """Whether somebody chooses before they see the second after a scene, and cannot change the choice since."""
        return bool(self.scenes[scene].after and name in self.annotators)

    def differing(self) -> list[str]:
        """List the scenes that both annotators answered, and not alike; LATER drops nothing, so it does not count."""
        first, second = (
            {scene: {**answers, LATER: []} for scene, answers in self.complete_answers(name).items()}
            for name in self.annotators
        )
        return [name for name in self.scenes if name in first and name in second and first[name] != second[name]]

    def settled(self) -> dict[str, tuple[Scene, list[Drop]]]:
        """Return each scene that everybody answered as they judge it, with what is dropped of it."""
        judge = _judge_normia if self.run.file.suite == "egonormia" else _judge_gap
        answers = {name: self.complete_answers(name) for name in self.people}
        differing = self.differing() if self.reconciler else []
        people = {scene: [self.reconciler] if scene in differing else self.annotators for scene in self.scenes}
        return {
            name: judge(scene, [answers[person][name] for person in people[name]])
            for name, scene in self.scenes.items()
            if all(name in answers[person] for person in people[name])
        }

    def _open_to(self, name: str) -> dict[str, str]:
        """Return the scenes that somebody is to answer, each with what they read about it."""
        if name == self.expert:
            return {scene: _item_text(judged) for scene, (judged, _) in self.settled().items() if judged.is_complete}
        names = self.differing() if name == self.reconciler else self.scenes
        others = self.annotators if name == self.reconciler else ()
        return {
            scene: "\n".join(self._in_words(self.questions[scene], self._noted(other, scene)) for other in others)
            for scene in names
        }

    def _in_words(self, questions: Mapping[str, Mapping[str, Any]], answers: Answers) -> str:
        """Write answers out, a question a line."""
        lines = []
        for name, chosen in answers.items():
            options = questions.get(name, {}).get("answers", {})
            texts = "; ".join(str(options.get(answer, answer)) for answer in chosen) or "-"
            lines.append(f"- {questions.get(name, {}).get('text', name)} {texts}")
        return "\n".join(lines)

    def open_tasks(self) -> list[Task]:
        """Return what each person is to answer now."""
        tasks = []
        rounds = {self.reconciler: DECIDE, self.expert: EXPERT}
        for name in self.people:
            complete = self.complete_answers(name)
            for scene, about in self._open_to(name).items():
                if scene in complete:
                    continue
                questions, pictures = dict(self._questions_to(name, scene)), self.scenes[scene].pictures
                step, is_shown_after = rounds.get(name, LABEL), name not in self.annotators
                if self._is_in_two_rounds(name, scene):
                    later = questions.pop(LATER)
                    if is_shown_after := bool(self._noted(name, scene)):
                        step, questions = AFTER, {LATER: later}
                if is_shown_after and self.scenes[scene].after:
                    pictures = (*pictures, self.scenes[scene].after)
                if "best" in questions:
                    own = {"own_action": {"text": "Your own action:"}, "own_reason": {"text": "Its reason:"}}
                    questions |= {key: {**question, "writes": True} for key, question in own.items()}
                tasks.append(
                    Task(
                        person=name,
                        round=step,
                        scene=scene,
                        asked=self._digest(name, scene),
                        about=about,
                        pictures=pictures,
                        questions=questions,
                    )
                )
        return tasks

    def write_projects(self) -> list[Path]:
        """Write the projects of what is open; return their folders."""
        return write_projects(self.run, self.open_tasks(), self._instructions())

    def _instructions(self) -> str:
        """Return the worked items, with their right answers, for the project's instructions."""
        lines = []
        for number, worked in enumerate(self._worked, 1):
            texts = worked.get("candidates", {}).items()
            candidates = [Candidate(id=key, kind=key.rpartition("_")[0] or key, action=text) for key, text in texts]
            answers = self._in_words(self._questions(candidates), worked["answers"])
            lines += [f"## {number}", worked["description"], *(f"- {text}" for _, text in texts)]
            lines += [answers, worked["why"], ""]
        return "\n\n".join(lines)

    def read_answers(self, path: Path) -> list[str]:
        """Note the answers of a JSON export of Label Studio; return why answers are not counted."""
        problems = []
        for exported in read_export(path):
            name, scene = exported.person, exported.scene
            if name not in self.people or scene not in self.scenes:
                raise ItemError(f"{path}: {name} or {scene} is not of this run and its people; check the names")
            if exported.asked != self._digest(name, scene):
                problems.append(f"{name}, {scene}: was asked otherwise since; import the new task")
                continue
            try:
                self._add(name, scene, exported.round, exported.answers)
            except ItemError as error:
                problems.append(f"{name}, {scene}: {error}")
        for name in self.people:
            self.run.write(f"{FOLDER}/{name}.json", json.dumps(self._notes[name], indent=1, ensure_ascii=False))
        return problems

    def _add(self, name: str, scene: str, step: str, exported: Answers) -> None:
        """Note one person's answers about a scene. Raises ItemError for no answer."""
        noted, questions = self._noted(name, scene), dict(self._questions_to(name, scene))
        answers = answers_of(questions, exported)
        if step == AFTER:
            questions = {LATER: questions[LATER]}
        elif self._is_in_two_rounds(name, scene):
            questions.pop(LATER)
            if noted:
                return  # the choice stays, as the second after may have been seen since
        checked = {key: sorted(answers.get(key, ())) for key in questions}
        for key, question in questions.items():
            is_allowed = {*checked[key]} <= {*question["answers"]}
            if not is_allowed or (len(checked[key]) != 1 and not question.get("several")):
                raise ItemError(f"{question['text']} Choose an answer.")
        if checked.get("best") == [OWN]:
            checked[OWN] = [_own_words(answers.get(key, ())) for key in ("own_action", "own_reason")]
        before = noted if step == AFTER else {}
        self._notes[name][scene] = {"asked": self._digest(name, scene), "answers": {**before, **checked}}

    def agreement(self) -> list[dict[str, Any]]:
        """Compute alpha and Cohen's kappa over the scenes that both annotators answered, by kind of question."""
        units: dict[str, Counter[tuple[str | None, ...]]] = {}
        answers_by_person = [self.complete_answers(name) for name in self.annotators]
        for scene in set.intersection(*({*by_scene} for by_scene in answers_by_person)):
            for key, question in self.questions[scene].items():
                answers = [by_scene[scene][key] for by_scene in answers_by_person]
                kind = key if key in self._form else "label"
                chosen = [
                    tuple(str(answer in chosen_answers) for chosen_answers in answers) for answer in question["answers"]
                ]
                values = chosen if question.get("several") else [tuple(chosen_answers[0] for chosen_answers in answers)]
                units.setdefault(kind, Counter()).update(values)
                if kind == "label" and "singleton" in self._form:
                    units.setdefault("usable", Counter()).update(
                        [tuple(str(chosen_answers == ["pass"]) for chosen_answers in answers)]
                    )
        rows = []
        for kind, counts in units.items():
            samples = {unit: np.array([float(count)]) for unit, count in counts.items()}
            equal = sum(count for unit, count in counts.items() if len({*unit}) == 1)
            kappa, alpha = (number_or_none(compute(samples)) for compute in (cohen_kappas, krippendorff_alphas))
            rows.append({"question": kind, "n": counts.total(), "equal": equal, "kappa": kappa, "alpha": alpha})
        return rows

    def finish(self) -> PhaseCount:
        """Keep what annotators agree on or the reconciler decided, and the expert passed; list the rest."""
        scenes, drops, settled = list[Scene](), list[Drop](), self.settled()
        still_open, judged_by = (
            len(self.scenes) - len(settled),
            self.complete_answers(self.expert) if self.expert else {},
        )
        for name, (judged, of_scene) in settled.items():
            drops += of_scene
            if judged.is_complete and self.expert and name not in judged_by:
                still_open += 1
            elif faults := [key for key, verdict in judged_by.get(name, {}).items() if verdict == ["no"]]:
                drops.append(Drop(id=name, why=f"the expert: {self._words['expert'][faults[0]]['why']}"))
            elif judged.is_complete:
                scenes.append(judged)
        about = {"agreement": self.agreement(), "differing": self.differing()}
        complete = [answers for annotator in self.annotators for answers in self.complete_answers(annotator).values()]
        about["happens"] = Counter(answers[LATER][0] for answers in complete if LATER in answers)
        about["expert"] = self.expert
        self.run.write(AGREEMENT, json.dumps(about, indent=1))
        return self.run.finish("annotate", scenes, drops, still_open)


def _own_words(texts: Sequence[str]) -> str:
    text = " ".join(" ".join(texts[:1]).encode("utf-8", "replace").decode().split())
    if len(text) > MAX_CHARACTERS or MARKUP.search(text) or not text:
        raise ItemError("Your own words: Write what is asked, without markup and addresses.")
    return text


def _item_text(scene: Scene) -> str:
    marks = {**dict.fromkeys(scene.sensible, "sensible"), scene.best: "best"}
    none = ["None of them is best."] if scene.best == NONE else []
    lines = [
        f"- {candidate.action} {candidate.justification} ({marks.get(candidate.id, candidate.kind)})"
        for candidate in scene.candidates
    ]
    return "\n".join([*lines, *none])


def _judge_normia(scene: Scene, opinions: Sequence[Answers]) -> tuple[Scene, list[Drop]]:
    """Return the scene with what everybody says is best and sensible, or without candidates."""
    [best], candidates = opinions[0]["best"], list(scene.candidates)
    differs = any(opinion["best"] != [best] for opinion in opinions)
    if differs or (best == OWN and len(opinions) > 1):
        why = "annotators differ on the best action" if differs else "own words that nobody reconciled"
        return scene.model_copy(update={"candidates": ()}), [Drop(id=scene.id, why=why)]
    if best == OWN:  # in the place of the model's best
        own = dict(zip(("action", "justification"), opinions[0][OWN], strict=True))
        candidates[0], best = candidates[0].model_copy(update=own), candidates[0].id
    sensible = set(opinions[0]["sensible"]).intersection(*(opinion["sensible"] for opinion in opinions)) | (
        {best} - {NONE}
    )
    changed = {"best": best, "sensible": tuple(sorted(sensible)), "candidates": tuple(candidates)}
    return scene.model_copy(update=changed), []


def _judge_gap(scene: Scene, opinions: Sequence[Answers]) -> tuple[Scene, list[Drop]]:
    """Return the scene with the candidates on whose label everybody agrees."""
    candidates, drops = [], []
    if any(opinion["singleton"] != ["yes"] for opinion in opinions):
        return scene.model_copy(update={"candidates": ()}), [Drop(id=scene.id, why="no singleton actions")]
    for candidate in scene.candidates:
        labels = {opinion[candidate.id][0] for opinion in opinions} if candidate.kind != "other" else {"other"}
        if len(labels) > 1 or labels == {"discard"}:
            why = "annotators differ" if len(labels) > 1 else "discarded by the annotators"
            drops.append(Drop(id=f"{scene.id}/{candidate.id}", why=why))
        else:
            candidates.append(
                candidate.model_copy(update={"kind": "off_vantage"}) if labels == {"off_vantage"} else candidate
            )
    changed = scene.model_copy(update={"candidates": tuple(candidates)})
    return changed, drops if changed.is_complete else [*drops, Drop(id=scene.id, why="no right action is left")]
