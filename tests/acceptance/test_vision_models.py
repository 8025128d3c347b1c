"""A vision model, a tiny one of a real architecture: from the topic of a camera to flags and decisions.

Weights are random, so nothing is said of quality. What must hold: pictures reach the model and change decisions,
the judge answers about every unit, and a flag names its model.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
import pytest

from norm_core.engines.engine_factory import open_engine
from norm_core.models.catalogue import Catalogue
from norm_core.models.store import describe_file
from norm_core.records.decision import Decision
from norm_core.records.flag import SocialFlag
from norm_core.records.frame import Frame
from norm_core.records.messages import from_message
from norm_core.records.outcome import Outcome
from norm_core.records.stamps import split_stamp
from norm_core.records.topics import SENSES_ENDED_TOPIC
from norm_core.runtime.time import NS_PER_S, WallClock, s_to_ns
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.replay.node_process import NodeProcess
from tests.norm_monitor.encounter_talk import START_S
from tests.norm_nodes.test_monitor_node import TALK, play
from tests.norm_nodes.test_selector import ask
from tests.observer import Observer

pytestmark = pytest.mark.ros

TOPIC = "/camera/image_raw/compressed"
NAME = "tiny"
LENGTH_S = 30
CONTEXT_TOKENS = 16_384  # a token of these models is hardly more than a letter
# Every answer of the judge but "ordinary" becomes a flag, and nothing else does.
FUSION = {"muted": list(ThresholdTable.shipped().cues), "min_probability": ["error=0.01", "competence=0.01"]}
CANDIDATES = ["Greet the guest.", "Lay the table.", "Wait by the door."]
Json = dict[str, Any]
Colour = tuple[int, int, int]
BLUE, RED, GREY = (220, 60, 20), (20, 60, 200), (128, 128, 128)


def jpeg_of(colour: Colour, width_px: int) -> bytes:
    """A grey picture with a bar of that colour and width at the left."""
    pixels = np.full((96, 128, 3), GREY, np.uint8)
    pixels[:, :width_px] = colour
    return cv2.imencode(".jpg", pixels)[1].tobytes()


class Camera:
    """A driver that knows nothing of ours: pictures of a colour, as sensor_msgs/CompressedImage."""

    def __init__(self, observer: Observer) -> None:
        from rclpy.qos import QoSProfile
        from sensor_msgs.msg import CompressedImage

        self._message = CompressedImage(format="jpeg")
        self._publisher = observer.node.create_publisher(CompressedImage, TOPIC, QoSProfile(depth=100))
        observer.until(self._publisher.get_subscription_count, "the camera node to listen")

    def publish(self, stamp_ns: int, colour: Colour, width_px: int) -> None:
        self._message.header.stamp.sec, self._message.header.stamp.nanosec = split_stamp(stamp_ns)
        self._message.data = jpeg_of(colour, width_px)
        self._publisher.publish(self._message)


class Run(NamedTuple):
    """What the nodes published."""

    frames: dict[int, Frame]  # by stamp
    flags: list[SocialFlag]  # the last of each event
    outcomes: dict[str, int]  # of the judge, as the status counts them
    decisions: list[Decision]  # seeing blue, blue and red


@pytest.fixture
def add(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Write a manifest, as a team does for weights of its own."""
    monkeypatch.setenv("TACTFUL_MODELS", str(tmp_path / "manifests"))
    monkeypatch.setenv("TACTFUL_STATE", str(tmp_path / "state"))

    def call(folder: Path) -> None:
        files = [describe_file(folder, path.name).model_dump() for path in folder.iterdir()]
        own = {"name": NAME, "task": "vision-language", "engine": "transformers", "source": {"path": str(folder)}}
        limits = {"quantization": "bf16", "context_tokens": 8192, "max_images": 15, "licence": "none"}
        Catalogue().write({**own, **limits, "files": files})

    return call


