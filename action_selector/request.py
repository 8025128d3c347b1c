"""The selector's requests and their limits, also of queries and of flagged errors. All of their text is untrusted."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator

from action_selector.candidates import SkillCatalogue, plain_action
from action_selector.choose.abstain import WhenUnsure
from action_selector.choose.norms import DEFAULT_ORDER
from norm_core.engines.request_context import Deadline
from norm_core.records.decision import Decision, Norm, OtherAgent, Viewpoint
from norm_core.records.episode import Answer, Query
from norm_core.records.flag import FlagState, Polarity, SocialFlag
from norm_core.records.json_codec import sha256_of
from norm_core.records.outcome import Outcome
from norm_core.records.record import record
from norm_core.records.window import Window
from norm_core.runtime.config import LIVE, NAMES_FILE, Config
from norm_core.runtime.wording import count_of
from norm_core.streams.watermarks import SOURCES, check_sources

MAX_CANDIDATES = 64  # of others and of justifications too
MAX_CHARACTERS = 20_000
MAX_REPEATED_CHARACTERS = 2_000  # in a decision


class UnusableError(ValueError):
    """A request that cannot be answered; the message says what to send instead."""


@record
class Request:
    """One request. None for `others` or `viewpoint` means "observe them"; an empty option is none of the above.

    `facts` are stated by the caller, such as "hands_free". `source` is the scene's origin, whose own precedents are
    never used. `task` names the only question of a query: nothing else is asked, and its outcome is the decision's.
    It is empty where all is wanted.
    """

    query_id: str
    task: str = ""
    candidates: tuple[str, ...] = ()
    justifications: tuple[str, ...] = ()
    situation: str = ""
    question: str = ""
    style: str = "default"
    others: tuple[OtherAgent, ...] | None = None
    viewpoint: Viewpoint | None = None
    facts: tuple[str, ...] = ()
    source: str = ""
    window: Window | None = None


def repeated(text: str) -> str:
    """Return what a decision repeats of a text of its request."""
    return text[:MAX_REPEATED_CHARACTERS]


def repeated_places(options: Sequence[str]) -> tuple[int, int] | None:
    """Find the first option that has the words of an earlier one, and that one's place before it."""
    places: dict[str, int] = {}
    for place, option in enumerate(options):
        if (first := places.setdefault(plain_action(option) or option.strip(), place)) != place:
            return first, place
    return None


def check(request: Request, deadline: Deadline, *, max_frame_age_ns: int, needs_frames: bool) -> None:
    """Check a request against the limits. Raises UnusableError.

    `needs_frames` is true where a model still has to observe the scene.
    """
    now_ns = deadline.clock.now_ns()
    if deadline.deadline_ns is not None and deadline.deadline_ns <= deadline.asked_ns:
        raise UnusableError("the deadline had already passed when the question came: ask with a later one")
    others = request.others or ()
    counted = {"candidates": request.candidates, "justifications": request.justifications, "others": others}
    for name, entries in counted.items():
        if len(entries) > MAX_CANDIDATES:
            raise UnusableError(f"{len(entries)} {name} were given: offer at most {MAX_CANDIDATES}")
    for name, options in (("candidates", request.candidates), ("justifications", request.justifications)):
        if sum(not option.strip() for option in options) > 1:
            raise UnusableError(f"{name}: two of them are empty, and one empty one means none of the above")
        if not request.task and (places := repeated_places(options)):
            raise UnusableError(
                f"{name}: number {places[1] + 1} repeats number {places[0] + 1}, {repeated(options[places[0]])!r}: "
                "send each once"
            )
    viewpoint = request.viewpoint or Viewpoint()
    texts = (
        *request.candidates,
        *request.justifications,
        *(text for other in others for text in (other.role, other.appearance, other.doing)),
        *(request.situation, request.question, viewpoint.description, viewpoint.place, viewpoint.role),
    )
    if max(map(len, texts)) > MAX_CHARACTERS:  # a border may have cut it already
        raise UnusableError(f"a text of more than {MAX_CHARACTERS} characters was given; shorten it")
    candidates, justifications = len(request.candidates), len(request.justifications)
    if not request.task and candidates and justifications not in {0, candidates}:
        raise UnusableError(
            f"justifications: {justifications} for {count_of(candidates, 'candidate')}; send one for each candidate, "
            "in any order, or none"
        )
    if needs_frames or (request.window is not None and request.window.frames):
        _check_frames(request.window, now_ns, max_frame_age_ns)


