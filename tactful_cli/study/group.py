"""`tactful study`: logs, exports, agreement, reports, reviews and privacy of study sessions."""

from tactful_cli.study import analyse, folder, forms, import_coding, logs, packs, pages, plan, privacy, publish, retract
from tactful_cli.verb import group

app = group("Keep, export, review and report sessions of a study (docs/how-to/study.md).")
for _part in (folder, packs, logs, forms, import_coding, retract, pages, analyse, plan, publish, privacy):
    app.registered_commands += _part.app.registered_commands
app.add_typer(privacy.participant, name="participant")
