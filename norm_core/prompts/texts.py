"""A task's words from its file."""

from collections.abc import Mapping
from functools import cache

from pydantic import Field

from norm_core.runtime.config import Config, load_config
from norm_core.runtime.data_files import shipped_file


class PromptFile(Config):
    """One file; the texts are looked up by name by the module that asks."""

    version: str = Field(pattern=r"^[a-z_]+-\d+$")
    texts: Mapping[str, str]


@cache
def prompt_file(task: str) -> PromptFile:
    """The words of a task, as select_action."""
    return load_config(PromptFile, shipped_file("norm_core.prompts", f"{task}.yaml"))
