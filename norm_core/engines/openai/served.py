"""Find a model that an OpenAI-compatible server lists."""

from typing import Any

import httpx2
from pydantic import BaseModel, ValidationError

from norm_core.engines.openai.api_key import ApiKey
from norm_core.models.manifest import EngineKind
from norm_core.runtime.config import ConfigError
from norm_core.runtime.server_address import check_server_url, is_on_this_machine

_TIMEOUT_S = 10.0
# The setting that constrains an answer to a letter, by the `owned_by` of the server.
_GUIDES = {"vllm": "structured_outputs", "llamacpp": "grammar"}


class _ServedModel(BaseModel):
    id: str
    owned_by: str = ""
    max_model_len: int | None = None


class _ServedModels(BaseModel):
    data: list[_ServedModel]


def find_served_model(url: str, model: str, api_key_variable: str) -> dict[str, Any]:
    """Return fields of a manifest; `model` chooses among several, and is enough if the server is down.

    Raises ConfigError if the model cannot be found, or if it is not clear which one is meant.
    """
    try:
        check_server_url(url)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    try:
        models = _list_models(url, ApiKey(api_key_variable))
    except ConfigError as error:
        if not model:
            raise ConfigError(f"{error}; correct that, or name the model with --served-model") from error
        models = [_ServedModel(id=model)]
    matching_models = [entry for entry in models if model in ("", entry.id)]
    if len(matching_models) != 1:
        raise ConfigError(f"{url}: serves {', '.join(entry.id for entry in models)}; name one with --served-model")
    settings = {
        "model": matching_models[0].id,
        "api_key_variable": api_key_variable,
        "guide": _GUIDES.get(matching_models[0].owned_by),
    }
    return {
        "engine": EngineKind.OPENAI,
        "source": {"url": url},
        "quantization": "unknown",
        "context_tokens": matching_models[0].max_model_len,
        "settings": {key: value for key, value in settings.items() if value},
    }


def _list_models(url: str, key: ApiKey) -> list[_ServedModel]:
    try:
        with httpx2.Client(headers=key.headers, timeout=_TIMEOUT_S, trust_env=not is_on_this_machine(url)) as client:
            answer = client.get(f"{url.rstrip('/')}/models").raise_for_status()
        return _ServedModels.model_validate_json(key.redact_bytes(answer.content)).data
    except httpx2.HTTPStatusError as error:
        code = error.response.status_code
        remedy = "name the variable with its key with --api-key-variable" if code in (401, 403) else "check the address"
        raise ConfigError(f"{url}/models: answers with status {code}; {remedy}") from error
    except httpx2.HTTPError as error:
        raise ConfigError(f"{url}: cannot be reached ({key.redact(str(error)) or type(error).__name__})") from error
    except (httpx2.InvalidURL, ValidationError, ValueError) as error:
        raise ConfigError(
            f"{url}/models: lists no models; give the address of the API, such as http://HOST:8000/v1"
        ) from error
