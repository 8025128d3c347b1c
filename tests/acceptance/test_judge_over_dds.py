"""The judge over DDS: bags in lockstep through the real nodes, with a model server that knows the labels."""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from norm_core.bags.writer import BagWriter
from norm_monitor.cues.threshold_table import ThresholdTable
from sim_replays.drivers.node_driver import FLAGS, WINDOWS
from sim_replays.examples.demo_session import shift_record
from sim_replays.monitor_bench.event_metrics import score_online
from sim_replays.scenarios.library import HERE
from tests.acceptance.judged_encounters import JUDGE, label_server, replay_judged, sessions_of

pytestmark = pytest.mark.ros

ENCOUNTER = "kiosk_directions"
ATTRIBUTES = 7
POLARITIES = {"a social error": "error", "a social competence": "competence", "ordinary conduct": None}
ENCOUNTERS, LEAST_F1 = 4, 97.0

Json = dict[str, Any]


class Judged(NamedTuple):
    """What the server was asked and answered, in order; what the nodes published; how it went."""

    asked: list[Json]
    written: list[Json]
    flags: list[Json]
    windows: list[Json]
    status: Json

    @property
    def first_questions(self) -> list[Json]:
        """The requests that begin a unit."""
        return [line for line in self.asked if set(line["options"]) == set(POLARITIES)]

    @property
    def counters(self) -> dict[str, int]:
        return {counter["name"]: counter["count"] for counter in self.status["counters"]}

    @property
    def flags_by_judge(self) -> list[Json]:
        return [flag for flag in self.flags if flag["provenance"]["model"] == JUDGE]


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Judged:
    """A shipped encounter as a bag of sound and pictures, watched by the nodes with the judge behind a server."""
    folder = tmp_path_factory.mktemp("judged")
    bag, shipped = folder / "bag", HERE / "shipped" / ENCOUNTER
    with BagWriter(bag) as writer:
        for stamp_ns, topic, content in shift_record(shipped, 0):
            write = writer.write_message if hasattr(content, "__msgtype__") else writer.write
            write(topic, content, stamp_ns)
    with label_server(folder, [shipped.with_name(f"{ENCOUNTER}.truth.json")]) as log:
        outputs = replay_judged(bag, str(folder / "prompts"))
    written = sorted((folder / "prompts").glob("*.json"))
    return Judged(
        written=[json.loads(path.read_text(encoding="utf-8")) for path in written],
        asked=[json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()],
        flags=[one.message for one in outputs if one.topic == FLAGS],
        windows=[one.message for one in outputs if one.topic == WINDOWS],
        status=next(status for status in outputs[-1].message["status"] if status["node"] == "/tactful/monitor"),
    )


def digest_of(request: Json, written: Iterable[Json]) -> str:
    """The digest of a first question, by the written prompt that holds the pictures and words that the server got."""
    text = "".join(part.get("text", "") for part in request["content"])
    pictures = [part["image_sha256"] for part in request["content"] if "image_sha256" in part]
    for one in written:
        prompt = one["prompts"][0]
        shown = [part["sha256"] for part in prompt["parts"] if part["kind"] == "picture"]
        words = [part["text"] for part in prompt["parts"] if part["kind"] != "picture"]
        if shown == pictures and all(part in text for part in words):
            return str(prompt["questions"][0]["prompt_digest"])
    raise AssertionError(f"no written prompt holds what the server was asked: {text[:300]}")


def test_every_event_that_the_judge_knows_becomes_a_flag(tmp_path: Path) -> None:
    """With all cues muted, so that every flag is the judge's."""
    scores = score_online(sessions_of(tmp_path, ENCOUNTERS, tuple(ThresholdTable.shipped().cues)))
    assert scores.events > 10
    assert scores.f1 >= LEAST_F1


def test_each_unit_is_asked_about_once_and_attributes_of_events_alone(judged: Judged) -> None:
    units = Counter(line["transcript"] for line in judged.first_questions)
    assert set(units.values()) == {1}
    assert len(units) == len(judged.written) == judged.counters["judge_answered"]
    assert {POLARITIES[line["answer"]] for line in judged.first_questions} == {"error", "competence", None}
    assert all(line["encounter"] == ENCOUNTER for line in judged.first_questions)
    events = {line["transcript"] for line in judged.first_questions if line["event"] is not None}
    attributes = Counter(line["transcript"] for line in judged.asked if set(line["options"]) == {"yes", "no"})
    notes = Counter(line["transcript"] for line in judged.asked if not line["options"])
    assert attributes == dict.fromkeys(events, ATTRIBUTES)
    assert notes == dict.fromkeys(events, 1)


def test_every_finding_reaches_a_flag_with_the_digest_of_its_prompt(judged: Judged) -> None:
    cited = {flag["provenance"]["prompt_digest"]: flag for flag in judged.flags_by_judge}
    asked = {digest_of(line, judged.written): line for line in judged.first_questions}
    assert set(cited) == {digest for digest, line in asked.items() if line["event"] is not None}
    for digest, flag in cited.items():
        assert flag["polarity"] == POLARITIES[asked[digest]["answer"]]
        assert flag["tier"] in {"judge", "fused"}


def test_every_flag_is_closed_at_last_and_cites_a_published_window(judged: Judged) -> None:
    published = {window["sha256"] for window in judged.windows}
    newest = {flag["event_id"]: flag["state"] for flag in judged.flags}
    assert newest
    assert set(newest.values()) <= {"closed", "withdrawn"}
    assert {flag["provenance"]["window_digest"] for flag in judged.flags} <= published


def test_the_judge_is_shown_the_pictures_around_each_unit(judged: Judged) -> None:
    """And asked about emotions without them, as no deployment context is stated."""
    for one in judged.written:
        with_pictures, _, words_alone = one["prompts"]
        kinds = [[part["kind"] for part in prompt["parts"]].count("picture") for prompt in (with_pictures, words_alone)]
        assert kinds == [min(4, len(one["frames_ns"])), 0]
        assert kinds[0] > 0
        assert [len(prompt["questions"]) for prompt in one["prompts"]] == [1, ATTRIBUTES - 1, 1]
    assert all(any("image_sha256" in part for part in line["content"]) for line in judged.first_questions)
