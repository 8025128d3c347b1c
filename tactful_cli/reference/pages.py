"""The reference pages by file name, each with the function that generates its text."""

from collections.abc import Callable, Mapping

from tactful_cli.reference import python, status
from tactful_cli.reference.cli import cli_page
from tactful_cli.reference.cues import cues_page
from tactful_cli.reference.ros import parameters_page, ros_api_page

PAGES: Mapping[str, Callable[[], str]] = {
    "cli.md": cli_page,
    "cues.md": cues_page,
    "parameters.md": parameters_page,
    "python.md": python.page,
    "ros_api.md": ros_api_page,
    "status.md": status.page,
}

# These start nodes, and so need ROS.
ROS_PAGES = frozenset({"parameters.md", "ros_api.md"})
