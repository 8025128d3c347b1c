"""The prompts of the selector. Our own words stand plain; text from the world is quoted."""

from collections.abc import Sequence

from action_selector.house_rules import HouseRule
from action_selector.observation import Observation
from action_selector.request import Request
from action_selector.retrieval import Precedent
from action_selector.text_safety.injection_filter import strip_instructions
from norm_core.engines.prompt import Image, Part, Prompt, Question, Quoted, Text
from norm_core.engines.prompt_file import load_prompt_file
from norm_core.records.decision import OtherAgent

_PROMPTS = load_prompt_file("select_action", "action_selector")
VERSION = _PROMPTS.version
STYLES = ("default", "egoplan", "exclusion")
_MAX_UTTERANCES = 8
_YES_NO = ("Yes", "No")


def select_pictures(request: Request, max_count: int | None) -> tuple[Image, ...]:
    """Select the newest images, at most `max_count`, in order of time."""
    frames = request.window.frames if request.window else ()
    images = tuple(Image(jpeg=frame.tile_jpeg) for frame in frames)
    return images if max_count is None else images[len(images) - min(max_count, len(images)) :]


def list_speech(request: Request) -> tuple[str, ...]:
    """List the last utterances, each with its speaker."""
    utterances = request.window.utterances[-_MAX_UTTERANCES:] if request.window else ()
    return tuple(f"{utterance.speaker}: {utterance.text}" for utterance in utterances)


def build_scene_prompt(
    request: Request,
    observation: Observation,
    rules: Sequence[HouseRule],
    precedents: Sequence[Precedent],
    max_images: int | None,
) -> Prompt:
    """Build the beginning that all questions about one request share."""
    wording = _PROMPTS.texts
    parts: list[Part] = [*select_pictures(request, max_images)]
    parts.append(Text(text=request.question or wording[request.style]))
    viewpoint = observation.viewpoint
    quotes = {
        "situation": request.situation,
        "viewpoint": "\n".join(filter(None, (viewpoint.description, viewpoint.place, viewpoint.role))),
        "others": "\n".join(_describe_agent(other) for other in observation.others),
        "speech": "\n".join(list_speech(request)),
    }
    for name, text in quotes.items():
        if text.strip():
            parts += [Text(text=wording[name]), Quoted(text=text, label=name)]
    if rules:
        lines = [
            " ".join(filter(None, (rule.do, f"Not: {rule.dont}" if rule.dont else "", rule.why))) for rule in rules
        ]
        parts.append(Text(text="\n".join([wording["house_rules"], *lines])))
    if precedents:
        lines = [
            f"{precedent.scene}\nRight: {precedent.action or wording['none']} {precedent.justification}".strip()
            for precedent in precedents
        ]
        parts += [Text(text=wording["precedents"]), Quoted(text="\n".join(lines), label="precedents")]
    return Prompt(version=VERSION, parts=tuple(parts))


def build_observation_prompt(request: Request, max_images: int | None, people: Sequence[OtherAgent]) -> Prompt:
    """Build a prompt for describing the scene. The sensors of the robot track `people`; the model adds what they do."""
    wording = load_prompt_file("observe_scene", "action_selector")
    parts: list[Part] = [*select_pictures(request, max_images)]
    if request.situation.strip():
        parts += [
            _build_text("situation"),
            Quoted(text=request.situation, label="situation"),
        ]
    if people:
        lines = "\n".join(map(_describe_agent, people))
        parts += [Text(text=wording.texts["people"]), Quoted(text=lines, label="people")]
    return Prompt(version=wording.version, parts=(*parts, Text(text=wording.texts["ask"])))


def build_choice_question(actions: Sequence[str]) -> Question:
    """Ask which action to choose. An empty action reads as "none of the above"."""
    return Question(parts=(_build_text("choose"),), options=tuple(map(_make_readable, actions)), step="choose")


def build_justification_question(action: str, justifications: Sequence[str]) -> Question:
    """Ask which justification fits the action."""
    parts = (_build_text("chosen"), _quote_action(action), _build_text("justify"))
    return Question(parts=parts, options=tuple(map(_make_readable, justifications)), step="justify")


def build_yes_no_questions(action: str, ask: str) -> list[Question]:
    """Ask a yes-no question in both answer orders. `ask` is `possible` or `sensible`."""
    parts = (_build_text("candidate"), _quote_action(action), _build_text(ask))
    return [Question(parts=parts, options=options, step=ask) for options in (_YES_NO, _YES_NO[::-1])]


def _make_readable(action: str) -> str:
    """Remove injected instructions. Candidates that are nothing but an instruction were vetoed earlier."""
    return (strip_instructions(action) or action) if action.strip() else _PROMPTS.texts["none"]


def _quote_action(action: str) -> Quoted:
    return Quoted(text=_make_readable(action), label="action")


def _build_text(name: str) -> Text:
    """Build a part from a text of the prompt file."""
    return Text(text=_PROMPTS.texts[name])


def _describe_agent(other: OtherAgent) -> str:
    """Describe another agent with its appearance."""
    return ", ".join(filter(None, (other.role, other.appearance, other.doing)))
