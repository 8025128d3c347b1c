"""The judge's questions about a unit or a segment: their prompts, and which of them go without pictures."""

from norm_core.engines.prompt import Prompt, Question
from norm_core.prompts import judge as prompts
from norm_core.records.flag import Attribute
from norm_core.records.record import record
from norm_monitor.judge.deployment_context import DeploymentContext
from norm_monitor.judge.excerpt import Excerpt

_EMOTIONS = list(Attribute).index(Attribute.EMOTIONS)


@record
class Batch:
    """Questions that share one prompt, with the indices of their attributes."""

    prompt: Prompt
    questions: tuple[Question, ...]
    places: tuple[int, ...]


@record
class PromptPlan:
    """The questions in their order: the first, then the attributes, then a note. The prompt of the first is shared."""

    locale: str
    prompt: Prompt
    detection: Question
    attributes: tuple[Batch, ...]  # asked where the first answer is an error or a competence

    def note_prompt(self, polarity_index: int) -> Prompt:
        """Return the request for a note, for use after an error or a competence."""
        return prompts.note(self.prompt, polarity_index, self.locale)


def plan(excerpt: Excerpt, images: int, context: DeploymentContext) -> PromptPlan:
    """Plan the questions about an excerpt, with at most `images` of its pictures.

    If the context forbids inferring emotions from pictures, the question about emotions gets a prompt of words only,
    and the other questions tell the model to ignore feelings in faces.
    """
    locale = excerpt.locale
    questions = tuple(prompts.attributes(locale))
    guarded = bool(images and excerpt.frames) and not context.allows_emotions_from_pictures
    prompt = excerpt_prompt(excerpt, images, locale, faces_aside=guarded)
    apart = (_EMOTIONS,) if guarded else ()
    together = tuple(place for place in range(len(questions)) if place not in apart)
    batches = [Batch(prompt=prompt, questions=tuple(questions[place] for place in together), places=together)]
    if guarded:
        words = excerpt_prompt(excerpt, 0, locale)
        batches.append(Batch(prompt=words, questions=(questions[_EMOTIONS],), places=apart))
    return PromptPlan(locale=locale, prompt=prompt, detection=prompts.detection(locale), attributes=tuple(batches))


def excerpt_prompt(excerpt: Excerpt, images: int, locale: str, *, faces_aside: bool = False) -> Prompt:
    """Return what all questions about an excerpt share; an excerpt without records has no talk."""
    is_empty = not excerpt.turns and not excerpt.frames and excerpt.unit is None
    talk = None if is_empty else excerpt.talk(locale)  # "nobody speaks" would claim too much
    return prompts.prefix(excerpt.pictures(images), talk, excerpt.facts, locale, faces_aside=faces_aside)
