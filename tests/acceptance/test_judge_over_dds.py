"""The judge over DDS: a bag in lockstep through the real nodes, with a model server that knows the labels."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from norm_core.bags.writer import BagWriter
from sim_replays.drivers.node_driver import END, play_to_nodes
from sim_replays.drivers.session_replay import FLAGS, WINDOWS, hosts_for, topics_of
from sim_replays.examples.demo_session import shift_record
from sim_replays.scenarios.library import HERE

pytestmark = [pytest.mark.ros, pytest.mark.slow]

ENCOUNTER = "kiosk_directions"
SERVER = Path(__file__).with_name("label_server.py")
JUDGE = "labels"
QUESTIONS = 10  # polarity, seven attributes, speech act and norm
JUDGE_EVERY_S, LENGTH_S = 5.0, 52
POLARITIES = {"a social error": "error", "a social competence": "competence", "neither": None}

Json = dict[str, Any]


class Judged(NamedTuple):
    """What the server was asked and answered, in order; what the nodes published; how it went."""

    asked: list[Json]
    written: list[Json]
    flags: list[Json]
    windows: list[Json]
    status: Json

    @property
    def polarities(self) -> list[Json]:
        """The requests that begin a window."""
        return [line for line in self.asked if set(line["options"]) == set(POLARITIES)]

    @property
    def counters(self) -> dict[str, int]:
        return {counter["name"]: counter["count"] for counter in self.status["counters"]}

    @property
    def flags_by_judge(self) -> list[Json]:
        return [flag for flag in self.flags if flag["provenance"]["model"] == JUDGE]


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Judged:
    """A shipped encounter as a bag whose types every ROS has, watched by the nodes with the judge behind a server."""
    folder = tmp_path_factory.mktemp("judged")
    bag, log, shipped = folder / "bag", folder / "log.jsonl", HERE / "shipped" / ENCOUNTER
    with BagWriter(bag) as writer:
        for stamp_ns, topic, content in shift_record(shipped, 0):
            write = writer.write_message if hasattr(content, "__msgtype__") else writer.write
            write(topic, content, stamp_ns)
    labels = shipped.with_name(f"{ENCOUNTER}.truth.json")
    command = [sys.executable, str(SERVER), str(labels), "--log", str(log)]
    with pytest.MonkeyPatch.context() as patch, subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout
            describe(folder, server.stdout.readline().strip())
            patch.setenv("TACTFUL_MODELS", str(folder))
            hosts = [dict(host) for host in hosts_for(topics_of(bag), 0.0)]
            judge = {"model": JUDGE, "every_s": JUDGE_EVERY_S, "deadline_s": 600.0}
            judge["prompts_folder"] = str(folder / "prompts")
            for host in hosts:
                if "monitor" in host:
                    host["monitor"] = {**host["monitor"], "judge": judge}
            said = list(play_to_nodes(bag, hosts))
        finally:
            server.terminate()
    end = said[-1]
    assert (end.topic, end.message["lost"], set(end.message["dropped"].values())) == (END, {}, {0})
    written = sorted((folder / "prompts").glob("*.json"))
    return Judged(
        written=[json.loads(path.read_text(encoding="utf-8")) for path in written],
        asked=[json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()],
        flags=[one.message for one in said if one.topic == FLAGS],
        windows=[one.message for one in said if one.topic == WINDOWS],
        status=next(status for status in end.message["status"] if status["node"] == "/tactful/monitor"),
    )


def describe(folder: Path, url: str) -> None:
    """Put the manifest of the model behind url into a team's folder of models."""
    (folder / f"{JUDGE}.yaml").write_text(
        f"name: {JUDGE}\ntask: vision-language\nengine: openai\nsource: {{url: '{url}'}}\n"
        "quantization: none\ncontext_tokens: 32768\nmax_images: 8\nlicence: none\n"
    )


def digest_of(request: Json, written: Iterable[Json]) -> str:
    """The digest of a first question, by the written prompt that holds the pictures and words that the server got."""
    text = "".join(part.get("text", "") for part in request["content"])
    pictures = [part["image_sha256"] for part in request["content"] if "image_sha256" in part]
    for one in written:
        prompt = one["prompts"][0]
        shown = [part["sha256"] for part in prompt["parts"] if part["kind"] == "picture"]
        words = [part["text"] for part in prompt["parts"] if part["kind"] != "picture"]
        if shown == pictures and all(said in text for said in words):
            return str(prompt["questions"][0]["prompt_digest"])
    raise AssertionError(f"no written prompt holds what the server was asked: {text[:300]}")


def test_the_server_is_asked_once_per_due_window(judged: Judged) -> None:
    transcripts = Counter(line["transcript"] for line in judged.asked if line["options"])
    assert set(transcripts.values()) == {QUESTIONS}
    begun = judged.polarities
    assert len(begun) == len(transcripts) == judged.counters["judge_answered"]
    assert "windows_not_judged" not in judged.counters
    assert len(begun) > LENGTH_S / JUDGE_EVERY_S - 2  # nobody speaks at first and at last
    assert all(line["encounter"] == ENCOUNTER for line in begun)
    assert {POLARITIES[line["answer"]] for line in begun} == {"error", "competence", None}
    # A note is asked for where something was found, and nowhere else.
    notes = Counter(line["transcript"] for line in judged.asked if not line["options"])
    assert notes == Counter(line["transcript"] for line in begun if line["event"] is not None)


def test_every_finding_reaches_a_flag_with_the_digest_of_its_prompt(judged: Judged) -> None:
    """Of several windows about one turn the first makes the flag, and the others say nothing new."""
    cited = {flag["provenance"]["prompt_digest"]: flag for flag in judged.flags_by_judge}
    asked = {digest_of(line, judged.written): line for line in judged.polarities}
    assert set(cited) <= set(asked)
    firsts: dict[int, str] = {}
    for digest, line in asked.items():
        if line["event"] is not None:
            firsts.setdefault(line["turn"], digest)
    assert firsts
    assert set(firsts.values()) <= set(cited)
    for digest, flag in cited.items():
        assert flag["polarity"] == POLARITIES[asked[digest]["answer"]]
        assert flag["probability"] >= 0.5
        assert flag["tier"] in {"judge", "fused"}


def test_every_flag_cites_a_window_that_was_published(judged: Judged) -> None:
    published = {window["sha256"] for window in judged.windows}
    assert judged.flags
    assert {flag["provenance"]["window_digest"] for flag in judged.flags} <= published


def test_the_judge_is_shown_the_pictures_of_each_window(judged: Judged) -> None:
    """And asked about emotions without them, as no deployment context is stated."""
    assert len(judged.written) == len(judged.polarities)
    published = {window["sha256"]: window for window in judged.windows}
    for one in judged.written:
        window = published[one["window"]["digest"]]
        assert window["frame_count"] == len(one["window"]["frames_ns"]) > 0
        with_pictures, words_alone = one["prompts"]
        kinds = [[part["kind"] for part in prompt["parts"]].count("picture") for prompt in (with_pictures, words_alone)]
        assert kinds == [min(4, window["frame_count"]), 0]
        assert [len(prompt["questions"]) for prompt in (with_pictures, words_alone)] == [QUESTIONS - 1, 1]
    assert all(any("image_sha256" in part for part in line["content"]) for line in judged.polarities)
