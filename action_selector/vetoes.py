"""Observe the other people, veto candidates that cannot or should not be done, and apply a robot team's rules."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, model_validator

from action_selector.candidates import Candidate
from action_selector.retrieval import Matrix, SentenceEncoding, match_pairs, similarity
from action_selector.text_safety.injection_filter import read_disguised, strip_instructions
from norm_core.engines.engine import Engine
from norm_core.engines.prompt import Prompt
from norm_core.engines.request_context import Deadline
from norm_core.records.decision import Duplicable, Norm, OtherAgent, Veto, Viewpoint
from norm_core.records.outcome import Outcome
from norm_core.records.presence import Engagement, Gaze, Person
from norm_core.records.record import record
from norm_core.records.window import Window
from norm_core.runtime.config import Config, load_private_config

_WITH_THE_ROBOT = {
    Engagement.ENGAGING: "turning to the robot",
    Engagement.ENGAGED: "busy with the robot",
    Engagement.DISENGAGING: "turning away from the robot",
}
_LOOKING = {Gaze.AT_ROBOT: "looking at the robot", Gaze.ELSEWHERE: "looking elsewhere"}


class SeenOther(BaseModel):
    """One person, animal or machine as a model describes it."""

    model_config = ConfigDict(extra="ignore")
    role: str = Field(default="", max_length=200)
    appearance: str = Field(default="", max_length=400)
    doing: str = Field(max_length=400)
    duplicable: Duplicable = Duplicable.UNKNOWN


class SceneObservation(BaseModel):
    """What a model is asked to write of a scene."""

    model_config = ConfigDict(extra="ignore")
    viewpoint: str = Field(default="", max_length=600)
    place: str = Field(default="", max_length=200)
    role: str = Field(default="", max_length=200)
    others: list[SeenOther] = Field(default_factory=list, max_length=20)


@record
class Observation:
    """The scene and its source. `outcome` differs from ANSWERED where a model failed."""

    others: tuple[OtherAgent, ...] = ()
    viewpoint: Viewpoint = Viewpoint()
    told_by: str = "given"
    outcome: Outcome = Outcome.ANSWERED
    reason: str = ""


def observation_given(others: tuple[OtherAgent, ...] | None, viewpoint: Viewpoint | None) -> Observation:
    """Take the scene from the request. What the request omits is unknown, not absent."""
    told_by = "given" if others is not None else "nobody"
    return Observation(others=others or (), viewpoint=viewpoint or Viewpoint(), told_by=told_by)


def people_in(window: Window | None, now_ns: int, max_age_ns: int) -> tuple[Person, ...]:
    """List the people of the newest tracker message; empty where it is older than `max_age_ns`.

    Only identified persons count: a camera without a visible face does not prove that nobody is there.
    """
    presences = [presence for presence in window.presences if presence.persons] if window else []
    newest = max(presences, key=lambda presence: presence.stamp_ns, default=None)
    return newest.persons if newest and now_ns - newest.stamp_ns <= max_age_ns else ()


def from_people(people: Iterable[Person]) -> tuple[OtherAgent, ...]:
    """Convert REP-155 people to other agents: their position towards the robot, and rarely their activity.

    An activity with the robot itself is no veto, because the robot cannot do it in their place.
    """
    return tuple(
        OtherAgent(
            agent_id=person.person_id,
            appearance=_standing(person),
            doing=_WITH_THE_ROBOT.get(person.engagement, ""),
            duplicable=Duplicable.YES if person.engagement in _WITH_THE_ROBOT else Duplicable.UNKNOWN,
        )
        for person in people
        if person.person_id
    )


def from_engine(engine: Engine, prompt: Prompt, deadline: Deadline) -> Observation:
    """Ask a model to describe the images. On failure, return no other agents and the reason."""
    written = engine.generate(prompt, SceneObservation, max_tokens=400, deadline=deadline)
    if written.outcome is not Outcome.ANSWERED or written.value is None:
        return Observation(told_by="engine", outcome=written.outcome, reason=written.reason or "nothing was written")
    seen = written.value
    others = tuple(
        OtherAgent(agent_id=f"seen-{number}", **other.model_dump()) for number, other in enumerate(seen.others)
    )
    return Observation(
        others=others,
        viewpoint=Viewpoint(description=seen.viewpoint, place=seen.place, role=seen.role),
        told_by="engine",
    )


def describe_others(other: OtherAgent) -> str:
    """Describe another agent in one phrase: role, then activity."""
    return ", ".join(filter(None, (other.role.strip(), other.doing.strip()))) if other.doing.strip() else ""


def _standing(person: Person) -> str:
    where = f"the person {person.distance_m:.1f} m away" if person.distance_m is not None else "a person"
    return ", ".join(filter(None, (where, _LOOKING.get(person.gaze, ""))))


class HouseRule(Config):
    """In a situation like this, do one action and veto another. `why` is shown to people."""

    situation: str = Field(min_length=1, max_length=1000)
    do: str = Field(default="", max_length=400)
    dont: str = Field(default="", max_length=400)
    why: str = Field(min_length=1, max_length=400)

    @model_validator(mode="after")
    def _says_something(self) -> "HouseRule":
        if not (self.do or self.dont):
            raise ValueError("a rule says what to do, what not to do (dont), or both")
        return self


class HardRule(Config):
    """A general ban. Vetoes a candidate that contains one of the words or means the same."""

    never: str = Field(min_length=1, max_length=400)
    words: tuple[str, ...] = Field(default=(), description="any of these words or phrases in a candidate vetoes it")
    why: str = Field(default="", max_length=400)


class HouseRules(Config):
    """The rules of one site: for situations, which apply by similarity, and general bans."""

    rules: tuple[HouseRule, ...] = ()
    hard: tuple[HardRule, ...] = ()

    @classmethod
    def read(cls, path: Path) -> "HouseRules":
        """Load the rules from a YAML file. Raises ConfigError."""
        return load_private_config(cls, path)


def forbidding_rule(
    actions: Sequence[str], hard: Sequence[HardRule], sentences: SentenceEncoding, least: float
) -> dict[int, str]:
    """Explain which actions a hard rule forbids, by index: by its words, or by a likeness of at least `least`."""
    alike = action_likeness(sentences, actions, [rule.never for rule in hard])
    reasons: dict[int, str] = {}
    for place, action in enumerate(actions):
        for number, rule in enumerate(hard):
            if action.strip() and (_has_word(action, rule.words) or alike[place, number] >= least):
                why = f": {rule.why}" if rule.why else ""
                reasons.setdefault(place, f"a rule of this house says never to {rule.never.rstrip('.')}{why}")
    return reasons


def advised_against(
    actions: Sequence[str], rules: Sequence[HouseRule], sentences: SentenceEncoding, least: float
) -> dict[int, str]:
    """Explain which actions an applicable rule advises against, by index."""
    reasons: dict[int, str] = {}
    for rule in rules:
        alike = action_likeness(sentences, actions, [rule.dont, rule.do])
        for place in range(len(actions)):
            if alike[place, 0] >= least and alike[place, 0] > alike[place, 1]:
                reasons.setdefault(place, f"a house rule advises against it: {rule.why}")
    return reasons


def in_favour(action: str, rules: Sequence[HouseRule], sentences: SentenceEncoding, least: float) -> str:
    """Explain why an applicable rule supports the action. Empty where none does."""
    for rule in rules:
        alike = action_likeness(sentences, [action], [rule.do, rule.dont])[0]
        if alike[0] >= least and alike[0] > alike[1]:
            return rule.why
    return ""


# The encoder likens what has the same case, full stop or small words, whatever it means.
_SMALL_WORDS = {
    *("a", "an", "the", "in", "into", "at", "on", "of", "to", "from", "by", "for", "with", "and", "or", "is", "are"),
    *("it", "its", "he", "she", "him", "her", "his", "they", "them"),
}


def action_likeness(sentences: SentenceEncoding, actions: Sequence[str], named: Sequence[str]) -> Matrix:
    """Compute how alike actions and what rules name are, by their content words."""
    rows, columns = ([read_disguised(text)[0] for text in texts] for texts in (actions, named))
    return similarity(sentences, rows, columns, content_words)


def content_words(text: str) -> str:
    """Return the words that tell what is done, in folded case and without stops."""
    words = re.findall(r"[^\W_]+", text.casefold())
    return " ".join([word for word in words if word not in _SMALL_WORDS] or words)


def applicable_rules(
    rules: Sequence[HouseRule], situation: str, sentences: SentenceEncoding, least: float
) -> tuple[HouseRule, ...]:
    """List the rules whose situation has a similarity of at least `least`, the most similar first."""
    if not situation.strip() or not rules:
        return ()
    alike = similarity(sentences, [rule.situation for rule in rules], [situation])[:, 0]
    order = sorted(range(len(rules)), key=lambda place: (-alike[place], place))
    return tuple(rules[place] for place in order if alike[place] >= least)


# Words end where no letter follows. Chinese and Japanese write no spaces between them.
_LETTER = r"[^\W_\u3040-\u30ff\u3400-\u9fff]"
_LONG_ENOUGH_TO_SPLIT = 6  # "be low" is not "below"


def _has_word(action: str, words: Sequence[str]) -> bool:
    """Whether one of the words stands in the action: as written, in disguised letters, spelled out or split in two."""
    plain, spelled = read_disguised(action)
    split_at_capitals = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", plain)
    pairs = " ".join(first + second for first, second in pairwise(plain.split()))
    for word in words:
        letters = read_disguised(word)[0]
        signs = r"(?:[^\w\s]|_)*".join(r"\s+" if letter == " " else re.escape(letter) for letter in letters)
        pattern = re.compile(rf"(?<!{_LETTER}){signs}(?:s|es)?(?!{_LETTER})", re.IGNORECASE)
        if pattern.search(plain) or pattern.search(split_at_capitals) or letters.casefold() in spelled.casefold():
            return True
        if len(letters) >= _LONG_ENOUGH_TO_SPLIT and pattern.search(pairs):
            return True
    return False


# Who speaks to another agent, helps it or waits for it does not do the same, however similar the words.
_ANSWERS = {
    *("ask", "tell", "warn", "alert", "remind", "inform", "call", "greet", "thank", "praise", "applaud"),
    *("offer", "help", "assist", "join", "rescue", "evacuate", "wait", "watch"),
}
# From this cosine on, it is almost certainly the same action.
_SURE = 0.6


@record
class Vetoed:
    """The reason of a veto. `matched` is the index of the other agent whose action it is."""

    veto: Veto
    reason: str
    matched: int | None = None


def first_of(*by_priority: Mapping[int, Vetoed]) -> dict[int, Vetoed]:
    """Merge vetoes by candidate. Where several veto the same one, the first is named."""
    return {index: vetoed for vetoes in reversed(by_priority) for index, vetoed in vetoes.items()}


def of_preconditions(candidates: Sequence[Candidate]) -> dict[int, Vetoed]:
    """Veto candidates whose preconditions fail."""
    return {
        candidate.index: Vetoed(veto=Veto.PRECONDITION, reason=candidate.unmet)
        for candidate in candidates
        if candidate.unmet
    }


def of_orders(candidates: Sequence[Candidate]) -> dict[int, Vetoed]:
    """Veto candidates that contain only instructions to the chooser."""
    return {
        candidate.index: Vetoed(veto=Veto.HARD_RULE, reason="it tells how to choose, and names nothing to do")
        for candidate in candidates
        if not candidate.is_none and not strip_instructions(candidate.action)
    }


def of_house_rules(advised_against: Mapping[int, str], forbidden: Mapping[int, str]) -> dict[int, Vetoed]:
    """Veto candidates that a house rule advises against in this situation, or forbids in every one."""
    return first_of(
        {index: Vetoed(veto=Veto.HARD_RULE, reason=reason) for index, reason in forbidden.items()},
        {index: Vetoed(veto=Veto.HOUSE_RULE, reason=reason) for index, reason in advised_against.items()},
    )


def of_others(
    candidates: Sequence[Candidate], observation: Observation, sentences: SentenceEncoding, least: float
) -> dict[int, Vetoed]:
    """Veto candidates that another agent already does. Each agent vetoes at most one candidate.

    An action known as shared, such as applauding, vetoes nothing. Unknown actions count as exclusive, because models
    often copy what others do. Responses to the agent, and actions stated to serve safety, are exempt.
    """
    doers = [other for other in observation.others if describe_others(other) and other.duplicable is not Duplicable.YES]
    alike = similarity(
        sentences, [offered.action for offered in candidates], [describe_others(other) for other in doers]
    )
    for place, candidate in enumerate(candidates):
        for number, other in enumerate(doers):
            if Norm.SAFETY in candidate.norms or _answers(candidate.action, other.doing):
                alike[place, number] = -1.0
    return {
        candidates[place].index: Vetoed(
            veto=Veto.SINGLETON,
            reason=f"{_named(doers[doer])} {'is' if alike[place, doer] >= _SURE else 'seems to be'} doing that already",
            matched=observation.others.index(doers[doer]),
        )
        for place, doer in match_pairs(alike, max(least, -0.99)).items()
    }


def of_viewpoint(impossible: Mapping[int, float], where: str, most: float) -> dict[int, Vetoed]:
    """Veto candidates whose probability of being possible from here is below `most`."""
    place = f" as {where}" if where else ""
    return {
        index: Vetoed(veto=Veto.OFF_VANTAGE, reason=f"it cannot be done from here{place}, now")
        for index, possible in impossible.items()
        if possible < most
    }


def _answers(action: str, doing: str) -> bool:
    """Whether an action responds to the other's activity instead of repeating it."""
    verb = next(iter(re.findall(r"\w+", action.lower().removeprefix("please "))), "")
    return verb in _ANSWERS and not re.search(rf"\b{verb.removesuffix('e')}", doing.lower())


def _named(other: OtherAgent) -> str:
    name = other.appearance.strip() or (f"the {other.role.strip()}" if other.role.strip() else "someone else")
    return name if len(name) <= 80 else f"{name[:79]}…"
