"""Decide what the robot should do next: one request in, one decision out."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from action_selector import prompts
from action_selector.candidates import Candidate, SkillCatalogue, of_request, propose
from action_selector.choose import norms
from action_selector.choose.calibration import SelectorCalibration
from action_selector.choose.candidate_scoring import ReadScene, ScoringEvidence
from action_selector.choose.chooser import ChoiceCase, Chooser, DecisionBuilder
from action_selector.house_rules import HouseRule, HouseRules, action_likeness, applicable_rules, in_favour
from action_selector.observation import (
    Observation,
    describe_other,
    from_engine,
    from_people,
    observation_given,
    people_in,
)
from action_selector.request import Request, SelectorConfig, UnusableError, check, without_old_frames
from action_selector.retrieval import Precedent, PrecedentIndex, SentenceEncoding, encode_ahead
from action_selector.vetoes import Vetoed, ask_viewpoint, find_vetoes
from norm_core import __version__
from norm_core.engines.engine import Engine
from norm_core.engines.errors import EngineError, EngineFailedError, PastDeadlineError
from norm_core.engines.request_context import Deadline, SegmentTimer
from norm_core.engines.talk_reader import TalkReader
from norm_core.records.decision import Decision, Duplicable, OtherAgent
from norm_core.records.json_codec import sha256_of
from norm_core.records.outcome import Outcome
from norm_core.runtime.time import NS_PER_MS, s_to_ns

# Outcomes of an observation after which a query has no answer: a reply in another form is the model's own.
_UNANSWERED = {Outcome.FAILED, Outcome.TIMED_OUT, Outcome.REFUSED}
STEPS = ("observe", "veto", "retrieve", "choose", "justify", "explain")


class Decider:
    """Decide by similarity alone, or with a model. Requests are independent of each other.

    A decision takes six steps: observe others and viewpoint; veto candidates; retrieve precedents; choose among the
    rest; justify; explain. Each step returns what it finds; only the encoder's cache outlives a request.
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
        calibration: SelectorCalibration | None = None,
        reader: TalkReader | None = None,
    ) -> None:
        self.config = config or SelectorConfig()
        own = self.config.sha256(leave_out=("calibration",))  # its contents count, wherever it lies
        site = [part.sha256() for part in (catalogue, rules, calibration) if part]
        site += [reader.sha256] if reader else []
        self._config_sha256 = sha256_of([own, *site]) if site else own
        self._sentences, self._engine, self._calibration = sentences, engine, calibration
        self._reader = reader
        self.reader_fault = ""  # why the latest decision does without the reader
        self._chooser = Chooser(sentences, self.config, engine, calibration)
        self._catalogue, self._rules, self._precedents = catalogue, rules or HouseRules(), precedents

    def replaced(self, config: SelectorConfig, catalogue: SkillCatalogue | None, rules: HouseRules | None) -> "Decider":
        """Return a decider with these settings, skills and rules, and with the models and precedents of this one."""
        return Decider(
            self._sentences,
            config,
            engine=self._engine,
            catalogue=catalogue,
            rules=rules,
            precedents=self._precedents,
            calibration=self._calibration,
            reader=self._reader,
        )

    @property
    def shows_pictures(self) -> bool:
        """Whether the model may receive images. True without a model, because nothing is withheld then."""
        return self._engine is None or self._engine.model_info.on_this_machine or self.config.pictures_may_leave

    def reason_withheld(self, request: Request) -> str:
        """Explain why a request's images are withheld from the model. Empty where they are not."""
        model_info = self._engine.model_info if self._engine else None
        if model_info is None or self.shows_pictures or not prompts.pictures(request, model_info.max_images):
            return ""
        return f"without its pictures, as the model {model_info.model} does not run on this machine"

    def prepare(self) -> None:
        """Load the encoder and the reader, and encode the rules, skills and norms that every request uses."""
        situations = (rule.situation for rule in self._rules.rules)
        skills = [skill.action for skill in self._catalogue.skills] if self._catalogue else []
        named = [rule.never for rule in self._rules.hard]
        named += [text for rule in self._rules.rules for text in (rule.do, rule.dont)]
        encode_ahead(self._sentences, ("", *norms.norm_texts(), *skills, *situations))
        action_likeness(self._sentences, skills or [""], named)
        if self._reader:
            with suppress(EngineFailedError):  # each decision without it says so
                self._reader.load()

    def decide(self, request: Request, deadline: Deadline, on_step: Callable[[str], None] | None = None) -> Decision:
        """Decide on any request. `on_step` receives the name of each step as it starts."""
        timer = SegmentTimer(deadline, STEPS[0])

        def enter(step: str) -> None:
            timer.enter_segment(step)
            if on_step:
                on_step(step)

        builder, self.reader_fault = DecisionBuilder(outcome=Outcome.FAILED), ""
        request = without_old_frames(request, deadline.clock.now_ns(), s_to_ns(self.config.max_frame_age_s))
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
        return builder.decision(
            request,
            decided_ns=decided_ns,
            deadline_ns=deadline.deadline_ns,
            model_info=self._engine.model_info if self._engine and builder.scores else None,
            latency=timer.latency(decided_ns),
            config_sha256=self._config_sha256,
            software_version=__version__,
        )

    def _decide(self, request: Request, deadline: Deadline, enter: Callable[[str], None]) -> DecisionBuilder:
        enter("observe")
        people = self._people_of(request, deadline)
        for_model = self._deadline_of_model(deadline)
        observation = self._observe(request, people, for_model)
        if request.task and observation.source == "engine" and observation.outcome in _UNANSWERED:
            return DecisionBuilder(outcome=observation.outcome, explanation=f"nobody was seen: {observation.reason}")
        offered = self._candidates(request, observation, for_model)
        scene = " ".join(filter(None, (request.situation, observation.viewpoint.description)))
        actions = (candidate.action for candidate in _without_repeats(offered))
        doings = (describe_other(other) for other in observation.others)
        encode_ahead(self._sentences, (*actions, *doings, scene, *request.justifications))
        enter("veto")
        rules = applicable_rules(self._rules.rules, scene, self._sentences, self.config.rule_least)
        vetoed = find_vetoes(
            offered,
            observation,
            rules=rules,
            house=self._rules,
            sentences=self._sentences,
            config=self.config,
        )
        deadline.check()
        enter("retrieve")
        precedents = self._retrieved(request, scene, len(rules))
        deadline.check()
        enter("choose")
        evidence = replace(
            _evidence(scene, observation if self.config.avoid_others else None, rules, precedents),
            spoken=prompts.speech(request),
        )
        # The reader reads where words tell what happens; likeness tells better what others do (EgoGapBench).
        reader = self._reader if request.situation.strip() or evidence.spoken else None
        for_reader = deadline.from_now()
        if deadline.deadline_ns is not None:  # half of what is left: likeness decides in the rest if the reader is late
            for_reader.deadline_ns = (for_reader.asked_ns + deadline.deadline_ns) // 2
        case = ChoiceCase(
            request=request,
            observation=observation,
            candidates=_without_repeats(offered),
            evidence=evidence,
            read=ReadScene(reader, evidence, for_reader) if reader else None,
            prefix=prompts.scene(request, observation, rules, precedents, self._most_images) if self._engine else None,
            deadline=for_model,
        )
        builder = self._choose(case, vetoed)
        if builder.chosen is not None:
            enter("justify")
            builder = self._chooser.add_justification(case, builder)
        builder = self._chooser.add_norms(case, builder)
        enter("explain")
        builder = builder.with_explanation(observation, self._why(case, builder, rules)).with_repeats(offered)
        reason = self.reason_withheld(request)
        explanation = f"{reason[0].upper()}{reason[1:]}: {builder.explanation}" if reason else builder.explanation
        if case.read and case.read.fault:
            self.reader_fault = case.read.fault
            explanation = f"Without the reader: {explanation}"
        return replace(builder, explanation=explanation)

    def _choose(self, case: ChoiceCase, vetoed: dict[int, Vetoed]) -> DecisionBuilder:
        """Let a model veto what cannot be done from here, and choose among the rest."""
        failed = None
        if self._engine is not None and case.prefix is not None and self.config.ask_viewpoint:
            standing = [candidate for candidate in case.candidates if candidate.index not in vetoed]
            off, failed = ask_viewpoint(
                self._engine,
                case.prefix,
                standing,
                case.deadline,
                role=case.observation.viewpoint.role,
                least=self.config.possible_least,
            )
            vetoed = {**vetoed, **off}
        return self._chooser.choose(case, vetoed, failed)

    def _people_of(self, request: Request, deadline: Deadline) -> tuple[OtherAgent, ...]:
        """Return the tracked people of a request that can be answered. Raises UnusableError for any other."""
        now_ns, max_age_ns = deadline.clock.now_ns(), s_to_ns(self.config.max_frame_age_s)
        people = from_people(people_in(request.window, now_ns, max_age_ns))
        needs_frames = request.others is None and not people
        check(request, deadline, max_frame_age_ns=max_age_ns, needs_frames=needs_frames)
        deadline.check()
        if request.style not in prompts.STYLES:
            raise UnusableError(f"the style {request.style!r} is unknown: one of {', '.join(prompts.STYLES)}")
        return people

    def _why(self, case: ChoiceCase, builder: DecisionBuilder, rules: tuple[HouseRule, ...]) -> str:
        """Describe what supports the choice: a house rule, or otherwise the evidence."""
        if builder.chosen is None:
            return ""
        favour = in_favour(builder.texts[builder.chosen], rules, self._sentences, self.config.action_least)
        return favour or self._chooser.describe_grounds(case, builder)

    @property
    def _most_images(self) -> int | None:
        return self._engine.model_info.image_limit(self.config.pictures_may_leave) if self._engine else 0

    def _deadline_of_model(self, deadline: Deadline) -> Deadline:
        """The model's time ends early enough to answer with what is known without it."""
        for_model = deadline.from_now()
        if deadline.deadline_ns is not None:
            for_model.deadline_ns = deadline.deadline_ns - round(self.config.reserve_ms * NS_PER_MS)
        return for_model

    def _observe(self, request: Request, people: tuple[OtherAgent, ...], deadline: Deadline) -> Observation:
        """Observe the scene: from the request, otherwise with a model, otherwise from tracked people."""
        observation = observation_given(request.others, request.viewpoint)
        if request.others is not None:
            return observation
        tracked = replace(observation, others=people, source="people") if people else observation
        engine = self._engine
        if engine is None or not engine.model_info.generates or not prompts.pictures(request, self._most_images):
            return tracked
        seen = from_engine(engine, prompts.observation_prompt(request, self._most_images, people=people), deadline)
        if seen.outcome is not Outcome.ANSWERED and people:
            return replace(tracked, outcome=seen.outcome, reason=seen.reason)
        return replace(seen, viewpoint=request.viewpoint) if request.viewpoint is not None else seen

    def _candidates(self, request: Request, observation: Observation, deadline: Deadline) -> tuple[Candidate, ...]:
        options = request.candidates
        if not options and self._catalogue is None and self._engine is not None and self._engine.model_info.generates:
            prompt = prompts.observation_prompt(request, self._most_images, "propose_actions")
            options, outcome, reason = propose(self._engine, prompt, deadline)
            if outcome is not Outcome.ANSWERED:
                raise UnusableError(f"no candidates were given, and the model proposed none: {reason}")
        candidates = of_request(options, self._catalogue, observation.viewpoint, request.facts)
        if not candidates:
            raise UnusableError("there are no candidates: give some, or load a skill catalogue")
        return candidates

    def _retrieved(self, request: Request, scene: str, rule_count: int) -> list[Precedent]:
        """Retrieve precedents, fewer where house rules take their place."""
        room = max(0, self.config.precedents - rule_count)
        if self._precedents is None or not room:
            return []
        matches = self._precedents.query(scene, self._sentences, not_of=request.source, count=room)
        return [precedent for precedent, cosine in matches if cosine >= self.config.precedent_least]


def _without_repeats(offered: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
    return tuple(candidate for candidate in offered if candidate.same_as == candidate.index)


def _evidence(
    scene: str,
    observation: Observation | None,
    rules: tuple[HouseRule, ...],
    precedents: list[Precedent],
) -> ScoringEvidence:
    """Collect evidence: applicable house rules, which outrank precedents, otherwise the precedents."""
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
