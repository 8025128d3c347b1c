"""The selector's prompts. Our own words stand plain; text from the world is quoted."""

from collections.abc import Sequence

from action_selector.house_rules import HouseRule
from action_selector.observation import Observation
from action_selector.request import Request
from action_selector.retrieval import Precedent
from action_selector.text_safety.injection_filter import strip_instructions
from norm_core.engines.prompt import Image, Part, Prompt, Question, Quoted, Text
from norm_core.engines.prompt_file import prompt_file
from norm_core.records.decision import Norm, OtherAgent

_PROMPTS = prompt_file("select_action", "action_selector")
VERSION = _PROMPTS.version
STYLES = ("default", "egoplan", "exclusion")
_SPOKEN_LAST = 8
_YES_NO = ("Yes", "No")
NORMS = tuple(Norm)


def pictures(request: Request, most: int | None) -> tuple[Image, ...]:
    """Select the newest images that fit the model, in order of time."""
    frames = request.window.frames if request.window else ()
    images = tuple(Image(jpeg=frame.tile_jpeg) for frame in frames)
    return images if most is None else images[len(images) - min(most, len(images)) :]


def speech(request: Request) -> tuple[str, ...]:
    """Return what was last said, and by whom."""
    spoken = request.window.utterances[-_SPOKEN_LAST:] if request.window else ()
    return tuple(f"{utterance.speaker}: {utterance.text}" for utterance in spoken)


def scene(
    request: Request,
    observation: Observation,
    rules: Sequence[HouseRule],
    precedents: Sequence[Precedent],
    most_images: int | None,
) -> Prompt:
    """Build the common beginning of every question about one request."""
    wording = _PROMPTS.texts
    parts: list[Part] = [*pictures(request, most_images)]
    parts.append(Text(text=request.question or wording[request.style]))
    viewpoint = observation.viewpoint
    quotes = {
        "situation": request.situation,
        "viewpoint": "\n".join(filter(None, (viewpoint.description, viewpoint.place, viewpoint.role))),
        "others": "\n".join(_described(other) for other in observation.others),
        "speech": "\n".join(speech(request)),
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


def observation_prompt(
    request: Request, most_images: int | None, task: str = "observe_scene", people: Sequence[OtherAgent] = ()
) -> Prompt:
    """Build a prompt for describing the scene or proposing actions; `task` names the prompt file.

    `people` are tracked by the robot's sensors. The model adds what they do.
    """
    words = prompt_file(task, "action_selector")
    parts: list[Part] = [*pictures(request, most_images)]
    if request.situation.strip():
        parts += [
            Text(text=_words("situation")),
            Quoted(text=request.situation, label="situation"),
        ]
    if people:
        lines = "\n".join(map(_described, people))
        parts += [Text(text=words.texts["people"]), Quoted(text=lines, label="people")]
    return Prompt(version=words.version, parts=(*parts, Text(text=words.texts["ask"])))


def choice_question(actions: Sequence[str]) -> Question:
    """Ask which action to choose. An empty action reads as "none of the above"."""
    return Question(parts=(Text(text=_words("choose")),), options=tuple(map(_readable, actions)), step="choose")


def justification_question(action: str, justifications: Sequence[str]) -> Question:
    """Ask which justification fits the action."""
    parts = (Text(text=_words("chosen")), Quoted(text=_readable(action), label="action"), Text(text=_words("justify")))
    return Question(parts=parts, options=tuple(map(_readable, justifications)), step="justify")


def yes_or_no(action: str, ask: str) -> list[Question]:
    """Ask a yes-no question in both answer orders. `ask` is `possible` or `sensible`."""
    parts = (Text(text=_words("candidate")), Quoted(text=_readable(action), label="action"), Text(text=_words(ask)))
    return [Question(parts=parts, options=options, step=ask) for options in (_YES_NO, _YES_NO[::-1])]


def norm_served(action: str) -> list[Question]:
    """Ask which norm an action serves most, in both orders of NORMS."""
    words = _PROMPTS.texts
    parts = (Text(text=words["candidate"]), Quoted(text=_readable(action), label="action"), Text(text=words["serves"]))
    kinds = tuple(words[f"norm_{norm}"] for norm in NORMS)
    return [Question(parts=parts, options=options, step="norms") for options in (kinds, kinds[::-1])]


def _readable(action: str) -> str:
    """Remove injected instructions. Candidates that consist of one were vetoed earlier."""
    return (strip_instructions(action) or action) if action.strip() else _words("none")


def _words(name: str) -> str:
    return str(_PROMPTS.texts[name])


def _described(other: OtherAgent) -> str:
    return ", ".join(filter(None, (other.role, other.appearance, other.doing)))
