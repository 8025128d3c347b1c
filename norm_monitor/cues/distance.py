"""The robot's distance to people, if it is known."""

from collections.abc import Iterator

from norm_core.records.flag import Evidence
from norm_core.runtime.time import NS_PER_S, ns_to_s, s_to_ns
from norm_monitor.context.meaning import Meaning
from norm_monitor.context.scene import Scene
from norm_monitor.cues.finding import Findings
from norm_monitor.cues.threshold_table import ThresholdTable
from norm_monitor.units.unit import Unit

# Words within this time excuse a small distance.
_ABOUT_NS = 10 * NS_PER_S


def nearness(scene: Scene, table: ThresholdTable, meaning: Meaning) -> Iterator[Findings]:
    """The robot stays within a person's intimate distance without handing over or touching anything."""
    cue = table.cues["too_near"]
    nearest_m, lasting_ns = cue.value("distance_m"), s_to_ns(cue.value("lasting_s"))
    for person_id, first_ns, last_ns, least_m in _spells(scene, nearest_m):
        if last_ns < scene.start_ns or last_ns - first_ns < lasting_ns:
            continue
        about = [t for t in scene.turns if first_ns - _ABOUT_NS <= t.start_ns <= last_ns + _ABOUT_NS]
        if any(meaning.match(turn.text, "handing_over") for turn in about):
            continue
        yield table.finding(
            "too_near",
            Unit.of_sighting("too_near", first_ns, last_ns, person_id),
            evidence=[
                Evidence(
                    measure="distance", value=round(least_m, 2), threshold=nearest_m, unit="m",
                    start_ns=first_ns, end_ns=last_ns, source_topic=scene.presences[-1].source_topic,
                )
            ],
            rationale=f"The robot stood {least_m:.2f} m from the person for {ns_to_s(last_ns - first_ns):.0f} s.",
        )  # fmt: skip


def _spells(scene: Scene, nearest_m: float) -> list[tuple[str, int, int, float]]:
    """Return each uninterrupted approach: person, start, end and least distance."""
    spells: list[tuple[str, int, int, float]] = []
    open_: dict[tuple[str, str], tuple[int, int, float]] = {}
    for presence in scene.presences:
        source = presence.source_topic  # a camera that cannot measure distance does not end another source's approach
        near = {
            (source, p.person_id): p.distance_m
            for p in presence.persons
            if p.distance_m is not None and p.distance_m < nearest_m
        }
        for known in [known for known in open_ if known[0] == source and known not in near]:
            spells.append((known[1], *open_.pop(known)))
        for known, distance_m in near.items():
            first_ns, _, least_m = open_.get(known, (presence.stamp_ns, 0, distance_m))
            open_[known] = (first_ns, presence.stamp_ns, min(least_m, distance_m))
    return spells + [(person_id, *spell) for (_, person_id), spell in open_.items()]
