"""Ask a service how a coder marks the units of a minute of talk, and read its answers."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any, Literal

from pydantic import BaseModel, Field, RootModel

from norm_core.engines.errors import UnparsedError
from norm_core.engines.openai.batch import BatchAnswer, BatchAnswers, BatchRequest
from norm_core.engines.prompt import Prompt, Quoted, Text
from norm_core.engines.prompt_file import load_prompt_file
from norm_core.engines.reply import ModelInfo, Reply, make_provenance, parse_value
from norm_core.engines.request_context import Deadline
from norm_core.records.flag import Attribute, Polarity
from norm_core.records.outcome import Outcome
from norm_core.records.window import window_digest
from norm_core.runtime.time import NS_PER_S
from norm_monitor.assessment.unit import Unit, UnitJudgement, UnitKind
from norm_monitor.judge import questions as prompts
from norm_monitor.judge.excerpt import Excerpt, Line, UnitView, sightings_of
from norm_monitor.judge.judge import POLARITIES, JudgeCalibration, JudgeConfig, Note, with_note
from norm_monitor.judge.questions import MARK

_PROMPTS = load_prompt_file("coding", "norm_monitor.judge")
ORDINARY = "ordinary"
ERROR = Polarity.ERROR.value
COMPETENCE = Polarity.COMPETENCE.value
LABELS = (ERROR, COMPETENCE, ORDINARY)
# Number of tokens after which a service cuts off the answer about a unit.
MAX_ANSWER_TOKENS = 250
# Tokens for the words around the answers.
WRAPPING_TOKENS = 150
# A longer name of a talk is cut in keys, and gets a digest.
_MAX_NAME_CHARACTERS = 24
# A request is about the units that begin in a stretch of this length.
STRETCH_NS = 60 * NS_PER_S
# It also shows the talk this long before and after.
SHOWN_BEFORE_NS = 30 * NS_PER_S
SHOWN_AFTER_NS = 15 * NS_PER_S
# How many times the pictures of a unit a stretch has.
IMAGES_FACTOR = 2
# The letter in the mark of a unit, by its kind.
_LETTERS = {UnitKind.ROBOT_TURN: "R", UnitKind.SILENCE: "S", UnitKind.PERSON_TURN: "P", UnitKind.SIGHTING: "V"}
# The word in the key of a request about a stretch, in place of a kind of unit.
_TALK = "talk"
# The reason for a unit without an answer.
MISSING = "the answers hold none about this moment"


class CodedUnit(BaseModel):
    """The answer of a coder about one unit."""

    polarity: Literal["error", "competence", "ordinary"]
    error: float = Field(ge=0, le=1)
    competence: float = Field(ge=0, le=1)
    ordinary: float = Field(ge=0, le=1)
    attributes: tuple[Attribute, ...] = ()
    rationale: str = ""
    quote: str = ""
    correction: str = ""

    @property
    def probability(self) -> dict[str, float]:
        """The probabilities by label; they sum to 1."""
        stated = {ERROR: self.error, COMPETENCE: self.competence, ORDINARY: self.ordinary}
        total = sum(stated.values())
        if not total:
            raise UnparsedError("the answer gives all three a probability of 0")
        return {label: value / total for label, value in stated.items()}


def build_schema(attributes: Sequence[Attribute], marks: Sequence[str]) -> dict[str, Any]:
    """Return the JSON schema of an answer for each mark, in the subset that strict services take."""
    text, number = {"type": "string"}, {"type": "number"}
    names = [attribute.value for attribute in attributes]
    properties: dict[str, Any] = {
        "polarity": {"type": "string", "enum": list(LABELS)},
        **dict.fromkeys(LABELS, number),
        "attributes": {"type": "array", "items": {"type": "string", "enum": names}},
        **dict.fromkeys(Note.model_fields, text),
    }
    by_mark = {mark: {"$ref": "#/$defs/answer"} for mark in marks}
    return {**_build_object(by_mark), "$defs": {"answer": _build_object(properties)}}


def _build_object(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of an object that has exactly these properties."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def talk_of(key: str) -> str:
    """Return the talk in the key of a request, as far as the key names it."""
    return re.split(rf"_(?:{'|'.join([*UnitKind, _TALK])})_\d+", key)[0]


class UnitKeys:
    """Name the units of one talk by its name, their kind and onset; a further unit with the same gets a number.

    A key holds letters, digits, _ and - alone, and at most 64 of them, as services demand of a custom_id.
    """

    def __init__(self, talk: str) -> None:
        safe = re.sub(r"[^A-Za-z0-9_-]+", "-", talk)
        is_whole = safe == talk and len(safe) <= _MAX_NAME_CHARACTERS
        self.talk = safe if is_whole else f"{safe[-_MAX_NAME_CHARACTERS:]}-{sha256(talk.encode()).hexdigest()[:6]}"
        self._unit_ids: dict[str, list[str]] = {}  # by the name that they share

    def of_unit(self, unit: Unit) -> str:
        """Return the key of an answer about one unit, as recorded answers have it."""
        return self._number_name(f"{self.talk}_{unit.kind}_{unit.onset_ns}", "", unit)

    def of_stretch(self, unit: Unit) -> tuple[str, str]:
        """Return the key of the request about the stretch in which a unit begins, and the unit's mark there."""
        within_ns = unit.onset_ns % STRETCH_NS
        key = f"{self.talk}_{_TALK}_{unit.onset_ns - within_ns}"
        return key, self._number_name(f"{_LETTERS[unit.kind]}{within_ns // NS_PER_S}", key, unit)

    def _number_name(self, name: str, within: str, unit: Unit) -> str:
        """Return a name, with a number if another unit has it already."""
        unit_ids = self._unit_ids.setdefault(within + name, [])
        if unit.unit_id not in unit_ids:
            unit_ids.append(unit.unit_id)
        index = unit_ids.index(unit.unit_id)
        return f"{name}_{index + 1}" if index else name


