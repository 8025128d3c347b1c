"""The ways to align sensors."""

from enum import StrEnum


class Method(StrEnum):
    """What is aligned: hands that clap, a light that is switched with a sound, or the robot's own speech."""

    CLAP = "clap"
    FLASH = "flash"
    SPEECH = "speech"
