"""The engine that docs/how-to/models.md names as the example passes the contract."""

from pathlib import Path

import pytest

from norm_core.engines.direct_engine import DirectEngine
from norm_core.runtime.time import WallClock
from tests.norm_core.engines.contract import EngineContract
from tests.norm_core.engines.minimal_engine import WordsBackend

HERE = Path(__file__).resolve()
MOST_LINES = 60


class TestMinimalEngine(EngineContract):
    @pytest.fixture
    def engine(self) -> DirectEngine:
        return DirectEngine(WordsBackend(), WallClock())


def test_the_example_is_short_and_the_guide_names_it() -> None:
    path = HERE.with_name("minimal_engine.py")
    assert path.read_text().count("\n") < MOST_LINES
    assert path.relative_to(HERE.parents[3]).as_posix() in (HERE.parents[3] / "docs/how-to/models.md").read_text()
