"""Every page in docs that is generated says what the code says now."""

from pathlib import Path

import pytest

from tactful_cli.reference.__main__ import PAGES, ROS_PAGES

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.ros if name in ROS_PAGES else ()) for name in PAGES]
)
def test_page_is_up_to_date(name: str) -> None:
    assert (DOCS / "reference" / name).read_text(encoding="utf-8") == PAGES[name](), (
        "run python -m tactful_cli.reference"
    )