def requests_about(talk: str, views: Sequence[UnitView], config: JudgeConfig) -> Iterator[BatchRequest]:
    """Yield a request for each stretch of a talk, about every unit that begins in it.

    Pictures are shown only where they may leave this machine.
    """
    keys = UnitKeys(talk)
    stretches: dict[str, dict[str, UnitView]] = {}
    for view in views:
        key, mark = keys.of_stretch(view.unit)
        stretches.setdefault(key, {})[mark] = view
    for key, by_mark in stretches.items():
        in_order = dict(sorted(by_mark.items(), key=lambda pair: pair[1].unit.onset_ns))
        yield _make_request(key, _gather_stretch(in_order, views), in_order, config)


def _gather_stretch(by_mark: Mapping[str, UnitView], every: Iterable[UnitView]) -> Excerpt:
    """Return the talk around the marked units, by the last view of every unit."""
    views = sorted(every, key=lambda view: view.known_until_ns)
    first = min(by_mark.values(), key=lambda view: view.unit.onset_ns)
    start_ns = first.unit.onset_ns
    end_ns = max(view.unit.offset_ns or view.unit.onset_ns for view in by_mark.values())
    first_ns, last_ns = start_ns - SHOWN_BEFORE_NS, end_ns + SHOWN_AFTER_NS
    turns = {turn.turn_id: turn for view in views for turn in view.turns}
    frames = {frame.stamp_ns: frame for view in by_mark.values() for frame in Excerpt.of_unit(view).frames}
    presences = {(seen.stamp_ns, seen.source_topic): seen for view in views for seen in view.window.presences}
    in_order = sorted(turns.values(), key=lambda turn: (turn.start_ns, turn.turn_id))
    newest_ns = views[-1].known_until_ns
    shown = tuple(turn for turn in in_order if turn.end_ns >= first_ns and turn.start_ns <= last_ns)
    return Excerpt(
        turns=shown,
        sightings=tuple(change for change in sightings_of(presences.values()) if first_ns <= change.at_ns <= last_ns),
        frames=tuple(frames[stamp_ns] for stamp_ns in sorted(frames)),
        known_until_ns=min((turn.start_ns for turn in in_order if turn.start_ns > last_ns), default=newest_ns),
        start_ns=start_ns,
        end_ns=end_ns,
        evidence=tuple(dict.fromkeys(fact for view in by_mark.values() for fact in Excerpt.of_unit(view).evidence)),
        earlier=tuple(turn for turn in first.earlier if turn.end_ns < first_ns),
    )


def _mark_talk(excerpt: Excerpt, by_mark: Mapping[str, UnitView]) -> Quoted:
    """Return the talk with the mark of each unit before its line; quoted words cannot begin a line."""
    locale = excerpt.locale
    marks: dict[Line, str] = {}
    for mark, view in by_mark.items():
        unit = view.unit
        for line in replace(excerpt, unit=unit, start_ns=unit.onset_ns).lines(locale):
            plain = replace(line, marked=False)
            marks[plain] = marks.get(plain, "") + f"{MARK}{mark}" * line.marked
    return excerpt.quoted(marks.items(), locale)


def _write_instructions(attributes: Iterable[Attribute], locale: str) -> Text:
    """Write the question about each marked part, with the attributes to choose from."""
    texts, meanings = _PROMPTS.texts[locale], dict(zip(Attribute, prompts.list_meanings(locale), strict=True))
    attribute_lines = "\n".join(f"- {attribute.value}: {meanings[attribute]}" for attribute in attributes)
    return Text(text=f"{texts['talk']}\n{texts['keys'].format(attribute_lines)}")