def without_old_frames(request: Request, now_ns: int, max_age_ns: int) -> Request:
    """Leave the frames of a request out where the newest is too old and its others are told: it needs none."""
    window = request.window
    if request.others is None or window is None or not window.frames:
        return request
    if now_ns - window.frames[-1].stamp_ns <= max_age_ns:
        return request
    return replace(request, window=replace(window, frames=()))


def _check_frames(window: Window | None, now_ns: int, max_age_ns: int) -> None:
    if window is None or not window.frames:
        raise UnusableError("there is no frame yet: start the camera, or tell who is there and what they do")
    age_ns = now_ns - window.frames[-1].stamp_ns
    if age_ns > max_age_ns:
        raise UnusableError(
            f"the newest frame is {age_ns / 1e9:.1f} s old and may be at most {max_age_ns / 1e9:.1f} s: "
            "see whether the camera still sends"
        )


# Tasks that ask for the chosen action.
ACTION_TASKS = ("eas", "action")
JUSTIFICATION_TASK = "justification"
SENSIBLE_TASK = "sensible"
TASKS = (*ACTION_TASKS, JUSTIFICATION_TASK, SENSIBLE_TASK)


def request_of(query: Query, window: Window | None = None, *, source: str = "") -> Request:
    """Convert a query to a request. The options are actions, whichever task is asked."""
    return Request(
        query_id=query.query_id,
        task=query.task,
        candidates=query.options,
        justifications=query.justifications,
        question=query.question,
        style=query.style or "default",
        others=query.others if query.others_given else None,
        viewpoint=query.viewpoint if query.viewpoint_given else None,
        source=source,
        window=window,
    )


def answer_of(decision: Decision, query: Query) -> Answer:
    """Extract the answer to the query's task. The task `sensible` has an answer even without a choice."""
    outcome, chosen = decision.outcome, _chosen_index(decision, query.task)
    if query.task == JUSTIFICATION_TASK and outcome is Outcome.ANSWERED and not chosen:
        outcome = Outcome.INVALID
    answered = outcome is Outcome.ANSWERED
    return Answer(
        stamp_ns=decision.stamp_ns,
        query_id=query.query_id,
        episode_id=query.episode_id,
        task=query.task,
        outcome=outcome,
        chosen=chosen if answered else (),
        probabilities=tuple(candidate.probability for candidate in decision.candidates)
        if query.task in ACTION_TASKS
        else (),
        reason="" if answered else decision.explanation or "no justifications were offered",
        provenance=decision.provenance,
    )


def _chosen_index(decision: Decision, task: str) -> tuple[int, ...]:
    if task == SENSIBLE_TASK:
        return decision.sensible
    index = decision.justification_index if task == JUSTIFICATION_TASK else decision.chosen_index
    return () if index is None else (index,)


# The candidates where no skill of the catalogue is marked as a repair.
DEFAULT_REPAIRS = (
    "Apologise for the error.",
    "Repeat what was said.",
    "Wait until the person has finished.",
    "Answer the person.",
    "Call a member of staff.",
)
_REMEMBERED = 256  # events


class RepairConfig(Config):
    """Whether error flags ask for a repair."""

    on_error_flags: bool = Field(
        default=False,
        description="whether an error flag that opens asks which repair fits; the decision names the flag",
    )


class RepairRequests:
    """Make one request per error. The request's query_id is the flag's event_id."""

    def __init__(self, catalogue: SkillCatalogue | None = None) -> None:
        self._seen: OrderedDict[str, None] = OrderedDict()
        self.use(catalogue)

    def use(self, catalogue: SkillCatalogue | None) -> None:
        """Offer the repairs of another catalogue from now on."""
        skills = catalogue.skills if catalogue else ()
        repairs = tuple(skill.action for skill in skills if skill.repair) or DEFAULT_REPAIRS
        may_do_nothing = catalogue is None or catalogue.may_do_nothing
        self._candidates = repairs + ("",) * may_do_nothing

    def request_for(self, flag: SocialFlag) -> Request | None:
        """Return the request of an error at its first flag; None for any other flag, and for a final one."""
        is_current = flag.state in {FlagState.OPENED, FlagState.UPDATED}
        if flag.polarity is not Polarity.ERROR or not is_current or flag.event_id in self._seen:
            return None
        self._seen[flag.event_id] = None
        if len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)
        return Request(
            query_id=flag.event_id,
            candidates=self._candidates,
            situation=f"{flag.rationale} {flag.correction}",
            others=(),  # what others do excludes no repair, so no frame is needed
        )


