"""Decide what the robot should do next: one request in, one decision out."""

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace
from itertools import chain

from action_selector import prompts
from action_selector.candidates import Candidate, SkillCatalogue, build_candidates
from action_selector.choose import norms
from action_selector.choose.candidate_scoring import ReadScene, ScoringEvidence
from action_selector.choose.chooser import ChoiceCase, Chooser, DecisionBuilder
from action_selector.house_rules import HouseRule, HouseRules, compare_actions, find_applicable_rules, find_support
from action_selector.observation import (
    Observation,
    convert_people,
    describe_other,
    find_people,
    observe_with_model,
    read_observation,
)
from action_selector.request import Request
from action_selector.request_limits import UnusableError, check_request, drop_old_frames
from action_selector.retrieval import Precedent, PrecedentIndex, SentenceEncoding, encode_ahead
from action_selector.selector_config import SelectorConfig
from action_selector.vetoes import Vetoed, ask_viewpoint, find_vetoes
from norm_core import __version__
from norm_core.engines.engine import Engine
from norm_core.engines.errors import EngineError, EngineFailedError, PastDeadlineError
from norm_core.engines.reply import Scores
from norm_core.engines.request_context import Deadline, SegmentTimer
from norm_core.engines.talk_reader import TalkReader
from norm_core.records.decision import Decision, Duplicable, OtherAgent
from norm_core.records.json_codec import sha256_of
from norm_core.records.outcome import Outcome
from norm_core.records.record import record
from norm_core.runtime.time import NS_PER_MS, s_to_ns

# Outcomes of an observation after which a query has no answer. A reply in another form is the model's own fault.
_UNANSWERED = {Outcome.FAILED, Outcome.TIMED_OUT, Outcome.REFUSED}
# The steps of a decision, which name the segments of its latency.
STEPS = ("observe", "retrieve", "veto", "choose", "justify", "explain")


@record
class DecidedRequest:
    """A decision, and why it was made without the talk reader; empty where it was not."""

    decision: Decision
    reader_fault: str = ""


