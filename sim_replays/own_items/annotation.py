"""The annotation desk: two annotators who do not see each other, a third who reconciles, and their agreement."""

import json
import re
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import numpy as np

from norm_core.evaluation.agreement_coefficients import cohen_kappas, krippendorff_alphas, number_or_none
from norm_core.records.json_codec import sha256_of
from norm_core.runtime.config import load_yaml
from norm_core.runtime.data_files import shipped_file
from norm_core.runtime.errors import TactfulError
from sim_replays.own_items.candidates import MARKUP
from sim_replays.own_items.item_run import RIGHT_KINDS, Candidate, Drop, ItemError, ItemRun, PhaseCount, Scene
from sim_replays.runs.results.json_lines import drop_cut_line
from sim_replays.suites.dataset_files import entries
from study_desk.report.page_server import (
    NOT_FOUND,
    PageReply,
    PageRequest,
    PageServer,
    fill_page,
    page_reply,
    text_reply,
)
from study_desk.study.study_folder import append_line

FOLDER, AGREEMENT = "annotations", "agreement.json"
NONE, OWN = "none", "own"
MAX_CHARACTERS = 300  # of an own wording
Answers = Mapping[str, list[str]]  # by question


class AnnotationDesk:
    """The annotations of a run, in a file a person."""

    def __init__(self, run: ItemRun, annotators: Sequence[str], reconciler: str = "") -> None:
        """Read what people answered so far. Raises ItemError for names that do not do."""
        people = [*annotators, *filter(None, [reconciler])]
        is_named = all(re.fullmatch(r"\w[\w.-]*", name) for name in people)
        if len(annotators) != 2 or len({*people}) < len(people) or not is_named:
            raise ItemError("--annotator: give two pseudonyms of letters and digits, and a third as --reconciler")
        self.run, self.annotators, self.reconciler = run, tuple(annotators), reconciler
        self.scenes = {scene.id: scene for scene in run.scenes("filter")}
        self._words = load_yaml(shipped_file("sim_replays.own_items", "worked.yaml"))
        self._worked: list[dict[str, Any]] = self._words["worked"][run.file.suite]
        self.questions = {name: self._questions(scene.candidates) for name, scene in self.scenes.items()}
        self._asked = {name: sha256_of(questions) for name, questions in self.questions.items()}
        (run.folder / FOLDER).mkdir(mode=0o700, exist_ok=True)
        self._files = {name: run.folder / FOLDER / f"{name}.jsonl" for name in people}
        self.passed: dict[str, set[int]] = {name: set() for name in people}
        self.given: dict[str, dict[str, Answers]] = {name: {} for name in people}
        for name, path in self._files.items():
            drop_cut_line(path)
            for _, line in entries(path) if path.exists() and path.stat().st_size else ():
                if "worked" in line:
                    self.passed[name].add(line["worked"])
                elif line.get("asked") == self._asked.get(line["scene"]):  # as it is asked now
                    self.given[name][line["scene"]] = line["answers"]

    def _questions(self, candidates: Sequence[Candidate]) -> dict[str, dict[str, Any]]:
        """Return the paper's questions about a scene, by id, with the answers that each allows."""
        asked = {name: {"answers": {}, **each} for name, each in self._words["questions"][self.run.file.suite].items()}
        drawn = sorted(candidates, key=lambda each: sha256_of(each.action))  # the model's best does not stand first
        actions = {each.id: f"{each.action} {each.justification}".strip() for each in drawn if each.kind != "other"}
        for name in asked.keys() & {"best", "sensible"}:
            asked[name]["answers"] = actions | asked[name]["answers"]
        if "singleton" in asked:
            asked["singleton"]["text"] += "".join(f" ({each.action})" for each in candidates if each.kind == "other")
            labels, off = self._words["labels"], {k: v for k, v in self._words["labels"].items() if k != "pass"}
            kinds = {each.id: each.kind for each in candidates}
            asked |= {
                name: {"text": text, "answers": labels if kinds[name] in RIGHT_KINDS else off}
                for name, text in actions.items()
            }
        return asked

    def differing(self) -> list[str]:
        """List the scenes that both annotators answered, and not alike."""
        first, second = (self.given[name] for name in self.annotators)
        return [name for name in self.scenes if name in first and name in second and first[name] != second[name]]

    def page_data(self, name: str) -> dict[str, Any]:
        """Return what one person may see: their own answers, and for the reconciler the two that differ."""
        is_third, worked = name == self.reconciler, []
        for number in self._open_worked(name):
            texts = self._worked[number]["candidates"].items()
            scene = [Candidate(id=key, kind=key.rpartition("_")[0] or key, action=text) for key, text in texts]
            about = {"id": number, "description": self._worked[number]["description"]}
            worked.append({**about, "questions": self._questions(scene)})
        scenes = [
            {
                "id": scene,
                "pictures": [*self.scenes[scene].pictures, *filter(None, [self.scenes[scene].after])],
                "questions": self.questions[scene],
                "answers": self.given[name].get(scene),
                "opinions": [self.given[each][scene] for each in self.annotators] if is_third else [],
            }
            for scene in (() if worked else self.differing() if is_third else self.scenes)
        ]
        return {"person": name, "worked": worked, "scenes": scenes}

    def _open_worked(self, name: str) -> list[int]:
        """List the worked items that somebody has to answer yet."""
        return [n for n in range(len(self._worked)) if name != self.reconciler and n not in self.passed[name]]

    def check_worked(self, name: str, number: int, answers: Answers) -> dict[str, Any]:
        """Compare the answers to a worked item with those of the item, and note it where they are right."""
        item = self._worked[number]
        wrong = [key for key, right in item["answers"].items() if sorted(answers.get(key, [])) != sorted(right)]
        if not wrong and number not in self.passed[name]:
            self._note(name, {"worked": number})
            self.passed[name].add(number)
        return {"wrong": wrong, "why": item["why"]}

    def save(self, name: str, scene: str, answers: Answers) -> dict[str, Any]:
        """Note one person's answers about a scene. Raises ItemError for what is no answer."""
        if self._open_worked(name):
            raise ItemError("answer the worked items first")
        if scene not in (self.differing() if name == self.reconciler else self.scenes):
            raise ItemError("there is no such scene; load the page again")
        kept = {key: sorted(map(str, answers.get(key, ()))) for key in self.questions[scene]}
        for key, question in self.questions[scene].items():
            if not {*kept[key]} <= {*question["answers"]} or (len(kept[key]) != 1 and not question.get("several")):
                raise ItemError(f"{question['text']} Choose an answer.")
        if kept.get("best") == [OWN]:
            kept[OWN] = [str(text).encode("utf-8", "replace").decode().strip() for text in answers.get(OWN, ())]
            if list(map(bool, kept[OWN])) != [True, True] or max(map(len, kept[OWN])) > MAX_CHARACTERS:
                raise ItemError("Your own words: write an action and its reason.")
            if any(map(MARKUP.search, kept[OWN])):
                raise ItemError("Your own words: write them without markup and addresses.")
        self._note(name, {"scene": scene, "asked": self._asked[scene], "answers": kept})
        self.given[name][scene] = kept
        return {}

    def _note(self, name: str, line: Mapping[str, Any]) -> None:
        drop_cut_line(self._files[name])  # as a full disk leaves it
        append_line(self._files[name], json.dumps(line))

    def agreement(self) -> list[dict[str, Any]]:
        """Compute kappa and alpha over the scenes that both answered, by kind of question."""
        units: dict[str, Counter[tuple[str | None, ...]]] = {}
        first, second = (self.given[name] for name in self.annotators)
        for scene in first.keys() & second.keys():
            for key, question in self.questions[scene].items():
                pair = first[scene][key], second[scene][key]
                kind = key if key in self._words["questions"][self.run.file.suite] else "label"
                chosen = [tuple(str(answer in each) for each in pair) for answer in question["answers"]]
                values = chosen if question.get("several") else [(pair[0][0], pair[1][0])]
                units.setdefault(kind, Counter()).update(values)
                if kind == "label":
                    units.setdefault("usable", Counter()).update([tuple(str(each == ["pass"]) for each in pair)])
        rows = []
        for kind, counts in units.items():
            samples = {unit: np.array([float(count)]) for unit, count in counts.items()}
            equal = sum(count for (one, other), count in counts.items() if one == other)
            kappa, alpha = number_or_none(cohen_kappas(samples)), number_or_none(krippendorff_alphas(samples))
            rows.append({"question": kind, "n": counts.total(), "equal": equal, "kappa": kappa, "alpha": alpha})
        return rows

    def finish(self) -> PhaseCount:
        """Keep what two annotators agree on, or the reconciler decided; list the rest with its reason."""
        kept, drops, still_open, differing = [], list[Drop](), 0, self.differing()
        judge = _judge_normia if self.run.file.suite == "egonormia" else _judge_gap
        for name, scene in self.scenes.items():
            people = [self.reconciler] if self.reconciler and name in differing else self.annotators
            opinions = [self.given[each][name] for each in people if name in self.given[each]]
            if len(opinions) < len(people):
                still_open += 1
                continue
            judged, of_scene = judge(scene, opinions)
            kept += [judged] if judged.is_complete else []
            drops += of_scene
        self.run.write(AGREEMENT, json.dumps({"agreement": self.agreement(), "differing": differing}, indent=1))
        return self.run.finish("annotate", kept, drops, still_open)


