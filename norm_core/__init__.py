"""Data, time and configuration that all of Tactful shares.

Engines, models and bags are in `norm_core.engines`, `norm_core.models` and `norm_core.bags`; measures are in
`scoring`.
"""

import os

import lazy_loader

# Turn off the usage reports that some libraries send by default, before they are imported.
os.environ.update({"ORT_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_TELEMETRY": "1"})
# Matrix products are small here: beside other work, several threads would wait for one another ten times as long.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Threads of Whisper that wait would otherwise spin.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
