"""Play shipped encounters in turn, as a simulated robot: its sound, pictures and speech."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from norm_nodes.base.convert import to_ros
from norm_nodes.base.endpoint import EVENTS
from pydantic import Field
from sensor_msgs.msg import CompressedImage
from std_msgs.msg import MultiArrayDimension, MultiArrayLayout, UInt8MultiArray

from norm_bench.stand_ins.publisher_node import PublisherNode
from norm_core.bags.reader import BagError, BagReader
from norm_core.files.data_files import shipped_file
from norm_core.records.speech import RobotSpeech
from norm_core.records.stamps import join_stamp, split_stamp
from norm_core.records.status import Health
from norm_core.records.topics import ROBOT_SPEECH_TOPIC, full_topic
from norm_core.runtime.config import Config, ConfigError
from norm_core.runtime.time import NS_PER_S
from norm_monitor.senses.microphone.audio_message import make_stamp_label

SHIPPED = shipped_file("norm_monitor.encounters", "shipped")
# The topics of shipped encounters.
AUDIO = "/audio"
CAMERA = "/camera/image_raw/compressed"
ROBOT_SPEECH = full_topic(ROBOT_SPEECH_TOPIC)
# The encounters that are played by default.
ENGLISH = ("kiosk_directions", "factory_shift", "garden_centre", "laundrette_chat", "radio_station", "zoo_keeper")


class EncounterPlayerConfig(Config):
    """The parameters of the node encounter_player."""

    encounters: tuple[str, ...] = Field(
        ENGLISH, min_length=1, description="shipped encounters, or folders of bags like them, to play in turn"
    )
    audio_topic: str = Field("/simulated/audio", min_length=1, description="topic of the sound, a UInt8MultiArray")
    camera_topic: str = Field(
        "/simulated/camera/compressed", min_length=1, description="topic of the pictures, a CompressedImage"
    )
    pause_s: float = Field(2.0, ge=0, le=60, description="silence after each encounter")


class EncounterPlayer(PublisherNode[EncounterPlayerConfig]):
    """Publish encounters in a loop, with current stamps."""

    config_model = EncounterPlayerConfig

    def __init__(self) -> None:
        super().__init__("encounter_player")

    def open(self) -> None:
        """Advertise the topics. Raises ConfigError for an encounter that is not there."""
        self._bags = tuple(map(_find_bag, self.config.encounters))
        self._audio = self.advertise(UInt8MultiArray, self.config.audio_topic, EVENTS, "the sound of an encounter")
        self._camera = self.advertise(CompressedImage, self.config.camera_topic, EVENTS, "the pictures of an encounter")
        self._robot = self.advertise(RobotSpeech, ROBOT_SPEECH_TOPIC, EVENTS, "the robot's speech in an encounter")

    def publish_until_halted(self) -> None:
        """Play the encounters in turn, and begin anew."""
        while not self.halt.is_set():
            for bag in self._bags:
                try:
                    with BagReader(bag) as reader:
                        self._play(reader)
                except BagError as error:
                    self.health_log.raise_issue(
                        "bag", Health.FAILED, f"encounter_player: {error}; name another in encounters"
                    )
                self.health_log.count("encounters_played")
                if self.halt.wait(self.config.pause_s):
                    return

    def _play(self, reader: BagReader) -> None:
        began_ns = self.clock.now_ns()
        began_s = time.monotonic()
        start_ns = (reader.bounds_ns or (0, 0))[0]
        for message in reader.messages((AUDIO, CAMERA, ROBOT_SPEECH)):
            due_s = began_s + (message.stamp_ns - start_ns) / NS_PER_S
            if self.halt.wait(max(0.0, due_s - time.monotonic())):
                return
            self._publish(message.topic, reader.decode(message), began_ns - start_ns)

    def _publish(self, topic: str, message: Any, shift_ns: int) -> None:
        if isinstance(message, RobotSpeech):
            # Each repetition of an encounter is new speech.
            speech_id = f"{message.speech_id}-{shift_ns}"
            self._robot.publish(to_ros(replace(message, stamp_ns=message.stamp_ns + shift_ns, speech_id=speech_id)))
            return
        stamp_ns = join_stamp(message.header.stamp.sec, message.header.stamp.nanosec) + shift_ns
        if topic == CAMERA:
            picture = CompressedImage(format=message.format, data=message.data.tobytes())
            picture.header.stamp.sec, picture.header.stamp.nanosec = split_stamp(stamp_ns)
            self._camera.publish(picture)
        else:
            self._audio.publish(make_stamped_sound(message.audio.data.tobytes(), stamp_ns))


def make_stamped_sound(samples: bytes, stamp_ns: int) -> UInt8MultiArray:
    """Wrap samples in the one message of standard ROS that can carry them, with the stamp of the first."""
    dimension = MultiArrayDimension(label=make_stamp_label(stamp_ns), size=len(samples), stride=len(samples))
    return UInt8MultiArray(layout=MultiArrayLayout(dim=[dimension]), data=samples)


def _find_bag(name: str) -> Path:
    shipped = SHIPPED / name
    if not name or not (shipped.is_dir() or Path(name).is_dir()):
        names = ", ".join(sorted(path.name for path in SHIPPED.glob("*/")))
        remedy = f"name a bag, or one of {names}" if names else "name a bag, as this installation ships none"
        raise ConfigError(f"encounter_player: encounters: there is no {name!r}; {remedy}")
    return shipped if shipped.is_dir() else Path(name)
