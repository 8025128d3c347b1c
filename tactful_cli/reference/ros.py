"""The pages about the ROS nodes, generated in a process that may import rclpy."""

import subprocess
import sys

from norm_core.runtime.errors import TactfulError


def ros_api_page() -> str:
    """Return the page of topics, services and actions."""
    return _generate("ros_api")


def parameters_page() -> str:
    """Return the page of ROS parameters."""
    return _generate("parameters")


def _generate(page: str) -> str:
    command = [sys.executable, "-m", "norm_nodes.reference_pages", page]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise TactfulError(f"page {page}: the nodes cannot be described: {done.stderr.strip()}; run ./tactful setup")
    return done.stdout
