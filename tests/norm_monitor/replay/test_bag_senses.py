"""The senses of a bag: what is not installed is named with its remedy."""

from dataclasses import replace
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path

import pytest

from norm_core.bags.reader import BagError, BagReader
from norm_core.bags.writer import BagWriter
from norm_core.models import store
from norm_core.records.frame import Frame
from norm_core.records.presence import Presence
from norm_core.streams.watermarks import FRAMES, PRESENCE
from norm_monitor.encounters.library import HERE
from norm_monitor.replay.bag_driver import PERSONS, TRANSFORMS, BagSenses, sort_words_topics
from norm_monitor.senses.speech.audio_front_end import HearingConfig


def test_without_face_weights_frames_are_kept_and_the_remedy_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(name: str) -> Distribution:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(store, "distribution", absent)
    monkeypatch.setenv("TACTFUL_WEIGHTS", str(tmp_path))
    with BagReader(HERE / "shipped/garden_centre") as bag:
        senses = BagSenses(bag, HearingConfig(), recognizer=None)
        records = [record for _, record in senses.records()]
    assert FRAMES in senses.sources
    assert PRESENCE not in senses.sources
    assert any(isinstance(record, Frame) for record in records)
    assert not any(isinstance(record, Presence) for record in records)
    (reason,) = senses.health_log.reasons
    assert "run ./tactful models add blazeface-short-range" in reason


def test_peoples_words_come_from_sound_or_from_texts_alone() -> None:
    with (
        BagReader(HERE / "shipped/garden_centre") as bag,
        pytest.raises(BagError, match="from sound or from texts; leave one out"),
    ):
        sort_words_topics(bag, ["/texts"], audio_topic="/audio")


@pytest.mark.parametrize("transforms", [TRANSFORMS, f"/robot1{TRANSFORMS}"])
def test_people_tracked_in_a_namespace_are_at_the_same_distances(tmp_path: Path, transforms: str) -> None:
    def presences(bag: Path) -> list[Presence]:
        with BagReader(bag) as reader:
            records = list(BagSenses(reader, HearingConfig(), recognizer=None).records())
        return [record for _, record in records if isinstance(record, Presence) and not record.faces]

    def copy(bag: Path, namespace: str, transforms: str) -> Path:
        with BagReader(HERE / "shipped/factory_shift") as reader, BagWriter(bag) as writer:
            topics = {topic.topic: topic for topic in reader.topics}
            for message in reader.messages({TRANSFORMS, *(name for name in topics if name.startswith("/humans/"))}):
                name = transforms if message.topic == TRANSFORMS else namespace + message.topic
                writer.write_copied(replace(topics[message.topic], topic=name), message.data, message.stamp_ns)
        return bag

    own = presences(copy(tmp_path / "own", "", TRANSFORMS))
    assert {person.distance_m is not None for presence in own for person in presence.persons} == {True}
    moved = presences(copy(tmp_path / "moved", "/robot1", transforms))
    assert {presence.source_topic for presence in moved} == {f"/robot1{PERSONS}"}
    assert moved == [replace(presence, source_topic=f"/robot1{PERSONS}") for presence in own]
