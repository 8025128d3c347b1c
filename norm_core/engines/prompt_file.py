"""Load the texts of a task from its file."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import Field

from norm_core.files.data_files import shipped_file
from norm_core.runtime.config import Config, load_config


class PromptFile(Config):
    """A prompt file. The calling module looks up texts by name, some of them by locale first."""

    version: str = Field(pattern=r"^[a-z_-]+-\d+$")
    texts: Mapping[str, Any]


@cache
def load_prompt_file(task: str, package: str) -> PromptFile:
    """Load the texts of a task, such as select_action, from the file of that name in a package."""
    return load_config(PromptFile, shipped_file(package, f"{task}.yaml"))
