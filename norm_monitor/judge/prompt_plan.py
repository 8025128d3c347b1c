"""The judge's questions about one window: prompts, questions, and which of them go without pictures."""

from dataclasses import replace

from norm_core.engines.prompt import Prompt, Question
from norm_core.prompts import judge as prompts
from norm_core.records.flag import Attribute
from norm_core.records.record import record
from norm_core.records.speech import Utterance
from norm_core.records.window import Window
from norm_monitor.context.turns import turns_of
from norm_monitor.context.wording import is_chinese
from norm_monitor.judge.deployment_context import DeploymentContext

POLARITY = 0  # index of the first question in a plan's answers
ATTRIBUTES = slice(1, 1 + len(Attribute))
SPEECH_ACT, NORM = ATTRIBUTES.stop, ATTRIBUTES.stop + 1
_EMOTIONS = 1 + list(Attribute).index(Attribute.EMOTIONS)


@record
class Batch:
    """Questions that share one prompt, with their indices among all questions about the window."""

    prompt: Prompt
    questions: tuple[Question, ...]
    places: tuple[int, ...]


@record
class PromptPlan:
    """All questions about a window, in order; the first batch contains the first question."""

    window: Window  # as shown in the prompt: with the robot's reported words if nothing else is known
    locale: str
    batches: tuple[Batch, ...]

    @property
    def prompt(self) -> Prompt:
        """The prompt of the first question; the request for a note continues it."""
        return self.batches[0].prompt

    def note_prompt(self, polarity_index: int) -> Prompt:
        """Return the request for a note, for use after an error or a competence."""
        return prompts.explanation(self.prompt, polarity_index, self.locale)


def plan(window: Window, images: int, context: DeploymentContext) -> PromptPlan:
    """Plan the questions about a window, with at most `images` of its pictures.

    If the context forbids inferring emotions from pictures, the question about emotions gets a prompt of words only,
    and the other questions tell the model to ignore feelings in faces.
    """
    said = _utterances(window)
    locale = "zh" if 2 * sum(is_chinese(one.text) for one in said) > len(said) else "en"
    shown = replace(window, utterances=said)
    questions = tuple(prompts.questions(locale))
    everything = tuple(range(len(questions)))
    if not (images and window.frames) or context.allows_emotions_from_pictures:
        whole = Batch(prompt=prompts.prefix(shown, images, locale), questions=questions, places=everything)
        return PromptPlan(window=shown, locale=locale, batches=(whole,))
    seen = tuple(place for place in everything if place != _EMOTIONS)
    batches = (
        Batch(
            prompt=prompts.prefix(shown, images, locale, faces_aside=True),
            questions=tuple(questions[place] for place in seen),
            places=seen,
        ),
        Batch(prompt=prompts.prefix(shown, 0, locale), questions=(questions[_EMOTIONS],), places=(_EMOTIONS,)),
    )
    return PromptPlan(window=shown, locale=locale, batches=batches)


def _utterances(window: Window) -> tuple[Utterance, ...]:
    """Return the turns of a window as utterances, the robot's as reported if nothing else is known."""
    return tuple(
        Utterance(
            stamp_ns=turn.start_ns,
            utterance_id=turn.turn_id,
            speaker=turn.speaker,
            speaker_id=turn.speaker_id,
            text=turn.text,
            start_ns=turn.start_ns,
            end_ns=turn.end_ns,
        )
        for turn in turns_of(window.utterances, window.robot_speech, window.end_ns)
    )