class Decider:
    """Decide by similarity alone, or with a model. Requests are independent of each other.

    A decision takes six steps: observe others and viewpoint; retrieve rules and precedents; veto candidates; choose
    among the rest; justify; explain. Each step returns its result. Only the cache of the encoder outlives a request.
    """

    def __init__(
        self,
        sentences: SentenceEncoding,
        config: SelectorConfig | None = None,
        *,
        engine: Engine | None = None,
        catalogue: SkillCatalogue | None = None,
        rules: HouseRules | None = None,
        precedents: PrecedentIndex | None = None,
        reader: TalkReader | None = None,
    ) -> None:
        self.config = config or SelectorConfig()
        settings_sha256 = self.config.sha256()
        parts = [part.sha256() for part in (catalogue, rules) if part]
        parts += [reader.sha256] if reader else []
        self._config_sha256 = sha256_of([settings_sha256, *parts]) if parts else settings_sha256
        self._sentences = sentences
        self._engine = engine
        self._reader = reader
        self._chooser = Chooser(sentences, self.config, engine)
        self._catalogue = catalogue
        self._rules = rules or HouseRules()
        self._precedents = precedents

    def with_settings(
        self, config: SelectorConfig, catalogue: SkillCatalogue | None, rules: HouseRules | None
    ) -> "Decider":
        """Return a decider with these settings, skills and rules, and with the models and precedents of this one."""
        return Decider(
            self._sentences,
            config,
            engine=self._engine,
            catalogue=catalogue,
            rules=rules,
            precedents=self._precedents,
            reader=self._reader,
        )

    @property
    def shows_pictures(self) -> bool:
        """Whether the model may receive images. True without a model, because nothing is withheld then."""
        return self._engine is None or self._engine.model_info.on_this_machine or self.config.pictures_may_leave

    def explain_withheld(self, request: Request) -> str:
        """Explain why a request's images are withheld from the model. Empty where they are not."""
        model_info = self._engine.model_info if self._engine else None
        if model_info is None or self.shows_pictures or not prompts.select_pictures(request, model_info.max_images):
            return ""
        return f"without its pictures, as the model {model_info.model} does not run on this machine"

    def prepare(self) -> None:
        """Load the encoder and the reader, and encode the rules, skills and norms that every request uses."""
        situations = (rule.situation for rule in self._rules.rules)
        skills = [skill.action for skill in self._catalogue.skills] if self._catalogue else []
        rule_actions = [rule.never for rule in self._rules.hard]
        rule_actions += [text for rule in self._rules.rules for text in (rule.do, rule.dont)]
        norm_texts = chain.from_iterable(norms.EXAMPLES.values())
        encode_ahead(self._sentences, ("", *norm_texts, *skills, *situations))
        compare_actions(self._sentences, skills or [""], rule_actions)
        if self._reader:
            # Each decision without the reader says so.
            with suppress(EngineFailedError):
                self._reader.load()

    def decide(
        self, request: Request, deadline: Deadline, on_step: Callable[[str], None] | None = None
    ) -> DecidedRequest:
        """Decide on any request. `on_step` receives the name of each step as it starts."""
        timer = SegmentTimer(deadline, STEPS[0])

        def enter(step: str) -> None:
            timer.enter_segment(step)
            if on_step:
                on_step(step)

        builder = DecisionBuilder(outcome=Outcome.FAILED)
        request = drop_old_frames(request, deadline.clock.now_ns(), s_to_ns(self.config.max_frame_age_s))
        try:
            builder = self._decide(request, deadline, enter)
            deadline.check()
        except UnusableError as fault:
            builder = DecisionBuilder(outcome=Outcome.INVALID, explanation=str(fault))
        except PastDeadlineError as fault:
            builder = replace(builder, outcome=Outcome.TIMED_OUT, explanation=str(fault)).without_choice()
        except EngineError as fault:
            builder = DecisionBuilder(outcome=fault.outcome, explanation=str(fault))
        decided_ns = deadline.clock.now_ns()
        decision = builder.build(
            request,
            decided_ns=decided_ns,
            deadline_ns=deadline.deadline_ns,
            model_info=self._engine.model_info if self._engine and builder.scores else None,
            latency=timer.latency(decided_ns),
            config_sha256=self._config_sha256,
            software_version=__version__,
        )
        return DecidedRequest(decision=decision, reader_fault=builder.reader_fault)

    def _decide(self, request: Request, deadline: Deadline, enter: Callable[[str], None]) -> DecisionBuilder:
        enter("observe")
        people = self._check_people(request, deadline)
        model_deadline = self._reserve_time(deadline)
        observation = self._observe(request, people, model_deadline)
        if request.task and observation.source == "engine" and observation.outcome in _UNANSWERED:
            return DecisionBuilder(outcome=observation.outcome, explanation=f"nobody was seen: {observation.reason}")
        offered = self._collect_candidates(request, observation)
        candidates = tuple(candidate for candidate in offered if candidate.same_as == candidate.index)
        scene = " ".join(filter(None, (request.situation, observation.viewpoint.description)))
        actions = (candidate.action for candidate in candidates)
        doings = (describe_other(other) for other in observation.others)
        encode_ahead(self._sentences, (*actions, *doings, scene, *request.justifications))
        enter("retrieve")
        rules = find_applicable_rules(self._rules.rules, scene, self._sentences, self.config.rule_threshold)
        precedents = self._retrieve_precedents(request, scene, len(rules))
        deadline.check()
        evidence = replace(
            _collect_evidence(scene, observation if self.config.avoid_others else None, rules, precedents),
            spoken=prompts.list_speech(request),
        )
        # The reader needs words about the scene. Where only others act, similarity is better (EgoGapBench).
        reader = self._reader if request.situation.strip() or evidence.spoken else None
        prefix = None
        if self._engine:
            prefix = prompts.build_scene_prompt(request, observation, rules, precedents, self._max_images)
        case = ChoiceCase(
            request=request,
            observation=observation,
            candidates=candidates,
            evidence=evidence,
            read=ReadScene(reader, evidence, _halve(deadline)) if reader else None,
            prefix=prefix,
            deadline=model_deadline,
        )
        enter("veto")
        vetoed = find_vetoes(
            offered, observation, rules=rules, house=self._rules, sentences=self._sentences, config=self.config
        )
        impossible, failed = self._veto_impossible(case, vetoed)
        vetoed |= impossible
        deadline.check()
        enter("choose")
        builder = self._chooser.choose(case, vetoed, failed)
        if builder.chosen is not None:
            enter("justify")
            builder = self._chooser.add_justification(case, builder)
        enter("explain")
        why = self._explain_choice(case, builder, rules)
        builder = builder.with_explanation(observation, why).with_repeats(offered)
        reason = self.explain_withheld(request)
        explanation = f"{reason[0].upper()}{reason[1:]}: {builder.explanation}" if reason else builder.explanation
        reader_fault = case.read.fault if case.read else ""
        if reader_fault:
            explanation = f"Without the reader: {explanation}"
        return replace(builder, explanation=explanation, reader_fault=reader_fault)

    def _veto_impossible(self, case: ChoiceCase, vetoed: Collection[int]) -> tuple[dict[int, Vetoed], Scores | None]:
        """Let a model veto what cannot be done from here. Returns also its first reply without an answer."""
        if self._engine is None or case.prefix is None or not self.config.ask_viewpoint:
            return {}, None
        return ask_viewpoint(
            self._engine,
            case.prefix,
            [candidate for candidate in case.candidates if candidate.index not in vetoed],
            case.deadline,
            role=case.observation.viewpoint.role,
            threshold=self.config.possible_threshold,
        )

    def _check_people(self, request: Request, deadline: Deadline) -> tuple[OtherAgent, ...]:
        """Check a request, and return its tracked people. Raises UnusableError if it cannot be answered."""
        now_ns, max_age_ns = deadline.clock.now_ns(), s_to_ns(self.config.max_frame_age_s)
        people = convert_people(find_people(request.window, now_ns, max_age_ns))
        needs_frames = request.others is None and not people and self.config.has_camera
        check_request(request, deadline, max_frame_age_ns=max_age_ns, needs_frames=needs_frames)
        deadline.check()
        if request.style not in prompts.STYLES:
            raise UnusableError(f"the style {request.style!r} is unknown: send one of {', '.join(prompts.STYLES)}")
        return people

    def _explain_choice(self, case: ChoiceCase, builder: DecisionBuilder, rules: tuple[HouseRule, ...]) -> str:
        """Describe what supports the choice: a house rule, or otherwise the evidence."""
        if builder.chosen is None:
            return ""
        support = find_support(builder.texts[builder.chosen], rules, self._sentences, self.config.action_threshold)
        return support or self._chooser.describe_grounds(case, builder)

    @property
    def _max_images(self) -> int | None:
        return self._engine.model_info.limit_images(self.config.pictures_may_leave) if self._engine else 0

    def _reserve_time(self, deadline: Deadline) -> Deadline:
        """Return the model's deadline, which leaves time to answer without it."""
        if deadline.deadline_ns is None:
            return deadline.from_now()
        return deadline.from_now(deadline.deadline_ns - round(self.config.reserve_ms * NS_PER_MS))

    def _observe(self, request: Request, people: tuple[OtherAgent, ...], deadline: Deadline) -> Observation:
        """Observe the scene: from the request, otherwise with a model, otherwise from tracked people."""
        observation = read_observation(request.others, request.viewpoint, has_camera=self.config.has_camera)
        if request.others is not None:
            return observation
        tracked = replace(observation, others=people, source="people") if people else observation
        engine = self._engine
        if engine is None or not engine.model_info.generates or not prompts.select_pictures(request, self._max_images):
            return tracked
        prompt = prompts.build_observation_prompt(request, self._max_images, people)
        seen = observe_with_model(engine, prompt, deadline)
        if seen.outcome is not Outcome.ANSWERED and people:
            return replace(tracked, outcome=seen.outcome, reason=seen.reason)
        return replace(seen, viewpoint=request.viewpoint) if request.viewpoint is not None else seen

    def _collect_candidates(self, request: Request, observation: Observation) -> tuple[Candidate, ...]:
        """Collect the candidates of the request or the catalogue. Raises UnusableError if there are none."""
        candidates = build_candidates(request.candidates, self._catalogue, observation.viewpoint, request.facts)
        if not candidates:
            raise UnusableError("there are no candidates: give some, or load a skill catalogue")
        return candidates

    def _retrieve_precedents(self, request: Request, scene: str, rule_count: int) -> list[Precedent]:
        """Retrieve precedents, fewer where house rules take their place."""
        count = max(0, self.config.precedents - rule_count)
        if self._precedents is None or not count:
            return []
        matches = self._precedents.query(scene, self._sentences, not_of=request.source, count=count)
        return [precedent for precedent, cosine in matches if cosine >= self.config.precedent_threshold]


def _halve(deadline: Deadline) -> Deadline:
    """Return a deadline for half of the remaining time, so that similarity can still decide in the other half."""
    if deadline.deadline_ns is None:
        return deadline.from_now()
    return deadline.from_now((deadline.clock.now_ns() + deadline.deadline_ns) // 2)


def _collect_evidence(
    scene: str,
    observation: Observation | None,
    rules: tuple[HouseRule, ...],
    precedents: list[Precedent],
) -> ScoringEvidence:
    """Collect the texts to compare with. Applicable house rules outrank the precedents."""
    advised = [rule.do for rule in rules] if rules else [precedent.action for precedent in precedents]
    return ScoringEvidence(
        scene=scene,
        others_do=tuple(
            describe_other(other)
            for other in (observation.others if observation else ())
            if describe_other(other) and other.duplicable is not Duplicable.YES
        ),
        advised=tuple(filter(None, advised)),
        advised_against=tuple(rule.dont for rule in rules if rule.dont),
    )
