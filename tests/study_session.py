"""A generated study session: ten minutes of a monitor in a library, as records, as a log and as a bag."""

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from norm_core.bags.writer import BagWriter
from norm_core.records.decision import CandidateJudgement, Decision, Norm, Veto
from norm_core.records.flag import Attribute, Evidence, FlagState, Polarity, Severity, SocialFlag, Tier
from norm_core.records.outcome import Outcome
from norm_core.records.presence import Face, Presence, PresenceState
from norm_core.records.provenance import LatencySegment, Provenance
from norm_core.records.speech import Speaker, Utterance
from norm_core.runtime.time import NS_PER_S, ReplayClock, s_to_ns
from norm_monitor.assessment.threshold_table import Cue, ThresholdTable
from norm_monitor.encounters.generate import AUDIO, CAMERA, make_header, make_message
from norm_monitor.session_log.recording import make_bag_ref
from norm_monitor.session_log.schema import BagRef, Label, Participant, SessionInfo
from norm_monitor.session_log.writer import StudyLog

START_NS = 1_767_225_600_000_000_000
PARTICIPANTS = (Participant(pseudonym="P-7K3MX", person_ids=("person_1",)),)
_TALK = """
Good morning. I am looking for a book about whales.|Good morning. Books about whales are on the second floor.
Is there a quiet place to read?|The reading room is beside the window, to your left.
And how long are you open today?|We are open until eight in the evening.
No, I meant the reading room.|I am sorry. The reading room closes at seven.
Could you print a page for me?|I cannot print. The desk at the entrance can.
I said I need it printed in colour.|The desk at the entrance prints in colour.
My grandmother used to bring me here.|What did you read together?
Mostly stories about the sea. She died last year.|Great! We have many stories about the sea.
You are not listening.|You are right, I missed that. I am sorry about your grandmother.
Wait, let me write that down.|Of course. Tell me when you are ready.
什么时候关门？|我们晚上八点关门。
Thank you for your help.|You are welcome. Good luck with your book.
""".strip().splitlines()
# The possible flags after each of these, in order.
_CUES = """
greets response_delay offers_help
robot_cuts_in waits_for_end recalls_name
no_response response_delay suitable_words
user_repair suitable_words misunderstood
robot_repeats response_delay talks_over_user
unsuitable_words misunderstood no_apology
ignores_looking_away follow_up_question response_delay
cheerful_after_bad_news discloses cheerful_after_bad_news
admits_error apologised_for sympathises
waits_for_end protest_floor talks_over_user
robot_repeats response_delay no_response
says_goodbye accepts_thanks response_delay
""".strip().splitlines()
# What flags of these cues measure first, and what more is drawn: the name, the threshold and its unit.
_MEASURES: dict[str, list[tuple[str, float, str]]] = {
    "response_delay": [("delay_s", 2, "s"), ("after_statement_s", 6, "s")],
    "robot_cuts_in": [
        ("voice_active_s", 0.2, "s"), ("talks_on_s", 0.3, "s"), ("resumes_s", 0.5, "s"), ("pause_s", 1.5, "s"),
    ],
    "waits_for_end": [("pause_s", 1.4, "s"), ("long_s", 2.4, "s"), ("most_s", 12, "s")],
    "no_response": [("silence_s", 5, "s"), ("after_statement_s", 6, "s")],
    "user_repair": [("words", 8, "words"), ("within_s", 3, "s")],
    "misunderstood": [("words", 14, "words"), ("within_s", 5, "s")],
    "robot_repeats": [("similarity", 0.85, ""), ("turns", 3, "turns"), ("words", 4, "words")],
    "no_apology": [("certain", 0.6, "")],
    "ignores_looking_away": [("away_s", 3, "s"), ("talks_on_s", 4, "s")],
    "follow_up_question": [("similarity", 0.3, "")],
    "apologised_for": [("within_s", 25, "s")],
    "protest_floor": [("words", 14, "words"), ("within_s", 5, "s")],
}  # fmt: skip
_TOPICS = {Utterance: "utterances", SocialFlag: "flags", Presence: "presence", Decision: "decisions"}


def records(
    *, length_s: float = 600, flags: int = 34, persons: Sequence[str] = ("person_1",)
) -> Iterator[tuple[int, Any]]:
    """Yield the events of the session with their times, in order of availability. Persons speak in turn."""
    chance = random.Random(7)
    talk = list(_talk(chance, length_s, persons))
    events: list[tuple[int, Any]] = [(said.end_ns, said) for said in talk]
    events += [(flag.decision_ns, flag) for flag in _flags(chance, talk, flags)]
    events += [(seen.stamp_ns, seen) for seen in _presence(chance, length_s)]
    events += [(decision.decided_ns, decision) for decision in _decisions(length_s)]
    yield from sorted(events, key=lambda pair: pair[0])


