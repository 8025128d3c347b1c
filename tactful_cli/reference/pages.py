"""The generated pages and sections by file name, each with the function that generates its text."""

from collections.abc import Callable, Mapping

from tactful_cli.reference import status
from tactful_cli.reference.cues import cues_page
from tactful_cli.reference.ros import parameters_page, ros_api_page

PAGES: Mapping[str, Callable[[], str]] = {
    "cues.md": cues_page,
    "parameters.md": parameters_page,
    "ros_api.md": ros_api_page,
    "status.md": status.page,
}

# The last sections of pages in docs/ that are written by hand.
SECTIONS: Mapping[str, Callable[[], str]] = {"troubleshooting.md": status.camera_faults}

# These start nodes, and so need ROS.
ROS_PAGES = frozenset({"parameters.md", "ros_api.md"})


def with_last_section(page: str, section: str) -> str:
    """Replace the section of the same heading, which is the last of a page; without it, add it."""
    heading = section.partition("\n")[0]
    return f"{page.partition(heading)[0].rstrip()}\n\n{section}"