def _judge_normia(scene: Scene, opinions: Sequence[Answers]) -> tuple[Scene, list[Drop]]:
    """Return the scene with what everybody says is best and sensible, or without candidates."""
    [best], candidates = opinions[0]["best"], list(scene.candidates)
    differs = any(each["best"] != [best] for each in opinions)
    if differs or (best == OWN and len(opinions) > 1):
        why = "annotators differ on the best action" if differs else "own words that nobody reconciled"
        return scene.model_copy(update={"candidates": ()}), [Drop(id=scene.id, why=why)]
    if best == OWN:  # in the place of the model's best
        own = dict(zip(("action", "justification"), opinions[0][OWN], strict=True))
        candidates[0], best = candidates[0].model_copy(update=own), candidates[0].id
    sensible = set(opinions[0]["sensible"]).intersection(*(each["sensible"] for each in opinions)) | ({best} - {NONE})
    changed = {"best": best, "sensible": tuple(sorted(sensible)), "candidates": tuple(candidates)}
    return scene.model_copy(update=changed), []


def _judge_gap(scene: Scene, opinions: Sequence[Answers]) -> tuple[Scene, list[Drop]]:
    """Return the scene with the candidates on whose label everybody agrees."""
    kept, drops = [], []
    if any(each["singleton"] != ["yes"] for each in opinions):
        return scene.model_copy(update={"candidates": ()}), [Drop(id=scene.id, why="no singleton actions")]
    for each in scene.candidates:
        labels = {opinion[each.id][0] for opinion in opinions} if each.kind != "other" else {"other"}
        if len(labels) > 1 or labels == {"discard"}:
            why = "annotators differ" if len(labels) > 1 else "discarded by the annotators"
            drops.append(Drop(id=f"{scene.id}/{each.id}", why=why))
        else:
            kept.append(each.model_copy(update={"kind": "off_vantage"}) if labels == {"off_vantage"} else each)
    changed = scene.model_copy(update={"candidates": tuple(kept)})
    return changed, drops if changed.is_complete else [*drops, Drop(id=scene.id, why="no right action is left")]


def serve_desk(desk: AnnotationDesk, people: Mapping[str, str], *, host: str, port: int) -> PageServer:
    """Return a server of the desk; `people` are the pseudonyms by token."""
    lock = threading.Lock()
    pictures = {name for scene in desk.scenes.values() for name in (*scene.pictures, scene.after)}

    def answer(request: PageRequest) -> PageReply:
        name, path = people[request.token], request.path.removeprefix("/")
        if request.method == "GET" and path in pictures and path:
            return PageReply((desk.run.folder / path).read_bytes(), "image/jpeg")
        if request.method == "GET" and not path:
            return page_reply(fill_page("items", ("page", "items"), ("dom", "items"), "Annotate", desk.page_data(name)))
        if request.method != "POST" or path not in {"worked", "answers"}:
            return NOT_FOUND
        try:
            plain, take = json.loads(request.body), desk.check_worked if path == "worked" else desk.save
            with lock:
                return PageReply(json.dumps(take(name, plain["id"], plain["answers"])).encode(), "application/json")
        except (TactfulError, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            return text_reply(HTTPStatus.BAD_REQUEST, str(error))

    return PageServer([*people], answer, link_from="items annotate", host=host, port=port)
