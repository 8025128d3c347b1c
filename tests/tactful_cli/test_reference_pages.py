"""Every page in docs/reference that is generated says what the code says now."""

from pathlib import Path

import pytest

from tactful_cli.reference.pages import PAGES, ROS_PAGES

REFERENCE = Path(__file__).resolve().parents[2] / "docs/reference"


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.ros if name in ROS_PAGES else ()) for name in PAGES]
)
def test_page_is_up_to_date(name: str) -> None:
    assert (REFERENCE / name).read_text(encoding="utf-8") == PAGES[name](), "run ./tactful api"
