"""What all of Tactful shares: time, frames, speech, windows, flags, decisions and where they came from."""

__version__ = "0.1.0"
