"""Publish this machine's own microphone, so that Tactful can be tried without a robot."""

import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from pydantic import Field
from sensor_msgs.msg import CompressedImage
from std_msgs.msg import MultiArrayDimension, MultiArrayLayout, UInt8MultiArray

from norm_core.bags.reader import BagError, BagReader
from norm_core.records.speech import RobotSpeech
from norm_core.records.status import Health
from norm_core.runtime.config import Config, ConfigError
from norm_core.runtime.time import NS_PER_S, join_stamp, split_stamp
from norm_monitor.senses.microphone.audio_message import stamp_label
from norm_nodes.convert import to_ros
from norm_nodes.endpoint import EVENTS
from norm_nodes.publisher_thread import PublisherNode
from sim_replays.scenarios.library import HERE

SHIPPED = HERE / "shipped"
AUDIO, CAMERA, ROBOT_SPEECH = "/audio", "/camera/image_raw/compressed", "/tactful/robot_speech"
ENGLISH = ("kiosk_directions", "factory_shift", "garden_centre", "laundrette_chat", "radio_station", "zoo_keeper")


class EncounterPlayerConfig(Config):
    """The parameters of the node encounter_player."""

    encounters: tuple[str, ...] = Field(
        ENGLISH, min_length=1, description="shipped encounters to play in turn, or folders of bags like them"
    )
    audio_topic: str = Field("/simulated/audio", min_length=1, description="topic of the sound, a UInt8MultiArray")
    camera_topic: str = Field(
        "/simulated/camera/compressed", min_length=1, description="topic of the pictures, a CompressedImage"
    )
    pause_s: float = Field(2.0, ge=0, le=60, description="silence after each encounter")


class EncounterPlayer(PublisherNode[EncounterPlayerConfig]):
    """Publish encounters for ever, with the stamps of this moment."""

    config_model = EncounterPlayerConfig

    def __init__(self) -> None:
        super().__init__("encounter_player")

    def open(self) -> None:
        """Advertise the topics. Raises ConfigError for an encounter that is not there."""
        self._bags = tuple(map(_bag, self.config.encounters))
        self._audio = self.advertise(UInt8MultiArray, self.config.audio_topic, EVENTS, "the sound of an encounter")
        self._camera = self.advertise(CompressedImage, self.config.camera_topic, EVENTS, "its pictures")
        self._robot = self.advertise(RobotSpeech, "robot_speech", EVENTS, "the robot's speech in it")

    def publish_until_halted(self) -> None:
        """Play the encounters in turn."""
        while not self.halt.is_set():
            for bag in self._bags:
                try:
                    with BagReader(bag) as reader:
                        self._play(reader)
                except BagError as error:
                    self.raise_issue("bag", Health.FAILED, f"encounter_player: {error}; name another in encounters")
                self.count("encounters_played")
                if self.halt.wait(self.config.pause_s):
                    return

    def _play(self, reader: BagReader) -> None:
        began_ns, began_s = self.clock.now_ns(), time.monotonic()
        start_ns = (reader.bounds_ns or (0, 0))[0]
        for message in reader.messages((AUDIO, CAMERA, ROBOT_SPEECH)):
            due_s = began_s + (message.stamp_ns - start_ns) / NS_PER_S
            if self.halt.wait(max(0.0, due_s - time.monotonic())):
                return
            self._publish(message.topic, reader.decode(message), began_ns - start_ns)

    def _publish(self, topic: str, message: Any, later_ns: int) -> None:
        if isinstance(message, RobotSpeech):
            # An encounter that comes again says other things than before.
            speech_id = f"{message.speech_id}-{later_ns}"
            self._robot.publish(to_ros(replace(message, stamp_ns=message.stamp_ns + later_ns, speech_id=speech_id)))
            return
        stamp_ns = join_stamp(message.header.stamp.sec, message.header.stamp.nanosec) + later_ns
        if topic == CAMERA:
            picture = CompressedImage(format=message.format, data=message.data.tobytes())
            picture.header.stamp.sec, picture.header.stamp.nanosec = split_stamp(stamp_ns)
            self._camera.publish(picture)
        else:
            self._audio.publish(stamped_sound(message.audio.data.tobytes(), stamp_ns))


