"""`tactful models send`: send the requests of a batch to a server."""

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress

from norm_core.engines.settings import OpenAISettings
from norm_core.models.catalogue import Catalogue
from norm_core.models.manifest import EngineKind
from norm_core.runtime.config import check_config
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.wording import count_of
from tactful_cli.console import err
from tactful_cli.models.choose import complete_name


def send_batch(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder with the requests of --ask-later.")],
    server: Annotated[
        str,
        typer.Argument(
            metavar="MODEL|URL",
            help="Model behind a server (`models add URL`), or the URL of an OpenAI-compatible API.",
            autocompletion=complete_name,
        ),
    ],
    served_model: Annotated[
        str, typer.Option(help="Name of the model on the server; default: that in the requests.")
    ] = "",
    concurrency: Annotated[int, typer.Option(min=1, max=256, help="Number of requests at a time.")] = 8,
) -> None:
    """Send the requests of a batch that have no answer yet, after printing their size.

    After an interruption, the same command sends the rest. The exit code is 1 if a request has no answer at the end,
    and 2 if nothing can be sent or too many requests fail in a row.
    """
    from norm_core.engines.openai.batch import BatchSize  # noqa: PLC0415
    from norm_core.engines.openai.batch_sender import TIMEOUT_S, BatchSender  # noqa: PLC0415
    from norm_core.engines.openai.client import OpenAIServer  # noqa: PLC0415

    url, settings = _find_server(server)
    if served_model:
        settings = settings.model_copy(update={"model": served_model})
    connection = OpenAIServer(
        url, api_key_variable=settings.api_key_variable, tries=settings.tries, stall_s=max(settings.stall_s, TIMEOUT_S)
    )
    sender = BatchSender(folder, connection, settings)
    size = BatchSize()
    try:
        for request in sender.find_unanswered():
            size.add(request)
        err.print(f"{url}: {size}", soft_wrap=True, markup=False)
        with Progress(console=err) as progress:
            task = progress.add_task("answers", total=size.requests)
            sender.send(concurrency, lambda: progress.advance(task))
    finally:
        connection.close()
        for reason, count in sender.failure_reasons.most_common(3):
            err.print(f"failed {count_of(count, 'time')}: {reason}", soft_wrap=True, markup=False)
    if missing_count := sum(1 for _ in sender.find_unanswered()):
        err.print(f"{folder}: {count_of(missing_count, 'request')} without an answer; the same command asks again")
        raise typer.Exit(1)


def _find_server(name: str) -> tuple[str, OpenAISettings]:
    """Return the address and settings of a server. Raises TactfulError for a model without one."""
    if "://" in name:
        return name, OpenAISettings()
    manifest = Catalogue().read_manifest(name)
    if manifest.engine is not EngineKind.OPENAI or not manifest.source.url:
        raise TactfulError(f"{name}: runs in this process, not behind a server; name a model on a server, or its URL")
    settings = check_config(OpenAISettings, manifest.settings, f"{name}: settings")
    return manifest.source.url, settings.model_copy(update={"model": settings.model or manifest.name})
