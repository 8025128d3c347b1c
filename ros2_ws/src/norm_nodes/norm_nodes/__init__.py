"""Thin ROS 2 adapters: convert messages, call the pure packages and publish the results."""

import sys

try:
    import norm_core  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"norm_nodes: {sys.executable} has no Python package tactful; install it there with pip, or activate the "
        "virtual environment that has it (docs/how-to/deploy.md)"
    ) from error
