"""One contract for asking a model, whatever runs the model."""

from typing import TYPE_CHECKING

from norm_core.runtime.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from norm_core.engines.backend import Backend
    from norm_core.engines.engine import Engine
    from norm_core.engines.engine_factory import open_engine, open_engine_by_name
    from norm_core.engines.engine_pool import EngineLease, EnginePool
    from norm_core.engines.errors import (
        EngineError,
        EngineFailedError,
        InvalidRequestError,
        PastDeadlineError,
        RefusedError,
        UnparsedError,
    )
    from norm_core.engines.openai.circuit_breaker import ServerStatus
    from norm_core.engines.prompt import Image, Prompt, Question, Quoted, Text
    from norm_core.engines.reply import Generation, ModelInfo, Scores, Usage
    from norm_core.engines.request_context import Deadline, RequestContext
    from norm_core.engines.shared_engine import SharedEngine, Urgency

__all__ = [
    "Backend",
    "Deadline",
    "Engine",
    "EngineError",
    "EngineFailedError",
    "EngineLease",
    "EnginePool",
    "Generation",
    "Image",
    "InvalidRequestError",
    "ModelInfo",
    "PastDeadlineError",
    "Prompt",
    "Question",
    "Quoted",
    "RefusedError",
    "RequestContext",
    "Scores",
    "ServerStatus",
    "SharedEngine",
    "Text",
    "UnparsedError",
    "Urgency",
    "Usage",
    "open_engine",
    "open_engine_by_name",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "backend": ("Backend",),
            "engine": ("Engine",),
            "engine_factory": ("open_engine", "open_engine_by_name"),
            "engine_pool": ("EngineLease", "EnginePool"),
            "errors": (
                "EngineError",
                "EngineFailedError",
                "InvalidRequestError",
                "PastDeadlineError",
                "RefusedError",
                "UnparsedError",
            ),
            "openai.circuit_breaker": ("ServerStatus",),
            "prompt": ("Image", "Prompt", "Question", "Quoted", "Text"),
            "reply": ("Generation", "ModelInfo", "Scores", "Usage"),
            "request_context": ("Deadline", "RequestContext"),
            "shared_engine": ("SharedEngine", "Urgency"),
        },
    )
