"""Let a model propose the candidates of each scene, and filter out what makes no good item."""

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field

from norm_core.engines.backend import AnsweringModel
from norm_core.engines.engine import parse_reply
from norm_core.engines.errors import EngineError
from norm_core.engines.openai.batch import (
    BatchRequest,
    BatchWriter,
    answers_of,
    read_answers,
    requests_of,
)
from norm_core.engines.prompt import Image, Part, Prompt, Question, Quoted, Text, neutralize_markup
from norm_core.engines.sentences.sentence_encoder import SentenceVectors
from norm_core.prompts.texts import prompt_file
from norm_core.records.decision import Norm
from norm_core.records.outcome import Outcome
from sim_replays.own_items.item_run import BATCH, Candidate, Drop, ItemRun, PhaseCount, Scene

RIGHT_KINDS = ("direct", "indirect")
MAX_OF_PAIR, MAX_OF_ACTIVITY = 3, 50  # of an activity with a verb (EgoNormia), and of an activity (EgoGapBench)
SHOWN, MAX_TOKENS = 5, 1500
TWINS, BLIND_SHARE = 0.92, 0.5  # cosine of near twins; the encoder's share for the right option without the scene
_MARKUP = re.compile(r"<[^>]*>|[\r\n\x00-\x1f`{}]|https?://|\[[^\]]*\]\(")
_PROMPTS = prompt_file("prompts", "sim_replays.own_items")
_WAITING = {Outcome.FAILED, Outcome.TIMED_OUT}  # which `models send` asks again


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _NormiaScene(_Answer):
    activity: str = Field(min_length=1, max_length=60)
    place: str = Field(min_length=1, max_length=60)
    verb: str = Field(min_length=1, max_length=40)
    description: str = Field(min_length=1, max_length=2000)


class _Corruptions(_Answer):
    situations: list[str] = Field(min_length=3, max_length=3)


class _Proposal(_Answer):
    action: str = Field(min_length=1, max_length=300)
    justification: str = Field(min_length=1, max_length=300)
    norms: list[Norm] = Field(min_length=1, max_length=3)


class _SeenPerson(_Answer):
    role: str = Field(min_length=1, max_length=100)
    appearance: str = Field(max_length=200)
    doing: str = Field(min_length=1, max_length=200)
    option: str = Field(min_length=1, max_length=300)
    one_alone: bool


class _GapScene(_NormiaScene):
    people: list[_SeenPerson] = Field(max_length=12)


class _GapActions(_Answer):
    direct: list[str] = Field(max_length=4)
    indirect: list[str] = Field(max_length=4)
    off_vantage: list[str] = Field(max_length=4)


class _Verdict(_Answer):
    can_be_done: bool
    always_harmful: bool


class _Joinable(_Answer):
    yes: bool


class _Choice(_Answer):
    number: int


S = TypeVar("S", bound=BaseModel)


class UnansweredError(Exception):
    """An answer is to come: the scene stays open."""


class UnusableError(Exception):
    """A scene is to be left out; the first argument is the reason, the second a detail."""


class Asker:
    """Read what a run's batch answers, and write to it what it lacks."""

    def __init__(self, run: ItemRun) -> None:
        folder = run.folder / BATCH
        self.writer = BatchWriter(folder, "judge", adds=True)
        is_asked = any(folder.glob("requests-*.jsonl"))
        self._known = {request["custom_id"] for request in requests_of(folder)} if is_asked else set[str]()
        is_answered = next(answers_of(folder), None) is not None
        self._answers = read_answers(folder).by_id if is_answered else {}

    def ask_all(self, step: str, schema: type[S], asked: Sequence[tuple[Part, ...]]) -> list[S]:
        """Ask several questions. Raises UnansweredError where an answer is to come, UnusableError where it is none."""
        values = [self._ask(step, schema, Prompt(version=_PROMPTS.version, parts=parts)) for parts in asked]
        if None in values:
            raise UnansweredError
        return [value for value in values if value is not None]

    def _ask(self, step: str, schema: type[S], prompt: Prompt) -> S | None:
        key = f"{step}_{prompt.digest[:40]}"
        answer = self._answers.get(key)
        if answer is None and key not in self._known:
            self._known.add(key)
            form = schema.model_json_schema()
            self.writer.add(BatchRequest(custom_id=key, prompt=prompt, schema=form, max_tokens=MAX_TOKENS))
        if answer is None or answer.outcome in _WAITING:
            return None
        if answer.outcome is not Outcome.ANSWERED:
            raise UnusableError(f"{step}: {answer.outcome}", answer.reason)
        try:
            return parse_reply(answer.text, schema)
        except EngineError as error:
            raise UnusableError(f"{step}: {error.outcome}", str(error)) from error


