"""Let a model propose the candidates of each scene, and filter out what makes no good item."""

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, create_model

from norm_core.engines.engine import Engine
from norm_core.engines.errors import EngineError
from norm_core.engines.openai.batch import BatchRequest, BatchWriter, answers_of, read_answers, requests_of
from norm_core.engines.prompt import Image, Part, Prompt, Question, Quoted, Text, neutralize_markup
from norm_core.engines.prompt_file import prompt_file
from norm_core.engines.reply import json_schema_of, parse_value
from norm_core.engines.sentences.sentence_encoder import SentenceVectors
from norm_core.records.decision import Norm
from norm_core.records.outcome import Outcome
from sim_replays.own_items.item_run import BATCH, RIGHT_KINDS, Candidate, Drop, ItemRun, PhaseCount, Scene

MAX_OF_PAIR, MAX_OF_ACTIVITY = 3, 50  # of an activity with a verb (EgoNormia), and of an activity (EgoGapBench)
MAX_TOKENS = 1500
TWINS, BLIND_SHARE = 0.92, 0.5  # cosine of near twins; the encoder's share for the right option without the scene
MARKUP = re.compile(r"<[^>]*>|[\r\n\x00-\x1f`{}]|https?://|\[[^\]]*\]\(")
_PROMPTS = prompt_file("prompts", "sim_replays.own_items")
TEXTS = _PROMPTS.texts
_WAITING = {Outcome.FAILED, Outcome.TIMED_OUT}  # which `models send` asks again
Fields = Mapping[str, Any]
Progress = Callable[[str], None]


class UnusableError(Exception):
    """A scene is to be left out, with a reason and a detail; without a reason, its answers are to come."""


@cache
def _form(name: str) -> type[BaseModel]:
    text = Annotated[str, Field(min_length=1, max_length=2000)]
    types: dict[str, Any] = {"text": text, "texts": list[text], "norms": list[Norm], "flag": bool, "number": int}
    if name.startswith("scene"):
        types["people"] = list[_form("person")]  # type: ignore[misc]
    fields: Any = {field: (types[kind], ...) for field, kind in TEXTS["forms"][name].items()}
    return create_model(name, __config__=ConfigDict(extra="forbid"), **fields)


class Asker:
    """Read what a run's batch answers, and write to it what it lacks."""

    def __init__(self, run: ItemRun) -> None:
        folder = run.folder / BATCH
        self.writer = BatchWriter(folder, "judge", adds=True)
        is_asked = any(folder.glob("requests-*.jsonl"))
        self._known = {request["custom_id"] for request in requests_of(folder)} if is_asked else set[str]()
        is_answered = next(answers_of(folder), None) is not None
        self._answers = read_answers(folder).by_id if is_answered else {}

    def ask(self, name: str, asked: Sequence[tuple[Part, ...]]) -> list[Fields]:
        """Ask questions of one form. Raises UnusableError where one of them has no answer."""
        values = [self._ask(name, Prompt(version=_PROMPTS.version, parts=parts)) for parts in asked]
        if None in values:
            raise UnusableError("", "")
        return [value for value in values if value is not None]

    def _ask(self, name: str, prompt: Prompt) -> Fields | None:
        key, form = f"{name}_{prompt.digest[:40]}", _form(name)
        answer = self._answers.get(key)
        if answer is None and key not in self._known:
            self._known.add(key)
            schema = json_schema_of(form)
            self.writer.add(BatchRequest(custom_id=key, prompt=prompt, schema=schema, max_tokens=MAX_TOKENS))
        if answer is None or answer.outcome in _WAITING:
            return None
        if answer.outcome is not Outcome.ANSWERED:
            raise UnusableError(f"{name}: {answer.outcome}", answer.reason)
        try:
            return parse_value(answer.text, form).model_dump(mode="json")
        except EngineError as error:
            raise UnusableError(f"{name}: {error.outcome}", str(error)) from error


def _pictures(run: ItemRun, scene: Scene) -> tuple[Part, ...]:
    return tuple(Image(jpeg=(run.folder / name).read_bytes()) for name in scene.pictures)


def _about(text: str, quoted: str) -> tuple[Part, ...]:
    return Text(text=f"{text} {TEXTS['quoted']}"), Quoted(text=quoted)


def _each(
    run: ItemRun, phase: str, before: str, step: Callable[[Scene], tuple[list[Scene], list[Drop]]], progress: Progress
) -> PhaseCount:
    """Take each scene through a phase, and write what became of it."""
    written, drops, still_open = list[Scene](), list[Drop](), 0
    for scene in run.scenes(before):
        progress(scene.id)
        try:
            changed, of_scene = step(scene)
        except UnusableError as error:
            why, detail = error.args
            still_open += not why
            drops += [Drop(id=scene.id, why=why, detail=detail)] if why else []
        else:
            written += changed
            drops += of_scene
    return run.finish(phase, written, drops, still_open)


def propose(run: ItemRun, asker: Asker, progress: Progress) -> PhaseCount:
    """Let a model describe each scene and write its candidates; limit how often an activity comes."""
    suite, is_normia = run.file.suite, run.file.suite == "egonormia"
    seen: Counter[str] = Counter()

    def step(scene: Scene) -> tuple[list[Scene], list[Drop]]:
        shown = _pictures(run, scene)
        [description] = asker.ask(f"scene_{suite}", [(*shown, Text(text=TEXTS[suite]["scene"]))])
        pair = f"{description['activity']} {description['verb'] if is_normia else ''}".strip().casefold()
        seen[pair] += 1
        if seen[pair] > (limit := MAX_OF_PAIR if is_normia else MAX_OF_ACTIVITY):
            raise UnusableError("variety", f"{pair}: {limit} are kept")
        candidates = tuple(_normia(asker, description) if is_normia else _gap(asker, shown, description["people"]))
        about = {name: description[name] for name in ("activity", "place", "verb", "description")}
        return [scene.model_copy(update={**about, "candidates": candidates})], []

    return _each(run, "propose", "sample", step, progress)


