"""The engine that docs/engines.md shows passes the contract, and is what it shows."""

from pathlib import Path

import pytest

from norm_core.engines.engine import Engine
from norm_core.runtime.time import WallClock
from tests.norm_core.engines.contract import EngineContract
from tests.norm_core.engines.minimal_engine import WordsBackend

HERE = Path(__file__).resolve()
MOST_LINES = 60


class TestMinimalEngine(EngineContract):
    @pytest.fixture
    def engine(self) -> Engine:
        return Engine(WordsBackend(), WallClock())


def test_the_guide_shows_this_very_engine_in_under_sixty_lines() -> None:
    code = HERE.with_name("minimal_engine.py").read_text()
    assert code.count("\n") < MOST_LINES
    assert f"```python\n{code}```" in (HERE.parents[3] / "docs" / "engines.md").read_text()
