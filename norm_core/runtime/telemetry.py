"""Turn off the usage reports of libraries that send them unless told otherwise."""

import os

# Each library reads its variable as it is imported. Ray is told 0, the others 1.
_OFF = {"ORT_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "RAY_USAGE_STATS_ENABLED": "0"}


def disable_telemetry() -> None:
    """Set the variables for this process and those that it starts; call it before the libraries are imported."""
    os.environ.update(_OFF)
