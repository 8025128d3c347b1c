"""What all of Tactful shares: time, frames, speech, windows, flags, decisions and where they came from."""

from norm_core.runtime.telemetry import disable_telemetry

__version__ = "0.1.0"

disable_telemetry()
