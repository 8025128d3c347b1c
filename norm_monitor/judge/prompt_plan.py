"""What the judge asks a model about one window: prompts, questions, and which of them go without pictures."""

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

POLARITY = 0  # the place of the first question in a plan's answers
ATTRIBUTES = slice(1, 1 + len(Attribute))
SPEECH_ACT, NORM = ATTRIBUTES.stop, ATTRIBUTES.stop + 1
_EMOTIONS = 1 + list(Attribute).index(Attribute.EMOTIONS)


@record
class Batch:
    """Questions that share one prompt, with their places among all questions about the window."""

    prompt: Prompt
    questions: tuple[Question, ...]
    places: tuple[int, ...]


@record
class PromptPlan:
    """All that is asked about a window, in the order of asking; the first batch holds the first question."""

    window: Window  # as the prompt shows it: the robot's words by its own account where that is all there is
    locale: str
    batches: tuple[Batch, ...]

    @property
    def prompt(self) -> Prompt:
        """The prompt of the first question, from which the request for a note goes on."""
        return self.batches[0].prompt

    def note_prompt(self, polarity_index: int) -> Prompt:
        """The request for a note, asked only where the first question found an error or a competence."""
        return prompts.explanation(self.prompt, polarity_index, self.locale)


def plan(window: Window, images: int, context: DeploymentContext) -> PromptPlan:
    """Plan the questions about a window, with at most so many of its pictures.

    Where the context does not allow emotions to be inferred from pictures, the question about emotions
    gets a prompt of words alone, and the other questions are told to leave feelings in faces aside.
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
    """The turns of a window as utterances, the robot's by its own account where that is all there is."""
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
