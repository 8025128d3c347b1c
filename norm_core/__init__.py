"""Data, time and configuration that all of Tactful shares.

Engines, models, bags and measures are in `norm_core.engines`, `norm_core.models`, `norm_core.bags` and
`norm_core.evaluation`.
"""

import lazy_loader

from norm_core.runtime.telemetry import disable_telemetry

__version__ = "0.1.0"
disable_telemetry()
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
