"""The annotation desk: annotators who do not see each other, a third who reconciles, an expert, and agreement."""

import json
import re
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import numpy as np

from norm_core.records.json_codec import sha256_of
from norm_core.runtime.config import load_yaml
from norm_core.runtime.data_files import shipped_file
from norm_core.runtime.errors import TactfulError
from scoring.agreement_coefficients import cohen_kappas, krippendorff_alphas, number_or_none
from sim_replays.own_items.candidates import MARKUP
from sim_replays.own_items.item_run import RIGHT_KINDS, Candidate, Drop, ItemError, ItemRun, PhaseCount, Scene
from sim_replays.runs.results.json_lines import drop_cut_line
from sim_replays.suites.dataset_files import entries
from sim_replays.suites.videonorms import Annotation, Side
from study_desk.report.page_server import (
    NOT_FOUND,
    PageReply,
    PageRequest,
    PageServer,
    fill_page,
    new_token,
    page_reply,
    text_reply,
)
from study_desk.study.study_folder import append_line

FOLDER, AGREEMENT, LINKS = "annotations", "agreement.json", "annotations/links.json"
NONE, OWN = "none", "own"
LATER = "happens"  # the question that the second after answers
MAX_CHARACTERS = 2000  # of an own wording
Answers = Mapping[str, list[str]]  # by question


