"""Write an encounter as a bag of sense records: no sound, no images, and no model to wait for."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from norm_core.bags.writer import BagWriter
from norm_core.records.decision import OtherAgent, Viewpoint
from norm_core.records.episode import Query
from norm_core.records.frame import Frame
from norm_core.records.presence import Presence
from norm_core.records.speech import RobotSpeech, Utterance
from norm_core.runtime.time import NS_PER_S, s_to_ns
from norm_monitor.encounters.encounter import Encounter
from norm_monitor.encounters.generate import AUDIO, CAMERA, START_NS, Senses, records
from norm_monitor.senses.speech.silence_marks import make_script_marks

TOPICS: dict[type, str] = {
    Utterance: "/tactful/utterances",
    RobotSpeech: "/tactful/robot_speech",
    Presence: "/tactful/presence",
    Frame: "/tactful/frames",
    Query: "/tactful/queries",
}
_MARK_NS = NS_PER_S // 5
_ASKED_BEFORE_END_NS = NS_PER_S

Sensed = Utterance | RobotSpeech | Presence | Frame | Query


def write_sensed(bag: Path, encounter: Encounter, length_s: float, seed: int = 0) -> None:
    """Write the first seconds of an encounter, with a question about the next action near the end."""
    senses, _ = records(encounter, seed)
    end_ns = START_NS + s_to_ns(length_s)
    kept = sorted(
        ((at_ns, one) for at_ns, one in _in_order(senses, encounter, end_ns) if at_ns < end_ns),
        key=lambda pair: (pair[0], TOPICS[type(pair[1])]),
    )
    with BagWriter(bag) as writer:
        for at_ns, one in kept:
            writer.write(TOPICS[type(one)], one, at_ns)


def _in_order(senses: Senses, encounter: Encounter, end_ns: int) -> Iterator[tuple[int, Sensed]]:
    """Yield records in order of availability: an utterance at its end, and silence up to current speech."""
    yield from ((said.end_ns, said) for said in senses.utterances)
    yield from ((edge.stamp_ns, edge) for edge in senses.robot_speech)
    for presence in senses.presences:
        yield presence.stamp_ns, presence
        yield presence.stamp_ns, _frame(presence.stamp_ns, encounter.id)
    yield from make_script_marks(senses.utterances, START_NS, end_ns, _MARK_NS, AUDIO)
    asked_ns = end_ns - _ASKED_BEFORE_END_NS + 1
    yield asked_ns, _question(asked_ns, encounter)


def _frame(stamp_ns: int, name: str) -> Frame:
    """Make a frame of a few bytes, identified by its digest."""
    return Frame(
        stamp_ns=stamp_ns,
        source_topic=CAMERA,
        source_encoding="jpeg",
        source_width_px=4,
        source_height_px=4,
        payload_sha256=hashlib.sha256(f"{name} {stamp_ns}".encode()).hexdigest(),
        tile_width_px=4,
        tile_height_px=4,
        tile_jpeg=b"jpeg",
    )


def _question(stamp_ns: int, encounter: Encounter) -> Query:
    said = [turn.say for turn in encounter.turns]
    return Query(
        stamp_ns=stamp_ns,
        query_id=f"{encounter.id}-next",
        episode_id=encounter.id,
        task="action",
        options=(said[0], said[-1], "Sweep the floor."),
        others_given=True,
        others=(OtherAgent(agent_id="p", role="cleaner", doing="sweeping the floor"),),
        viewpoint_given=True,
        viewpoint=Viewpoint(description=encounter.setting),
    )
