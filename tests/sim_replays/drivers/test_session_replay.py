"""Two runs over one session are compared item by item; what depends on the wall's clock is no difference."""

from pathlib import Path
from typing import Any

from norm_core.records.episode import Answer
from norm_core.records.json_codec import to_plain
from norm_core.records.outcome import Outcome
from norm_core.records.provenance import LatencySegment, Provenance
from norm_core.records.window import ClosedWindow
from norm_core.runtime.time import NS_PER_S
from sim_replays.drivers.node_driver import NodeOutput
from sim_replays.drivers.session_replay import ANSWERS, WINDOWS, in_process, topics_of
from sim_replays.scenarios.generate import START_NS
from sim_replays.scenarios.library import find, read
from tests.sensed_bag import write_sensed
from tests.session_parity import first_differing_output, items


def window(end_ns: int, sha256: str, late: bool = False) -> NodeOutput:
    record = ClosedWindow(
        stamp_ns=end_ns,
        start_ns=0,
        end_ns=end_ns,
        sha256=sha256,
        frame_count=0,
        utterance_count=0,
        robot_speech_count=0,
        presence_count=0,
        late=late,
    )
    return said(WINDOWS, record)


def answer(chosen: int, took_ns: int = 5) -> NodeOutput:
    made_by = Provenance(latency=(LatencySegment(name="all", duration_ns=took_ns),))
    record = Answer(
        stamp_ns=7,
        query_id="q",
        episode_id="e",
        task="action",
        outcome=Outcome.ANSWERED,
        chosen=(chosen,),
        provenance=made_by,
    )
    return said(ANSWERS, record)


def said(topic: str, record: Any, at_ns: int = 0) -> NodeOutput:
    return NodeOutput(topic=topic, at_ns=at_ns, wall_s=0.0, message=to_plain(record))


def test_the_first_difference_is_the_earliest_and_names_its_fields() -> None:
    first = [window(5, "a"), answer(0), window(10, "b")]
    second = [window(10, "c"), answer(1), window(5, "a")]
    found = first_differing_output(first, second)
    assert found is not None
    assert found["item"] == "7 answer to q"
    assert found["differs_in"] == ["chosen"]
    assert (found["first"], found["second"]) == ({"chosen": [0]}, {"chosen": [1]})


def test_order_lateness_and_time_taken_are_no_difference() -> None:
    assert (
        first_differing_output([window(5, "a"), answer(0, 1)], [answer(0, 9), window(5, "a"), window(9, "x", True)])
        is None
    )


def test_what_one_run_lacks_is_a_difference() -> None:
    found = first_differing_output([window(5, "a"), window(10, "b")], [window(5, "a")])
    assert found is not None
    assert found["item"].startswith("10 window")
    assert found["second"]["item"] == "missing"


def test_overlapping_words_belong_to_the_window_they_begin_in(tmp_path: Path) -> None:
    """A mark of silence in the bag, up to the second voice, comes after the first voice's words and not before."""
    write_sensed(tmp_path / "bag", read(find("zh_clinic")), 12.0)  # the robot begins before the person has ended
    counted = {one.message["end_ns"] - START_NS: one.message["utterance_count"] for one in in_process_windows(tmp_path)}
    assert counted[5 * NS_PER_S] == 2


def in_process_windows(folder: Path) -> list[NodeOutput]:
    return [one for one in in_process(folder / "bag") if one.topic == WINDOWS]


def test_a_bag_of_records_says_what_it_has(tmp_path: Path) -> None:
    write_sensed(tmp_path / "bag", read(find("zoo_keeper")), 4.0)
    topics = topics_of(tmp_path / "bag")
    assert (topics.audio, topics.camera, topics.has_queries) == ("", "", True)
    assert topics.sources == ("frames", "presence", "utterances")
    assert items([]) == {}