class AnnotationDesk:
    """The annotations of a run, in a file a person."""

    def __init__(self, run: ItemRun, annotators: Sequence[str], reconciler: str = "", expert: str = "") -> None:
        """Read what people answered so far. Raises ItemError for names that do not do."""
        people, form = (*annotators, *filter(None, (reconciler, expert))), str(run.file.suite)
        count, who = 2, "two pseudonyms, others as --reconciler and --expert"
        if form == "videonorms":
            count, who, form = 3, "three pseudonyms alone", f"{form}_{run.file.culture}"
        is_fit = all(re.fullmatch(r"\w[\w.-]*", name) for name in people) and len({*people}) == len(people)
        if len(annotators) != count or not is_fit or (count == 3 and len(people) > 3):
            raise ItemError(f"--annotator: give {who}, of letters and digits")
        self.run, self.people, self.annotators, self.reconciler, self.expert = (
            run, people, tuple(annotators), reconciler, expert,
        )  # fmt: skip
        self.scenes = {scene.id: scene for scene in run.scenes("filter")}
        self._words = load_yaml(shipped_file("sim_replays.own_items", "worked.yaml"))
        self._asked: dict[str, dict[str, Any]] = self._words["questions"][form]
        self._worked: list[dict[str, Any]] = self._words["worked"][form]
        self.questions = {name: self._questions(scene.candidates, scene.norms) for name, scene in self.scenes.items()}
        (run.folder / FOLDER).mkdir(mode=0o700, exist_ok=True)
        self._files = {name: run.folder / FOLDER / f"{name}.jsonl" for name in people}
        self.passed: dict[str, set[int]] = {name: set() for name in people}
        # By person and scene, the answers with the digest of what they answer.
        self._notes: dict[str, dict[str, tuple[str, Answers]]] = {name: {} for name in people}
        for name, path in self._files.items():
            drop_cut_line(path)
            for _, line in entries(path) if path.exists() and path.stat().st_size else ():
                if "worked" in line:
                    self.passed[name].add(line["worked"])
                else:
                    self._notes[name][line["scene"]] = line["asked"], line["answers"]

    def _questions(
        self, candidates: Sequence[Candidate], norms: Sequence[Annotation] = ()
    ) -> dict[str, dict[str, Any]]:
        """Return the paper's questions about a scene, by id, with the answers that each allows."""
        asked = {name: {"answers": {}, **each} for name, each in self._asked.items()}
        for norm in norms:  # as a model proposes it
            plain = norm.model_dump(mode="json") | {"verbal": norm.verbal[0], "nonverbal": norm.nonverbal[0]}
            asked = {name: {**each, "value": " ".join(str(plain[name]).split())} for name, each in asked.items()}
        drawn = sorted(candidates, key=lambda each: sha256_of(each.action))  # the model's best stands anywhere
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

    def _questions_to(self, name: str, scene: str) -> dict[str, dict[str, Any]]:
        return self._words["expert"] if name == self.expert else self.questions[scene]

    def _digest(self, name: str, scene: str) -> str:
        """Digest what somebody answers about: the questions, and what those before them answered."""
        before = (
            () if name in self.annotators else [each for each in sorted(self.people) if each not in {name, self.expert}]
        )
        answers = [self._notes[each][scene] for each in before if scene in self._notes[each]]
        return sha256_of([self._questions_to(name, scene), *answers])

    def _noted(self, name: str, scene: str) -> Answers:
        """Return what somebody answered to what is asked now, whole or in part."""
        digest, answers = self._notes[name].get(scene, ("", {}))
        return answers if digest == self._digest(name, scene) else {}

    def given(self, name: str) -> dict[str, Answers]:
        """Return the whole answers of somebody, by scene."""
        noted = {scene: self._noted(name, scene) for scene in self.scenes}
        return {scene: of for scene, of in noted.items() if self._questions_to(name, scene).keys() <= of.keys()}

    def _choice(self, name: str, scene: str) -> Answers:
        """Return what an annotator chose before the second after was shown, and cannot change since."""
        is_shown_later = self.scenes[scene].after and name in self.annotators
        return {key: of for key, of in self._noted(name, scene).items() if key != LATER} if is_shown_later else {}

    def sees_after(self, name: str, scene: str) -> bool:
        """Whether somebody may see the second after a scene."""
        return bool(self.scenes[scene].after and (name not in self.annotators or self._choice(name, scene)))

    def differing(self) -> list[str]:
        """List the scenes that both annotators answered, and not alike; LATER drops nothing, so it does not count."""
        first, second = (
            {scene: {**answers, LATER: []} for scene, answers in self.given(name).items()}
            for name in self.annotators[:2]
        )
        return [name for name in self.scenes if name in first and name in second and first[name] != second[name]]

    def settled(self) -> dict[str, tuple[Scene, list[Drop]]]:
        """Return each scene that everybody answered as they judge it, with what is dropped of it."""
        judge = {"egonormia": _judge_normia, "videonorms": _judge_norms}.get(self.run.file.suite, _judge_gap)
        given = {name: self.given(name) for name in self.people}
        differing = self.differing() if self.reconciler else []
        people = {name: [self.reconciler] if name in differing else self.annotators for name in self.scenes}
        return {
            name: judge(scene, [given[each][name] for each in people[name]])
            for name, scene in self.scenes.items()
            if all(name in given[each] for each in people[name])
        }

    def _open_to(self, name: str) -> dict[str, str]:
        """Return the scenes that somebody is to answer, each with what they read about it."""
        if name == self.expert:
            return {scene: _item_text(judged) for scene, (judged, _) in self.settled().items() if judged.is_complete}
        names = self.differing() if name == self.reconciler else self.scenes
        about = {scene: (self.scenes[scene].description, self.scenes[scene].transcript) for scene in names}
        return {scene: "\n\n".join(texts) if texts[1] else "" for scene, texts in about.items()}

    def page_data(self, name: str) -> dict[str, Any]:
        """Return what one person may see: their own answers, and for the reconciler the two that differ."""
        worked, given, others = [], self.given(name), self.annotators if name == self.reconciler else ()
        for number in self._open_worked(name):
            item = self._worked[number]
            texts = item.get("candidates", {}).items()
            candidates = [Candidate(id=key, kind=key.rpartition("_")[0] or key, action=text) for key, text in texts]
            asked = self._questions(candidates)
            asked = {key: asked[key] for key in item["answers"]}
            worked.append({"id": number, "description": item["description"], "questions": asked})
        scenes = [
            {
                "id": scene,
                "description": text,
                "pictures": self.scenes[scene].pictures,
                "after": self.scenes[scene].after if self.sees_after(name, scene) else "",
                "later": [LATER] if self.scenes[scene].after and name in self.annotators else [],
                "questions": self._questions_to(name, scene),
                "answers": given.get(scene),
                "choice": self._choice(name, scene) or None,
                "opinions": [self._notes[each][scene][1] for each in others],
            }
            for scene, text in ({} if worked else self._open_to(name)).items()
        ]
        return {"person": name, "worked": worked, "scenes": scenes}

    def _open_worked(self, name: str) -> list[int]:
        return [n for n in range(len(self._worked)) if name in self.annotators and n not in self.passed[name]]

    def check_worked(self, name: str, number: int, answers: Answers) -> dict[str, Any]:
        """Compare the answers to a worked item with those of the item, and note it where they are right."""
        item = self._worked[number]
        wrong = [key for key, right in item["answers"].items() if sorted(answers.get(key, [])) != sorted(right)]
        if not wrong and number not in self.passed[name]:
            self._note(name, {"worked": number})
            self.passed[name].add(number)
        return {"wrong": wrong, "why": item["why"]}

    def save(self, name: str, scene: str, answers: Answers) -> dict[str, Any]:
        """Note one person's answers about a scene; return what they may see now. Raises ItemError for no answer."""
        if self._open_worked(name):
            raise ItemError("answer the worked items first")
        if scene not in self._open_to(name):
            raise ItemError("there is no such scene; load the page again")
        choice, questions = self._choice(name, scene), dict(self._questions_to(name, scene))
        if choice:
            questions = {LATER: questions[LATER]}
        elif self.scenes[scene].after and name in self.annotators:
            questions.pop(LATER)  # which the second after answers, once one has chosen
        kept = {key: sorted(map(str, answers.get(key, ()))) for key in questions}
        for key, question in questions.items():
            if question.get("writes"):
                kept[key] = [_text(question, answers.get(key, ()))]
            elif not {*kept[key]} <= {*question["answers"]} or (len(kept[key]) != 1 and not question.get("several")):
                raise ItemError(f"{question['text']} Choose an answer.")
        if kept.get("best") == [OWN]:
            texts = answers.get(OWN, ())
            kept[OWN] = [_text({"text": "Your own words:"}, texts[place : place + 1]) for place in range(2)]
        kept = {**choice, **kept}
        digest = self._digest(name, scene)
        self._note(name, {"scene": scene, "asked": digest, "answers": kept})
        self._notes[name][scene] = digest, kept
        return {"after": self.scenes[scene].after} if self.sees_after(name, scene) and not choice else {}

    def _note(self, name: str, line: Mapping[str, Any]) -> None:
        drop_cut_line(self._files[name])  # as a full disk leaves it
        append_line(self._files[name], json.dumps(line))

    def agreement(self) -> list[dict[str, Any]]:
        """Compute alpha, and Cohen's kappa of two annotators, over the scenes that all answered, by kind of question.

        For what a model proposed, also the share of answers in which an annotator changed it.
        """
        units: dict[str, Counter[tuple[str | None, ...]]] = {}
        changes: dict[str, list[bool]] = {}
        given = [self.given(name) for name in self.annotators]
        for scene in set.intersection(*({*each} for each in given)):
            for key, question in self.questions[scene].items():
                answers = [each[scene][key] for each in given]
                kind = key if key in self._asked else "label"
                if "value" in question:
                    changes.setdefault(kind, []).extend(each != [question["value"]] for each in answers)
                chosen = [tuple(str(answer in each) for each in answers) for answer in question["answers"]]
                values = chosen if question.get("several") else [tuple(each[0] for each in answers)]
                units.setdefault(kind, Counter()).update(values)
                if kind == "label" and "singleton" in self._asked:
                    units.setdefault("usable", Counter()).update([tuple(str(each == ["pass"]) for each in answers)])
        rows = []
        for kind, counts in units.items():
            samples = {unit: np.array([float(count)]) for unit, count in counts.items()}
            equal = sum(count for unit, count in counts.items() if len({*unit}) == 1)
            kappa = number_or_none(cohen_kappas(samples)) if len(self.annotators) == 2 else None
            alpha = number_or_none(krippendorff_alphas(samples))
            row = {"question": kind, "n": counts.total(), "equal": equal, "kappa": kappa, "alpha": alpha}
            changed = changes.get(kind)
            rows.append(row | ({"changed": round(sum(changed) / len(changed), 3)} if changed else {}))
        return rows

    def finish(self) -> PhaseCount:
        """Keep what annotators agree on or the reconciler decided, and the expert passed; list the rest."""
        kept, drops, settled = list[Scene](), list[Drop](), self.settled()
        still_open, judged_by = len(self.scenes) - len(settled), self.given(self.expert) if self.expert else {}
        for name, (judged, of_scene) in settled.items():
            drops += of_scene
            if judged.is_complete and self.expert and name not in judged_by:
                still_open += 1
            elif faults := [key for key, each in judged_by.get(name, {}).items() if each == ["no"]]:
                drops.append(Drop(id=name, why=f"the expert: {self._words['expert'][faults[0]]['why']}"))
            elif judged.is_complete:
                kept.append(judged)
        about = {"agreement": self.agreement(), "differing": [] if len(self.annotators) > 2 else self.differing()}
        given = [answers for each in self.annotators for answers in self.given(each).values()]
        about["happens"] = Counter(answers[LATER][0] for answers in given if LATER in answers)
        about["expert"] = self.expert
        self.run.write(AGREEMENT, json.dumps(about, indent=1))
        return self.run.finish("annotate", kept, drops, still_open)


