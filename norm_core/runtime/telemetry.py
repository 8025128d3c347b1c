"""Turn off the usage reports that some libraries send by default."""

import os

# Each library reads its variable on import. Ray expects 0, the others 1.
_OFF = {"ORT_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "RAY_USAGE_STATS_ENABLED": "0"}


def disable_telemetry() -> None:
    """Set the variables for this process and its children; call it before the libraries are imported."""
    os.environ.update(_OFF)