def info(session: str = "S07", **changes: Any) -> SessionInfo:
    """Return the description of a session; `changes` replace its fields."""
    table, digest = ThresholdTable.shipped(), "5f1d7a84db00d2fce00b31a7fc73224f" * 2
    about = SessionInfo(
        study="library-2026", session=session, condition="apology", participants=PARTICIPANTS, robot="generated robot",
        site="generated library", locale="en", bag=BagRef(name="library_s07", sha256=digest, offset_ns=START_NS),
        start_ns=START_NS, end_ns=START_NS + 600 * NS_PER_S, retention_days=365, table_version=table.version,
        config_sha256=table.sha256(), software_version="0.1.0",
    )  # fmt: skip
    return replace(about, **changes)


def write_log(
    folder: Path, *, session: str = "S07", condition: str = "apology", length_s: float = 600, flags: int = 34,
    bag: BagRef | None = None, participants: tuple[Participant, ...] = PARTICIPANTS,
) -> None:  # fmt: skip
    """Write the session as a sealed log. `bag` is the one that it was recorded in, if there is one."""
    clock = ReplayClock(START_NS)
    about = info(session, condition=condition, end_ns=START_NS + s_to_ns(length_s), participants=participants)
    about = replace(about, bag=bag) if bag else about
    with StudyLog.begin(folder, about, clock) as log:
        for known_ns, entry in records(length_s=length_s, flags=flags, persons=_ids(participants)):
            clock.advance_to(max(known_ns, clock.now_ns()))
            log.append(entry, known_ns)
        log.close(sealed=True)


def write_bag(
    bag: Path, *, length_s: float = 60, flags: int = 4, participants: tuple[Participant, ...] = PARTICIPANTS
) -> BagRef:
    """Write what the nodes publish in the session that write_log writes of these values, with pictures and a tone."""
    tone = (2000 * np.sin(np.arange(16_000) * 0.1)).astype("<i2").view(np.uint8)
    jpeg = cv2.imencode(".jpg", np.full((240, 320, 3), 180, np.uint8))[1].reshape(-1)
    with BagWriter(bag) as writer:
        for second in range(int(length_s)):
            stamp_ns = START_NS + second * NS_PER_S
            picture = {"header": make_header(stamp_ns, "camera"), "format": "jpeg", "data": jpeg}
            writer.write_message(CAMERA, make_message("sensor_msgs/msg/CompressedImage", picture), stamp_ns)
            data = make_message("audio_common_msgs/msg/AudioData", {"data": tone})
            sound = {"header": make_header(stamp_ns, "microphone"), "audio": data}
            writer.write_message(AUDIO, make_message("audio_common_msgs/msg/AudioDataStamped", sound), stamp_ns)
        for known_ns, entry in records(length_s=length_s, flags=flags, persons=_ids(participants)):
            writer.write(f"/tactful/{_TOPICS[type(entry)]}", entry, known_ns)
    return make_bag_ref(bag, START_NS)


def label(at_s: float, coder: str, *, length_s: float = 1, origin_ns: int = START_NS, **changes: Any) -> Label:
    """Return the label of an error of engagement; `changes` replace its fields."""
    start_ns = origin_ns + s_to_ns(at_s)
    values = {"polarity": Polarity.ERROR, "attribute": Attribute.ENGAGEMENT} | changes
    return Label(start_ns=start_ns, end_ns=start_ns + s_to_ns(length_s), coder=coder, **values)


def _ids(participants: Sequence[Participant]) -> tuple[str, ...]:
    return tuple(person_id for participant in participants for person_id in participant.person_ids)


def _talk(chance: random.Random, length_s: float, persons: Sequence[str]) -> Iterator[Utterance]:
    at_s, index = 4.0, 0
    while at_s < length_s - 12:
        for speaker, text in zip((Speaker.USER, Speaker.ROBOT), _TALK[index % len(_TALK)].split("|"), strict=True):
            takes_s = 0.5 + 0.32 * max(len(text.split()), len(text) / 6)
            start_ns, end_ns = START_NS + s_to_ns(at_s), START_NS + s_to_ns(at_s + takes_s)
            yield Utterance(
                stamp_ns=start_ns, utterance_id=f"u{index}-{speaker.value}", speaker=speaker,
                speaker_id=persons[index % len(persons)] if speaker is Speaker.USER else "", text=text,
                locale="en" if text.isascii() else "zh", start_ns=start_ns, end_ns=end_ns,
                confidence=round(chance.uniform(0.7, 0.98), 3), source_topic="/tactful/utterances",
            )  # fmt: skip
            at_s += takes_s + chance.choice((0.3, 0.6, 0.9, 1.4, 3.2, 5.5))
        at_s += chance.uniform(1, 7)
        index += 1