def _text(question: Mapping[str, Any], given: Sequence[object]) -> str:
    [text] = [str(each).encode("utf-8", "replace").decode().strip() for each in given[:1]] or [""]
    if len(text) > MAX_CHARACTERS or MARKUP.search(text) or not re.fullmatch(question.get("pattern", ".+"), text):
        raise ItemError(f"{question['text']} Write what is asked, without markup, addresses and new lines.")
    return text


def _item_text(scene: Scene) -> str:
    marks = {**dict.fromkeys(scene.sensible, "sensible"), scene.best: "best"}
    none = ["None of them is best."] if scene.best == NONE else []
    lines = [f"- {each.action} {each.justification} ({marks.get(each.id, each.kind)})" for each in scene.candidates]
    return "\n".join([*lines, *none])


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


def _judge_norms(scene: Scene, opinions: Sequence[Answers]) -> tuple[Scene, list[Drop]]:
    """Return the scene with each wording of its norm, as the paper has it, and the majority's label of that wording."""
    wordings: dict[tuple[str, ...], list[Answers]] = {}
    for each in opinions:
        if each["label"] != [NONE]:
            key = tuple(" ".join(each[name][0].casefold().split()) for name in ("category", "norm"))
            wordings.setdefault(key, []).append(each)
    norms, drops = list[Annotation](), [] if wordings else [Drop(id=scene.id, why="no norm applies")]
    for (kind, norm), said in wordings.items():
        [(label, votes), *rest] = Counter(each["label"][0] for each in said).most_common()
        if rest and rest[0][1] == votes:
            drops.append(Drop(id=scene.id, why="no majority on adherence", detail=said[0]["norm"][0]))
            continue
        evidence = [each for each in said if each["label"] == [label]]
        changed = {
            "id": f"{scene.id}-{len(norms)}",
            "start_s": float(evidence[0]["start_s"][0]),
            "label": Side(label),
            **{name: said[0][name][0] for name in ("category", "norm")},
            **{name: tuple(dict.fromkeys(e[name][0] for e in evidence)) for name in ("verbal", "nonverbal")},
            "other_norms": tuple(e[0]["norm"][0] for key, e in wordings.items() if key[0] == kind and key[1] != norm),
        }
        norms.append(scene.norms[0].model_copy(update=changed))
    return scene.model_copy(update={"norms": tuple(norms)}), drops


def serve_desk(desk: AnnotationDesk, *, host: str, port: int) -> tuple[PageServer, dict[str, str]]:
    """Return a server of the desk and each person's link, which stays the same where no other port is given."""
    file, lock = desk.run.folder / LINKS, threading.Lock()
    stored: dict[str, Any] = json.loads(file.read_text()) if file.is_file() else {"port": 0, "tokens": {}}
    tokens = {name: stored["tokens"].get(name) or new_token() for name in desk.people}
    people = {token: name for name, token in tokens.items()}
    pictures = {name for scene in desk.scenes.values() for name in scene.pictures}
    later = {scene.after: name for name, scene in desk.scenes.items() if scene.after}

    def answer(request: PageRequest) -> PageReply:
        name, path = people[request.token], request.path.removeprefix("/")
        if request.method == "GET" and (path in pictures or (path in later and desk.sees_after(name, later[path]))):
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

    server = PageServer([*people], answer, link_from="items annotate", host=host, port=port or stored["port"])
    desk.run.write(LINKS, json.dumps({"port": server.port, "tokens": {**stored["tokens"], **tokens}}))
    return server, {name: server.url(token) for name, token in tokens.items()}
