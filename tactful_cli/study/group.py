"""`tactful study`: logs, exports, agreement, reports and reviews of a session, and what privacy asks."""

import typer

from tactful_cli.study import forms, logs, pages, privacy

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    help="Keep, export, review and report sessions of a study (docs/study.md).",
)
for _part in (logs, forms, pages, privacy):
    app.registered_commands += _part.app.registered_commands
app.add_typer(privacy.participant, name="participant")
