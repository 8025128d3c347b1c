"""From what a robot senses to social flags."""

import norm_core  # noqa: F401  before any library of the modules here, so that its usage reports are off