# The settings that change probabilities; house rules, skills and precedents are a site's own and are not among them.
_SCORING = {
    "veto_others", "avoid_others", "match_least", "ask_viewpoint", "possible_least", "orders", "precedents",
    "precedent_least", "style",
}  # fmt: skip


class SelectorConfig(Config):
    """Settings that change a decision; their hash is part of each decision."""

    when_unsure: WhenUnsure = Field(
        default=WhenUnsure.ASK_HUMAN,
        description="where several could be right: ask_human, do_nothing or best_effort",
        json_schema_extra=LIVE,
    )
    coverage: float = Field(
        default=0.6,
        gt=0,
        le=1,
        description="probability that the candidates which could be right hold together",
        json_schema_extra=LIVE,
    )
    veto_others: bool = Field(default=True, description="whether what another is already doing falls")
    avoid_others: bool = Field(
        default=True, description="whether likeness also keeps away from what others do, beside the veto"
    )
    match_least: float = Field(
        default=0.35, ge=-1, le=1, description="cosine from which a candidate is another's action"
    )
    rule_least: float = Field(
        default=0.5,
        ge=-1,
        le=1,
        description="cosine from which a house rule speaks of a situation",
        json_schema_extra=LIVE,
    )
    action_least: float = Field(
        default=0.66,
        ge=-1,
        le=1,
        description="cosine of content words from which a candidate is what a house rule names",
        json_schema_extra=LIVE,
    )
    ask_viewpoint: bool = Field(default=True, description="whether a model is asked what can be done from here")
    ask_norms: bool = Field(default=True, description="whether a model is asked which norms a candidate serves")
    possible_least: float = Field(
        default=0.2, ge=0, le=1, description="a model's probability below which a candidate cannot be done from here"
    )
    orders: int = Field(default=4, ge=1, le=64, description="orders in which a model is asked the options")
    precedents: int = Field(default=5, ge=0, le=50, description="precedents shown")
    precedent_least: float = Field(
        default=0.4, ge=-1, le=1, description="cosine from which a precedent is like the scene"
    )
    norm_order: tuple[Norm, ...] = Field(
        default=DEFAULT_ORDER,
        description="norm categories, from the one that never gives way to the one that always does",
        json_schema_extra=LIVE,
    )
    style: Literal["default", "egoplan", "exclusion"] = Field(default="default", description="how a model is asked")
    max_frame_age_s: float = Field(default=3.0, gt=0, le=600, description="older frames are not decided upon")
    pictures_may_leave: bool = Field(
        default=False, description="whether a model that does not run on this machine may be sent pictures"
    )
    reserve_ms: float = Field(
        default=50.0, ge=0, le=10_000, description="time before the deadline that a model does not get"
    )
    fall_back: bool = Field(
        default=True,
        description="whether the explanation ranks the candidates by similarity where the model fails",
    )

    calibration: str = Field(
        default="",
        description="file of `python -m calibration.verbs.selector`, or its bare name; `coverage` is then the "
        "share of cases in which the set holds the right candidate; empty for none",
        json_schema_extra=NAMES_FILE,
    )

    def scoring_sha256(self) -> str:
        """Compute the digest of the settings on which the probabilities depend."""
        return sha256_of(self.model_dump(mode="json", include=_SCORING))

    @field_validator("norm_order")
    @classmethod
    def _each_once(cls, order: tuple[Norm, ...]) -> tuple[Norm, ...]:
        if sorted(order) != sorted(Norm):
            raise ValueError(f"it names each of {', '.join(Norm)} once")
        return order


class RequestConfig(Config):
    """Which records a request needs, and how long a decision may take."""

    window_s: float = Field(default=15.0, gt=0, le=600, description="how much of the past is looked at")
    longest_s: float = Field(default=10.0, gt=0, le=600, description="time for a goal whose deadline is 0 or -1")
    sources: Annotated[tuple[str, ...], AfterValidator(check_sources)] = Field(
        default=(), description=f"what a query without a deadline waits for, of {', '.join(SOURCES)}; () to ask at once"
    )
    frames_every_s: float = Field(default=1.0, gt=0, le=60, description="period of kept frames and of presence")
    repair: RepairConfig = RepairConfig()
