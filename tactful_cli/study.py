"""`tactful study`: logs, exports, agreement, reports and reviews of a session, and what privacy asks."""

import typer

from tactful_cli import study_forms, study_logs, study_pages, study_privacy

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    help="Keep, export, review and report sessions of a study (docs/study.md).",
)
for _part in (study_logs, study_forms, study_pages, study_privacy):
    app.registered_commands += _part.app.registered_commands
app.add_typer(study_privacy.participant, name="participant")