def run_nodes(observer: Observer, domain_id: int) -> Run:
    """Play a talk before a camera that sees blue, then ask three times for the same decision."""
    from norm_nodes.base.endpoint import EVENTS
    from std_msgs.msg import Empty

    frames = observer.records(Frame, "frames")
    flags = observer.records(SocialFlag, "flags")
    observer.watch_status()
    judge = {"model": NAME, "calls_per_hour": 36_000.0, "deadline_s": 600.0}
    windows = {"sources": ["frames", "utterances"], "lateness_s": 0.0}
    parameters: dict[str, Json] = {
        "camera": {"topic": TOPIC, "faces": False},
        "monitor": {"judge": judge, "fusion": FUSION, "windows": windows},
        "selector": {"model": NAME, "when_unsure": "best_effort", "max_frame_age_s": 600.0},
    }

    def outcomes() -> dict[str, int]:
        return {outcome.value: count for outcome in Outcome if (count := observer.counted(f"judge_{outcome}"))}

    def see(stamp_ns: int, colour: Colour, width_px: int = 64) -> None:
        """Publish a picture, again if the middleware loses it, until it is a frame."""
        before = len(frames)

        def is_frame() -> bool:
            camera.publish(stamp_ns, colour, width_px)
            return len(frames) > before

        observer.until(is_frame, "a frame")

    with NodeProcess(["camera", "monitor", "selector"], parameters, domain_id):
        ended = observer.node.create_publisher(Empty, f"/tactful/{SENSES_ENDED_TOPIC}", EVENTS)
        camera, settled, taken = Camera(observer), observer.settled_of("monitor"), observer.counts_of("selector")
        for second in range(LENGTH_S + 1):
            see(s_to_ns(START_S + second), BLUE, 32 + second)
        play(observer, TALK, LENGTH_S)
        observer.until(lambda: ended.get_subscription_count() == 2, "monitor and selector to listen for the end")
        ended.publish(Empty())

        def is_judged() -> bool:
            """Whether the monitor took the end, and all that it then told was heard."""
            told = settled()
            if not (told.idle and told.processed[f"/tactful/{SENSES_ENDED_TOPIC}"]):
                return False
            observer.until(lambda: len(flags) == told.published["/tactful/flags"], "every flag")
            return sum(outcomes().values()) > 0

        observer.until(is_judged, "a judgement")
        decisions: list[Decision] = []
        now_ns = observer.node.get_clock().now().nanoseconds
        for nth, colour in enumerate((BLUE, BLUE, RED)):
            before = taken()["/tactful/frames"]
            see(now_ns + (5 * nth - 60) * NS_PER_S, colour)
            observer.until(lambda: taken()["/tactful/frames"] > before, "the selector to take it")  # noqa: B023  at once
            decisions.append(ask(observer, candidates=CANDIDATES)[0])
    return Run(
        frames={one.stamp_ns: one for one in (from_message(Frame, message) for message in frames)},
        flags=list({flag.event_id: flag for flag in (from_message(SocialFlag, message) for message in flags)}.values()),
        outcomes=outcomes(),
        decisions=decisions,
    )


def check(observer: Observer, domain_id: int) -> Run:
    run = run_nodes(observer, domain_id)
    for second, width_px in ((0, 32), (LENGTH_S, 32 + LENGTH_S)):
        tile = cv2.imdecode(np.frombuffer(run.frames[s_to_ns(START_S + second)].tile_jpeg, np.uint8), 1)
        assert tile is not None
        assert np.abs(tile[40, [0, width_px - 8, width_px + 8]].astype(int) - [BLUE, BLUE, GREY]).max() < 25
    assert set(run.outcomes) == {"answered"}
    engine = open_engine(Catalogue().read_manifest(NAME), WallClock())
    weights_sha256 = engine.model_info.weights_sha256
    engine.close()
    assert [decision.outcome for decision in run.decisions] == [Outcome.ANSWERED] * 3
    made_by = [*(flag.provenance for flag in run.flags), *(decision.provenance for decision in run.decisions)]
    assert {(provenance.model, provenance.weights_sha256) for provenance in made_by} == {(NAME, weights_sha256)}
    first, again, other = ([one.probability for one in decision.candidates] for decision in run.decisions)
    assert first == again != other
    digests = [one.provenance.prompt_digest for one in run.decisions]
    assert digests[0] == digests[1] != digests[2]
    return run


@pytest.mark.torch
def test_a_checkpoint_answers_by_the_pictures_of_a_camera(
    observer: Observer, domain_id: int, tmp_path: Path, add: Callable[[Path], None]
) -> None:
    from tests.norm_core.engines.tiny_checkpoints import built

    add(built("qwen3_vl", tmp_path / "qwen3_vl", CONTEXT_TOKENS, seed=2))
    run = check(observer, domain_id)
    assert run.flags  # With the weights of this seed, a unit is not ordinary conduct.
