"""Tiny checkpoints of the real families, for all modules of the transformers engine."""

from pathlib import Path

import pytest


class Checkpoints:
    """Folders of checkpoints, each built when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __getitem__(self, family: str) -> Path:
        # Imported here, because the default environment lacks torch.
        from tests.norm_core.engines.tiny_checkpoints import built

        folder = self._folder / family
        return folder if folder.is_dir() else built(family, folder)


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Checkpoints:
    return Checkpoints(tmp_path_factory.mktemp("checkpoints"))