def _flags(chance: random.Random, talk: list[Utterance], number: int) -> Iterator[SocialFlag]:
    table = ThresholdTable.shipped()
    requests = [said for said in talk if said.speaker is Speaker.USER]
    for index in range(number if requests else 0):
        said = requests[index * len(requests) // number]
        cue_id = chance.choice(_CUES[int(said.utterance_id[1:].split("-")[0]) % len(_CUES)].split())
        yield _flag(chance, table, table.cues[cue_id], cue_id, said, index)


def _flag(  # noqa: PLR0917
    chance: random.Random, table: ThresholdTable, cue: Cue, cue_id: str, said: Utterance, index: int
) -> SocialFlag:
    instant = cue.polarity is Polarity.COMPETENCE and index % 3 == 0
    length_ns = 0 if instant else s_to_ns(round(chance.uniform(0.6, 7), 3))
    onset_ns = said.end_ns + index % 4 * 100_000_000
    decided_ns = onset_ns + length_ns + 40_000_000
    facts = [_fact(chance, *measure, said) for measure in _MEASURES.get(cue_id, [])][:1]
    severity = cue.severity
    if cue.polarity is Polarity.ERROR and chance.random() < 0.3:
        severity = chance.choice((Severity.MAJOR, Severity.SEVERE))
    return SocialFlag(
        stamp_ns=decided_ns, event_id=f"{index:04x}{chance.getrandbits(48):012x}", state=FlagState.CLOSED,
        polarity=cue.polarity, attributes=cue.attributes, failure=cue.failure, severity=severity,
        probability=round(min(0.97, max(0.0, cue.probability + chance.uniform(-0.08, 0.2))), 3), onset_ns=onset_ns,
        offset_ns=onset_ns + length_ns, decision_ns=decided_ns, tier=chance.choice((Tier.CUE, Tier.CUE, Tier.FUSED)),
        cue_id=cue_id, person_id=said.speaker_id,
        evidence=tuple(facts) or (_fact(chance, "match of wording", 1.0, "", said),),
        rationale=f"The person said “{said.text}”; what followed was seen as: {cue_id.replace('_', ' ')}.",
        correction=cue.correction,
        provenance=Provenance(
            window_digest=f"{chance.getrandbits(256):064x}", config_sha256=table.sha256(), software_version="0.1.0",
            latency=(
                LatencySegment(name="window", duration_ns=chance.randrange(2, 9) * 1_000_000),
                LatencySegment(name="cues", duration_ns=chance.randrange(4, 30) * 1_000_000),
            ),
        ),
    )  # fmt: skip


def _fact(chance: random.Random, name: str, limit: float, unit: str, said: Utterance) -> Evidence:
    below = name in ("within_s", "turns", "resumes_s", "words")
    share = chance.uniform(0.3, 0.97) if below else chance.uniform(1.02, 2.4)
    scale = 1 if unit in ("words", "turns") else 100
    highest = 1.0 if name in ("similarity", "nearness") else float("inf")
    return Evidence(
        measure=name.removesuffix("_s").replace("_", " "),
        value=(math.floor if below else math.ceil)(min(highest, limit * share) * scale) / scale,
        threshold=limit, unit=unit, start_ns=said.start_ns, end_ns=said.end_ns, source_topic="/tactful/utterances",
        utterance_id=said.utterance_id, quote=said.text,
    )  # fmt: skip


def _presence(chance: random.Random, length_s: float) -> Iterator[Presence]:
    seen = PresenceState.ABSENT
    for second in range(0, int(length_s), 2):
        here = 3 <= second < length_s - 5 and not 0.55 < second / length_s < 0.58
        before, seen = seen, PresenceState.PRESENT if here else PresenceState.ABSENT
        face = Face(
            left_ratio=0.4, top_ratio=0.2, width_ratio=0.2, height_ratio=0.35, confidence=0.9,
            yaw_deg=round(chance.gauss(0, 14), 1), looking_away=chance.random() < 0.08,
        )  # fmt: skip
        number = (2 if 0.3 < second / length_s < 0.36 else 1) if here else 0
        yield Presence(
            stamp_ns=START_NS + second * NS_PER_S,
            source_topic="/camera/image_raw/compressed",
            state=PresenceState.LEFT if before is PresenceState.PRESENT and not here else seen,
            faces=(face,) * number,
        )


def _decisions(length_s: float) -> Iterator[Decision]:
    actions = ("Show the way to the second floor", "Take the book from the reader", "Wait until they have finished")
    for index, second in enumerate(range(45, int(length_s) - 10, 75)):
        answered = index % 4 != 2
        stamp_ns = START_NS + second * NS_PER_S
        candidates = tuple(
            CandidateJudgement(
                index=number, action=action, probability=(0.71, 0.04, 0.25)[number],
                veto=Veto.SINGLETON if number == 1 else Veto.NONE,
                veto_reason="the reader holds the book" if number == 1 else "", sensible=number != 1,
                norms=(Norm.COOPERATION,),
            )
            for number, action in enumerate(actions)
        )  # fmt: skip
        yield Decision(
            stamp_ns=stamp_ns, decision_id=f"d{index}", query_id=f"q{index}", chosen=actions[0] if answered else "",
            outcome=Outcome.ANSWERED if answered else Outcome.ABSTAINED, chosen_index=0 if answered else None,
            candidates=candidates, decided_ns=stamp_ns + 380_000_000,
            explanation="The person asked for the way." if answered else "Two actions were as likely as each other.",
        )  # fmt: skip
