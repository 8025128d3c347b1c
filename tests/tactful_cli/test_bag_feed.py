"""What the view says of a bag that holds flags."""

from pathlib import Path

import pytest

from norm_core.bags.reader import BagReader
from norm_core.bags.writer import BagWriter
from norm_core.records.flag import SocialFlag
from norm_core.records.speech import Utterance
from norm_monitor.view.timeline import SessionTimeline
from tactful_cli.flag_watch import FlagOptions
from tactful_cli.view import shown_records
from tests.study_session import START_NS, records


@pytest.mark.parametrize("has_speech", [True, False])
def test_flags_without_speech_are_no_silence(tmp_path: Path, has_speech: bool) -> None:
    topics: dict[type, str] = {SocialFlag: "/tactful/flags"}
    if has_speech:
        topics[Utterance] = "/tactful/utterances"
    with BagWriter(tmp_path / "bag") as writer:
        for known_ns, record in records():
            if topic := topics.get(type(record)):
                writer.write(topic, record, known_ns)
    timeline = SessionTimeline("bag", START_NS)
    with BagReader(tmp_path / "bag") as bag:
        for known_ns, record in shown_records(bag, timeline, FlagOptions()):
            timeline.take(record, known_ns)
    changes = timeline.changes()
    assert changes["flags"]
    assert bool(changes["speech"]) is has_speech
    assert ("was not recorded in this bag" in changes["state"].get("speech_missing", "")) is not has_speech
