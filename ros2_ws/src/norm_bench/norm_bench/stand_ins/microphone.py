"""Publish this machine's own microphone, so that Tactful can be tried without a robot."""

import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import IO

from norm_nodes.base.endpoint import EVENTS
from pydantic import Field
from std_msgs.msg import UInt8MultiArray

from norm_bench.stand_ins.encounter_player import make_stamped_sound
from norm_bench.stand_ins.publisher_node import PublisherNode
from norm_core.records.status import Health
from norm_core.runtime.config import Config
from norm_core.runtime.time import NS_PER_S

# How long the node waits before it tries a failed microphone again.
RETRY_S = 5.0
# How long a recording program may take to end.
END_TIMEOUT_S = 2.0
RATE_HZ = 16_000
CHUNKS_PER_S = 10
SAMPLE_BYTES = 2
CHUNK_BYTES = RATE_HZ // CHUNKS_PER_S * SAMPLE_BYTES

# Programs that write a microphone's samples to their output, and how each names a device.
PROGRAMS: Mapping[str, tuple[Sequence[str], str]] = {
    "parec": (("--raw", "--format=s16le", f"--rate={RATE_HZ}", "--channels=1", "--latency-msec=50"), "--device="),
    "arecord": (("-q", "-t", "raw", "-f", "S16_LE", "-r", str(RATE_HZ), "-c", "1"), "--device="),
}
# The remedy for a complaint of such a program, by a word in it.
_REMEDIES = {
    "permission": "run sudo usermod -aG audio $USER and log in again",
    "busy": "close the program that uses the microphone",
}


class MicrophoneConfig(Config):
    """The parameters of the node microphone."""

    device: str = Field("", description="device name for parec or arecord; empty for the default")
    topic: str = Field("/microphone/audio", min_length=1, description="topic of the sound")


class MicrophoneNode(PublisherNode[MicrophoneConfig]):
    """Publish a microphone's sound: 16 kHz, mono, 16 bit. Retry every few seconds after a failure.

    The sound is published as UInt8MultiArray, a type that is installed everywhere, with the stamp in a label.
    """

    config_model = MicrophoneConfig

    def __init__(self) -> None:
        super().__init__("microphone")

    def open(self) -> None:
        """Advertise the topic."""
        self._sound = self.advertise(UInt8MultiArray, self.config.topic, EVENTS, "the sound of this microphone")

    def publish_until_halted(self) -> None:
        """Publish sound while a recording program runs, and restart the program when it ends."""
        while not self.halt.is_set():
            if problem := self._publish_sound():
                self.health_log.raise_issue("microphone", Health.STALE, f"microphone: {problem}")
                self.halt.wait(RETRY_S)

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
                self._publish_chunks(recorder.stdout)
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

    def _publish_chunks(self, sound: IO[bytes]) -> None:
        while not self.halt.is_set() and len(chunk := sound.read(CHUNK_BYTES)) == CHUNK_BYTES:
            self.health_log.clear_issue("microphone")
            self._sound.publish(make_stamped_sound(chunk, self.clock.now_ns() - NS_PER_S // CHUNKS_PER_S))
            self.health_log.count("chunks_published")
