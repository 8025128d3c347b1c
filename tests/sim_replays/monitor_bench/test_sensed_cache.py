"""What is kept of an encounter that was heard and seen once."""

from pathlib import Path

from norm_core.bags.reader import BagReader
from norm_core.records.frame import Frame
from norm_core.records.json_codec import from_json, to_json
from sim_replays.drivers.script_driver import SensedEncounter, records_of_script, sense_bag
from sim_replays.scenarios.library import find, read
from tests.sensed_bag import TOPICS, write_sensed


def test_frames_are_kept_in_their_place_without_their_pictures_bytes(tmp_path: Path) -> None:
    encounter = read(find("kiosk_directions"))
    _, truth = records_of_script(encounter)
    bag = tmp_path / "bag"
    write_sensed(bag, encounter, 8.0)
    kept = from_json(SensedEncounter, to_json(sense_bag(bag, truth, None)))
    with BagReader(bag) as reader:
        shown = [reader.decode(one) for one in reader.messages([TOPICS[Frame]])]
    frames = [one.entry for one in kept.given if isinstance(one.entry, Frame)]
    assert [(f.stamp_ns, f.source_topic, f.payload_sha256) for f in frames] == [
        (f.stamp_ns, f.source_topic, f.payload_sha256) for f in shown
    ]
    assert frames
    assert {frame.tile_jpeg for frame in frames} == {b""}
    assert [one.at_ns for one in kept.given] == sorted(one.at_ns for one in kept.given)