def _normia(asker: Asker, scene_fields: Fields) -> Iterator[Candidate]:
    """Write the best action of the situation and of three corrupted ones."""
    words = TEXTS["egonormia"]
    [corrupted] = asker.ask("corrupt", [_about(words["corrupt"], scene_fields["description"])])
    contexts = [scene_fields["description"], *corrupted["situations"][:3]]
    written = asker.ask("act_egonormia", [_about(words["act"], context) for context in contexts])
    for number, (context, proposal) in enumerate(zip(contexts, written, strict=True)):
        yield Candidate(id=f"c{number}", kind="corruption" if number else "context", context=context, **proposal)


def _gap(asker: Asker, shown: tuple[Part, ...], people: Sequence[Fields]) -> Iterator[Candidate]:
    """Take the actions of people that one alone can do, and write those open from the viewpoint and off it."""
    alone = [person for person in people if person["one_alone"]][:2]
    if len(alone) < 2:
        raise UnusableError("fewer than two singleton actions", f"{len(people)} people")
    others = "\n".join(f"{person['role']}: {person['doing']}" for person in people)
    [actions] = asker.ask("act_egogapbench", [(*shown, *_about(TEXTS["egogapbench"]["act"], others))])
    for number, person in enumerate(alone):
        yield Candidate(
            id=f"other_{number}", kind="other", action=person["option"], context=person["doing"], role=person["role"],
            appearance=person["appearance"],
        )  # fmt: skip
    for kind, texts in actions.items():
        yield from (Candidate(id=f"{kind}_{number}", kind=kind, action=text) for number, text in enumerate(texts))


def filter_scenes(
    run: ItemRun, asker: Asker, encoder: SentenceVectors, blind: Engine, progress: Progress
) -> PhaseCount:
    """Drop candidates with markup, near twins, what cannot be done or always harms, and what is answered blind."""

    def step(scene: Scene) -> tuple[list[Scene], list[Drop]]:
        why = dict(_faults_of_wording(scene.candidates, encoder))
        own = [candidate for candidate in scene.candidates if candidate.id not in why and candidate.kind != "other"]
        others = [candidate for candidate in scene.candidates if candidate.id not in why and candidate.kind == "other"]
        verdicts = asker.ask("verdict", [_about(TEXTS["verdict"], candidate.action) for candidate in own])
        for candidate, verdict in zip(own, verdicts, strict=True):
            if verdict["always_harmful"] or not verdict["can_be_done"]:
                why[candidate.id] = "harmful" if verdict["always_harmful"] else "not feasible"
        shown = _pictures(run, scene)
        twice = [(*shown, *_about(text, other.action)) for text in TEXTS["singleton"] for other in others]
        for candidate, answer in zip(others * len(TEXTS["singleton"]), asker.ask("singleton", twice), strict=True):
            why |= {candidate.id: "no singleton action"} if answer["others_can_too"] else {}
        left = [candidate for candidate in scene.candidates if candidate.id not in why]
        wrong = [candidate.action for candidate in left if candidate.kind not in {"context", *RIGHT_KINDS}][:3]
        for candidate in left if wrong else ():
            if candidate.kind in {"context", *RIGHT_KINDS} and _is_answered_blind(
                asker, blind, candidate.action, wrong
            ):
                why[candidate.id] = "answered blind"
        changed = scene.model_copy(
            update={"candidates": tuple(candidate for candidate in left if candidate.id not in why)}
        )
        if not changed.is_complete:
            raise UnusableError("too few candidates left", ", ".join(f"{name}: {text}" for name, text in why.items()))
        return [changed], [Drop(id=f"{scene.id}/{name}", why=reason) for name, reason in why.items()]

    return _each(run, "filter", "propose", step, progress)


def _faults_of_wording(candidates: Sequence[Candidate], encoder: SentenceVectors) -> Iterator[tuple[str, str]]:
    """Yield the candidates with markup, and those that nearly repeat an earlier one."""
    earlier: list[str] = []
    for candidate in candidates:
        text = f"{candidate.action} {candidate.justification}"
        vectors = encoder.encode([candidate.action, *earlier])
        if MARKUP.search(text) or neutralize_markup(text) != text or not candidate.action.strip():
            yield candidate.id, "markup"
        elif earlier and float((vectors[1:] @ vectors[0]).max()) >= TWINS:
            yield candidate.id, "near twin"
        else:
            earlier.append(candidate.action)


def _is_answered_blind(asker: Asker, blind: Engine, right: str, wrong: Sequence[str]) -> bool:
    """Whether the encoder is sure without the scene, or the model chooses right in both of two drawn orders."""
    options = (right, *wrong)
    prefix = Prompt(version=_PROMPTS.version, parts=(Text(text=TEXTS["blind"]),))
    [scores] = blind.ask_many(prefix, [Question(parts=(), options=options, step="blind")])
    if scores.probabilities and scores.probabilities[0] >= BLIND_SHARE:
        return True
    orders = [random.Random(f"{right}:{turn}").sample(options, len(options)) for turn in range(2)]
    listed = ["\n".join(f"{number}. {option}" for number, option in enumerate(order, 1)) for order in orders]
    chosen = asker.ask("blind", [_about(TEXTS["blind"], text) for text in listed])
    return all(order.index(right) + 1 == choice["number"] for order, choice in zip(orders, chosen, strict=True))