def _pictures(run: ItemRun, scene: Scene) -> tuple[Part, ...]:
    return tuple(Image(jpeg=jpeg) for jpeg in run.pictures(scene, SHOWN))


def _about(text: str, quoted: str, label: str) -> tuple[Part, ...]:
    return Text(text=f"{text} {_PROMPTS.texts['quoted']}"), Quoted(text=quoted, label=label)


Step = Callable[[Scene], tuple[Scene, list[Drop]]]


def _each(run: ItemRun, phase: str, scenes: Sequence[Scene], step: Step, progress: Callable[[str], None]) -> PhaseCount:
    """Take each scene through a phase, and write what became of it."""
    kept, drops, still_open = [], list[Drop](), 0
    for scene in scenes:
        progress(scene.id)
        try:
            changed, of_scene = step(scene)
        except UnansweredError:
            still_open += 1
        except UnusableError as error:
            drops.append(Drop(id=scene.id, why=error.args[0], detail=error.args[1] if error.args[1:] else ""))
        else:
            kept.append(changed)
            drops += of_scene
    return run.finish(phase, kept, drops, still_open)


def propose(run: ItemRun, asker: Asker, progress: Callable[[str], None] = print) -> PhaseCount:
    """Let a model describe each scene and write its candidates; limit how often an activity comes."""
    is_normia, words = run.file.suite == "egonormia", _PROMPTS.texts[run.file.suite]
    seen: Counter[str] = Counter()

    def step(scene: Scene) -> tuple[Scene, list[Drop]]:
        shown: tuple[Part, ...] = (*_pictures(run, scene), Text(text=words["scene"]))
        [told] = asker.ask_all("scene", _NormiaScene if is_normia else _GapScene, [shown])
        pair = f"{told.activity} {told.verb if is_normia else ''}".strip().casefold()
        seen[pair] += 1
        if seen[pair] > (limit := MAX_OF_PAIR if is_normia else MAX_OF_ACTIVITY):
            raise UnusableError("variety", f"{pair}: {limit} are kept")
        people = told.people if isinstance(told, _GapScene) else None
        made = _normia(asker, words, told) if people is None else _gap(asker, _pictures(run, scene), words, people)
        about = told.model_dump(include={"activity", "place", "verb", "description"})
        return scene.model_copy(update={**about, "candidates": tuple(made)}), []

    return _each(run, "propose", run.scenes("sample"), step, progress)


def _normia(asker: Asker, words: dict[str, str], told: _NormiaScene) -> Iterator[Candidate]:
    """Write the best action of the situation and of three corrupted ones."""
    [corrupted] = asker.ask_all("corrupt", _Corruptions, [_about(words["corrupt"], told.description, "situation")])
    contexts = [told.description, *corrupted.situations]
    written = asker.ask_all("act", _Proposal, [_about(words["act"], context, "situation") for context in contexts])
    for number, (context, proposal) in enumerate(zip(contexts, written, strict=True)):
        kind = "corruption" if number else "context"
        yield Candidate(id=f"c{number}", kind=kind, context=context, **proposal.model_dump())


def _gap(
    asker: Asker, pictures: tuple[Part, ...], words: dict[str, str], people: Sequence[_SeenPerson]
) -> Iterator[Candidate]:
    """Take the actions of people that one alone can do, and write those open from the viewpoint and off it."""
    alone = [person for person in people if person.one_alone]
    if len(alone) < 2:
        raise UnusableError("fewer than two singleton actions", f"{len(people)} people")
    others = "\n".join(f"{person.role}: {person.doing}" for person in people)
    [actions] = asker.ask_all("act", _GapActions, [(*pictures, *_about(words["act"], others, "others"))])
    for number, person in enumerate(alone[:2]):
        about = person.model_dump(include={"role", "appearance"})
        yield Candidate(id=f"other_{number}", kind="other", action=person.option, context=person.doing, **about)
    for kind in (*RIGHT_KINDS, "off_vantage"):
        for number, action in enumerate(getattr(actions, kind)):
            yield Candidate(id=f"{kind}_{number}", kind=kind, action=action)