def _make_request(key: str, excerpt: Excerpt, by_mark: Mapping[str, UnitView], config: JudgeConfig) -> BatchRequest:
    """Return a request about the marked units of a talk.

    Where the context forbids inferring emotions from pictures, a request with pictures does not offer them.
    """
    locale = excerpt.locale
    pictures = excerpt.pictures(config.images * IMAGES_FACTOR if config.pictures_may_leave else 0)
    is_guarded = bool(pictures) and not config.deployment_context.allows_emotions_from_pictures
    attributes = tuple(attribute for attribute in Attribute if not (is_guarded and attribute is Attribute.EMOTIONS))
    talk = _mark_talk(excerpt, by_mark)
    prefix = prompts.build_prefix(pictures, talk, excerpt.facts, locale, faces_aside=is_guarded)
    parts = (*prefix.parts, _write_instructions(attributes, locale))
    prompt = Prompt(version=f"{prefix.version}_{_PROMPTS.version}", parts=parts)
    return BatchRequest(
        custom_id=key,
        prompt=prompt,
        schema=build_schema(attributes, tuple(by_mark)),
        max_tokens=WRAPPING_TOKENS + MAX_ANSWER_TOKENS * len(by_mark),
    )


class RecordedJudge:
    """A judge that has only the recorded answers of a service about one talk."""

    def __init__(
        self,
        talk: str,
        answers: BatchAnswers,
        config: JudgeConfig | None = None,
        calibration: JudgeCalibration | None = None,
    ) -> None:
        self._keys, self._answers, self._config = UnitKeys(talk), answers.by_id, config or JudgeConfig()
        self._calibration = calibration

    def judge(self, view: UnitView, deadline: Deadline | None = None) -> UnitJudgement:
        """Return the recorded answer about a unit, or why there is none."""
        answer, mark = find_answer(self._keys, view.unit, self._answers)
        reply = Reply(outcome=answer.outcome, prompt_version=answer.prompt_version, prompt_digest=answer.request_sha256)
        judgement = UnitJudgement(
            unit=view.unit,
            outcome=answer.outcome,
            reason=answer.reason,
            provenance=replace(
                make_provenance(
                    ModelInfo(model=answer.model, engine="recorded"), reply, window_digest=window_digest(view.window)
                ),
                config_sha256=self._config.sha256(),
                window_late=view.window.late,
            ),
        )
        if answer.outcome is not Outcome.ANSWERED:
            return judgement
        try:
            coded = read_answer(answer, mark)
            probability = coded.probability
            if self._calibration:
                tempered = self._calibration.temper([probability[label] for label in LABELS])
                probability = dict(zip(LABELS, tempered, strict=True))
            return _add_coding(judgement, view, coded, probability)
        except UnparsedError as error:
            return replace(judgement, outcome=error.outcome, reason=str(error))


def find_answer(keys: UnitKeys, unit: Unit, answers: Mapping[str, BatchAnswer]) -> tuple[BatchAnswer, str]:
    """Return the answer about a unit, and the unit's mark where it is about a whole stretch of talk."""
    key, mark = keys.of_unit(unit), ""
    if key not in answers:
        key, mark = keys.of_stretch(unit)
    return answers.get(key) or BatchAnswer(outcome=Outcome.FAILED, reason=MISSING), mark


class _TalkCoding(RootModel[dict[str, Any]]):
    """An object with the answer about each mark."""


def read_answer(answer: BatchAnswer, mark: str) -> CodedUnit:
    """Return the answer about a unit, by its mark in an answer about a stretch; other marks are left out."""
    if not mark:
        return parse_value(answer.text, CodedUnit)
    by_mark = parse_value(answer.text, _TalkCoding).root
    if mark not in by_mark:
        raise UnparsedError(f"the answer about the talk lacks {mark}")
    return parse_value(json.dumps(by_mark[mark]), CodedUnit)


def _add_coding(
    judgement: UnitJudgement, view: UnitView, coded: CodedUnit, probability: Mapping[str, float]
) -> UnitJudgement:
    """Add the probabilities of an answer, and its note unless the unit is ordinary."""
    judgement = replace(judgement, probability={polarity: probability[polarity.value] for polarity in POLARITIES})
    best = max(LABELS, key=lambda label: probability[label])
    if best == ORDINARY:
        return judgement
    if not coded.attributes:
        raise UnparsedError(f"the answer names no attribute of a social {best}")
    note = Note(rationale=coded.rationale, quote=coded.quote, correction=coded.correction)
    attributes = tuple(attribute for attribute in Attribute if attribute in coded.attributes)
    return with_note(judgement, view, Polarity(best), attributes, note)
