"""Voice activity: a state machine over speech probabilities and stamps."""

from enum import StrEnum

from pydantic import Field

from norm_core.records.record import record
from norm_core.runtime.config import Config
from norm_core.runtime.time import NS_PER_MS


class VoiceState(StrEnum):
    """The state of the voice activity detector."""

    QUIET = "quiet"
    STARTING = "starting"  # loud enough, but not yet for long enough
    SPEAKING = "speaking"
    STOPPING = "stopping"  # quiet, but not yet for long enough


class VoiceEdge(StrEnum):
    """The start or end of speech."""

    ONSET = "onset"
    OFFSET = "offset"


@record
class VoiceEvent:
    """The start or end of speech; `stamp_ns` precedes the stretch that confirmed it."""

    edge: VoiceEdge
    stamp_ns: int


class VoiceActivityConfig(Config):
    """When speech starts and ends."""

    start_probability: float = Field(default=0.5, gt=0, lt=1, description="probability from which speech may start")
    stop_probability: float = Field(default=0.35, gt=0, lt=1, description="probability below which speech may end")
    start_ms: int = Field(
        default=64, ge=0, le=2000, description="how long speech must last before its start is confirmed"
    )
    stop_ms: int = Field(
        default=400, ge=32, le=5000, description="how long a pause must last before the end is confirmed"
    )


class VoiceActivity:
    """Take blocks in stamp order."""

    def __init__(self, config: VoiceActivityConfig) -> None:
        """Raises ValueError if the stop probability is above the start probability."""
        if config.stop_probability > config.start_probability:
            raise ValueError("speech cannot end above the probability at which it begins")
        self._config = config
        self.state = VoiceState.QUIET
        self._since_ns = 0

    @property
    def loud_since_ns(self) -> int | None:
        """The possible start of speech, while it is uncertain."""
        return self._since_ns if self.state is VoiceState.STARTING else None

    @property
    def quiet_since_ns(self) -> int | None:
        """The possible end of speech, while it is uncertain."""
        return self._since_ns if self.state is VoiceState.STOPPING else None

    def feed(self, probability: float, start_ns: int, end_ns: int) -> VoiceEvent | None:
        """Return the event that a block confirms."""
        match self.state:
            case VoiceState.QUIET | VoiceState.STARTING:
                return self._begin(probability >= self._config.start_probability, start_ns, end_ns)
            case VoiceState.SPEAKING | VoiceState.STOPPING:
                return self._end(probability < self._config.stop_probability, start_ns, end_ns)

    def finish(self, end_ns: int) -> VoiceEvent | None:
        """End the stream and any speech in progress at `end_ns`."""
        spoke, was_stopping = self.state in (VoiceState.SPEAKING, VoiceState.STOPPING), self._since_ns
        stopping = self.state is VoiceState.STOPPING
        self.state = VoiceState.QUIET
        if not spoke:
            return None
        return VoiceEvent(edge=VoiceEdge.OFFSET, stamp_ns=was_stopping if stopping else end_ns)

    def _begin(self, loud: bool, start_ns: int, end_ns: int) -> VoiceEvent | None:
        if not loud:
            self.state = VoiceState.QUIET
            return None
        if self.state is VoiceState.QUIET:
            self.state, self._since_ns = VoiceState.STARTING, start_ns
        if end_ns - self._since_ns < self._config.start_ms * NS_PER_MS:
            return None
        self.state = VoiceState.SPEAKING
        return VoiceEvent(edge=VoiceEdge.ONSET, stamp_ns=self._since_ns)

    def _end(self, quiet: bool, start_ns: int, end_ns: int) -> VoiceEvent | None:
        if not quiet:
            self.state = VoiceState.SPEAKING
            return None
        if self.state is VoiceState.SPEAKING:
            self.state, self._since_ns = VoiceState.STOPPING, start_ns
        if end_ns - self._since_ns < self._config.stop_ms * NS_PER_MS:
            return None
        self.state = VoiceState.QUIET
        return VoiceEvent(edge=VoiceEdge.OFFSET, stamp_ns=self._since_ns)