def stamped_sound(samples: bytes, stamp_ns: int) -> UInt8MultiArray:
    """Wrap samples in the one message of standard ROS that can carry them, with the stamp of the first."""
    dimension = MultiArrayDimension(label=stamp_label(stamp_ns), size=len(samples), stride=len(samples))
    return UInt8MultiArray(layout=MultiArrayLayout(dim=[dimension]), data=samples)


def _bag(name: str) -> Path:
    shipped = SHIPPED / name
    if not name or not (shipped.is_dir() or Path(name).is_dir()):
        known = ", ".join(sorted(path.name for path in SHIPPED.glob("*/")))
        remedy = f"name a bag, or one of {known}" if known else "name a bag, as this installation ships none"
        raise ConfigError(f"encounter_player: encounters: there is no {name!r}; {remedy}")
    return shipped if shipped.is_dir() else Path(name)


AGAIN_S, END_TIMEOUT_S = 5.0, 2.0
RATE_HZ, CHUNKS_PER_S, SAMPLE_BYTES = 16_000, 10, 2
CHUNK_BYTES = RATE_HZ // CHUNKS_PER_S * SAMPLE_BYTES

# Programs that write a microphone's samples to their output, and how each names a device.
PROGRAMS: Mapping[str, tuple[Sequence[str], str]] = {
    "parec": (("--raw", "--format=s16le", f"--rate={RATE_HZ}", "--channels=1", "--latency-msec=50"), "--device="),
    "arecord": (("-q", "-t", "raw", "-f", "S16_LE", "-r", str(RATE_HZ), "-c", "1"), "--device="),
}
_REMEDIES = {
    "permission": "run sudo usermod -aG audio $USER and log in again",
    "busy": "close the program that uses the microphone",
}


class MicrophoneConfig(Config):
    """The parameters of the node microphone."""

    device: str = Field("", description="the device as parec or arecord names it; empty for the default one")
    topic: str = Field("/microphone/audio", min_length=1, description="topic of the sound, a UInt8MultiArray")


class MicrophoneNode(PublisherNode[MicrophoneConfig]):
    """Publish a microphone's sound: 16 kHz, mono, 16 bit. What fails is tried again every few seconds."""

    config_model = MicrophoneConfig

    def __init__(self) -> None:
        super().__init__("microphone")

    def open(self) -> None:
        """Advertise the topic."""
        self._sound = self.advertise(UInt8MultiArray, self.config.topic, EVENTS, "the sound of this microphone")

    def publish_until_halted(self) -> None:
        """Publish sound as long as a program records it, and start that again when it ends."""
        while not self.halt.is_set():
            if problem := self._publish_sound():
                self.raise_issue("microphone", Health.STALE, f"microphone: {problem}")
                self.halt.wait(AGAIN_S)

    def _publish_sound(self) -> str:
        program = next(filter(shutil.which, PROGRAMS), None)
        if program is None:
            return "neither parec nor arecord is installed; run sudo apt install pulseaudio-utils alsa-utils"
        arguments, device_option = PROGRAMS[program]
        device = [f"{device_option}{self.config.device}"] if self.config.device else []
        with tempfile.TemporaryFile() as errors:
            recorder = subprocess.Popen([program, *arguments, *device], stdout=subprocess.PIPE, stderr=errors)
            try:
                assert recorder.stdout
                self._copy(recorder.stdout)
            finally:
                recorder.terminate()
                try:
                    recorder.wait(END_TIMEOUT_S)
                except subprocess.TimeoutExpired:
                    recorder.kill()
                    recorder.wait()
            if self.halt.is_set():
                return ""
            errors.seek(0)
            lines = errors.read().decode(errors="replace").strip().splitlines()
        why = lines[-1] if lines else f"ended with {recorder.returncode}"
        remedy = next((text for word, text in _REMEDIES.items() if word in why.lower()), None)
        remedy = remedy or "plug a microphone in, or set device to one that arecord -L lists"
        return f"{program}: {why.removeprefix(f'{program}: ')}; {remedy}"

    def _copy(self, sound: IO[bytes]) -> None:
        while not self.halt.is_set() and len(chunk := sound.read(CHUNK_BYTES)) == CHUNK_BYTES:
            self.clear_issue("microphone")
            self._sound.publish(stamped_sound(chunk, self.clock.now_ns() - NS_PER_S // CHUNKS_PER_S))
            self.count("chunks_published")