def filter_scenes(
    run: ItemRun, asker: Asker, encoder: SentenceVectors, blind: AnsweringModel, progress: Callable[[str], None] = print
) -> PhaseCount:
    """Drop candidates with markup, near twins, what cannot be done or always harms, and what is answered blind."""
    words, is_normia = _PROMPTS.texts, run.file.suite == "egonormia"

    def step(scene: Scene) -> tuple[Scene, list[Drop]]:
        why = dict(_faults_of_wording(scene.candidates, encoder))
        own = [candidate for candidate in scene.candidates if candidate.id not in why and candidate.kind != "other"]
        asked = [_about(words["verdict"], candidate.action, "action") for candidate in own]
        for candidate, verdict in zip(own, asker.ask_all("verdict", _Verdict, asked), strict=True):
            if verdict.always_harmful or not verdict.can_be_done:
                why[candidate.id] = "harmful" if verdict.always_harmful else "not feasible"
        others = [candidate for candidate in scene.candidates if candidate.kind == "other" and candidate.id not in why]
        for text in (words["egogapbench"]["singleton_1"], words["egogapbench"]["singleton_2"]):
            asked = [(*_pictures(run, scene), *_about(text, other.action, "action")) for other in others]
            joinable = asker.ask_all("singleton", _Joinable, asked)
            why |= {o.id: "no singleton action" for o, answer in zip(others, joinable, strict=True) if answer.yes}
        left = [candidate for candidate in scene.candidates if candidate.id not in why]
        wrong = [candidate for candidate in left if candidate.kind not in {"context", *RIGHT_KINDS}][:3]
        for right in [candidate for candidate in left if candidate.kind in {"context", *RIGHT_KINDS}] if wrong else ():
            if _is_answered_blind(asker, blind, f"{scene.id}:{right.id}", right, wrong):
                why[right.id] = "answered blind"
        left = [candidate for candidate in left if candidate.id not in why]
        if not is_complete(left, is_normia=is_normia):
            raise UnusableError("too few candidates left", ", ".join(f"{name}: {each}" for name, each in why.items()))
        drops = [Drop(id=f"{scene.id}/{name}", why=reason) for name, reason in why.items()]
        return scene.model_copy(update={"candidates": tuple(left)}), drops

    return _each(run, "filter", run.scenes("propose"), step, progress)


def _faults_of_wording(candidates: Sequence[Candidate], encoder: SentenceVectors) -> Iterator[tuple[str, str]]:
    """Yield the candidates with markup, and those that nearly repeat an earlier one."""
    earlier: list[str] = []
    for candidate in candidates:
        text = f"{candidate.action} {candidate.justification}"
        if _MARKUP.search(text) or neutralize_markup(text) != text or not candidate.action.strip():
            yield candidate.id, "markup"
            continue
        vectors = encoder.encode([candidate.action, *earlier])
        if earlier and float((vectors[1:] @ vectors[0]).max()) >= TWINS:
            yield candidate.id, "near twin"
        else:
            earlier.append(candidate.action)


def is_complete(candidates: Sequence[Candidate], *, is_normia: bool) -> bool:
    """Whether candidates are enough for an item."""
    kinds = Counter(candidate.kind for candidate in candidates)
    if is_normia:
        return kinds["context"] == 1 and kinds["corruption"] == 3
    return kinds["other"] >= 2 and any(kinds[kind] for kind in RIGHT_KINDS)


def _is_answered_blind(
    asker: Asker, blind: AnsweringModel, name: str, right: Candidate, wrong: Sequence[Candidate]
) -> bool:
    """Whether the encoder is sure without the scene, or the model chooses right in both of two drawn orders."""
    options = (right.action, *(candidate.action for candidate in wrong))
    text = _PROMPTS.texts["blind"]
    [scores] = blind.ask_many(
        Prompt(version=_PROMPTS.version, parts=(Text(text=text),)), [Question(parts=(), options=options, step="blind")]
    )
    if scores.probabilities and scores.probabilities[0] >= BLIND_SHARE:
        return True
    orders = [random.Random(f"{name}:{turn}").sample(options, len(options)) for turn in range(2)]
    listed = ["\n".join(f"{number}. {option}" for number, option in enumerate(order, 1)) for order in orders]
    chosen = asker.ask_all("blind", _Choice, [_about(text, options, "options") for options in listed])
    return all(order.index(right.action) + 1 == choice.number for order, choice in zip(orders, chosen, strict=True))
