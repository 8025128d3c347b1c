"""`tactful models send`: ask a server what a batch left to be asked later."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress

from norm_core.engines.settings import OpenAISettings
from norm_core.models.catalogue import Catalogue
from norm_core.models.manifest import EngineKind, Prices
from norm_core.runtime.config import check_config
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.wording import count_of
from tactful_cli.console import err
from tactful_cli.models.choose import known_names


def send_batch(  # noqa: PLR0917
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder with the requests of --ask-later.")],
    server: Annotated[
        str,
        typer.Argument(
            metavar="MODEL|URL",
            help="Model behind a server (`models add URL`), or the URL of an OpenAI-compatible API.",
            autocompletion=known_names,
        ),
    ],
    served_model: Annotated[str, typer.Option(help="Server's name of the model; default: that in the requests.")] = "",
    concurrency: Annotated[int, typer.Option(min=1, max=256, help="Number of requests side by side.")] = 8,
    timeout_s: Annotated[float, typer.Option("--timeout-s", min=0.001, help="Time for one request.")] = 600.0,
    max_cost: Annotated[
        float,
        typer.Option(
            min=0,
            help="No new request starts after this cost, with that of the folder's earlier answers; up to "
            "--concurrency requests more are paid. 0: no limit.",
        ),
    ] = 0.0,
    price: Annotated[
        str, typer.Option(metavar="IN,OUT", help="Prices of a million tokens read and written, not the manifest's.")
    ] = "",
) -> None:
    """Send the requests of a batch that have no answer yet, one by one. Shows their size and price first.

    After an interruption, the same command goes on. Exits with 1 if a request has no answer at the end,
    and with 2 if a limit is reached or nothing can be sent.
    """
    from norm_core.engines.openai.batch_sender import BatchSender, adapt  # noqa: PLC0415
    from norm_core.engines.openai.client import OpenAIServer  # noqa: PLC0415

    url, settings, prices = _server_of(server)
    prices = Prices.of_option(price) or prices
    if max_cost and prices is None:
        raise TactfulError("--max-cost: the model has no prices; write them in its manifest, or give --price")
    connection = OpenAIServer(
        url, api_key_variable=settings.api_key_variable, tries=settings.tries, stall_s=max(settings.stall_s, timeout_s)
    )
    changes = partial(
        adapt,
        model=served_model or settings.model,
        tokens_field=settings.tokens_field,
        extra=settings.extra,
        least_tokens=settings.text_tokens if settings.answers == "text" else 0,
    )
    sender = BatchSender(
        folder.expanduser(), connection, changes, concurrency=concurrency, timeout_s=timeout_s, max_cost=max_cost,
        prices=prices,
    )  # fmt: skip
    connection.on_limit = lambda pause: err.print(pause, soft_wrap=True, markup=False)
    size = sender.pending()
    err.print(f"{url}: {size.describe(prices)}", soft_wrap=True, markup=False)
    try:
        with Progress(console=err) as progress:
            task = progress.add_task("answers", total=size.requests)
            sender.send(lambda: progress.advance(task))
    finally:
        connection.close()
        cost = f", {sender.spent.cost(prices):.4f} {prices.currency}" if prices else ""
        tokens = f"{sender.spent.prompt_tokens} tokens read, {sender.spent.completion_tokens} written"
        err.print(f"{folder}: {count_of(sender.spent.requests, 'answer')}, {tokens}{cost}", soft_wrap=True)
        for reason, number in sender.reasons.most_common(3):
            times = count_of(number, "time")
            err.print(f"failed {times}: {reason}", soft_wrap=True, markup=False)
    if left := sender.pending().requests:
        err.print(f"{folder}: {count_of(left, 'request')} without an answer; the same command asks again")
        raise typer.Exit(1)


def _server_of(name: str) -> tuple[str, OpenAISettings, Prices | None]:
    """Return a server's address, settings and prices. Raises ConfigError for another model."""
    if "://" in name:
        return name, check_config(OpenAISettings, {}, "settings"), None
    manifest = Catalogue().manifest(name)
    if manifest.engine is not EngineKind.OPENAI or not manifest.source.url:
        raise TactfulError(f"{name}: runs in this process, not behind a server; name a server's model or its URL")
    settings = check_config(OpenAISettings, manifest.settings, f"{name}: settings")
    settings = settings.model_copy(update={"model": settings.model or manifest.name})
    return manifest.source.url, settings, manifest.prices
